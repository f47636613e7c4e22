"""‖ΔF‖ against the step, a panel a method and a curve a depth: DeepNet Fig. 4 read along the steps.

‖ΔF‖ = mean over tokens of ‖F(x, θ_t) − F(x, θ_0)‖₂, F the final state on the probe batch (probe `update`, `state`).
Two uncorrelated outputs of a final LayerNorm are √(2d) apart: there the curve is at its ceiling and orders no depths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.shared import lettering, style
from stabkit.figures.shared.comparison import FACTS, series, shown
from stabkit.figures.shared.contrast import contrast
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

NAME = "update"
SHORT = "‖ΔF‖ by step"
INDEX: str | None = "step"
VALUE = "update"
CAPTION = "DeepNet Fig. 4 (journal version), against the step."
READ = (
    "Each panel is one method on the same scale; the heavier the line, the deeper the model. At √(2d) an output that "
    "ends in a norm has nothing left in common with that of step 0 (without norms there is no such bound); without "
    "warm-up every curve gets there, and how soon is what differs. Several seeds: the median of those still finite, in "
    "a band from the least to the greatest; one seed: a thin line. ✕: diverged, at its last finite value. Step 0 is 0 "
    "by definition and has no place on a logarithmic axis."
)
HEIGHT, LINE = 2.7, 0.18
"""Inches: a row of panels; what a name beside a line needs, generously, as a panel is shorter than its row."""
COLUMNS = (*FACTS, "width", "step", "update")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """Every recorded ‖ΔF‖ of every run, step 0 and non-finite values included."""
    rows = []
    for each in shown(runs):
        steps, values = series(each.run, "update", "state")
        facts = each.facts()
        width = each.run.spec.model.hidden
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            rows.append({**facts, "width": width, "step": step, "update": value})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(runs: Sequence[Run]) -> str:
    """How much further the farthest method moves than the nearest, at the deepest depth that two of them share."""
    found = contrast(runs)
    if found is None or found.alike:
        return "How far the output moves from its start, step by step"
    return (
        f"At {found.where} {found.higher}'s output moves {short(found.ratio)} times as far as {found.lower}'s "
        f"in {f'{found.step} updates' if found.step > 1 else 'the first update'}"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded a model update."
    ends = []
    for (label, condition, depth), group in frame.groupby(["label", "condition", "depth"], sort=False):
        last = group[np.isfinite(group["update"])].groupby("run")["step"].idxmax()
        value = group.loc[last, "update"].median() if len(last) else math.nan
        ends.append(f"{listed(label, condition, depth)} ends at {short(float(value))}")
    extra = f" and {len(ends) - 16} more" if len(ends) > 16 else ""
    return f"Line chart of ‖ΔF‖ against the step, one panel a method. {'; '.join(ends[:16])}{extra}."


def draw(frame: pd.DataFrame) -> Figure:
    """Small multiples: method × condition, depths by line style and weight."""
    with style.look():
        if frame.empty:
            return style.empty("No run has recorded a model update.")
        groups, more = style.kept(list(frame.groupby(["label", "condition"], sort=False)))
        titles = [lettering.wrapped(str(label), str(condition)) for (label, condition), _ in groups]
        figure, all_axes = style.panels(len(groups), 4, HEIGHT, titles=max(map(len, titles)), right=0.42, more=more)
        low, high = _range(frame)
        order = frame.drop_duplicates("depth").assign(total=lambda f: f.encoder_layers + f.decoder_layers)
        depths = list(order.sort_values(["total", "encoder_layers"], kind="stable")["depth"])
        last = max(1, int(frame["step"].max()))
        for place, (axes, ((label, condition), group)) in enumerate(zip(all_axes, groups, strict=True)):
            lettering.entitle(axes, str(label), str(condition))
            if last > 100:
                style.log_axis(axes, "x", 1, last)
            else:
                axes.set_xlim(min(1, last - 1), last)
            style.log_axis(axes, "y", low, high)
            ceiling = math.sqrt(2 * int(group["width"].iloc[0]))
            style.reference(axes, ceiling, "√(2d): uncorrelated" if place % 4 == 0 else "")
            _curves(axes, group, depths)
            if place % 4 == 0:
                axes.set_ylabel("‖ΔF‖, output units")
            if place + 4 >= len(groups):
                axes.set_xlabel("step (updates done)")
        return figure


def _curves(axes: Axes, group: pd.DataFrame, depths: list[str]) -> None:
    method = str(group["method"].iloc[0])
    hue = style.colour(method)
    ends: list[tuple[float, str, str]] = []
    unseen: list[str] = []
    for depth, of_depth in group.groupby("depth", sort=False):
        line = style.depth_line(depths.index(str(depth)), len(depths))
        runs = [run for _, run in of_depth.groupby("run", sort=False)]
        finite = of_depth[_drawable(of_depth["update"])]
        by_step = finite.groupby("step")["update"]
        middle = by_step.median()
        if len(runs) > 1:
            band = axes.fill_between(middle.index, by_step.min(), by_step.max(), color=hue, alpha=0.18, linewidth=0)
            style.mark(band, method)
        else:
            line["linewidth"] *= 0.75
        (curve,) = axes.plot(middle.index, middle, color=hue, marker="." if len(middle) == 1 else "", **line)
        label, condition = of_depth["label"].iloc[0], of_depth["condition"].iloc[0]
        whose = f"seed {of_depth['seed'].iloc[0]}" if len(runs) == 1 else f"median of {len(runs)} seeds"
        style.mark(curve, method, listed(label, str(depth), condition, whose))
        for run in runs:
            if run["outcome"].iloc[0] == "diverged":
                seen = run[_drawable(run["update"])]
                if len(seen):
                    (cross,) = axes.plot(
                        seen["step"].iloc[-1], seen["update"].iloc[-1], "x", color=hue, markersize=7, mew=2, zorder=5
                    )
                    style.mark(cross, method)
                else:
                    unseen.append(
                        f"{_short_depth(run)} seed {run['seed'].iloc[0]}: diverged at step {run['step'].max()}"
                    )
        if len(middle) and middle.index[-1] == group["step"].max():
            ends.append((float(middle.iloc[-1]), _short_depth(of_depth), hue))
        elif len(middle):  # ended before the others: named where it ends
            axes.annotate(
                _short_depth(of_depth),
                (float(middle.index[-1]), float(middle.iloc[-1])),
                xytext=(6, -2),
                textcoords="offset points",
                fontsize=7.5,
            )
    for line_number, text in enumerate(unseen[:6]):
        axes.text(0.03, 0.03 + 0.07 * line_number, f"✕ {text}", transform=axes.transAxes, fontsize=7)
    style.label_ends(axes, ends, LINE / HEIGHT, method)


def _short_depth(frame: pd.DataFrame) -> str:
    row = frame.iloc[0]
    return f"{row.decoder_layers}L" if row.encoder_layers == row.decoder_layers else str(row.depth)


def _range(frame: pd.DataFrame) -> tuple[float, float]:
    """Of all that is drawn, the reference line and its name included."""
    values = frame.loc[_drawable(frame["update"]), "update"]
    line = math.sqrt(2 * int(frame["width"].max()))
    return min([*values, line]) / 1.5, max([*values, line]) * 2.2


def _drawable(values: pd.Series[float]) -> pd.Series[bool]:
    return (values >= style.LOWEST) & (values <= style.HIGHEST)
