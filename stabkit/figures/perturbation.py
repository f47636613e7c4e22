"""How far the output moves when every weight moves by 10⁻⁴, sub-layer by sub-layer, and which law it follows.

Liu et al. 2020 find that the variance of the change grows as O(n) with the number of sub-layers under Post-LN and as
O(log n) under Pre-LN and ADMIN (their Theorem 2 and Corollary 1). Here the square of the relative change (probe
`perturbation`) after sub-layer n of the decoder is fitted by a, a + b·log n and a + b·n with a, b ≥ 0; the law named is
the one that leaves least, a constant only where it leaves no more than the others to within a tenth of the spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures import curves, share
from stabkit.figures.comparison import FACTS, depth_rank, short, shown
from stabkit.figures.curves import Curves
from stabkit.store import Run

NAME = "perturbation"
SHORT = "Change under a fixed perturbation"
INDEX: str | None = "sublayer"
VALUE = "perturbation"
CAPTION = (
    "Liu et al. 2020, §4 (amplification effect), with their released plot's perturbation of 10⁻⁴·sign(noise); step 0."
)
READ = (
    "The same small change of every weight, before training: by how much of its length does the state after each "
    "decoder sub-layer move? What amplifies weights' changes here turns each update of training into a larger one."
)
COLUMNS = (*FACTS, "sublayer", "perturbation")
LAWS = ("O(1)", "O(log n)", "O(n)")
OPTIONAL = True
LEAST = 6
"""Sub-layers from which on laws can be told apart."""


def series(run: Run) -> NDArray[np.float64]:
    """(n,) relative change after each sub-layer of the output stack; empty where it was not recorded."""
    table = run.records.get("perturbation")
    if table is None or not len(table.steps):
        return np.empty(0)
    found: NDArray[np.float64] = table.select(share.output_sites(table.sites))[0]
    return found


def law(change: NDArray[np.float64]) -> tuple[str, dict[str, float]]:
    """(the law, {law: R² of its fit to the squared change}); ("", {}) for too few or not finite values."""
    squares = change**2
    if len(change) < LEAST or not np.isfinite(squares).all():
        return "", {}
    n = np.arange(1, len(change) + 1, dtype=float)
    spread = float(((squares - squares.mean()) ** 2).sum())
    if not spread > 0:
        return LAWS[0], {LAWS[0]: math.nan}
    fits = {LAWS[0]: 0.0}
    for name, x in ((LAWS[1], np.log(n)), (LAWS[2], n)):
        slope, level = np.polyfit(x, squares, 1)
        if slope < 0:
            slope, level = 0.0, float(squares.mean())
        if level < 0:
            slope, level = float((x * squares).sum() / (x * x).sum()), 0.0
        fits[name] = 1 - float(((squares - level - slope * x) ** 2).sum()) / spread
    best = max(fits, key=lambda name: fits[name])
    return (best if fits[best] > 0.1 else LAWS[0]), fits


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and sub-layer of its decoder (of its encoder where it has no decoder)."""
    rows = []
    for each in shown(runs):
        facts = each.facts()
        values = enumerate(series(each.run).tolist(), 1)
        rows += [{**facts, "sublayer": place, "perturbation": value} for place, value in values]
    return curves.by_depth(pd.DataFrame(rows, columns=list(COLUMNS)))


def title(runs: Sequence[Run]) -> str:
    """The law of each method at the deepest depth, where all its runs follow one."""
    placed = [each for each in shown(runs) if len(series(each.run))]
    if not placed:
        return "How far the output moves when every weight moves a little"
    deepest = max(depth_rank(each.run.spec) for each in placed)
    here = [each for each in placed if depth_rank(each.run.spec) == deepest]
    laws: dict[str, set[str]] = {}
    for each in here:
        laws.setdefault(each.label, set()).add(law(series(each.run))[0])
    by_law = {name: [label for label, found in laws.items() if found == {name}] for name in reversed(LAWS)}
    told = [f"{name} under {', '.join(labels)}" for name, labels in by_law.items() if labels]
    depth = here[0].run.spec.depth
    return (
        f"Squared change of the output along the decoder at {depth}: {'; '.join(told)}"
        if told
        else "How far the output moves when every weight moves a little"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded its perturbation."
    parts = []
    for (label, depth), own in frame.groupby(["label", "depth"], sort=False):
        first = own[own["run"] == own["run"].iloc[0]]["perturbation"].to_numpy(float)
        parts.append(f"{label} {depth} {short(float(first[-1]))} {law(first)[0]}".strip())
    return f"Relative change of the state by decoder sub-layer, logarithmic. At the last: {'; '.join(parts[:24])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""
    return curves.draw(
        frame,
        Curves(
            x="sublayer",
            y="perturbation",
            x_label="decoder sub-layer",
            y_label="‖x(θ+δ) − x(θ)‖ / ‖x(θ)‖",
            none="No run has recorded its perturbation.",
            ticks=lambda group: curves.layer_ticks(group, "sublayer"),
        ),
    )
