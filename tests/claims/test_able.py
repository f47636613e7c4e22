"""Every claim on runs that were really trained, with one number changed so that it holds, and so that it fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from stabkit.claims import CLAIMS, OF_STEPS, OF_SURFACES
from stabkit.claims.base import Claim
from stabkit.claims.deepnet import table1
from stabkit.claims.verdict import judge
from stabkit.results.landscape import Landscape
from stabkit.results.surface import At, Plane, Surface, SurfaceSpec
from stabkit.surface import directions
from tests.claims import real
from tests.claims.real import ADMIN, INIT, PRE, D, P, Runs, changed, ending, longer, of, seeds, times

pytestmark = pytest.mark.slow
"""Half a minute of training; on runs made by hand claims are tested in the other files."""
EVERY = {claim.key: claim for claim in (*CLAIMS, *OF_STEPS, *OF_SURFACES)}
Sides = tuple[Callable[[Runs], Runs], Callable[[Runs], Runs]]
WARM, COLD = {"warmup": 4000}, {"warmup": 0}


def at(step: int) -> Callable[[int], bool]:
    return lambda one: one == step


def grown(runs: Runs, label: str, exponent: float, step: int = 16, **more: object) -> Runs:
    """‖ΔF‖ at a step as this power of the depth, from what it was at 6 layers; the theorem's ‖Δθ‖ stays."""
    for n in (6, 18, 50):
        exact = 1e-3 * n**exponent
        runs = times(runs, "update", "state", 1.0, [label], f"{n}L*", at(step), exact, **more)
    return runs


def update(runs: Runs, label: str, exact: float, *steps: int, **train: object) -> Runs:
    for step in steps:
        runs = times(runs, "update", "state", 1.0, [label], "*", at(step), exact, **train)
    return runs


def ratio(runs: Runs, label: str, exact: float, step: Callable[[int], bool] = lambda step: True) -> Runs:
    """The first decoder layer's gradient over the last one's."""
    runs = times(runs, "grad_norm", "decoder.18", 1.0, [label], "18L-18L", step, 1.0)
    return times(runs, "grad_norm", "decoder.1", 1.0, [label], "18L-18L", step, exact)


def warm(runs: Runs) -> Runs:
    return seeds(of(runs, P, INIT, ADMIN, D, warmup=4000))


def cold(runs: Runs, *labels: str) -> Runs:
    return seeds(of(runs, *(labels or (P, INIT, ADMIN, D, PRE)), depth="18L-18L", warmup=0, optimizer="adam"))


def single(runs: Runs, *labels: str) -> Runs:
    return seeds(of(runs, *labels, optimizer="sgd"))


def warmed(runs: Runs) -> Runs:
    return [changed(run, warmup=10) for run in runs]


def still(runs: Runs, later: float) -> Runs:
    both = longer(cold(runs, P, INIT), 100)
    both = times(both, "update", "state@step", 1.0, exact=1.0)
    return times(both, "update", "state@step", 1.0, [P], step=lambda step: step >= 50, exact=later)


def ablated(runs: Runs, word: str, share: float, **change: object) -> Runs:
    """DeepNorm itself, at 0.8 of the unigram loss, and changed."""
    base = ending(cold(runs, D), "trains")
    return [*base, *ending([changed(run, **change) for run in base], word, share=share)]


def scaled(runs: Runs, power: float) -> Runs:
    """DeepNorm at five factors on α and on β: the top gradient goes as this power."""
    made = []
    for a, b in [(f, 1.0) for f in (0.25, 0.5, 1.0, 2.0, 4.0)] + [(1.0, f) for f in (0.25, 0.5, 2.0, 4.0)]:
        own = [changed(run, alpha_scale=a, beta_scale=b) for run in ending(cold(runs, D), "trains")]
        made += times(own, "weight_grad", "decoder.18.ffn", 1.0, exact=(b / a) ** power)
    return made


def kinds(runs: Runs, lower: float) -> Runs:
    own = times(cold(runs, P), "grad_norm", "decoder.*.*", 1.0, exact=1.0)
    return times(own, "grad_norm", "decoder.3.cross", 1.0, exact=lower)


def one_stack(runs: Runs, both: float) -> Runs:
    own = seeds([*of(runs, P, depth="18L-18L", warmup=0), *of(runs, P, depth="18L encoder", warmup=0)])
    own = of(own, optimizer="adam")
    return (
        update(update(own, P, 1.0, 1), P, both, 1)
        if both == 1.0
        else [*update(of(own, depth="18L-18L"), P, both, 1), *update(of(own, depth="18L encoder"), P, 1.0, 1)]
    )


