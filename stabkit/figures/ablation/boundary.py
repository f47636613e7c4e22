"""Where training ends in the plane of factors, against the bound of Theorems 2 and 3: do its contours mark the border?

Left the plane with contours of equal predicted update, taken from the measured ‖Δθ‖ of update 1; then the measured
‖ΔF‖ after update 1, and the final validation loss, against that prediction: if the bound is what decides, both axes of
the ablation fall on one curve.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import points, scales
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import listed, short
from stabkit.results.chain import SATURATED
from stabkit.results.line import log_slope
from stabkit.storage.store import Run

FEWEST = 5
"""Pairs of factors, at least, before anything is said of all of them together."""
MOST = 4
"""Planes drawn; the frame holds all."""
LEVELS = tuple(4.0**power for power in range(-4, 6))


class Border(NamedTuple):
    """The level of a number that parts best the runs that fail, above it, from those that train; and how many runs are
    on the right side of the level that the runs at all other factors give, which has not seen them."""

    level: float
    failing: tuple[int, int]
    """(right, of how many)."""
    training: tuple[int, int]

    def __str__(self) -> str:
        """`9 of 12 failing and 138 of 150 training runs`."""
        counts = zip((self.failing, self.training), ("failing", "training"), strict=True)
        return " and ".join(f"{right} of {count} {word}" for (right, count), word in counts) + " runs"


def border(rows: pd.DataFrame, values: pd.Series[float] | None = None) -> Border | None:
    """Where training ends, by the relative prediction or by other `values`; None where no level tells more than half of
    the rarer kind apart."""
    number = np.asarray(rows["relative"] if values is None else values, dtype=np.float64)
    words = rows["outcome"].to_numpy()
    kept = np.isin(words, ("trains", "stuck", "diverged")) & (number > 0) & np.isfinite(number)
    number, fails = number[kept], words[kept] != "trains"
    level = _level(number, fails)
    if level is None or ((number > level) != fails).sum() > min(fails.sum(), (~fails).sum()) / 2:
        return None
    pairs = rows.loc[kept, ["alpha_scale", "beta_scale"]].to_numpy(dtype=float)
    right = np.zeros(len(number), dtype=bool)
    for pair in np.unique(pairs, axis=0):
        here = (pairs == pair).all(axis=1)
        unseen = _level(number[~here], fails[~here])
        right[here] = (number[here] > (math.inf if unseen is None else unseen)) == fails[here]
    sides = [(int(right[kind].sum()), int(kind.sum())) for kind in (fails, ~fails)]
    return Border(level, *sides)


def _level(number: NDArray[np.float64], fails: NDArray[np.bool_]) -> float | None:
    """The level between two values that puts most runs on the right side; None without runs of both kinds."""
    levels = np.unique(number)
    if len(levels) < 2 or fails.all() or not fails.any():
        return None
    between = np.sqrt(levels[:-1] * levels[1:])
    right = [((number > level) == fails).sum() for level in between]
    return float(between[int(np.argmax(right))])


def controls(rows: pd.DataFrame) -> dict[str, Border | None]:
    """What else parts the runs: β/α alone, without any theorem, and the measured first update."""
    return {
        "β/α": border(rows, rows["beta_scale"] / rows["alpha_scale"]),
        "‖ΔF‖": border(rows, rows["update_first"]),
    }


def slope(rows: pd.DataFrame) -> float:
    """Least-squares slope of log ‖ΔF‖ after update 1 over log of the sum; NaN for fewer than three runs."""
    kept = rows[(rows["relative"] > 0) & (rows["update_first"] > 0)]
    kept = kept[np.isfinite(kept["relative"]) & np.isfinite(kept["update_first"])]
    if kept["relative"].nunique() < 3:
        return math.nan
    return log_slope(kept["relative"], kept["update_first"])


def follows(group: pd.DataFrame) -> dict[int, float]:
    """By seed: Spearman's ρ of ‖ΔF‖ after update 1 with the sum, over the runs short of half of √(2d), where ‖ΔF‖ does
    not bend."""
    straight = group[group["update_first"] <= SATURATED * np.sqrt(2 * group["width"].astype(float))]
    borders = {
        int(str(seed)): rank_correlation(rows["relative"], rows["update_first"])
        for seed, rows in straight.groupby("seed")
        if rows["relative"].nunique() >= FEWEST
    }
    return {seed: rho for seed, rho in borders.items() if math.isfinite(rho)}


def _median(by_seed: Mapping[int, float]) -> float:
    return statistics.median(by_seed.values()) if by_seed else math.nan


def rank_correlation(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Spearman's ρ over the rows where both are finite; NaN for fewer than three."""
    kept = np.isfinite(one) & np.isfinite(other)
    if kept.sum() < 3:
        return math.nan
    return float(one[kept].rank().corr(other[kept].rank()))


