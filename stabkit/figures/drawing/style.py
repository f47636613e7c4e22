"""One look for every picture: colour and sign = method, line style and weight = depth, ink that follows the page.

Drawing happens inside `look()`, on matplotlib Figure objects, never through pyplot; `svg.py` turns them into svg for
the page and into files. Whatever belongs to one method is given to `mark`, with a name if it is a curve to point at:
the page can then switch the method off and say what is under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from stabkit.figures.drawing.lettering import safe
from stabkit.figures.drawing.palette import hue
from stabkit.results import points
from stabkit.words import plain, scientific

Group = TypeVar("Group")

INK = "#010203"
"""Stands for "the colour of the text around": black on paper, `currentColor` in the page. Nothing else uses it."""

SIGN: dict[str, Any] = {"markersize": 5, "markeredgewidth": 0}
SIGN_EVERY = (0.02, 0.3)
"""Shares of a panel's diagonal along a line: where its first sign stands, and how far from one to the next."""

DASHES: tuple[Any, ...] = ((0, (1, 1.4)), (0, (4, 1.6)), (0, (6, 1.4, 1, 1.4)), "-")
"""Line styles from the shallowest to the deepest of up to four depths."""

WIDTH, SINGLE = 9.6, 5.2
"""Inches, of several panels and of one; the page scales the former to a card, the latter to a phone."""

LEFT, TITLE_LINE, LEGEND_LINE = 0.74, 0.155, 0.2
"""Inches: left of the first panel for its scale, a line of a panel's title, a line of the legend."""

MOST_PANELS = 12
"""Small multiples in one picture; of more, eleven evenly chosen ones and a note."""

MARK = "stabkit:"
"""What the group id of a marked artist begins with, and that of a figure with windows."""

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # nothing stands between a panel and its title: its place need not be searched
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "stabkit",
    "pdf.fonttype": 42,
    "path.simplify_threshold": 0.5,  # of a unit, less than half of a line's width: what hundreds of noisy steps need
}


@contextmanager
def look(**changes: Any) -> Iterator[None]:
    """matplotlib's defaults and ours over them, whatever the user's matplotlibrc says; undone on leaving."""
    with matplotlib.style.context(["default", {**RC, **{key.replace("_", "."): v for key, v in changes.items()}}]):
        yield


def colour(method: str) -> str:
    """The method's colour, the same on every page."""
    return hue(method)[0]


def signed(method: str, values: Iterable[float]) -> dict[str, Any]:
    """Colour and sparse markers of a line through `values`: they identify the method and are no data points."""
    if sum(map(math.isfinite, values)) < 2:
        return dotted(method)
    return {"color": hue(method)[0], "marker": hue(method)[1], "markevery": SIGN_EVERY, **SIGN}


def dotted(method: str) -> dict[str, Any]:
    """Colour and sign of a method's measurements where each has its mark: the sign, else a disc."""
    return {"color": hue(method)[0], "marker": hue(method)[1] or "o", "markevery": None, **SIGN}


def depth_line(place: int, count: int) -> dict[str, Any]:
    """Line style and weight of the `place`-th of `count` depths: the deeper, the heavier; the deepest is solid."""
    share = 1.0 if count == 1 else place / (count - 1)
    return {"linestyle": DASHES[-1 - min(count - 1 - place, len(DASHES) - 1)], "linewidth": 0.9 + 1.1 * share}


def drawn_groups(groups: Sequence[Group]) -> tuple[list[Group], int]:
    """The panels to draw, the first and the last among them, and how many are left out."""
    if len(groups) <= MOST_PANELS:
        return list(groups), 0
    chosen = points.evenly(groups, MOST_PANELS - 1)
    return chosen, len(groups) - len(chosen)


Cut = tuple[float, float, float, float]
"""A part of a picture: left, top, width, height, in inches from its upper left corner."""


def windows(figure: Figure, cuts: Sequence[Sequence[Cut]]) -> None:
    """What stands below one another where the picture is wider than the screen: each window is of cuts set beside each
    other. Of panels that are axes of their own the page finds them itself."""
    figure.set_gid(MARK + json.dumps([[[round(72 * size) for size in cut] for cut in window] for window in cuts]))


