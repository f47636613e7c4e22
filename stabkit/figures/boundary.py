"""Where training ends in the plane of factors, against the bound of Theorems 2 and 3: do its contours mark the border?

Left the plane with contours of equal predicted update, taken from the measured ‖Δθ‖ of update 1; then the measured
‖ΔF‖ after update 1, and the final validation loss, against that prediction: if the bound is what decides, both axes of
the ablation fall on one curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures import scales, style
from stabkit.figures.comparison import geometric_mean, listed, short
from stabkit.store import Run

NAME = "boundary"
SHORT = "Boundary and theorem"
INDEX: str | None = None
VALUE = "predicted"
CAPTION = "DeepNet §3.2, Theorems 2 and 3 (journal version), in the plane of Fig. 9."
READ = (
    "Left: every run by its factors; thin lines join factors for which the theorem predicts the same update, named in "
    "multiples of the method's own. The thick line is the one that best parts the runs that fail from those that "
    "train. Middle and right: what was measured against what is predicted; grey line: proportional. Where the bound "
    "decides, all runs of a panel lie on one curve, whichever of the two constants was scaled."
)
COLUMNS = (*scales.COLUMNS, "relative")
OPTIONAL = True
"""Not on pages without a scaled run."""
MOST = 4
"""Planes drawn; the frame holds all."""
MARKS: dict[str, dict[str, Any]] = {
    "trains": {"marker": "o", "markersize": 5},
    "stuck": {"marker": "s", "markersize": 5.5, "markerfacecolor": "none", "mew": 1.4},
    "diverged": {"marker": "x", "markersize": 6.5, "mew": 2},
    "early": {"marker": ".", "markersize": 6},
}
LEVELS = tuple(4.0**power for power in range(-4, 6))


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run; `relative`: the theorem's sum at its factors over that of the method itself, means of seeds."""
    frame = scales.frame(runs)
    relative = pd.Series(math.nan, index=frame.index, dtype=float)
    for _, own in scales.groups(frame):
        sums = [geometric_mean(own[name]) for name in scales.SUMS]
        if one := predicted(sums, 1.0, 1.0):  # 0 where the records hold no ‖Δθ‖
            factors = own["alpha_scale"].to_numpy(dtype=float), own["beta_scale"].to_numpy(dtype=float)
            relative[own.index] = predicted(sums, *factors) / one
    return frame.assign(relative=relative)[list(COLUMNS)]


def predicted(sums: Sequence[float], a: Any, b: Any) -> Any:
    """The theorem's sum at factors a on α and b on β; `sums` are those at 1, NaN for what a model has not."""
    crossing, encoder, decoder = (0.0 if math.isnan(part) else part for part in sums)
    return crossing * b**2 / a * encoder * b / a + decoder * b / a


class Border(NamedTuple):
    """The level of the relative prediction that parts best the runs that fail, above it, from those that train."""

    level: float
    right: int
    """Runs on the right side of it."""
    total: int
    fewer: int
    """Runs of the rarer kind."""


def border(own: pd.DataFrame) -> Border | None:
    """Where training ends; None unless runs of both kinds are there."""
    judged = own[own["outcome"].isin(("trains", "stuck", "diverged")) & (own["relative"] > 0)]
    fails = (judged["outcome"] != "trains").to_numpy()
    if not len(judged) or fails.all() or not fails.any():
        return None
    values = np.sort(np.unique(judged["relative"].to_numpy(dtype=float)))
    between = [values[0] / 2, *np.sqrt(values[:-1] * values[1:]), values[-1] * 2]
    right = [int(((judged["relative"].to_numpy() > level) == fails).sum()) for level in between]
    best = int(np.argmax(right))
    return Border(float(between[best]), right[best], len(judged), int(min(fails.sum(), (~fails).sum())))


