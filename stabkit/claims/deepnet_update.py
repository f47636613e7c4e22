"""What DeepNet (Wang et al., journal version) says of the model update in §2, §3 and §5, and what these runs measure.

The early window of the paper's pictures is read at the reference step (update 16) under warm-up and after the first
update without one, where everything that moves is at √(2d) a dozen updates later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import (
    Cell,
    Number,
    Warmups,
    at,
    by_seed,
    cells,
    groups,
    mean_over,
    place,
    ratio,
    warmups,
)
from stabkit.figures.depth import update_depth
from stabkit.figures.quick.once import once
from stabkit.figures.shared import depth_fit
from stabkit.figures.shared.comparison import reference_step
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

if TYPE_CHECKING:
    import pandas as pd


Find = Callable[[Sequence[Run]], list[Evidence]]
P, INIT, D = "Post-LN", "Post-LN-init", "DeepNorm"
DEEP = 18
"""The paper's §2 speaks of 18L-18L; shallower models train."""
SWEEP = "stabkit sweep --depths 6,18,50 --seeds 0..2"
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0"
BOTH = "stabkit sweep --depths 18 --steps 250 --warmup 0,4000"
ONLY_LARGER = 1.1
"""A ratio nearer to 1 is no difference: about what another seed makes of it."""


@once
def _exponents(runs: Sequence[Run]) -> list[tuple[str, dict[str, pd.Series[Any]]]]:
    """(where, {label: line of the fit}) at the page's reference step, for every condition and shape."""
    step = reference_step(runs)
    found = []
    for condition, own in groups(runs):
        lines = depth_fit.fit(update_depth.select(own, step))
        for shape, of_shape in lines.groupby("shape", sort=False):
            where = listed("6–50 layers", "" if shape == "N = M" else str(shape), condition)
            found.append((where, {str(line["label"]): line for _, line in of_shape.iterrows()}))
    return found


def _power(line: pd.Series[Any]) -> str:
    """`N^1.05 (0.63 to 1.34 by seed)`."""
    spread = f" ({line['least']:.2f} to {line['greatest']:.2f} by seed)" if line["seeds"] > 1 else ""
    return f"N^{line['exponent']:.2f}{spread}"


