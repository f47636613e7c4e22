"""What DeepNet's theory says of one small SGD step (§3.3 and §4), and what such steps measure.

‖ΔF‖/η as η → 0: the regime of Lemma 1 and Theorems 2 to 4, before anything saturates. Exponents are of ‖ΔF‖/η ∝ N^p,
least squares over 6 to 50 layers, seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from stabkit.claims.base import STEP, Claim, Measurement, Spot, at_most, power_of_n, signed
from stabkit.claims.deepnet.update import D
from stabkit.claims.evidence import NEARLY, Find, above_theorem, falling, of_line, sizes
from stabkit.methods import variant
from stabkit.results import slope, update_fit
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, DepthLine, Stacks, unless_equal
from stabkit.words import listed

STEPS = "--optimizer sgd --steps 1 --warmup 0 --lr 1e-5 --dtype float64 --max-tokens 512"
"""One step of SGD, small enough to be linear; in float32 `--lr 1e-4,1e-5` must agree."""
COMMAND = f"stabkit sweep --depths 6,18,50 --seeds 0..4 {STEPS}"
ENCODERS = f"{COMMAND} --arch encoder-only"


def _lines(runs: Sequence[Run], shapes: Sequence[Stacks]) -> list[tuple[str, str, list[Run], DepthLine]]:
    """(method, apart, its runs, the line) of every method in models of these shapes."""
    kept = slope.trusted(runs)
    rows = []
    for line in update_fit.lines(slope.frame(kept), ceiling=False):
        if line.shape in shapes:
            members = [run for run in kept if variant(run.spec) == line.variant]
            rows.append((line.variant, listed(unless_equal(line.shape), line.condition), members, line))
    return rows


def _exponent(method: str, shapes: Sequence[Stacks]) -> Find:
    """One method's exponent, as its distance from 0: what is independent of depth neither grows nor falls."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        return [
            of_line(own, line, sizes(line), apart=apart, beside=listed(falling(line), _theorem(line)))
            for name, apart, own, line in _lines(runs, shapes)
            if name == method
        ]

    return find


def _excess(methods: Sequence[str], shapes: Sequence[Stacks]) -> Find:
    """How far a method's exponent lies above that of the theorem's sum."""

    def find(runs: Sequence[Run]) -> Iterator[Measurement]:
        for method, apart, members, line in _lines(runs, shapes):
            more = above_theorem(line)
            if method in methods and more:
                beside = listed(power_of_n(line.exponent), _theorem(line))
                yield of_line(members, line, more, Spot(method, line.label), apart=apart, beside=beside)

    return find


def _theorem(line: DepthLine) -> str:
    return f"theorem {power_of_n(line.theorem)}" if math.isfinite(line.theorem) else ""


ONE: tuple[Stacks, ...] = ("encoder",)
AFTER = ("post-ln", "post-ln-init", "ds-init", "admin", "deepnorm")
CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="slope-goal",
        sentence="GOAL: after one SGD step ‖ΔF‖ is Θ(η), independent of depth; DeepNorm's α and β achieve it.",
        source="DeepNet §3.3",
        weight="central",
        test="DeepNorm's exponent of ‖ΔF‖/η ∝ N^p over 6 to 50 layers, up or down",
        threshold=at_most(NEARLY, "stabkit's choice: N^0.25 is a factor of 1.7 over 6 to 50 layers"),
        tell=power_of_n,
        find=_exponent(D, JOINED),
        spread={STEP: {"6-50": 0.05377}},
        needs="DeepNorm in one SGD step at three depths or more from 6 to 50 layers",
        command=COMMAND,
        methods=("deepnorm",),
    ),
    Claim(
        key="slope-bound",
        sentence="In one SGD step ‖ΔF‖ grows no faster with depth than the theorem's sum over the sub-layers' ‖Δθ‖.",
        source="DeepNet §3.2, Theorems 2 and 3",
        weight="central",
        test="exponent of ‖ΔF‖/η minus that of the theorem's sum over the measured ‖Δθ‖ (a higher exponent is "
        "evidence, not a refutation: the bound has a free constant)",
        threshold=at_most(0.1, "stabkit's choice: a factor of 1.2 over 6 to 50 layers"),
        tell=signed,
        find=_excess(AFTER, JOINED),
        spread={
            STEP: {"admin/6-50": 0.161, "deepnorm/6-50": 0.04395, "post-ln-init/6-50": 0.2215, "post-ln/6-50": 1.014}
        },
        needs="one of the Post-LN methods in one SGD step at three depths or more from 6 to 50 layers",
        command=COMMAND,
        methods=("post-ln", "post-ln-init", "ds-init", "admin", "deepnorm"),
    ),
    Claim(
        key="slope-log",
        sentence="Sub-LN's wiring at Xavier initialisation: ‖ΔF‖ grows as log L.",
        source="DeepNet §4.2, Theorem 4",
        weight="side",
        test="Sub-LN at gain 1 in one stack: exponent of ‖ΔF‖/η minus that of the theorem's sum",
        threshold=at_most(0.1, "stabkit's choice: as for Theorems 2 and 3"),
        tell=signed,
        find=_excess(("sub-ln:gain=one",), ONE),
        spread={STEP: {"sub-ln:gain=one/6-50": 0.5128}},
        needs="Sub-LN at gain 1, one encoder, in one SGD step at three depths or more from 6 to 50 layers",
        command=f"{ENCODERS} --models sub-ln:gain=one",
        methods=("sub-ln",),
    ),
    Claim(
        key="slope-sub-ln",
        sentence="Scaled by √log 2N the update of Sub-LN is bounded, independent of depth.",
        source="DeepNet §4.3",
        weight="side",
        test="Sub-LN's exponent of ‖ΔF‖/η in one stack, up or down",
        threshold=at_most(NEARLY, "stabkit's choice: as for GOAL"),
        tell=power_of_n,
        find=_exponent("sub-ln", ONE),
        spread={STEP: {"6-50": 0.4505}},
        needs="Sub-LN, one encoder, in one SGD step at three depths or more from 6 to 50 layers",
        command=f"{ENCODERS} --models sub-ln",
        methods=("sub-ln",),
    ),
)