def rank_correlation(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Spearman's ρ over the rows where both are finite; NaN for fewer than three."""
    kept = np.isfinite(one) & np.isfinite(other)
    if kept.sum() < 3:
        return math.nan
    return float(one[kept].rank().corr(other[kept].rank()))


def title(runs: Sequence[Run]) -> str:
    """How well one level of the theorem's sum parts the runs that fail from those that train."""
    for name, own in scales.groups(select(runs)):
        found = border(own)
        if found:
            return (
                f"{name}: the theorem's sum at {short(found.level)} times the method's own parts failing from training "
                f"runs in {found.right} of {found.total}"
            )
    return "The theorem's sum over the plane of factors, beside what was measured"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has a scaled α or β."
    parts = []
    for name, own in scales.groups(frame):
        found, rho = border(own), rank_correlation(own["relative"], own["update_first"])
        border_text = (
            f"best border at {short(found.level)}, {found.right} of {found.total} right" if found else "no border"
        )
        rank = f"rank correlation with ‖ΔF‖ {rho:.2f}" if math.isfinite(rho) else ""
        parts.append(listed(name, border_text, rank))
    return f"Contours of the theorem's sum in the plane of factors, and measurements against it. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """Three panels a plane."""
    with style.look():
        planes = [(name, own) for name, own in scales.groups(frame) if (own["relative"] > 0).any()][:MOST]
        if not planes:
            return style.empty("No scaled run has a prediction of the theorem.")
        height = 3.3
        tall = len(planes) * height + 0.3
        figure = Figure(figsize=(style.WIDTH, tall))
        for row, (name, own) in enumerate(planes):
            bottom = tall - (row + 1) * height
            figure.text(0.005, (bottom + height - 0.2) / tall, style.safe(name, 100), fontsize=9, fontweight="bold")
            plane, update, loss = (_panel(figure, column, bottom, height, tall) for column in range(3))
            found = border(own)
            _plane(plane, own, found)
            _against(update, own, "update_first", "‖ΔF‖ after update 1, output units", found)
            _against(loss, own, "validation_loss", "validation loss, nats a token", found)
        shown = [word for word in MARKS if word in set(frame["outcome"])]
        handles = [Line2D([], [], color=style.INK, linestyle="", label=word, **MARKS[word]) for word in shown]
        handles.append(Line2D([], [], color=style.INK, linewidth=0.7, alpha=0.7, label="equal predicted update"))
        handles.append(Line2D([], [], color=style.INK, linewidth=2, label="border that parts best"))
        handles.append(Line2D([], [], color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)), label="unigram loss"))
        style.legend(figure, handles, ncols=7, handlelength=1.8)
        return figure


def _panel(figure: Figure, column: int, bottom: float, height: float, tall: float) -> Axes:
    width = (style.WIDTH - 0.1) / 3
    place = (0.6 + column * width, bottom + 0.55, width - 0.75, height - 0.95)
    return figure.add_axes((place[0] / style.WIDTH, place[1] / tall, place[2] / style.WIDTH, place[3] / tall))


def _plane(axes: Axes, own: pd.DataFrame, found: Border | None) -> None:
    """Contours, and every run at its factors; seeds stand side by side."""
    sums = [geometric_mean(own[name]) for name in scales.SUMS]
    for axis, column in (("x", "alpha_scale"), ("y", "beta_scale")):
        values = sorted(own[column].unique())
        style.log_axis(axes, axis, values[0] / 1.5, values[-1] * 1.5, ticks=values)  # type: ignore[arg-type]
    a = np.geomspace(*axes.get_xlim(), 60)
    b = np.geomspace(*axes.get_ylim(), 60)
    plane = predicted(sums, a[None, :], b[:, None]) / predicted(sums, 1.0, 1.0)
    levels = [level for level in LEVELS if plane.min() < level < plane.max()]
    if levels:
        lines = axes.contour(a, b, plane, levels=levels, colors=style.INK, linewidths=0.7, alpha=0.7)
        axes.clabel(lines, fmt=lambda level: f"×{level:g}", fontsize=7)
    if found and plane.min() < found.level < plane.max():
        axes.contour(a, b, plane, levels=[found.level], colors=style.INK, linewidths=2)
    seeds = sorted(own["seed"].unique())
    for _, run in own.iterrows():
        aside = 1.13 ** (seeds.index(run["seed"]) - (len(seeds) - 1) / 2)
        _point(axes, run, run["alpha_scale"] * aside, run["beta_scale"])
    axes.set_xlabel("factor on α")
    axes.set_ylabel("factor on β")


def _against(axes: Axes, own: pd.DataFrame, column: str, name: str, found: Border | None) -> None:
    """A measured number against the prediction."""
    log = column == "update_first"
    lowest = style.LOWEST if log else -style.HIGHEST
    seen = own[own[column].between(lowest, style.HIGHEST) & own["relative"].between(style.LOWEST, style.HIGHEST)]
    axes.set_xlabel("theorem's sum, 1 = the method's own")
    axes.set_title(name)
    if seen.empty:
        return
    style.log_axis(axes, "x", seen["relative"].min() / 1.6, seen["relative"].max() * 1.6)
    if log:
        ceiling = math.sqrt(2 * int(own["width"].max()))
        low, high = seen[column].min() / 1.6, max(seen[column].max(), ceiling) * 1.6
        style.log_axis(axes, "y", low, high)
        style.reference(axes, ceiling, "√(2d): uncorrelated")
        one = geometric_mean(seen[(seen["alpha_scale"] == 1) & (seen["beta_scale"] == 1)][column])
        if math.isfinite(one):
            ends = np.array(axes.get_xlim())
            axes.plot(ends, one * ends, color=style.INK, linewidth=0.8, alpha=0.45)
            axes.set_ylim(low, high)
        rho = rank_correlation(seen["relative"], seen[column])
        if math.isfinite(rho):
            axes.text(0.97, 0.04, f"rank correlation {rho:.2f}", transform=axes.transAxes, ha="right", fontsize=7.5)
    else:
        for height in sorted({float(f"{value:.4g}") for value in own["unigram_loss"] if math.isfinite(value)}):
            style.reference(axes, height)
    if found:
        axes.axvline(found.level, color=style.INK, linewidth=2)
    for _, run in seen.iterrows():
        _point(axes, run, run["relative"], run[column])


def _point(axes: Axes, run: pd.Series[Any], x: float, y: float) -> None:
    marker = MARKS.get(str(run["outcome"]), MARKS["early"])
    (point,) = axes.plot([x], [y], color=style.colour(str(run["method"])), linestyle="", **marker)
    told = f"α × {run['alpha_scale']:g}, β × {run['beta_scale']:g}, seed {run['seed']}, {run['outcome']}"
    style.mark(point, str(run["method"]), told)