def fates(runs: Runs, *ends: tuple[str, str]) -> Runs:
    own = cold(runs, *(label for label, _ in ends))
    for label, word in ends:
        own = ending(own, word, label)
    return own


def deeper(runs: Runs, layers: int, decoder: int | None = None) -> Runs:
    """The same records under a deeper model's name."""
    return [changed(run, encoder_layers=layers, decoder_layers=layers if decoder is None else decoder) for run in runs]


def row(key: str, pattern: str, right: bool, runs: Runs) -> Runs:
    """A row of Table 1 as the paper has it, or reversed: with a warm-up, and as long as the paper's."""
    base = reach(warmed([changed(run, method=key) for run in cold(runs, D)]))
    made = []
    for depth, sign in zip(table1.DEPTHS, pattern, strict=True):
        word = "trains" if (sign == "+") == right else "stuck"
        made += deeper(ending(base, word), depth)
    return made


def sharpened(runs: Runs, size: float) -> Runs:
    """Post-LN and the same with W_Q and W_K times 4, whose attention is this many times as large."""
    own = cold(runs, P)
    both = [*own, *(changed(run, options={"query_key": "4"}) for run in own)]
    return times(
        times(both, "branch_ratio", "*", 1.0, exact=0.5),
        "branch_ratio",
        "*.self",
        1.0,
        ["Post-LN (query_key=4)"],
        exact=0.5 * size,
    )


def summed(runs: Runs, last: float) -> Runs:
    """Pre-LN's stream before and in every branch of size 1, but at the top."""
    own = times(cold(runs, PRE), "branch_ratio", "*@*", 1.0, exact=1.0)
    return times(own, "branch_ratio", "decoder.18.ffn@*", 1.0, exact=last)


def reach(runs: Runs) -> Runs:
    """As if trained for as long as the papers' were."""
    return [changed(run, steps=8000, max_tokens=4000) for run in runs]


def losses(runs: Runs, *shares: tuple[str, int, float], **more: object) -> Runs:
    """Models that train to these shares of the unigram loss: (label, layers, share)."""
    made = []
    for label, layers, share in shares:
        made += deeper(ending(cold(runs, label), "trains", share=share), layers)
    return reach(made)


def twice(runs: Runs, name: str, low: object, high: object, shares: tuple[float, float], word: str = "trains") -> Runs:
    """DeepNorm at two values of a setting."""
    ends = [ending(cold(runs, D), "trains", share=shares[0]), ending(cold(runs, D), word, share=shares[1])]
    return [changed(run, **{name: value}) for end, value in zip(ends, (low, high), strict=True) for run in end]


def rates(runs: Runs, *fails: str) -> Runs:
    """Both train at the smaller rate; at the larger these fail."""
    made = []
    for lr, lost in ((5e-4, ()), (2e-3, fails)):
        own = cold(runs, P, D)
        for label in (P, D):
            own = ending(own, "stuck" if label in lost else "trains", label)
        made += [changed(run, lr=lr, decoder_layers=0) for run in own]
    return made