def panels(
    count: int,
    columns: int,
    height: float,
    *,
    titles: int = 1,
    right: float = 0.1,
    legend: int = 0,
    more: int = 0,
    beyond: float = 0.0,
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` small multiples, at most `columns` beside each other; only the first column has tick labels.

    `height` of a row, `right`, the room right of each panel, and `beyond`, that right of all, in inches; `titles` lines
    over a panel, `legend` lines under all; a note in the place after the last says that `more` panels were left out.
    The places are computed: matplotlib's own layout takes longer than the drawing.
    """
    places = max(count, 1) + bool(more)
    columns = max(1, min(columns, places))
    rows = -(-places // columns)
    tall = rows * height + (0.1 + LEGEND_LINE * legend if legend else 0.0)
    full = WIDTH if places > 1 else SINGLE
    figure = Figure(figsize=(full, tall))
    width = (full - LEFT - beyond) / columns
    top, bottom = 0.1 + TITLE_LINE * titles, 0.46
    axes_of_panels = []
    for i in range(places):
        row, column = divmod(i, columns)
        left, low = LEFT + column * width, tall - (row + 1) * height + bottom
        wide, high = width - right - 0.1, height - top - bottom
        axes = figure.add_axes((left / full, low / tall, wide / full, high / tall))
        if column:
            axes.tick_params(labelleft=False)
        axes_of_panels.append(axes)
    if more:
        note = axes_of_panels.pop()
        note.axis("off")
        note.text(
            0.05,
            0.6,
            f"{more} more panels are left out here;\n`stabkit report --figures DIR`\nwrites every number as CSV",
            va="center",
        )
    return figure, axes_of_panels


def placed(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes on an open ground, in inches from the lower left corner."""
    wide, tall = figure.get_size_inches()
    return figure.add_axes((left / wide, bottom / tall, width / wide, height / tall), facecolor="none")


def heading(figure: Figure, text: str, top: float, most: int = 130, size: float = 8.5) -> None:
    """A line over a row of panels that begins so many inches from below."""
    place = 0.005, (top - 0.2) / figure.get_figheight()
    figure.text(*place, safe(text, most), fontsize=size, fontweight="bold")


def line(axes: Axes, x: Any, y: Any, **look: Any) -> Line2D:
    """`axes.plot` in a panel whose limits are set: nothing to find out about colours, units or how far it reaches."""
    made = Line2D(x, y, **look)
    axes.add_artist(made)
    return made


class EmptyFigure(Figure):
    """A picture that says why there is nothing to see; a page leaves it out."""

    def __init__(self, reason: str) -> None:
        super().__init__(figsize=(WIDTH, 1.2))
        self.reason = reason
        self.text(0.5, 0.5, reason, ha="center", va="center")


def empty(reason: str) -> EmptyFigure:
    """Nothing to see, and why."""
    with look():
        return EmptyFigure(reason)


WITHIN: dict[float, tuple[float, ...]] = {
    0.5: (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
    1.0: (1, 2, 3, 5, 7),
    math.inf: (1, 2, 5),
}
"""{decades that an axis spans at most: where within one its ticks stand}."""


def log_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float, ticks: Sequence[float] = ()) -> None:
    """A logarithmic axis from `low` to `high`, ticks written 0.01 and 1e-7; given ticks replace the decades."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    if ticks:
        axis.set_major_locator(FixedLocator(list(ticks)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    else:
        span = _log(high) - _log(low)
        narrow = which == "y" and span < 2.5
        within = next(places for widest, places in WITHIN.items() if span < widest)
        axis.set_major_locator(LogLocator(10, subs=within if narrow else (1,), numticks=12 if narrow else 7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: decade(value)))
    axis.set_minor_locator(NullLocator())


def decade(value: float) -> str:
    """A tick as numbers are written in sentences: 0.01, 1, 100, 1e-7."""
    return f"{value:g}" if 1e-3 < value < 1e4 else scientific(value)


def mark(
    artist: Artist,
    method: str,
    name: str = "",
    values: Sequence[tuple[float, float]] | None = None,
    *,
    x: str = "step",
    legend: bool = False,
) -> None:
    """Say whose artist this is, and what a reader who points at it is told: `name`, and the nearest of its points.

    `values` where the points drawn are not the data themselves: one (x, y) for each point. `x`: what their x is.
    `legend`: a part of the legend, which stays when the method is switched off.
    """
    known: dict[str, Any] = {"method": method, "name": plain(name), "x": x, "legend": legend}
    artist.set_gid(MARK + json.dumps(known if values is None else {**known, "values": [list(v) for v in values]}))


def method_of(artist: Artist) -> str:
    """The method that an artist was marked with; "" for none."""
    gid = artist.get_gid() or ""
    return str(json.loads(gid.removeprefix(MARK))["method"]) if gid.startswith(MARK) else ""


def legend(parent: Figure | Axes, handles: Sequence[Artist], **placed: Any) -> Legend:
    """A legend whose entries belong to the methods of their handles; of a figure: in its lower left corner."""
    if isinstance(parent, Figure):
        placed = {"loc": "lower left", "bbox_to_anchor": (0.0, 0.0), "borderaxespad": 0.2, **placed}
    made: Legend = parent.legend(handles=list(handles), **placed)
    for handle, text, key in zip(handles, made.get_texts(), made.legend_handles, strict=True):
        if method := method_of(handle):
            for part in (text, key):
                if part is not None:
                    mark(part, method, legend=True)
    return made


def reference(axes: Axes, value: float, name: str = "", *, right: bool = False) -> None:
    """A reference line across the panel, its name on it."""
    axes.axhline(value, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.7)
    axes.annotate(
        name,
        (0.98 if right else 0.02, value),
        ha="right" if right else "left",
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        fontsize=7,
        va="bottom",
    )


def upright(axes: Axes, x: float, name: str) -> None:
    """A reference line down the panel, its name at its foot."""
    axes.axvline(x, color=INK, linewidth=0.8, alpha=0.4)
    axes.annotate(
        name,
        (x, 0.03),
        xycoords=axes.get_xaxis_transform(),
        xytext=(3, 0),
        textcoords="offset points",
        fontsize=7,
    )


def _log(value: float) -> float:
    return math.log10(value)


CONDITION_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.4, 1, 1.4)))
"""Line styles of up to four conditions in one panel; more have panels of their own."""
