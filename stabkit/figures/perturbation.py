"""How far the output moves when every weight moves by 10⁻⁴, sub-layer by sub-layer, and which law it follows.

Liu et al. 2020 find that the variance of the output's change grows with the number n of sub-layers of a model as O(n)
under Post-LN and as O(log n) under Pre-LN (their Theorem 2 and Corollary 1); ADMIN's closed forms aim at O(log n) or
O(1). Here the square of the relative change (probe `perturbation`) is fitted by a, a + b·log n and a + b·n with
a, b ≥ 0: over the depths of a method where there are three or more, else along the sub-layers of one model. The law
named is the one that leaves least, O(1) where no other explains a tenth of the spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures import curves, share
from stabkit.figures.comparison import FACTS, geometric_mean, output_stack, short, shown
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
    "sub-layer move? What amplifies weights' changes here turns each update of training into a larger one."
)
COLUMNS = (*FACTS, "sublayer", "perturbation")
LAWS = ("O(1)", "O(log n)", "O(n)")
OPTIONAL = True
LEAST = 3
"""Values from which on laws can be told apart."""


def series(run: Run) -> NDArray[np.float64]:
    """(n,) relative change after each sub-layer of the output stack; empty where it was not recorded."""
    table = run.records.get("perturbation")
    if table is None or not len(table.steps):
        return np.empty(0)
    found: NDArray[np.float64] = table.select(share.output_sites(table.sites))[0]
    return found


def law(change: NDArray[np.float64], n: NDArray[np.float64]) -> tuple[str, dict[str, float]]:
    """(the law of a change over n sub-layers, {law: R² of its fit to the squared change}); ("", {}) for values that are
    not finite."""
    squares = change**2
    if len(change) < LEAST or not np.isfinite(squares).all():
        return "", {}
    spread = float(((squares - squares.mean()) ** 2).sum())
    if not spread > 1e-24 * float((squares**2).sum()):  # equal but for rounding
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


def laws(frame: pd.DataFrame) -> dict[str, str]:
    """{method: the law of its output's change over the depths of the page}, of the first condition."""
    found = {}
    first = frame[frame["condition"] == frame["condition"].iloc[0]] if len(frame) else frame
    for label, own in first.groupby("label", sort=False):
        ends = own.loc[own.groupby("run")["sublayer"].idxmax()]
        by_depth = ends.groupby("sublayer")["perturbation"].agg(geometric_mean)
        if len(by_depth) >= LEAST:
            found[str(label)] = law(np.array(by_depth, dtype=np.float64), np.array(by_depth.index, dtype=np.float64))[0]
    return found


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and sub-layer of its decoder (of its encoder where it has no decoder)."""
    rows = []
    for each in shown(runs):
        facts = each.facts()
        values = enumerate(series(each.run).tolist(), 1)
        rows += [{**facts, "sublayer": place, "perturbation": value} for place, value in values]
    return curves.by_depth(pd.DataFrame(rows, columns=list(COLUMNS)))


def title(runs: Sequence[Run]) -> str:
    """The law of each method over the depths, or along its sub-layers where there are too few depths."""
    frame = select(runs)
    if frame.empty:
        return "How far the output moves when every weight moves a little"
    over, where = laws(frame), "with depth"
    if not over:
        deep = frame[frame["depth"] == frame["depth"].iloc[-1]]
        first = deep[deep["run"].isin(deep.drop_duplicates("label")["run"])]
        by_label = first.groupby("label", sort=False)
        over = {
            str(label): law(own["perturbation"].to_numpy(float), own["sublayer"].to_numpy(float))[0]
            for label, own in by_label
        }
        where = f"along the sub-layers of {deep['depth'].iloc[0]}"
    by_law = {name: [label for label, found in over.items() if found == name] for name in reversed(LAWS)}
    told = [f"{name} under {', '.join(labels)}" for name, labels in by_law.items() if labels]
    return f"The output's squared change grows {where} as {'; '.join(told)}" if told else "How far the output moves"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded its perturbation."
    parts = []
    for (label, depth), own in frame.groupby(["label", "depth"], sort=False):
        first = own[own["run"] == own["run"].iloc[0]]["perturbation"]
        parts.append(f"{label} {depth} {short(float(first.iloc[-1]))}")
    where = f"by {output_stack(frame['depth'])} sub-layer"
    return f"Relative change of the state {where}, logarithmic. At the last: {'; '.join(parts[:24])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""
    return curves.draw(
        frame,
        Curves(
            x="sublayer",
            y="perturbation",
            x_label=f"{output_stack(frame['depth'])} sub-layer",
            y_label="‖x(θ+δ) − x(θ)‖ / ‖x(θ)‖",
            none="No run has recorded its perturbation.",
            ticks=lambda group: curves.layer_ticks(group, "sublayer"),
        ),
    )
