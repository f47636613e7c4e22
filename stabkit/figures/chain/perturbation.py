"""How far the output moves when every weight moves by 10⁻⁴, sub-layer by sub-layer, and its law with depth.

Liu et al. 2020 (§4) find that the variance of the output's change grows with the number n of sub-layers of a model as
O(n) under Post-LN and as O(log n) under Pre-LN; ADMIN's closed forms aim at O(log n) or O(1). Here the square of the
relative change after the last sub-layer (probe `perturbation`) is fitted over the depths of a method by a + b·log n
and by a + b·n. A law is named only of four depths or more: O(1) where the square changes by less than half of itself,
else the better of the two fits where it explains LEAST_R2 of the spread and MARGIN more than the other (O(n) only with
an exponent of STEEP or more); else "undecided". The exponent is that of the square, ∝ n^p, whatever the law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import share
from stabkit.results.conditions import FACTS, output_stack, shown
from stabkit.results.line import line, log_slope
from stabkit.results.once import once
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, shape_of
from stabkit.words import short

COLUMNS = (*FACTS, "sublayer", "perturbation", "law")
UNDECIDED = "undecided"
LEAST, LEAST_R2, MARGIN, FLAT, STEEP = 4, 0.9, 0.03, 1.5, 0.7
"""Depths from which on laws can be told apart; what a fit must explain, how much more than the other; what is flat; and
the exponent from which on growth is called O(n), for a + b·n with a large a is no such growth over these depths."""


def series(run: Run) -> NDArray[np.float64]:
    """(n,) relative change after each sub-layer of the output stack; empty where it was not recorded."""
    table = run.records.get("perturbation")
    if table is None or not len(table.steps):
        return np.empty(0)
    change: NDArray[np.float64] = table.select(share.output_sites(table.sites))[0]
    return change


def law(change: NDArray[np.float64], n: NDArray[np.float64]) -> tuple[str, float]:
    """(the law of a change over n sub-layers, the exponent of its square); ("", NaN) for too few or unusable values."""
    squares = change**2
    if len(change) < LEAST or not (np.isfinite(squares) & (squares > 0)).all():
        return "", math.nan
    exponent = log_slope(n, squares)
    if squares.max() <= FLAT * squares.min():
        return "O(1)", exponent
    spread = ((squares - squares.mean()) ** 2).sum()
    fits = {}
    for name, x in (("O(log n)", np.log(n)), ("O(n)", n)):
        through = line(x, squares)
        fits[name] = 1 - float(through.residual / spread) if through.slope > 0 else 0.0
    best, other = sorted(fits, key=lambda name: -fits[name])
    decided = fits[best] >= LEAST_R2 and fits[best] - fits[other] >= MARGIN
    decided = decided and (best != "O(n)" or exponent >= STEEP)
    return (best if decided else UNDECIDED), exponent


def laws(frame: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """{method: (law, exponent)} of its output's change over the depths of one shape of model, first condition."""
    by_label = {}
    first = frame[frame["condition"] == frame["condition"].iloc[0]] if len(frame) else frame
    for label, rows in first.groupby("label", sort=False):
        ends = rows.loc[rows.groupby("run")["sublayer"].idxmax()]
        shape = [shape_of(n, m)[0] for n, m in zip(ends["encoder_layers"], ends["decoder_layers"], strict=True)]
        joined = [ends[np.array(shape) == each] for each in JOINED]
        ends = max(joined, key=lambda each: int(each["sublayer"].nunique()))
        by_depth = ends.groupby("sublayer")["perturbation"].agg(centre)
        name, exponent = law(np.array(by_depth, dtype=np.float64), np.array(by_depth.index, dtype=np.float64))
        if name:
            by_label[str(label)] = name, exponent
    return by_label


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and sub-layer of its decoder (of its encoder where it has no decoder)."""
    rows = []
    for placed in shown(runs):
        facts = placed.facts()
        values = enumerate(series(placed.run).tolist(), 1)
        rows += [{**facts, "sublayer": place, "perturbation": value} for place, value in values]
    frame = curves.by_depth(pd.DataFrame(rows, columns=[*FACTS, "sublayer", "perturbation"]))
    by_label = laws(frame)
    texts = {label: f"n^{exponent:.2f}, {name}" for label, (name, exponent) in by_label.items()}
    return frame.assign(law=[texts.get(label, "") for label in frame["label"]])


def title(runs: Sequence[Run]) -> str:
    """How the change grows with depth under the method where it grows fastest and where slowest, each with its law."""
    by_label = laws(select(runs))
    if len(by_label) < 2:
        return "How far the output moves when every weight moves a little"
    most, least = (pick(by_label, key=lambda label: by_label[label][1]) for pick in (max, min))
    texts = [f"n^{by_label[label][1]:z.1f} under {label} ({by_label[label][0]})" for label in (most, least)]
    return f"With the number of sub-layers the output's squared change grows as {texts[0]}, as {texts[1]}"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, depth), rows in frame.groupby(["label", "depth"], sort=False):
        first = rows[rows["run"] == rows["run"].iloc[0]]["perturbation"]
        parts.append(f"{label} {depth} {short(float(first.iloc[-1]))}")
    where = f"by {output_stack(frame['decoder_layers'])} sub-layer"
    grown = [f"{label} n^{exponent:z.2f} {name}" for label, (name, exponent) in laws(frame).items()]
    law_text = f" Its square over the depths: {'; '.join(grown)}." if grown else ""
    return f"Relative change of the state {where}, logarithmic. At the last: {'; '.join(parts[:24])}.{law_text}"


def draw(frame: pd.DataFrame) -> Figure | None:
    """A panel a depth."""
    return curves.draw(
        frame,
        Curves(
            x="sublayer",
            grouped=True,
            y="perturbation",
            x_name=f"{output_stack(frame['decoder_layers'])} sub-layer",
            y_label="‖x(θ+δ) − x(θ)‖ / ‖x(θ)‖",
            ticks=lambda group: curves.layer_ticks(group, "sublayer"),
        ),
    )


PICTURE: RunPicture = Picture(
    name="perturbation",
    short="Change under a fixed perturbation",
    room="chain",
    caption=(
        "Liu et al. 2020, §4 (amplification effect), with their released plot's perturbation of 10⁻⁴·sign(noise); step "
        "0."
    ),
    see=(
        "Every weight gets the same small change, before training. Shown: the relative change of the state after each "
        "sub-layer."
    ),
    read=(Note("A method that amplifies weight changes here also amplifies each update of training."),),
    columns=COLUMNS,
    index="sublayer",
    value="perturbation",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has recorded its perturbation.",
    optional=True,
    at_start=True,
)
