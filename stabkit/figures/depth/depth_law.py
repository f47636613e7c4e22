"""Validation loss against the logarithm of depth: DeepNet Fig. 8, L(d) = A·log d + B with d = N + M layers.

Least squares over the depths (natural logarithm), each the mean of the seeds that train at every one of them; of the
depths as many as one seed trains at, for a mean over other seeds is no comparison. The paper's law is of BLEU; of the
loss a negative A is the better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stabkit.figures.curve_picture import curves_of
from stabkit.figures.drawing import curves, style
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.drawing.style import CONDITION_DASHES
from stabkit.figures.picture import Note
from stabkit.results import points
from stabkit.results.conditions import FACTS, Condition, Shown, shown
from stabkit.results.line import log_law
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, Stacks, shape_of, unless_equal
from stabkit.words import listed, some

DEPTHS = 3
"""Fewer distinct depths are no law."""
COLUMNS = (*FACTS, "shape", "layers", "loss", "fitted", "A", "B", "R2", "seeds")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a judged run of each line that can be fitted."""
    groups: dict[tuple[str, Condition, Stacks], list[Shown]] = {}
    for placed in shown(runs):
        shape, _ = shape_of(placed.run.spec.model.encoder_layers, placed.run.spec.model.decoder_layers)
        if shape in JOINED and placed.run.outcome.word != "early":
            groups.setdefault((placed.variant, placed.condition, shape), []).append(placed)
    rows = []
    for (_, _, shape), members in groups.items():
        rows += _line(members, shape)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _line(members: Sequence[Shown], shape: Stacks) -> list[dict[str, Any]]:
    """The rows of one method under one condition; none where three depths do not train."""
    rows: list[dict[str, Any]] = []
    by: dict[int, dict[int, float]] = {}
    for placed in members:
        facts, loss = placed.facts(), placed.run.outcome.validation_loss
        layers = int(facts["encoder_layers"]) + int(facts["decoder_layers"])
        if facts["outcome"] == "trains" and math.isfinite(loss):
            by.setdefault(layers, {})[placed.run.spec.seed] = loss
        rows.append({**facts, "shape": shape, "layers": layers, "loss": loss})
    depths, seeds = _paired(by)
    if len(depths) < DEPTHS:
        return []
    means = {layers: float(np.mean([by[layers][seed] for seed in seeds])) for layers in sorted(depths)}
    a, b, r2 = log_law(list(means), list(means.values()))
    law_of = {"A": a, "B": b, "R2": r2, "seeds": len(seeds)}
    return [{**row, "fitted": row["layers"] in depths and row["seed"] in seeds, **law_of} for row in rows]


def _paired(by: Mapping[int, Mapping[int, float]]) -> tuple[set[int], set[int]]:
    """The most depths at which one seed trains, and all the seeds that train at every one of them; of several such
    sets the one of most seeds."""
    at = {
        seed: {layers for layers, values in by.items() if seed in values} for values in by.values() for seed in values
    }
    shared = [(depths, {seed for seed, own in at.items() if depths <= own}) for _, depths in sorted(at.items())]
    return max(shared, key=lambda one: (len(one[0]), len(one[1])), default=(set(), set()))


def title(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """The law of the line whose loss falls most with depth."""
    if frame.empty:
        return "Quality against the logarithm of depth"
    best = frame.iloc[int((-frame["A"]).argmax())]
    where = listed(str(best["label"]), str(best["condition"]))
    span = frame.loc[_same(frame, best), "layers"]
    return f"{where}: {law(best, f', over {span.min()} to {span.max()} layers')}"


def _same(frame: pd.DataFrame, row: pd.Series[Any]) -> pd.Series[bool]:
    """The rows of one line that were fitted."""
    names = ["method", "label", "condition", "shape"]
    return frame["fitted"] & (frame[names] == row[names]).all(axis=1)


def law(row: pd.Series[Any], over: str = "") -> str:
    """`loss = −0.310·ln d + 5.00, R² 0.98, one seed`."""
    a, b, r2 = (float(row[name]) for name in ("A", "B", "R2"))
    sign = "−" if b < 0 else "+"
    slope = f"−{-a:.3g}" if a < 0 else f"{a:.3g}"
    r2_text = f"R² {r2:.2f}" if math.isfinite(r2) else "R² –"
    seeds = "one seed" if row["seeds"] == 1 else f"{row['seeds']} seeds"
    return f"loss = {slope}·ln d {sign} {abs(b):.3g}, {r2_text}{over}, {seeds}"


def lines(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(name, rows) of every fitted line."""
    return [
        (listed(label, condition, unless_equal(shape)), rows)
        for (_, label, condition, shape), rows in frame.groupby(["method", "label", "condition", "shape"], sort=False)
    ]


def alt(frame: pd.DataFrame) -> str:
    texts = [f"{name}: {law(own.iloc[0])}" for name, own in lines(frame)]
    return f"Quality against depth, logarithmic, with a fitted line per method. {some(texts, 16)}."


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """One panel; each line by its name and law, and what was left out of it run by run."""
    parts = []
    for name, rows in lines(frame):
        part, dots = rows["run"].mask(rows["fitted"], name), ~rows["fitted"] & (rows["outcome"] == "trains")
        called = f"{name}: {law(rows.iloc[0])}"
        parts.append(rows.assign(panel="", label=called, part=part, outcome=rows["outcome"].mask(dots, "undecided")))
    return pd.concat(parts)


def _laws(axes: Axes, group: pd.DataFrame) -> None:
    """The fitted lines, over the depths that they were fitted to."""
    conditions = list(group["condition"].unique())
    for _, rows in group[group["fitted"]].groupby("label", sort=False):
        first, method = rows.iloc[0], str(rows["method"].iloc[0])
        ends = np.array([rows["layers"].min(), rows["layers"].max()], dtype=float)
        dashes = CONDITION_DASHES[conditions.index(first["condition"]) % len(CONDITION_DASHES)]
        y = float(first["A"]) * np.log(ends) + float(first["B"])
        style.mark(style.line(axes, ends, y, color=style.colour(method), linewidth=1.5, linestyle=dashes), method)


PICTURE = curves_of(
    name="depth_law",
    short="Quality and depth",
    room="depth",
    caption="DeepNet Fig. 8: L(d) = A log d + B, average BLEU on OPUS-100 at 12 to 1,000 layers.",
    see=(
        "Points are means of the seeds that train at every fitted depth, in a band from lowest to highest. The "
        "line is least squares through the points; A is its gain for a factor e of depth."
    ),
    read=(
        Note(
            "Not fitted, but marked at their depths: runs that are stuck (a square) or diverged (✕, at the edge), and "
            "runs of seeds that do not train, or were not run, at every depth (small dots), because means over "
            "different seeds cannot be compared.",
            ("diverged", "stuck"),
        ),
    ),
    columns=COLUMNS,
    value="loss",
    frame=select,
    arranged=_named,
    title=title,
    alt=alt,
    none="No method trains from one seed at three depths.",
    optional=True,
    what=lambda frame: Curves(
        x="layers",
        y="loss",
        x_name="layers d = N + M",
        y_label="validation loss, nats a token",
        log_y=False,
        middle=points.mean,
        across="factors",
        marks=True,
        strokes=curves.solid("part"),
        over=_laws,
        names=90,
        columns=2,
        height=3.4,
    ),
)
