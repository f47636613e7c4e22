"""Loss after equal updates against the rate: a valley a depth (or width), the best rates joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture
from stabkit.results.transfer import Transfer
from stabkit.results.valley import Valley
from stabkit.words import scientific, short

COLUMNS = ("run", "panel", "method", "kind", "outcome", "axis", "size", "lr", "loss", "low", "high")
"""`kind`: mean, over all seeds; one, of the first seed alone; lost, a rate that does not train; best."""
TICKS = tuple(float(f"{lead}e{power}") for power in range(-8, 3) for lead in (1, 3))
BOTTOM, HEAD = 3, 0.8
"""How many means are a valley's bottom; of the bottoms' span, how far above them the panel reaches."""


def select(cases: Sequence[Transfer]) -> pd.DataFrame:
    """One row a rate, and one a best rate."""
    rows = [
        {
            "run": f"{case.key} {valley.size}",
            "panel": case.label,
            "method": case.method,
            "axis": case.axis,
            "size": valley.size,
            **row,
        }
        for case in cases
        for valley in case.valleys
        for row in _rows(valley)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(valley: Valley) -> list[dict[str, object]]:
    none = {"low": np.nan, "high": np.nan}
    rows: list[dict[str, object]] = []
    for i, rate in enumerate(valley.rungs):
        trials = [valley.trials[i, seed] for seed in valley.seeds if (i, seed) in valley.trials]
        losses = [trial.loss for trial in trials if np.isfinite(trial.loss)]
        if trials and not all(trial.trains for trial in trials):
            diverged = len(losses) < len(trials)
            rows.append(
                {"kind": "lost", "outcome": "diverged" if diverged else "stuck", "lr": rate, "loss": np.nan, **none}
            )
        if losses and len(losses) == len(trials):
            kind = "mean" if len(trials) == len(valley.seeds) else "one"
            rows.append({"kind": kind, "outcome": "trains", "lr": rate, "loss": float(np.mean(losses)), **none})
    if valley.best:
        best = valley.best
        rows.append(
            {
                "kind": "best",
                "outcome": "trains",
                "lr": best.value,
                "loss": valley.loss,
                "low": best.low,
                "high": best.high,
            }
        )
    return rows


def title(cases: Sequence[Transfer]) -> str:
    """What was found of each case."""
    verdicts = [f"{case.label} {case.verdict}" for case in cases if case.verdict != "cannot tell"]
    return "; ".join(verdicts) if verdicts else "Loss against the learning rate"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for panel, rows in frame[frame["kind"] == "best"].groupby("panel", sort=False):
        values = ", ".join(f"{row['size']}: {scientific(row['lr'])}" for row in rows.to_dict("records"))
        parts.append(f"{panel}, best rate by {rows['axis'].iloc[0]}: {values}")
    best = "; ".join(parts) or "no best rate was found"
    return f"Chart of the loss against the learning rate, logarithmic. {best}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a case."""
    groups, more = style.drawn_groups(list(frame.groupby("panel", sort=False)))
    sizes = sorted(set(frame["size"]))
    figure, panels = style.panels(len(groups), 2 if len(groups) > 1 else 1, 3.2, legend=1, more=more)
    ends = frame["lr"].min() / 1.3, frame["lr"].max() * 1.3
    ticks = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    low, high = _limits(frame)
    for axes, (name, rows) in zip(panels, groups, strict=True):
        axes.set_title(lettering.safe(str(name), 40))
        style.log_axis(axes, "x", *ends, ticks=ticks)
        axes.set_xticks(ticks, [scientific(rate) for rate in ticks])
        axes.set_ylim(low, high)
        for place, size in enumerate(sizes):
            _valley(axes, rows[rows["size"] == size], style.depth_line(place, len(sizes)), (low, high))
        best = rows[rows["kind"] == "best"].sort_values("size")
        method = str(rows["method"].iloc[0])
        (joined,) = axes.plot(best["lr"], best["loss"], "-", color=style.INK, linewidth=1.2)
        style.mark(joined, method)
        for row in best.to_dict("records"):
            if np.isfinite(row["low"]):
                (bar,) = axes.plot([row["low"], row["high"]], [row["loss"]] * 2, "-", color=style.INK, linewidth=2.5)
                style.mark(bar, method)
            (point,) = axes.plot([row["lr"]], [row["loss"]], "o", color=style.INK, markersize=5)
            label = f"{name}, {row['axis']} {row['size']}: best {scientific(row['lr'])}"
            style.mark(point, method, label, x="learning rate")
        axes.set_xlabel("learning rate")
        axes.set_ylabel("loss after equal updates")
    unit = "layers" if frame["axis"].iloc[0] == "depth" else "wide"
    handles = [
        Line2D([], [], color=style.INK, label=f"{size} {unit}", **style.depth_line(place, len(sizes)))
        for place, size in enumerate(sizes)
    ]
    handles.append(Line2D([], [], color=style.INK, marker="o", label="best, 95 %"))
    style.legend(figure, handles, ncols=len(handles))
    return figure


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    """From the lowest bottom to HEAD above the bottoms of all: of a valley the BOTTOM lowest means. Its walls may be as
    high as they like."""
    means = frame[frame["kind"] == "mean"]
    if means.empty:
        return 0.0, 1.0
    bottoms = means.groupby(["panel", "size"])["loss"].nsmallest(BOTTOM)
    low, high = float(bottoms.min()), float(bottoms.max())
    span = max(high - low, 1e-9)
    return low - 0.05 * span, high + HEAD * span


def _valley(axes: Axes, rows: pd.DataFrame, look: dict[str, Any], limits: tuple[float, float]) -> None:
    if rows.empty:
        return
    method, size = str(rows["method"].iloc[0]), rows["size"].iloc[0]
    hue, top = style.colour(method), limits[1]
    mean = rows[rows["kind"] == "mean"].sort_values("lr")
    tried = rows[rows["kind"].isin(["mean", "one"])].sort_values("lr")
    (thin,) = axes.plot(tried["lr"], tried["loss"].clip(upper=top), "-", color=hue, linewidth=0.6, alpha=0.5)
    style.mark(thin, method)
    (line,) = axes.plot(mean["lr"], mean["loss"], color=hue, **look)
    style.mark(line, method, f"{rows['panel'].iloc[0]}, {rows['axis'].iloc[0]} {size}", x="learning rate")
    for row in tried.to_dict("records"):
        above = row["loss"] > top
        shape = "^" if above else "o"
        (point,) = axes.plot([row["lr"]], [min(row["loss"], top)], shape, color=hue, markersize=2.5, clip_on=False)
        style.mark(point, method, f"{size}: {short(row['loss'], 4)} at {scientific(row['lr'])}", x="learning rate")
    for row in rows[rows["kind"] == "lost"].to_dict("records"):
        (cross,) = axes.plot([row["lr"]], [top], "x", color=hue, markersize=5, clip_on=False)
        style.mark(cross, method, f"{size}: does not train at {scientific(row['lr'])}", x="learning rate")


PICTURE: Picture[Sequence[Transfer]] = Picture(
    name="transfer",
    short="Loss against the rate",
    room="depth",
    caption="Not drawn in the papers.",
    see="One valley per size. Where their minima lie above each other, the best rate carries over.",
    read=(
        Note(
            "Near the minimum, points are means over seeds; farther out, the first seed only. A triangle at "
            "the rim: a loss above the panel. A black bar: the 95 % interval of the best rate over seeds."
        ),
        Note("✕ at the rim: a seed does not train at this rate.", ("diverged", "stuck")),
    ),
    columns=COLUMNS,
    value="loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No rate was tried.",
)