CASES: dict[str, Sides] = {
    "growth": (lambda r: grown(grown(warm(r), P, 1.0), D, 0.5), lambda r: grown(grown(warm(r), P, 0.6), D, 0.5)),
    "smaller": (
        lambda r: update(update(warm(r), P, 1.0, 16), D, 0.1, 16),
        lambda r: update(update(warm(r), P, 0.19, 16), D, 0.1, 16),
    ),
    "constant": (lambda r: grown(warm(r), D, 0.1), lambda r: grown(warm(r), D, 0.6)),
    "bound": (lambda r: grown(of(warm(r), D), D, -1.0), lambda r: grown(of(warm(r), D), D, 1.2)),
    "initialisation": (
        lambda r: update(update(longer(cold(r), 50), P, 2.0, 1, 16, 50), INIT, 1.0, 1, 16, 50),
        lambda r: update(update(longer(cold(r), 50), P, 2.0, 1, 16, 50), INIT, 1.9, 1, 16, 50),
    ),
    "standstill": (lambda r: still(r, 0.05), lambda r: still(r, 0.2)),
    "order": (
        lambda r: ratio(ratio(cold(r), P, 0.5), P, 1e-4, at(16)),
        lambda r: ratio(ratio(cold(r), P, 2e-3), P, 1e-3, at(16)),
    ),
    "vanishing": (lambda r: ratio(cold(r), P, 1e-4), lambda r: ratio(cold(r), P, 0.1)),
    "vanishing-init": (lambda r: ratio(cold(r), INIT, 0.1), lambda r: ratio(cold(r), INIT, 1e-4)),
    "ln-growth": (
        lambda r: times(cold(r), "ln_input", "*", 2.0, [P], step=at(16)),
        lambda r: reach(times(cold(r), "ln_input", "*", 1.0, [P])),
    ),
    "ln-stable": (
        lambda r: reach(times(cold(r), "ln_input", "*", 1.0, [INIT])),
        lambda r: times(cold(r), "ln_input", "*", 2.0, [INIT], step=at(16)),
    ),
    "ln-size": (
        lambda r: times(cold(r), "ln_input", "*", 2.0, [P]),
        lambda r: reach(times(cold(r), "ln_input", "*", 0.5, [P])),
    ),
    "last-layer": (
        lambda r: times(longer(cold(r), 250), "grad_norm", "decoder.18", 9.0, [INIT]),
        lambda r: times(longer(cold(r), 250), "grad_norm", "decoder.18", 0.1, [INIT]),
    ),
    "top-largest": (lambda r: kinds(r, 0.9), lambda r: kinds(r, 1.5)),
    "pre-ln-bottom": (lambda r: ratio(cold(r), PRE, 1.5), lambda r: ratio(cold(r), PRE, 0.9)),
    "deepnorm-bottom": (
        lambda r: ratio(ratio(cold(r), D, 0.8), PRE, 1.5),
        lambda r: ratio(ratio(cold(r), D, 1.5), PRE, 1.5),
    ),
    "decoder-unstable": (lambda r: one_stack(r, 2.0), lambda r: one_stack(r, 1.0)),
    "stuck": (lambda r: fates(r, (P, "stuck"), (INIT, "trains")), lambda r: fates(r, (P, "trains"), (INIT, "trains"))),
    "deep": (lambda r: deeper(fates(r, (D, "trains")), 50), lambda r: deeper(fates(r, (D, "stuck")), 50)),
    **{
        f"table1-{key}": (partial(row, key, pattern, True), partial(row, key, pattern, False))
        for key, pattern in table1.ROWS.items()
    },
    "alpha-small": (
        lambda r: ablated(r, "stuck", 1.0, alpha_scale=0.25),
        lambda r: ablated(r, "trains", 0.79, alpha_scale=0.25),
    ),
    "beta-large": (
        lambda r: ablated(r, "stuck", 1.0, beta_scale=4.0),
        lambda r: ablated(r, "trains", 0.81, beta_scale=4.0),
    ),
    "alpha-large": (
        lambda r: reach(ablated(r, "trains", 0.85, alpha_scale=4.0)),
        lambda r: reach(ablated(r, "trains", 0.79, alpha_scale=4.0)),
    ),
    "beta-small": (
        lambda r: reach(ablated(r, "trains", 0.85, beta_scale=0.25)),
        lambda r: reach(ablated(r, "trains", 0.79, beta_scale=0.25)),
    ),
    "without-deepnorm": (
        lambda r: warmed(ablated(r, "diverged", 1.0, options={"alpha": "one"})),
        lambda r: reach(ablated(r, "trains", 0.85, options={"alpha": "one"})),
    ),
    "without-init": (
        lambda r: reach(ablated(r, "trains", 0.82, options={"beta": "one"})),
        lambda r: warmed(ablated(r, "stuck", 1.0, options={"beta": "one"})),
    ),
    "top-gradient": (lambda r: scaled(r, 1.0), lambda r: scaled(r, 0.2)),
    "admin-trains": (
        lambda r: [*fates(r, (ADMIN, "trains")), *deeper(fates(r, (ADMIN, "trains")), 50)],
        lambda r: warmed(fates(r, (ADMIN, "stuck"))),
    ),
    "default-fails": (
        lambda r: warmed(fates(r, (P, "diverged"), (ADMIN, "trains"))),
        lambda r: warmed(fates(r, (P, "trains"), (ADMIN, "trains"))),
    ),
    "nan-gradients": (
        lambda r: reach(times(fates(r, (P, "diverged")), "grad_norm", "decoder.3.ffn", np.nan, [P], step=at(16))),
        lambda r: reach(fates(r, (P, "diverged"))),
    ),
    "pre-ln-60x12": (
        lambda r: deeper(fates(r, (PRE, "trains")), 60, 12),
        lambda r: deeper(fates(r, (PRE, "stuck")), 60, 12),
    ),
    "compounds": (
        lambda r: summed(r, 2.0),
        lambda r: summed(r, 1.1),
    ),
    "lower-encoder": (
        lambda r: times(cold(r), "grad_norm", "encoder.1", 1e-6, [P]),
        lambda r: times(cold(r), "grad_norm", "encoder.1", 10.0, [P]),
    ),
    "shallow": (
        lambda r: [changed(run, warmup=4000) for run in losses(r, (P, 6, 0.80), (ADMIN, 6, 0.80))],
        lambda r: [changed(run, warmup=4000) for run in losses(r, (P, 6, 0.80), (ADMIN, 6, 0.90))],
    ),
    "deeper-better": (
        lambda r: losses(r, (ADMIN, 6, 0.85), (ADMIN, 18, 0.80)),
        lambda r: losses(r, (ADMIN, 6, 0.85), (ADMIN, 18, 0.90)),
    ),
    "attention-size": (lambda r: sharpened(r, 1.1), lambda r: sharpened(r, 6.0)),
    "largest-settings": (
        lambda r: twice(r, "lr", 5e-4, 2e-3, (0.8, 0.8)),
        lambda r: twice(r, "lr", 5e-4, 2e-3, (0.8, 1.0), "stuck"),
    ),
    "larger-rate-tolerated": (lambda r: rates(r, P), lambda r: rates(r, D)),
    "random-model": (
        lambda r: fates(r, (P, "stuck"), (ADMIN, "trains")),
        lambda r: fates(r, (P, "trains"), (ADMIN, "trains")),
    ),
    "larger-settings": (
        lambda r: twice(r, "max_tokens", 128, 512, (0.8, 0.7)),
        lambda r: twice(r, "max_tokens", 128, 512, (0.8, 0.85)),
    ),
    "deeper-deepnorm": (
        lambda r: losses(r, (D, 6, 0.85), (D, 18, 0.80)),
        lambda r: losses(r, (D, 6, 0.85), (D, 18, 0.90)),
    ),
    "slope-goal": (
        lambda r: grown(single(r, D), D, 0.1, 1),
        lambda r: grown(single(r, D), D, 0.8, 1),
    ),
    "slope-bound": (lambda r: grown(single(r, D), D, -1.0, 1), lambda r: grown(single(r, D), D, 3.0, 1)),
    "slope-log": (
        lambda r: grown(single(r, "Sub-LN (gain=one)"), "Sub-LN (gain=one)", 0.1, 1),
        lambda r: grown(single(r, "Sub-LN (gain=one)"), "Sub-LN (gain=one)", 1.0, 1),
    ),
    "slope-sub-ln": (
        lambda r: grown(single(r, "Sub-LN"), "Sub-LN", 0.1, 1),
        lambda r: grown(single(r, "Sub-LN"), "Sub-LN", 0.9, 1),
    ),
}
ALONG = directions.axis(21, 1.0)


