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
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.drawing.style import CONDITION_DASHES
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results.conditions import FACTS, Condition, Shown, shown
from stabkit.results.line import log_law
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, Stacks, shape_of, unless_equal
from stabkit.words import listed

X = "layers d = N + M"
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


def title(runs: Sequence[Run]) -> str:
    """The law of the line whose loss falls most with depth."""
    frame = select(runs)
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
    more = f"; and {len(texts) - 16} more" if len(texts) > 16 else ""
    return f"Quality against depth, logarithmic, with a fitted line per method. {'; '.join(texts[:16])}{more}."


def draw(frame: pd.DataFrame) -> Figure:
    """One panel; every line's law in the legend."""
    drawn = lines(frame)
    beside = 2 if max(len(f"{name}: {law(rows.iloc[0])}") for name, rows in drawn) <= 62 else 1
    figure, (axes,) = style.panels(1, 2, 3.4, legend=-(-min(len(drawn), 24) // beside))
    conditions = list(frame["condition"].unique())
    axes.tick_params(labelleft=True)
    axes.set_ylabel("validation loss, nats a token")
    depths = sorted(frame["layers"].unique())
    ticks = depths if len(depths) <= 8 else depths[:: -(-len(depths) // 8)]
    style.log_axis(axes, "x", depths[0] / 1.15, depths[-1] * 1.15, ticks=ticks)
    axes.set_xlabel(X)
    fitted = frame.loc[frame["fitted"], "loss"]
    low, high = float(fitted.min()), float(fitted.max())
    room = 0.12 * (high - low or abs(high) or 1.0)
    axes.set_ylim(low - room, high + room)
    lettering.entitle(axes, "validation loss")
    handles = []
    for name, of_line in drawn:
        turn = conditions.index(of_line["condition"].iloc[0]) % len(CONDITION_DASHES)
        handles.append(_one(axes, name, of_line, CONDITION_DASHES[turn]))
    style.legend(figure, handles[:24], ncols=beside, handlelength=2.4)
    return figure


def _one(axes: Axes, name: str, rows: pd.DataFrame, dashes: Any) -> Line2D:
    """Points, bars over seeds, the line; what was left out of it at its depth."""
    method, kept = str(rows["method"].iloc[0]), rows[rows["fitted"]]
    hue = style.colour(method)
    a, b = float(rows["A"].iloc[0]), float(rows["B"].iloc[0])
    by = kept.groupby("layers")["loss"]
    middle, low, high = by.mean(), by.min(), by.max()
    ends = np.array([middle.index.min(), middle.index.max()], dtype=float)
    (line,) = axes.plot(
        ends,
        a * np.log(ends) + b,
        color=hue,
        linewidth=1.5,
        linestyle=dashes,
        label=lettering.safe(f"{name}: {law(rows.iloc[0])}", 90),
    )
    style.mark(line, method)
    if (high > low).any():
        style.mark(axes.vlines(middle.index, low, high, color=hue, alpha=0.55, linewidth=1.4), method)
    (points,) = axes.plot(middle.index, middle, linestyle="", **style.dotted(method))
    style.mark(points, method, name, x=X)
    bottom, top = axes.get_ylim()
    edge = top - 0.04 * (top - bottom)
    for _, lost in rows[~rows["fitted"]].iterrows():
        value = float(lost["loss"])
        inside = lost["outcome"] != "diverged" and bottom < value < top
        look = MARKS["early" if lost["outcome"] == "trains" else str(lost["outcome"])]
        (point,) = axes.plot([float(lost["layers"])], [value if inside else edge], color=hue, linestyle="", **look)
        style.mark(point, method, listed(name, f"seed {lost['seed']}", str(lost["outcome"])), x=X)
    return line


PICTURE: RunPicture = Picture(
    name="depth_law",
    short="Quality and depth",
    room="depth",
    caption="DeepNet Fig. 8: L(d) = A log d + B, average BLEU on OPUS-100 at 12 to 1,000 layers.",
    see=(
        "Points are means of the seeds that train at every fitted depth, bars from lowest to highest. The line is "
        "least squares through the points; A is its gain for a factor e of depth."
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
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No method trains from one seed at three depths.",
    optional=True,
)