def growth(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for where, lines in _exponents(runs):
        if P in lines and D in lines:
            more = float(lines[P]["exponent"] - lines[D]["exponent"])
            text = f"{_power(lines[P])} against {_power(lines[D])}"
            found.append(Evidence(where=where, value=more, text=text, holds=more > 0.1))
    return found


def constant(runs: Sequence[Run]) -> list[Evidence]:
    return [
        Evidence(where=where, value=float(line["exponent"]), text=_power(line), holds=bool(line["exponent"] <= 0.25))
        for where, lines in _exponents(runs)
        if (line := lines.get(D)) is not None
    ]


def bound(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for where, lines in _exponents(runs):
        for label, line in lines.items():
            measured, predicted = float(line["exponent"]), float(line["predicted"])
            if math.isfinite(predicted):
                text = f"{label} N^{measured:.2f}, sum N^{predicted:.2f}"
                holds = measured <= predicted + 0.1
                found.append(Evidence(where=where, value=predicted - measured, text=text, holds=holds))
    return found


def smaller(runs: Sequence[Run]) -> list[Evidence]:
    step = reference_step(runs)
    found = []
    for cell in cells(runs):
        if cell.warmup > step:
            times = cell.ratio(P, D, at("update", "state", step))
            if math.isfinite(times):
                found.append(_times(times, cell, D, at("update", "state", step), 3.0))
    return found


def _times(times: float, cell: Cell, other: str, number: Number, least: float) -> Evidence:
    """Post-LN's number over another method's, with its range over seeds."""
    text = f"{short(times)} times{by_seed(cell.runs[P], cell.runs[other], number)}"
    return Evidence(where=place(cell, P, other), value=times, text=text, holds=times >= least)


def _smaller(pair: Warmups, number: Number, where: str) -> Evidence | None:
    """Post-LN's number without warm-up over that with it."""
    times = ratio(pair.without, pair.with_it, number)
    text = f"{short(times)} times smaller"
    return Evidence(where=where, value=times, text=text, holds=times >= 2.0) if math.isfinite(times) else None


def _first(other: str, least: float) -> Find:
    """Post-LN's first update over another method's."""

    def find(runs: Sequence[Run]) -> list[Evidence]:
        found = []
        for cell in cells(runs):
            if cell.warmup == 0 and cell.layers >= DEEP:
                times = cell.ratio(P, other, at("update", "state", 1))
                if math.isfinite(times):
                    found.append(_times(times, cell, other, at("update", "state", 1), least))
        return found

    return find


def standstill(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    later = mean_over("update", lambda run: "state@step", 50, 100)
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP and P in cell.runs:
            share = cell.mean(P, later) / cell.mean(P, at("update", "state@step", 1))
            if math.isfinite(share):
                text = f"{short(share)} of the first update"
                found.append(Evidence(where=place(cell, P), value=share, text=text, holds=share <= 0.1))
    return found


def warmup_helps(runs: Sequence[Run]) -> list[Evidence]:
    found = [_smaller(pair, at("update", "state", 1), pair.where) for pair in warmups(runs, P) if pair.layers >= DEEP]
    return [one for one in found if one is not None]


def theta(runs: Sequence[Run]) -> list[Evidence]:
    step = reference_step(runs)

    def moved(run: Run) -> float:
        table = run.records.get("parameter_update")
        if table is None or not (table.steps == step).any():
            return math.nan
        return float(np.sqrt((table.values[np.flatnonzero(table.steps == step)[0]] ** 2).sum()))

    found = [_smaller(pair, moved, listed(pair.where, f"step {step}")) for pair in warmups(runs, P)]
    return [one for one in found if one is not None]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="growth",
        sentence="With depth Post-LN's model update explodes; DeepNet's does not.",
        source="DeepNet §3.3, Fig. 4",
        test="exponents of ‖ΔF‖ ∝ N^p at the reference step, fitted over 6 to 50 layers; Post-LN's larger by over 0.1",
        find=growth,
        needs="Post-LN and DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="constant",
        sentence="DeepNet's model update is nearly constant in depth.",
        source="DeepNet §3.3, Fig. 4",
        test="DeepNorm's exponent at the reference step; nearly constant: at most 0.25",
        find=constant,
        needs="DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
        methods=("deepnorm",),
    ),
    Claim(
        key="smaller",
        sentence="DeepNet has much smaller updates than Post-LN.",
        source="DeepNet Fig. 4, caption",
        test="‖ΔF‖ of Post-LN over DeepNorm's at the reference step under warm-up; much: 3 times at every depth",
        find=smaller,
        needs="Post-LN and DeepNorm at one depth and seed, with warm-up",
        command=SWEEP,
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="bound",
        sentence="‖ΔF‖ grows no faster with depth than the theorem's sum over the sub-layers' ‖Δθ‖.",
        source="DeepNet §3.2, Theorems 2 and 3",
        test="exponent of ‖ΔF‖ against that of the theorem's sum over the measured ‖Δθ‖; not above it by over 0.1",
        find=bound,
        needs="one of the Post-LN methods at three depths or more from 6 to 50 layers",
        command=SWEEP,
        methods=("post-ln", "post-ln-init", "ds-init", "admin", "deepnorm"),
    ),
    Claim(
        key="first-deepnorm",
        sentence="Post-LN's update explodes at the very beginning, DeepNet's does not: its first one dwarfs DeepNet's.",
        source="DeepNet §2 and §3.3, Fig. 3(a) and 4",
        test="‖ΔF‖ after update 1 without warm-up, 18 layers or more: Post-LN over DeepNorm; at least twice",
        find=_first(D, 2.0),
        needs="Post-LN and DeepNorm without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="first-init",
        sentence="Post-LN's first update dwarfs Post-LN-init's.",
        source="DeepNet §2, Fig. 3(a)",
        test="‖ΔF‖ after update 1 without warm-up, 18 layers or more: Post-LN over Post-LN-init; at least twice",
        find=_first(INIT, 2.0),
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    Claim(
        key="standstill",
        sentence="After its exploding start Post-LN hardly moves.",
        source="DeepNet §2, Fig. 3(a)",
        test="Post-LN's ‖ΔF‖ per update, mean of steps 50–100, over that of update 1, no warm-up; at most a tenth",
        find=standstill,
        needs="Post-LN without warm-up at 18 layers or more, 100 steps",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    Claim(
        key="warmup",
        sentence="Warm-up helps: it lets Post-LN update smoothly.",
        source="DeepNet §2, Fig. 3(a)",
        test="Post-LN's ‖ΔF‖ after update 1 without warm-up over that with it, 18 layers or more; at least twice",
        find=warmup_helps,
        needs="Post-LN at 18 layers or more with and without warm-up",
        command=BOTH,
        methods=("post-ln",),
    ),
    Claim(
        key="initialisation",
        sentence="Better initialisation helps: it lets the model update smoothly.",
        source="DeepNet §2, Fig. 3(a)",
        test="‖ΔF‖ after update 1 without warm-up: Post-LN over Post-LN-init, 18 layers or more; above 1.1",
        find=_first(INIT, ONLY_LARGER),
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    Claim(
        key="theta",
        sentence="Warm-up works by making ‖Δθ‖ smaller.",
        source="DeepNet §3.2",
        test="Post-LN's ‖Δθ‖ over all parameters at the reference step, without warm-up over with it; at least twice",
        find=theta,
        needs="Post-LN with and without warm-up",
        command=BOTH,
        methods=("post-ln",),
    ),
)