def bumpy(size: float) -> np.ndarray:
    """A bowl with waves of this size on it."""
    x = np.array(ALONG)
    return 5.0 + x**2 + size * np.cos(np.pi * np.arange(21))


def drawn(waves: dict[tuple[str, int], float], runs: Runs, words: tuple[str, str] = ("stuck", "trains")) -> Landscape:
    """{(label, layers): waves} → a cut, a path and a surface each, of two seeds."""
    held: dict[tuple[str, int, int], real.Run] = {}
    for label, layers in waves:
        word = words[0] if label == P else words[1]
        for run in deeper(ending(cold(runs, label), word), layers):
            held[label, layers, run.spec.seed] = run
    surfaces = []
    for (label, layers), size in waves.items():
        for seed in (0, 1):
            origin = At(run=held[label, layers, seed].run_id, step=250)
            line = bumpy(size)
            square = line[None, :] + line[:, None]
            cut = SurfaceSpec(origin=origin, plane=Plane(kind="random"), a=ALONG)
            whole = SurfaceSpec(origin=origin, plane=Plane(kind="random"), a=ALONG, b=ALONG)
            pca = Plane(kind="pca", normalise="none")
            path = SurfaceSpec(origin=origin, plane=pca, a=ALONG, b=ALONG, path=(0, 250))
            drawn = ((cut, line[None, :]), (whole, square), (path, square))
            surfaces += [Surface(spec, loss, {}, {}, "") for spec, loss in drawn]
    return Landscape(list(held.values()), surfaces)


