"""Every claim on runs made to bear it out and on runs made to contradict it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from stabkit import claims, methods
from stabkit.claims import CLAIMS, OF_STEPS, OF_SURFACES, deepnet_table1, findings, quality, reasons
from stabkit.claims.base import judge
from stabkit.storage.store import Run
from tests.figures.fake_runs import plane, plausible, run, spec, step, sweep, table

CLAIM = {claim.key: claim for claim in (*CLAIMS, *OF_STEPS)}
EVERY = (*CLAIMS, *OF_STEPS, *OF_SURFACES)


def verdict(key: str, runs: list[Run]) -> str:
    return judge(CLAIM[key], runs).verdict


def grows(method: str, exponent: float, **changes: object) -> list[Run]:
    return [
        run(spec(method, n, **changes), {"update": table([0, 1, 16], {"state": [0, 1e-4, 0.01 * n**exponent]})})
        for n in (6, 18, 50)
    ]


def first(method: str, size: float, warmup: int = 0, depth: int = 18, **extra: object) -> Run:
    return run(
        spec(method, depth, warmup=warmup, steps=250),
        {"update": table([0, 1, 16], {"state": [0.0, size, size], "state@step": [0.0, size, size]})},
        **extra,  # type: ignore[arg-type]
    )


def ended(method: str, word: str, depth: int = 18, loss: float = 5.0, seed: int = 0) -> Run:
    made = run(spec(method, depth, warmup=0, steps=250, seed=seed), {}, word)
    made.outcome["validation_loss"] = loss  # type: ignore[index]
    return made


def gradients(method: str, **sites: float) -> Run:
    columns = {name.replace("_", "."): [value, value] for name, value in sites.items()}
    return run(spec(method, 18), {"grad_norm": table([0, 16], columns)})


def moved(warmup: int, size: float) -> Run:
    return run(
        spec("post-ln", 18, warmup=warmup),
        {
            "update": table([0, 16], {"state": [0.0, 1.0]}),
            "parameter_update": table([0, 16], {"embedding": [0.0, size], "decoder.1.ffn": [0.0, size]}),
        },
    )


def still(later: float) -> Run:
    steps = [0, 1, *range(50, 101)]
    return run(
        spec("post-ln", 18, warmup=0, steps=100),
        {"update": table(steps, {"state": [0.0] * 53, "state@step": [0.0, 8.0] + [later] * 51})},
    )


def top(method: str, size: float) -> Run:
    return run(
        spec(method, 18, warmup=0, steps=250), {"grad_norm": table([0, 100, 250], {"decoder.18": [9, size, size]})}
    )


def weighs(method: str, *ratios: float) -> Run:
    columns = {f"decoder.{i}.self": [ratio] for i, ratio in enumerate(ratios, 1)}
    return run(spec(method, 0, len(ratios)), {"branch_ratio": table([0], columns)})


def large(size: float) -> Run:
    return run(spec("post-ln", 18, warmup=0), {"ln_input": table([0], {"decoder.1.ffn": [8.0 * size]})})


def layered(lower: float) -> Run:
    columns = {f"decoder.{i}.ffn": [lower if i < 18 else 1.0] for i in range(1, 19)}
    return run(spec("post-ln", 18), {"grad_norm": table([0], columns)})


def chained(method: str, **chain: float) -> Run:
    return run(spec(method, 18, warmup=0), {"update": table([0, 16], {"state": [0.0, 1.0]})}, **chain)


def scaled(
    loss: float, word: str = "trains", alpha: float = 1.0, beta: float = 1.0, dropped: dict[str, str] | None = None
) -> list[Run]:
    """DeepNorm itself, ending at 5 nats, and changed so."""
    itself = run(spec("deepnorm", 18, warmup=0, steps=250), {}, "trains")
    changed_spec = spec("deepnorm", 18, warmup=0, steps=250, alpha_scale=alpha, beta_scale=beta, options=dropped or {})
    changed = run(changed_spec, {}, word)
    itself.outcome["validation_loss"], changed.outcome["validation_loss"] = 5.0, loss  # type: ignore[index]
    return [itself, changed]


def slopes(method: str, exponent: float, size: float = 1.0, **changes: object) -> list[Run]:
    """Single steps at three depths, ‖ΔF‖/η = size·N^exponent."""
    return [step(method, n, size * n**exponent, **changes) for n in (6, 18, 50)]


def harmonic_exponent() -> float:
    """The slope of log(1 + H_{L−1}) over log N through 6, 18 and 50 layers, L = 3N: Theorem 4 at Xavier, by hand."""
    x = [math.log(n) for n in (6, 18, 50)]
    y = [math.log(1 + sum(1 / k for k in range(1, 3 * n))) for n in (6, 18, 50)]
    middle = sum(x) / 3
    return sum((a - middle) * b for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


LOG = harmonic_exponent()
BALANCED = [i**-0.5 for i in range(1, 13)]
CASES: dict[str, tuple[Callable[[], list[Run]], Callable[[], list[Run]]]] = {
    "growth": (
        lambda: grows("post-ln", 1.0) + grows("deepnorm", 0.5),
        lambda: grows("post-ln", 0.5) + grows("deepnorm", 0.5),
    ),
    "constant": (lambda: grows("deepnorm", 0.1), lambda: grows("deepnorm", 0.55)),
    "smaller": (
        lambda: grows("post-ln", 1.0) + grows("deepnorm", 0.2),
        lambda: grows("post-ln", 0.5) + grows("deepnorm", 0.5),
    ),
    "first-deepnorm": (
        lambda: [first("post-ln", 8.0), first("deepnorm", 1.0)],
        lambda: [first("post-ln", 1.5), first("deepnorm", 1.0)],
    ),
    "first-init": (
        lambda: [first("post-ln", 8.0), first("post-ln-init", 3.0)],
        lambda: [first("post-ln", 5.0), first("post-ln-init", 3.0)],
    ),
    "standstill": (lambda: [still(0.1)], lambda: [still(4.0)]),
    "warmup": (
        lambda: [first("post-ln", 8.0), first("post-ln", 0.1, warmup=4000)],
        lambda: [first("post-ln", 8.0), first("post-ln", 7.0, warmup=4000)],
    ),
    "initialisation": (
        lambda: [first("post-ln", 8.0), first("post-ln-init", 5.0)],
        lambda: [first("post-ln", 5.0), first("post-ln-init", 5.0)],
    ),
    "theta": (lambda: [moved(0, 1.0), moved(4000, 0.01)], lambda: [moved(0, 1.0), moved(4000, 0.9)]),
    "ln-growth": (
        lambda: [chained("post-ln", ln_input_growth=1.5), chained("post-ln-init", ln_input_growth=1.1)],
        lambda: [chained("post-ln", ln_input_growth=1.1), chained("post-ln-init", ln_input_growth=1.2)],
    ),
    "ln-size": (lambda: [large(2.0)], lambda: [large(1.2)]),
    "vanishing": (
        lambda: [chained("post-ln", gradient_ratio_lowest=1e-7), chained("post-ln-init", gradient_ratio_lowest=0.3)],
        lambda: [chained("post-ln", gradient_ratio_lowest=0.2), chained("post-ln-init", gradient_ratio_lowest=0.3)],
    ),
    "order": (
        lambda: [chained("post-ln", gradient_ratio_start=0.1, gradient_ratio_lowest=1e-6)],
        lambda: [chained("post-ln", gradient_ratio_start=1e-8, gradient_ratio_lowest=1e-12)],
    ),
    "last-layer": (
        lambda: [top("post-ln", 0.5), top("post-ln-init", 0.8)],
        lambda: [top("post-ln", 0.8), top("post-ln-init", 0.5)],
    ),
    "top-largest": (lambda: [layered(0.5)], lambda: [layered(1.5)]),
    "stuck": (
        lambda: [ended("post-ln", "stuck"), ended("post-ln-init", "trains")],
        lambda: [ended("post-ln", "trains"), ended("post-ln-init", "trains")],
    ),
    "deep": (
        lambda: [ended("deepnorm", "trains", 50)],
        lambda: [ended("deepnorm", "trains", 50), ended("deepnorm", "stuck", 50, seed=1)],
    ),
    "admin-fails": (lambda: [ended("admin", "diverged", 50)], lambda: [ended("admin", "trains", 50)]),
    "balance": (
        lambda: [weighs("admin", *[0.9] * 12), weighs("post-ln", *[0.3] * 12)],
        lambda: [weighs("admin", *BALANCED), weighs("post-ln", *[0.9] * 12)],
    ),
    "shares": (
        lambda: [weighs("admin", *BALANCED), weighs("post-ln", *[1.0] * 12)],
        lambda: [weighs("admin", *[1.0] * 12), weighs("post-ln", *[1.0] * 12)],
    ),
    "alpha-small": (lambda: scaled(6.0, "stuck", alpha=0.25), lambda: scaled(4.9, alpha=0.25)),
    "beta-large": (lambda: scaled(5.6, beta=4.0), lambda: scaled(5.1, beta=4.0)),
    "alpha-large": (lambda: scaled(5.2, alpha=4.0), lambda: scaled(5.0, alpha=4.0)),
    "beta-small": (lambda: scaled(5.7, beta=0.25), lambda: scaled(4.9, beta=0.25)),
    "without-deepnorm": (
        lambda: scaled(6.0, "diverged", dropped={"alpha": "one"}),
        lambda: scaled(5.4, dropped={"alpha": "one"}),
    ),
    "without-init": (
        lambda: scaled(5.2, dropped={"beta": "one"}),
        lambda: scaled(6.0, "stuck", dropped={"beta": "one"}),
    ),
    "update-follows": (
        lambda: plane(lambda a, b: b**1.5 / a, lambda a, b: "trains"),
        lambda: plane(lambda a, b: a / b, lambda a, b: "trains"),
    ),
    "bound-decides": (
        lambda: plane(lambda a, b: 1.0, lambda a, b: "stuck" if b / a > 2 else "trains"),
        lambda: plane(lambda a, b: 1.0, lambda a, b: "stuck" if a == 1 else "trains"),
    ),
    "slope-smaller": (
        lambda: slopes("post-ln", 1.0, 11.0) + slopes("deepnorm", 1.0),
        lambda: slopes("post-ln", 0.5, 9.0) + slopes("deepnorm", 0.5),
    ),
    "slope-goal": (lambda: slopes("deepnorm", 0.24), lambda: slopes("deepnorm", -0.26)),
    "slope-log": (lambda: slopes("pre-ln", LOG + 0.09), lambda: slopes("pre-ln", LOG + 0.11)),
    "slope-sub-ln": (lambda: slopes("sub-ln", -0.24), lambda: slopes("sub-ln", -2.0)),
    "admin-trains": (lambda: [ended("admin", "trains")], lambda: [ended("admin", "stuck")]),
    "default-fails": (
        lambda: [ended("post-ln", "diverged"), ended("admin", "trains")],
        lambda: [ended("post-ln", "trains"), ended("admin", "trains")],
    ),
    "lower-encoder": (
        lambda: [gradients("post-ln", encoder_1=1e-6, decoder_1=1e-3, decoder_18=1.0)],
        lambda: [gradients("post-ln", encoder_1=1e-1, decoder_1=1e-3, decoder_18=1.0)],
    ),
    "shallow": (
        lambda: [ended("post-ln", "trains", 6, 5.00), ended("admin", "trains", 6, 5.05)],
        lambda: [ended("post-ln", "trains", 6, 5.00), ended("admin", "trains", 6, 5.50)],
    ),
    "deeper-better": (
        lambda: [ended("admin", "trains", 6, 5.0), ended("admin", "trains", 18, 4.8)],
        lambda: [ended("admin", "trains", 6, 5.0), ended("admin", "trains", 18, 5.2)],
    ),
}


def test_every_claim_has_both_a_store_that_bears_it_out_and_one_that_contradicts_it() -> None:
    elsewhere = {claim.key for claim in deepnet_table1.CLAIMS}  # tests/figures/methods/test_table1.py, row by row
    elsewhere |= {claim.key for claim in (*quality.CLAIMS, *reasons.CLAIMS)}  # files of their own
    assert set(CASES) | {"bound"} | elsewhere == set(CLAIM) and len(CLAIMS) + len(OF_STEPS) == len(CLAIM) >= 12


@pytest.mark.parametrize("key", CASES)
def test_a_claim_holds_where_it_should_fails_where_it_should_and_is_untested_without_its_runs(key: str) -> None:
    bears_out, contradicts = CASES[key]
    assert verdict(key, bears_out()) == "holds"
    assert verdict(key, contradicts()) == "fails"
    assert verdict(key, []) == "untested"
    assert verdict(key, [plausible(spec("deepnorm", 2))]) == "untested"


@pytest.mark.parametrize(("rate", "expected"), [(0.5, "fails"), (3.0, "holds")])
def test_the_bound_compares_the_exponent_with_that_of_the_theorems_sum(rate: float, expected: str) -> None:
    from stabkit.methods.base import sites

    runs = []
    for n in (6, 18, 50):
        names = [site.name for site in sites(n, n, 64)]
        delta = n ** (rate - 2)  # 2N·N·√2·‖Δθ‖ grows by two powers of its own
        runs.append(
            run(
                spec("post-ln", n),
                {
                    "update": table([0, 16], {"state": [0.0, 0.001 * n]}),
                    "parameter_update": table([0, 16], {name: [0.0, delta] for name in names}),
                    "ln_input": table([0], {k: [8.0] for k in names} | {f"{k}@omega": [1.0] for k in names}),
                },
            )
        )
    assert verdict("bound", runs) == expected


def test_one_place_that_disagrees_makes_a_claim_fail_and_is_named() -> None:
    runs = [ended("deepnorm", "trains", 50), ended("deepnorm", "stuck", 100)]
    found = judge(CLAIM["deep"], runs)
    assert found.verdict == "fails" and "100L-100L" in found.measured and "1 of 2 places" in found.measured


def test_seeds_are_paired_and_a_scaled_alpha_has_no_say() -> None:
    runs = [first("post-ln", 8.0), first("deepnorm", 1.0)]
    scaled = first("deepnorm", 100.0)
    scaled = run(spec("deepnorm", 18, warmup=0, steps=250, alpha_scale=2.0), scaled.records)
    assert verdict("first-deepnorm", [*runs, scaled]) == "holds"
    other_seed = run(spec("deepnorm", 18, warmup=0, steps=250, seed=5), scaled.records)
    assert verdict("first-deepnorm", [runs[0], other_seed]) == "untested"


def test_unequal_stacks_are_no_equal_ones_and_the_deeper_stack_makes_a_model_deep() -> None:
    wide = [run(spec(m, 60, 12, warmup=0, steps=250), {}, w) for m, w in (("post-ln", "diverged"), ("admin", "trains"))]
    assert verdict("default-fails", wide) == verdict("admin-trains", wide) == "holds"
    lopsided = [run(spec(m, 60, 6, warmup=0, steps=250), {}, "trains") for m in ("post-ln", "admin")]
    assert verdict("shallow", lopsided) == "untested"
    single = [run(spec(m, 0, 18, warmup=0, steps=250), {}, "trains") for m in ("post-ln", "post-ln-init")]
    assert verdict("stuck", single) == "untested"


def test_fates_are_paired_over_seeds_and_stuck_is_a_failure_everywhere() -> None:
    apart = [ended("post-ln", "stuck", seed=0), ended("post-ln-init", "trains", seed=7)]
    assert verdict("stuck", apart) == "untested"
    assert verdict("admin-fails", [ended("admin", "stuck", 50)]) == "holds"


def test_an_exponent_is_taken_at_the_pages_own_reference_step() -> None:
    runs = grows("post-ln", 1.0, warmup=0) + grows("deepnorm", 0.5, warmup=0)
    short = [run(spec("admin", 2, steps=1), {"update": table([0, 1], {"state": [0.0, 1.0]})})]
    told = judge(CLAIM["growth"], [*runs, *short])
    assert told.verdict == "fails" and "N^0.00" in told.measured  # after one update all of these are alike


def test_what_fails_stands_first_and_what_is_untested_names_a_command() -> None:
    found = findings(sweep())
    order = [one.verdict for one in found]
    assert order == sorted(order, key=["fails", "holds", "untested"].index)
    for one in found:
        assert (
            one.claim.command.startswith(("stabkit sweep ", "stabkit slope ", "stabkit ablate ", "stabkit landscape "))
            and one.claim.source
            and one.claim.test
        )
        assert (one.verdict == "untested") == (one.evidence == ()) and "nan" not in one.measured


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [run(spec("admin", 6), {})],
        [plausible(spec("post-ln", 18), until=0)],
        sweep((6, 18), (0, 1)),
        [step(m, n, v) for n in (6, 18, 50) for m, v in (("post-ln", math.nan), ("pre-ln", 0.0), ("deepnorm", 1e300))],
    ],
)
def test_judging_survives_any_runs(runs: list[Run]) -> None:
    assert len(findings(runs)) == len(EVERY)
    assert all(math.isfinite(e.value) for one in findings(runs) for e in one.evidence)


def test_a_claims_commands_are_valid() -> None:
    from typer.testing import CliRunner

    from stabkit.cli.app import app

    for command in {claim.command for claim in EVERY}:
        result = CliRunner().invoke(app, [*command.split()[1:], "--dry-run"])
        assert result.exit_code == 0, (command, result.output)


def test_an_ablation_is_judged_only_where_the_method_itself_trains() -> None:
    base, changed = scaled(5.5, "trains", alpha=0.25)
    base.outcome["outcome"] = "diverged"  # type: ignore[index]
    assert verdict("alpha-small", [base, changed]) == "untested"
    diverged = scaled(math.nan, "diverged", alpha=0.25)
    assert "99" not in (told := judge(CLAIM["alpha-small"], diverged).measured) and "diverged" in told


def test_what_parts_runs_is_told_as_the_share_on_the_right_side() -> None:
    (told,) = judge(CLAIM["bound-decides"], CASES["bound-decides"][0]()).evidence
    right, total = map(int, re.search(r"(\d+) of (\d+) runs", told.text).groups())  # type: ignore[union-attr]
    assert told.value == right / total <= 1


def test_every_claims_file_is_in_the_table() -> None:
    folder = Path(claims.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "base", "evidence", "quality_evidence"}
    named = {file: import_module(f"stabkit.claims.{file}").CLAIMS for file in files}
    missing = [file for file, own in named.items() if not set(own) <= set(EVERY)]
    assert missing == [] and sum(map(len, named.values())) == len(EVERY)


def test_every_claim_names_methods_that_are_known_and_keys_are_never_shared() -> None:
    assert len({claim.key for claim in EVERY}) == len(EVERY)
    for claim in EVERY:
        assert claim.methods and set(claim.methods) <= set(methods.KEYS), claim.key
        assert len(set(claim.methods)) == len(claim.methods)


def test_single_steps_have_no_say_in_other_claims_and_training_none_in_theirs() -> None:
    told = {one.claim.key for one in findings([*slopes("post-ln", 1.0), *slopes("deepnorm", 0.0)]) if one.evidence}
    assert told == {"slope-smaller", "slope-goal"}
    training = {one.claim.key: one.measured for one in findings(sweep())}
    both = {one.claim.key: one.measured for one in findings([*sweep(), *slopes("post-ln", 1.0)])}
    assert both == training and all(training[claim.key].startswith("needs") for claim in OF_STEPS)


def test_slopes_are_told_with_their_place_and_beside_the_theorem() -> None:
    smaller = judge(CLAIM["slope-smaller"], [*slopes("post-ln", 1.0, 4.0), *slopes("deepnorm", 0.0, 2.0)])
    assert (smaller.verdict, smaller.measured) == ("holds", "12 times (6L-6L) to 100 times (50L-50L)")
    log = judge(CLAIM["slope-log"], slopes("pre-ln", LOG))
    assert log.measured == f"N^{LOG:.2f}, theorem N^{LOG:.2f} (6–50 layers, N = M)"
    two = [*slopes("deepnorm", 0.0, lr=1e-4), *slopes("deepnorm", 1.0, lr=1e-5)]
    assert judge(CLAIM["slope-goal"], two).verdict == "untested", "rates that do not agree are no evidence"
    agreeing = [*slopes("deepnorm", 0.1, lr=1e-4), *slopes("deepnorm", 0.1, lr=1e-5)]
    assert judge(CLAIM["slope-goal"], agreeing).verdict == "holds"


def test_one_depth_that_does_not_differ_tenfold_makes_the_smaller_slope_fail() -> None:
    runs = [*slopes("post-ln", 0.0, 30.0), *slopes("deepnorm", 0.5)]  # 12, 7.1 and 4.2 times
    found = judge(CLAIM["slope-smaller"], runs)
    assert found.verdict == "fails" and "fails at 2 of 3 places, holds at 6L-6L" in found.measured


def test_slopes_of_seeds_count_by_their_geometric_mean_and_two_depths_have_no_exponent() -> None:
    seeds = [*slopes("deepnorm", 0.5, seed=0), *slopes("deepnorm", -0.5, seed=1)]
    assert verdict("slope-goal", seeds) == "holds" and verdict("slope-goal", seeds[:3]) == "fails"
    assert verdict("slope-goal", [made for made in seeds if made.spec.depth != "18L-18L"]) == "untested"


def test_a_slope_that_was_lost_is_no_evidence() -> None:
    lost = [step("post-ln", 6, math.nan), step("deepnorm", 6, 1.0)]
    assert verdict("slope-smaller", lost) == "untested"
    assert verdict("slope-smaller", [*lost, step("post-ln", 18, 20.0), step("deepnorm", 18, 1.0)]) == "holds"
