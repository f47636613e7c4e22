"""The rate that each depth (or width) tolerates: the highest whose forecast is `likely trains`, a line a method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.words import several
from stabkit.results.tolerance import COARSE, FACTOR, OUT_OF_RANGE, Tolerance, height_text
from stabkit.results.words import scientific

COLUMNS = ("run", "method", "label", "panel", "axis", "x", "seed", "passes", "fails", "height", "known", "monotone")
THEIRS = (
    (5e-4, "DeepNet, Fig. 4"),
    (1e-3, "Very Deep Transformers; DeepNet, Table 7"),
    (1.5e-3, "DeepNet, WMT"),
)
"""Rates of the papers' own runs."""
TICKS = (2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 3e-2)


def select(tolerances: Sequence[Tolerance]) -> pd.DataFrame:
    """One row a cell and seed; `passes` is NaN where no rate does, `fails` NaN where every rate passes."""
    widths = sorted({one.hidden for one in tolerances})
    depths = sorted({one.depth for one in tolerances})
    across = len(widths) > 1 and len(depths) == 1
    rows = [
        {
            "run": f"{one.label} {one.depth} {one.hidden} {each.seed}",
            "method": one.method,
            "label": one.label,
            "panel": f"{one.depth} layers" if across else f"width {one.hidden}",
            "axis": "width" if across else "depth",
            "x": one.hidden if across else one.depth,
            "seed": each.seed,
            "passes": np.nan if each.passes is None else each.passes,
            "fails": np.nan if each.fails is None else each.fails,
            "height": each.height,
            "known": each.known,
            "monotone": each.monotone,
        }
        for one in tolerances
        for each in one.seeds
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(tolerances: Sequence[Tolerance]) -> str:
    """Who tolerates the largest rate at the deepest (widest) cell."""
    frame = select(tolerances)
    frame = frame[frame["known"].astype(bool)]
    if frame.empty:
        return "The highest stable rate at each depth"
    here = frame[frame["x"] == frame["x"].max()]
    here = here[here["panel"] == here["panel"].iloc[-1]]
    heights = here.groupby(["method", "label"], sort=False)["height"].quantile(0.5, interpolation="lower")
    best = [str(label) for _, label in heights.index[heights == heights.max()]]
    where = f"width {here['x'].iloc[0]}" if here["axis"].iloc[0] == "width" else f"{here['x'].iloc[0]} layers"
    if heights.max() == 0:
        return f"At {where} no method tolerates {scientific(COARSE[0])}"
    much = f"more than {scientific(COARSE[-1])}" if np.isinf(heights.max()) else scientific(float(heights.max()))
    most = "" if len(heights) == 1 else " most"
    return f"At {where} {several(best, len(heights))} tolerate{'s' * (len(best) == 1)}{most}: {much}"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (_, label, panel), rows in frame.groupby(["method", "label", "panel"], sort=False):
        by_x = rows.groupby("x")["height"].quantile(0.5, interpolation="lower")
        values = ", ".join(f"{x}: {height_text(float(value))}" for x, value in by_x.items())
        parts.append(f"{label}, {panel}: {values}")
    return f"Chart of the highest stable rate, both axes logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a width (or a depth, where widths run across)."""
    groups, more = style.kept(list(frame.groupby("panel", sort=False)))
    figure, panels = style.panels(len(groups), 2 if len(groups) > 1 else 1, 3.4, right=1.6, more=more)
    ticks = sorted(set(frame["x"]))
    for axes, (name, group) in zip(panels, groups, strict=True):
        axes.set_title(str(name))
        style.log_axis(axes, "x", ticks[0] / 1.25, ticks[-1] * 1.25, ticks=ticks)
        style.log_axis(axes, "y", COARSE[0] / 1.5, COARSE[-1] * 1.5, ticks=TICKS)
        axes.set_yticks(TICKS, [scientific(rate) for rate in TICKS])
        for rate, whose in THEIRS:
            style.reference(axes, rate, f"{scientific(rate)}: {whose}")
        ends = [_method(axes, str(label), rows) for (_, label), rows in group.groupby(["method", "label"], sort=False)]
        label_ends(axes, ends, 0.06)
        axes.set_xlabel("width d" if group["axis"].iloc[0] == "width" else "depth N, layers of a stack")
        axes.set_ylabel("highest rate that passes")
    return figure


def _method(axes: Axes, label: str, rows: pd.DataFrame) -> End:
    """A method's median, band, and the cells at the edges; where its line ends, its name and colour."""
    method = str(rows["method"].iloc[0])
    hue, name = style.colour(method), lettering.safe(label, 40)
    low, high = COARSE[0], COARSE[-1]
    in_range = rows.groupby("x")["known"].transform("all")
    rows = rows[in_range]
    if rows.empty:
        return COARSE[0], f"{name}: {OUT_OF_RANGE}", hue, method
    held = rows.assign(height=rows["height"].clip(low / 1.2, high * 1.2))
    by = held.groupby("x")["height"]
    x = np.array(sorted(held["x"].unique()), dtype=float)
    middle = by.quantile(0.5, interpolation="lower").to_numpy()
    band = axes.fill_between(x, by.min().to_numpy(), by.max().to_numpy(), color=hue, alpha=0.15, linewidth=0)
    style.mark(band, method)
    (line,) = axes.plot(x, middle, "-", color=hue, label=name)
    style.mark(line, method, name, x="width d" if rows["axis"].iloc[0] == "width" else "depth N")
    for at, value in zip(x, middle, strict=True):
        shape = "v" if value < low else "^" if value > high else "o"
        whole = bool(held.loc[held["x"] == at, "monotone"].all())
        (point,) = axes.plot([at], [value], shape, color=hue, markersize=5, markerfacecolor=hue if whole else "none")
        style.mark(point, method)
    return float(middle[-1]), name, hue, method


PICTURE: Picture[Sequence[Tolerance]] = Picture(
    name="tolerance",
    short="Highest stable rate",
    room="depth",
    caption="Not drawn in the papers. Dotted lines: their own rates, with warm-up and at other sizes.",
    see=(
        "The highest rate at which the forecast from sixteen updates without warm-up is likely trains (if it was never "
        f"tested under the optimiser: at which 250 updates train), found to a factor {FACTOR:g}; "
        "the line is the median over seeds (of two the lower), the band from the lowest to the highest."
    ),
    read=(
        Note(
            "A triangle at the edge: every rate passes (up), or none does (down). A ring: the outcome is not "
            "monotone in the rate. Cells limited only by the forecast's own range are not drawn."
        ),
    ),
    columns=COLUMNS,
    value="passes",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No rate was searched.",
)