PAIR = {(P, 18): 1.0, (D, 18): 0.001}
SURFACES: dict[str, tuple[Callable[[Runs], Landscape], Callable[[Runs], Landscape]]] = {
    "surface-smoother": (lambda r: drawn(PAIR, r), lambda r: drawn({**PAIR, (D, 18): 1.0}, r)),
    "surface-depth": (
        lambda r: drawn({(P, 6): 0.001, (P, 18): 1.0}, r),
        lambda r: drawn({(P, 6): 1.0, (P, 18): 1.0}, r),
    ),
    "surface-consistent": (
        lambda r: drawn({(D, 6): 1.0, (D, 18): 1.0}, r),
        lambda r: drawn({(D, 6): 0.001, (D, 18): 1.0}, r),
    ),
    "spurious-optimum": (lambda r: drawn(PAIR, r), lambda r: drawn(PAIR, r, ("trains", "trains"))),
}


@pytest.fixture(scope="module")
def runs(once: Callable[[str, Callable[[Path], None]], Path]) -> Runs:
    return real.loaded(once("claimed", real.trained))


def test_every_claim_is_here() -> None:
    assert set(CASES) | set(SURFACES) == set(EVERY)


def verdict(claim: Claim, measured: object) -> str:
    return judge(claim, measured).verdict


@pytest.mark.parametrize("key", [*CASES, *SURFACES])
def test_a_claim_is_able_to_hold_and_able_to_fail(key: str, runs: Runs) -> None:
    holds, fails = {**CASES, **SURFACES}[key]
    best = (
        "undecided" if key == "table1-rezero" else "holds"
    )  # its divergence is one of half precision: never tested here
    assert verdict(EVERY[key], holds(runs)) == best, judge(EVERY[key], holds(runs))
    told = judge(EVERY[key], fails(runs))
    parts = len(EVERY[key].parts) > 1 and key not in ("top-gradient",) and not key.startswith("table1")
    assert told.verdict == "fails" or (parts and told.verdict == "mixed"), told
    nothing = Landscape([], []) if key in SURFACES else []
    assert verdict(EVERY[key], nothing) == "untested"


def test_far_worse_is_not_slightly_worse_though_it_is_worse(runs: Runs) -> None:
    lost = judge(EVERY["without-init"], warmed(ablated(runs, "stuck", 1.0, options={"beta": "one"})))
    assert lost.verdict == "fails" and {place.verdict for place in lost.places} == {"holds", "fails"}


@pytest.mark.parametrize(("key", "dropped"), [("without-deepnorm", "alpha"), ("without-init", "beta")])
def test_a_constants_loss_is_not_judged_by_a_failure_without_the_papers_warm_up(key, dropped, runs: Runs) -> None:
    found = judge(EVERY[key], ablated(runs, "stuck", 1.0, options={dropped: "one"}))
    assert found.verdict == "out of reach" and "without warm-up, the harder case" in found.reason


def test_a_gradient_that_falls_before_the_update_explodes_does_not_fall_after_it(runs: Runs) -> None:
    late = update(cold(runs, P), P, 0.01, *range(1, 16))
    late = update(late, P, 9.0, 16)
    before = ratio(ratio(late, P, 0.5), P, 1e-4, lambda step: step >= 1)
    after = ratio(ratio(late, P, 0.5), P, 1e-4, at(16))
    assert verdict(EVERY["order"], before) == "mixed" and verdict(EVERY["order"], after) == "holds"
    never = update(before, P, 0.01, 16)
    assert verdict(EVERY["order"], never) == "undecided", "without an explosion only the start is told"


@pytest.mark.parametrize("key", ["ln-growth", "ln-size"])
def test_what_is_not_large_after_a_few_updates_decides_nothing(key: str, runs: Runs) -> None:
    small = times(cold(runs), "ln_input", "*", 0.5 if key == "ln-size" else 1.0, [P])
    assert verdict(EVERY[key], small) == "out of reach"


def test_a_baseline_that_trains_at_no_rate_tolerates_less_than_what_trains_at_the_lowest(runs: Runs) -> None:
    never = [changed(one, lr=lr, decoder_layers=0) for lr in (5e-4, 2e-3) for one in ending(cold(runs, P), "stuck", P)]
    ours = [changed(one, lr=5e-4, decoder_layers=0) for one in ending(cold(runs, D), "trains", D)]
    lost = [changed(one, lr=lr, decoder_layers=0) for lr in (5e-4, 2e-3) for one in ending(cold(runs, D), "stuck", D)]
    assert verdict(EVERY["larger-rate-tolerated"], never + ours) == "holds"
    assert verdict(EVERY["larger-rate-tolerated"], never + lost) == "untested", "both too slow, or both too fast"