def title(runs: Sequence[Run]) -> str:
    """How well a level of the theorem's sum separates runs that it has not seen."""
    for _, group in scales.groups(scales.frame(runs)):
        if edge := border(group):
            return f"A level of the theorem's sum puts {edge} on the right side"
    return "The theorem's sum over the plane of factors, compared with measurements"


def here(frame: pd.DataFrame) -> str:
    """The same of every plane, each level taken from the other factors' runs, and what does as well."""
    return "; ".join(
        f"{name}: {edge} by the sum{told(group)}" for name, group in scales.groups(frame) if (edge := border(group))
    )


def told(rows: pd.DataFrame) -> str:
    """`, 9 of 12 failing and 148 of 150 training runs by β/α alone`."""
    return "".join(f", {found} by {name} alone" for name, found in controls(rows).items() if found)


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for name, group in scales.groups(frame):
        edge, rho = border(group), _median(follows(group))
        border_text = f"best border at {short(edge.level)}" if edge else "no border"
        rank = f"rank correlation with ‖ΔF‖ {rho:.2f}" if math.isfinite(rho) else ""
        parts.append(listed(name, border_text, rank))
    return f"Contours of the theorem's sum in the plane of factors, and measurements against it. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """Three panels a plane."""
    planes = [(name, group) for name, group in scales.groups(frame) if (group["relative"] > 0).any()][:MOST]
    if not planes:
        return None
    height = 3.3
    tall = len(planes) * height + 0.3
    figure = Figure(figsize=(style.WIDTH, tall))
    for row, (name, group) in enumerate(planes):
        bottom = tall - (row + 1) * height
        figure.text(0.005, (bottom + height - 0.2) / tall, lettering.safe(name, 100), fontsize=9, fontweight="bold")
        plane, update, loss = (_panel(figure, column, bottom, height, tall) for column in range(3))
        edge = border(group)
        _plane(plane, group, edge)
        _against(update, group, "update_first", "‖ΔF‖ after update 1, output units", edge)
        _against(loss, group, "validation_loss", "validation loss, nats a token", edge)
    shown = [word for word in MARKS if word in set(frame["outcome"])]
    handles = [Line2D([], [], color=style.INK, linestyle="", label=word, **MARKS[word]) for word in shown]
    handles.append(Line2D([], [], color=style.INK, linewidth=0.7, alpha=0.7, label="equal predicted update"))
    if any(border(group) for _, group in planes):
        handles.append(Line2D([], [], color=style.INK, linewidth=2, label="border that separates best"))
    handles.append(Line2D([], [], color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)), label="unigram loss"))
    style.legend(figure, handles, ncols=7, handlelength=1.8)
    return figure


def _panel(figure: Figure, column: int, bottom: float, height: float, tall: float) -> Axes:
    width = (style.WIDTH - 0.1) / 3
    place = (0.6 + column * width, bottom + 0.55, width - 0.75, height - 0.95)
    return figure.add_axes((place[0] / style.WIDTH, place[1] / tall, place[2] / style.WIDTH, place[3] / tall))


def _plane(axes: Axes, rows: pd.DataFrame, edge: Border | None) -> None:
    """Contours, and every run at its factors; seeds stand side by side."""
    for axis, column in (("x", "alpha_scale"), ("y", "beta_scale")):
        values = sorted(rows[column].unique())
        ticks = values if len(values) <= 6 else values[:: -(-len(values) // 6)]
        style.log_axis(axes, axis, values[0] / 1.5, values[-1] * 1.5, ticks=ticks)  # type: ignore[arg-type]
    a = np.geomspace(*axes.get_xlim(), 60)
    b = np.geomspace(*axes.get_ylim(), 60)
    plane = scales.predicted(rows, a[None, :], b[:, None]) / scales.predicted(rows)
    levels = [level for level in LEVELS if plane.min() < level < plane.max()]
    if levels:
        lines = axes.contour(a, b, plane, levels=levels, colors=style.INK, linewidths=0.7, alpha=0.7)
        axes.clabel(lines, fmt=lambda level: f"×{level:g}", fontsize=7)
    if edge and plane.min() < edge.level < plane.max():
        axes.contour(a, b, plane, levels=[edge.level], colors=style.INK, linewidths=2)
    seeds = sorted(rows["seed"].unique())
    for _, run in rows.iterrows():
        aside = 1.13 ** (seeds.index(run["seed"]) - (len(seeds) - 1) / 2)
        _point(axes, run, run["alpha_scale"] * aside, run["beta_scale"], "factor on α")
    axes.set_xlabel("factor on α")
    axes.set_ylabel("factor on β")


def _against(axes: Axes, rows: pd.DataFrame, column: str, name: str, edge: Border | None) -> None:
    """A measured number against the prediction."""
    log = column == "update_first"
    seen = rows[points.drawable_rows(rows[column], log) & points.drawable_rows(rows["relative"], log=True)]
    axes.set_xlabel("theorem's sum, 1 = the method's own")
    axes.set_title(name)
    if seen.empty:
        axes.text(0.5, 0.5, "no run with both", transform=axes.transAxes, ha="center", fontsize=7.5)
        return
    style.log_axis(axes, "x", seen["relative"].min() / 1.6, seen["relative"].max() * 1.6)
    if log:
        ceiling = math.sqrt(2 * int(rows["width"].max()))
        low, high = seen[column].min() / 1.6, max(seen[column].max(), ceiling) * 1.6
        style.log_axis(axes, "y", low, high)
        style.reference(axes, ceiling, "√(2d): uncorrelated")
        centre_value = centre(seen[(seen["alpha_scale"] == 1) & (seen["beta_scale"] == 1)][column])
        if math.isfinite(centre_value):
            ends = np.array(axes.get_xlim())
            axes.plot(ends, centre_value * ends, color=style.INK, linewidth=0.8, alpha=0.45)
            axes.set_ylim(low, high)
        rho = _median(follows(rows))
        if math.isfinite(rho):
            power = f", slope {slope(seen):.2f}" if math.isfinite(slope(seen)) else ""
            axes.text(
                0.97, 0.04, f"rank correlation {rho:.2f}{power}", transform=axes.transAxes, ha="right", fontsize=7.5
            )
    else:
        for height in sorted({float(f"{value:.4g}") for value in rows["unigram_loss"] if math.isfinite(value)}):
            style.reference(axes, height)
    if edge:
        axes.axvline(edge.level, color=style.INK, linewidth=2)
    for _, run in seen.iterrows():
        _point(axes, run, run["relative"], run[column], "theorem's sum")


def _point(axes: Axes, run: pd.Series[Any], x: float, y: float, name: str) -> None:
    marker = MARKS.get(str(run["outcome"]), MARKS["early"])
    (point,) = axes.plot([x], [y], color=style.colour(str(run["method"])), linestyle="", **marker)
    text = f"α × {run['alpha_scale']:g}, β × {run['beta_scale']:g}, seed {run['seed']}, {run['outcome']}"
    style.mark(point, str(run["method"]), text, x=name)


PICTURE: RunPicture = Picture(
    name="boundary",
    short="Boundary and theorem",
    room="ablation",
    caption="DeepNet §3.2, Theorems 2 and 3 (journal version), in the plane of Fig. 9.",
    see="all failing runs beyond one level of the sum, all training runs below it",
    here=here,
    read=(
        Note(
            "Left: every run at its factors. Thin lines join factors with the same predicted update, labelled as "
            "multiples of the method's own and extrapolated from the sums at factors of 1."
        ),
        Note(
            "The thick line is the level that best separates runs that fail from runs that train. The title counts "
            "right predictions: each pair of factors is judged by the level from the other pairs, for the sum, for "
            "β/α alone and for the measured ‖ΔF‖. Middle and right: measurements against each run's own sum; grey "
            "line: proportional. If the bound alone decided, all runs of a panel would lie on one curve; runs off "
            "the curve are exceptions."
        ),
    ),
    columns=scales.COLUMNS,
    value="relative",
    select=scales.frame,
    draw=draw,
    title=title,
    alt=alt,
    none="No scaled run has a prediction of the theorem.",
    optional=True,
)
