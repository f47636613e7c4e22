"""What all claims share: where they look, what they leave out, how they are told."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from stabkit import claims, methods
from stabkit.claims import CLAIMS, EVERY, OF_STEPS, findings
from stabkit.claims.admin import PARTS
from stabkit.claims.base import ORDER, WEIGHTS, Finding
from stabkit.claims.verdict import judge
from stabkit.results.run import Run
from tests.figures.fake_runs import ended, known, plausible, run, spec, step, sweep, table

CLAIM = {claim.key: claim for claim in (*CLAIMS, *OF_STEPS)}


def found(key: str, runs: list[Run]) -> Finding:
    return judge(CLAIM[key], runs)


def moved(method: str, size: float, seed: int = 0, **more: object) -> Run:
    """A run under warm-up whose output has moved so far after 16 updates."""
    return run(spec(method, 18, seed=seed, **more), {"update": table([0, 16], {"state": [0.0, size]})})


def fate(
    method: str, word: str, encoder: int = 18, decoder: int | None = None, seed: int = 0, loss: float = 5.0
) -> Run:
    return ended(spec(method, encoder, decoder, warmup=0, steps=250, seed=seed), word, loss)


def test_seeds_are_paired_and_a_scaled_alpha_or_an_own_recipe_has_no_say() -> None:
    two = [moved("post-ln", 8.0), moved("deepnorm", 1.0), moved("post-ln", 9.0, 1), moved("deepnorm", 1.0, 1)]
    (place,) = found("smaller", two).places
    assert dict(place.measured.values) == {0: 8.0, 1: 9.0} and place.verdict == "holds"
    assert (place.low, place.high, place.value) == (8.0, 9.0, pytest.approx(math.sqrt(72)))
    aside = [
        moved("deepnorm", 100.0, alpha_scale=2.0),
        moved("deepnorm", 100.0, recipe="paper"),
        moved("deepnorm", 9.0, 7),
    ]
    assert found("smaller", [*two, *aside]).places[-1].value == place.value
    assert found("smaller", [two[0], aside[2]]).verdict == "untested", "no seed that both have"


def test_unequal_stacks_are_no_equal_ones_and_the_deeper_stack_makes_a_model_deep() -> None:
    wide = [fate(m, w, 60, 12, seed) for m, w in (("post-ln", "diverged"), ("admin", "trains")) for seed in (0, 1)]
    (place,) = found("admin-trains", wide).places
    assert place.verdict == "holds" and place.measured.part == PARTS[1]
    (place,) = found("default-fails", wide).places
    assert place.value == 1.0 and place.verdict == "out of reach" and "the harder case" in place.reason
    assert found("shallow", [fate(m, "trains", 60, 6) for m in ("post-ln", "admin")]).verdict == "untested"
    assert found("stuck", [fate(m, "trains", 0, 18) for m in ("post-ln", "post-ln-init")]).verdict == "untested"


def test_a_run_too_short_to_judge_decides_nothing_and_stuck_is_a_failure() -> None:
    early = [
        fate("post-ln", "early"),
        fate("admin", "trains"),
        fate("post-ln", "stuck", seed=1),
        fate("admin", "trains", seed=1),
    ]
    assert found("default-fails", early).verdict == "untested"
    assert found("default-fails", early[2:]).places[0].value == 1.0


def test_what_lies_deeper_than_the_paper_went_is_out_of_reach() -> None:
    deep = [fate(m, "stuck", 100, seed=seed) for m in ("post-ln", "admin") for seed in (0, 1)]
    told = found("admin-trains", deep)
    assert told.verdict == "out of reach" and "60 layers" in told.reason

    def cold(*words: str) -> Finding:
        return found("admin-trains", [fate("admin", word, seed=seed) for seed, word in enumerate(words)])

    assert "the harder case" in cold("stuck", "stuck").reason
    assert cold("trains", *["stuck"] * 9).verdict == "out of reach", "most fail, not all: it decides no more than that"


def test_a_half_tested_row_of_table_1_is_undecided_and_says_what_is_missing() -> None:
    row = [fate("pre-ln", "trains", n, seed=seed) for n in (6, 18) for seed in (0, 1)]
    told = found("table1-pre-ln", row)
    assert (told.verdict, told.reason) == ("undecided", "not tested: 50L, 100L")
    cold = [*row, *(fate("pre-ln", "stuck", 50, seed=seed) for seed in (0, 1))]
    assert found("table1-pre-ln", cold).verdict == "undecided", "without warm-up a failure decides nothing"
    warm = [ended(spec("pre-ln", 50, None, warmup=100, steps=250, seed=seed), "stuck", 5.0) for seed in (0, 1)]
    assert found("table1-pre-ln", [*row, *warm]).verdict == "mixed"


def test_better_after_too_few_updates_is_out_of_reach_with_its_number() -> None:
    runs = [fate("deepnorm", "trains", n, loss=loss) for n, loss in ((6, 5.0), (18, 5.3))]
    told = found("deeper-deepnorm", runs)
    assert told.verdict == "out of reach" and "5.30 nats against 5.00 nats" in told.measured
    assert "250 updates of 512 tokens" in told.reason


def test_a_changed_model_that_fails_is_infinitely_far_above_and_base_runs_that_fail_compare_nothing() -> None:
    base = ended(spec("deepnorm", 18, warmup=0, steps=250), "trains", 5.0)
    lost = ended(spec("deepnorm", 18, warmup=0, steps=250, alpha_scale=0.25), "diverged", math.nan)
    (place,) = found("alpha-small", [base, lost]).places
    assert place.value == math.inf and "diverged" in place.text
    stuck = ended(spec("deepnorm", 18, warmup=0, steps=250), "stuck", 6.0)
    assert found("alpha-small", [stuck, lost]).verdict == "untested"


def test_central_claims_stand_first_and_those_that_hold_before_those_that_do_not() -> None:
    order = [(WEIGHTS.index(one.claim.weight), ORDER.index(one.verdict)) for one in findings(sweep())]
    assert order == sorted(order)
    for one in findings(sweep()):
        assert (one.verdict == "untested") == (one.places == ()) and "nan" not in one.measured
        assert bool(one.reason) == (one.verdict in ("undecided", "out of reach", "untested")), one.claim.key


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
    assert not any(math.isnan(place.value) for one in findings(runs) for place in one.places)


@pytest.mark.slow
def test_a_claims_commands_are_valid() -> None:
    from typer.testing import CliRunner

    from stabkit.cli.app import app

    for command in {claim.command for claim in EVERY}:
        result = CliRunner().invoke(app, [*command.split()[1:], "--dry-run"])
        assert result.exit_code == 0, (command, result.output)


def test_every_claims_file_is_in_the_table() -> None:
    folder = Path(claims.__file__).parent
    kept = {"__init__", "base", "evidence", "verdict"}
    files = {path.stem for path in folder.glob("*.py")} - kept
    files |= {f"deepnet.{path.stem}" for path in folder.glob("deepnet/*.py")} - {"deepnet.__init__"}
    named = {file: import_module(f"stabkit.claims.{file}").CLAIMS for file in files}
    missing = [file for file, own in named.items() if not set(own) <= set(EVERY)]
    assert missing == [] and sum(map(len, named.values())) == len(EVERY)


def test_every_claim_names_methods_that_are_known() -> None:
    for claim in EVERY:
        assert claim.methods and set(claim.methods) <= set(methods.KEYS), claim.key
        assert len(set(claim.methods)) == len(claim.methods)


def test_single_steps_have_no_say_in_other_claims_and_training_none_in_theirs() -> None:
    single = [step(m, n, v * n) for n in (6, 18, 50) for m, v in (("post-ln", 9.0), ("deepnorm", 1.0))]
    told = {one.claim.key for one in findings(single) if one.places}
    assert told == {"slope-goal"}
    training = {one.claim.key: one.measured for one in findings(sweep())}
    both = {one.claim.key: one.measured for one in findings([*sweep(), *single])}
    steps = {claim.key for claim in OF_STEPS}
    assert {key: both[key] for key in both if key not in steps} == {
        key: training[key] for key in both if key not in steps
    }


def test_two_rates_that_do_not_agree_are_no_evidence_of_a_slope() -> None:
    two = [step("deepnorm", n, v, lr=lr) for n in (6, 18, 50) for lr, v in ((1e-4, 1.0), (1e-5, float(n)))]
    assert found("slope-goal", two).verdict == "untested"


def test_what_is_there_at_step_0_is_told_of_single_steps_where_nothing_was_trained() -> None:
    single = [step("pre-ln", 6, 1.0, seed=seed) for seed in (0, 1)]
    for made in single:
        known(made, chain=replace(made.outcome.chain, gradient_ratio_start=2.0))
    trained = [run(spec("pre-ln", 6), {}, gradient_ratio_start=0.5)]

    def bottom(runs: list[Run]) -> Finding:
        return next(one for one in findings(runs) if one.claim.key == "pre-ln-bottom")

    assert bottom(single).verdict == "holds"
    assert bottom([*single, *trained]).places[0].value == 0.5
