"""The loss between stored weights: along the line from one run to another, or over the triangle of three.

Goodfellow et al. 2015: a straight line says whether two solutions are in one basin, not whether a path joins them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.comparison import FACTS
from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.shared.words import listed, short
from stabkit.figures.surfaces import landscape
from stabkit.results.surface import SurfaceSpec
from stabkit.storage.surfaces import Surface

COLUMNS = (*FACTS, "ends", "a", "b", "loss")


@dataclass(frozen=True, slots=True)
class Ends:
    """The runs between whose weights a line or triangle lies, as a cell of the frame."""

    runs: tuple[str, ...]

    def __str__(self) -> str:
        return " · ".join(self.runs)


def ends(spec: SurfaceSpec) -> Ends:
    """The first run of a line or triangle and those that it leads to."""
    return Ends((spec.origin.run, *(place.run for place in spec.plane.to)))


def select(drawn: Landscape) -> pd.DataFrame:
    """One row a point."""
    return drawn.points("between", COLUMNS, lambda seen: {"ends": ends(seen.surface.spec)})


def barrier(surface: Surface) -> float:
    """How far the loss between the first two runs rises above the straight line of their own two losses; 0 for not at
    all, NaN where a loss is not finite."""
    a = np.array(surface.spec.a)
    line = surface.loss[surface.spec.b.index(0.0)]
    inside = (a >= 0) & (a <= 1)
    ends = [float(line[a == end][0]) for end in (0.0, 1.0)]
    rise = float((line[inside] - (ends[0] + (ends[1] - ends[0]) * a[inside])).max())
    return rise if math.isnan(rise) else max(0.0, rise)


def title(drawn: Landscape) -> str:
    """The barrier between the first two runs."""
    lines = drawn.seen("between")
    if not lines or not np.isfinite(height := barrier(lines[0].surface)):
        return "The loss between stored runs"
    first, second, *_ = ends(lines[0].surface.spec).runs
    return f"Between {first} and {second} the loss rises {short(height)} nats above the straight line"


def alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{name}: lowest {short(float(rows['loss'].min()), 3)}, highest {short(float(rows['loss'].max()), 3)}"
        for name, rows in frame.groupby("ends", sort=False)
    ]
    return f"Loss between stored runs. {'; '.join(parts[:8])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a line or triangle."""
    place: Any  # an Ends, as pandas has no type for it
    if not np.isfinite(frame["loss"].astype(float)).any():
        return style.empty("No point between the runs has a finite loss.")
    groups, more = style.kept(list(frame.groupby("ends", sort=False)))
    figure, all_axes = style.panels(len(groups), 2, 3.6, titles=3, right=0.5, more=more)
    for axes, (place, group) in zip(all_axes, groups, strict=True):
        lettering.entitle(axes, *place.runs, width=60)
        axes.tick_params(labelleft=True)
        _line(axes, group) if group["b"].nunique() == 1 else _triangle(axes, group)
    return figure


def _line(axes: Axes, rows: pd.DataFrame) -> None:
    method = str(rows["method"].iloc[0])
    (line,) = axes.plot(rows["a"], rows["loss"], color=style.colour(method), linewidth=1.6)
    style.mark(line, method, listed("loss", str(rows["ends"].iloc[0])), x="from the first run")
    for place, name in ((0.0, "first"), (1.0, "second")):
        axes.axvline(place, color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.7)
        axes.annotate(name, (place, 1), xycoords=axes.get_xaxis_transform(), fontsize=7, va="top", rotation=90)
    axes.set_xlabel("from the first run (0) to the second (1)")
    axes.set_ylabel("loss, nats a token")


def _triangle(axes: Axes, rows: pd.DataFrame) -> None:
    table = landscape.grid(rows)
    a, b, losses = table.columns.to_numpy(float), table.index.to_numpy(float), table.to_numpy(float)
    axes.grid(False)
    image = landscape.heat(axes, a, b, losses, landscape.scale(losses))
    for place, name in (((0, 0), "first"), ((1, 0), "second"), ((0, 1), "third")):
        axes.plot(*place, "x", color="#ffffff", markersize=7, mew=1.8)
        axes.annotate(name, place, xytext=(4, 4), textcoords="offset points", color="#ffffff", fontsize=7.5)
    axes.set_xlabel("to the second run")
    axes.set_ylabel("to the third run")
    axes.figure.colorbar(image, ax=axes, label="loss, nats a token")


PICTURE: Picture[Landscape] = Picture(
    name="between",
    short="Between runs",
    room="surfaces",
    caption="Not a figure of these papers: linear interpolation between stored weights (Goodfellow et al. 2015).",
    see=(
        "The loss on the held-out batch of the first run along straight lines between the runs' weights: 0 is the "
        "first run, 1 on the first axis the second, 1 on the second axis the third."
    ),
    read=(
        Note(
            "A hill between two runs means that the straight line leaves their basin; another path may still stay in "
            "it."
        ),
    ),
    columns=COLUMNS,
    value="loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No line between runs was computed.",
    optional=True,
)
