"""What DeepNet's theory says of one small SGD step (§3.1 and §4), and what such steps measure (`stabkit slope`).

‖ΔF‖/η as η → 0: the regime of Theorems 1 to 4, before anything saturates. Exponents are of ‖ΔF‖/η ∝ N^p, least squares
over 6 to 50 layers on the geometric means over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stabkit.claims.base import Claim, Evidence
from stabkit.figures.depth import slope
from stabkit.figures.shared import depth_fit
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

COMMAND = "stabkit slope --depths 6,18,50"
CONSTANT = 0.25
"""The exponent up to which growth counts as nearly none, as in the claim on Fig. 4."""


def _ratios(label: str, over: str) -> Callable[[Sequence[Run]], list[Evidence]]:
    def find(runs: Sequence[Run]) -> list[Evidence]:
        found = []
        for (condition, depth), here in slope.table(slope.select(slope.trusted(runs))).groupby(
            ["condition", "depth"], sort=False
        ):
            by = here.set_index("label")["slope"].dropna().to_dict()
            if label in by and over in by:
                ratio = float(by[over] / by[label])
                where = listed(str(depth), str(condition))
                found.append(Evidence(where=where, value=ratio, text=f"{short(ratio)} times", holds=ratio >= 10))
        return found

    return find


def _growth(label: str, holds: Callable[[float, float], bool]) -> Callable[[Sequence[Run]], list[Evidence]]:
    """`holds(exponent, the theorem's exponent over the same depths)`."""

    def find(runs: Sequence[Run]) -> list[Evidence]:
        found = []
        lines = depth_fit.fit(slope.select(slope.trusted(runs)), ceiling=False)
        for line in lines[lines["label"] == label].itertuples():
            told, theory = float(str(line.exponent)), float(str(line.predicted))
            where = listed(f"{line.shallowest:g}–{line.deepest:g} layers", str(line.shape), str(line.condition))
            beside = f", theorem N^{theory:.2f}" if math.isfinite(theory) else ""
            found.append(Evidence(where=where, value=told, text=f"N^{told:.2f}{beside}", holds=holds(told, theory)))
        return found

    return find


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="slope-smaller",
        sentence="DeepNet's model update is much smaller than Post-LN's, also in the limit of small steps.",
        source="DeepNet §3.1 to §3.3",
        test="‖ΔF‖/η of one SGD step: Post-LN's over DeepNorm's; much: 10 times at every depth",
        find=_ratios("DeepNorm", "Post-LN"),
        needs="Post-LN and DeepNorm in one SGD step",
        command=COMMAND,
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="slope-goal",
        sentence="GOAL: after one SGD step ‖ΔF‖ is Θ(η), independent of depth; DeepNorm's α and β achieve it.",
        source="DeepNet §3.1 and §3.3, Theorem 3",
        test=f"DeepNorm's exponent of ‖ΔF‖/η; independent: between −{CONSTANT} and {CONSTANT}",
        find=_growth("DeepNorm", lambda told, theory: abs(told) <= CONSTANT),
        needs="DeepNorm in one SGD step at three depths or more from 6 to 50 layers",
        command=COMMAND,
        methods=("deepnorm",),
    ),
    Claim(
        key="slope-log",
        sentence="With norms before the branch at Xavier initialisation ‖ΔF‖ grows as log L.",
        source="DeepNet §4.2, Theorem 4",
        test="Pre-LN's exponent of ‖ΔF‖/η is not above that of the theorem's sum over the output's stack by over 0.1",
        find=_growth("Pre-LN", lambda told, theory: told <= theory + 0.1),
        needs="Pre-LN in one SGD step at three depths or more from 6 to 50 layers",
        command=COMMAND,
        methods=("pre-ln",),
    ),
    Claim(
        key="slope-sub-ln",
        sentence="Scaled by √log 2N the update of Sub-LN is bounded, independent of depth.",
        source="DeepNet §4.3",
        test=f"Sub-LN's exponent of ‖ΔF‖/η; independent: between −{CONSTANT} and {CONSTANT}",
        find=_growth("Sub-LN", lambda told, theory: abs(told) <= CONSTANT),
        needs="Sub-LN in one SGD step at three depths or more from 6 to 50 layers",
        command=COMMAND,
        methods=("sub-ln",),
    ),
)
