"""‖ΔF‖ at the reference step against depth, log-log, with the fitted exponent: DeepNet Fig. 4 read along the depths.

The exponent is the least-squares slope of log ‖ΔF‖ (median over seeds) over log depth, from 6 to 50 layers and
at least three depths of equally deep stacks, as long as ‖ΔF‖ is below half of √(2d), where it bends. Deeper models are
drawn and left out of the fit: there Post-LN varies several-fold with the seed, because its tokens collapse to one
direction at initialisation. Beside it what Theorem 3 (Theorem 2 for one stack) makes of the measured ‖Δθ‖
(`theorem.py`): an order of growth, so it is scaled to meet the measurement at the shallowest depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.line_ends import label_ends, last_read
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import points, update_fit
from stabkit.results.chain import SATURATED
from stabkit.results.conditions import MOST_IN_COLOUR, PAIR
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, Stacks, fit, reached, unless_equal
from stabkit.words import listed, short


def title(runs: Sequence[Run]) -> str:
    """Two exponents of one condition: of the paper's two methods where both are there, else the least and greatest."""
    frame = update_fit.updates(runs)
    lines = fit(frame)
    lines = lines[lines["shape"] == "equal"]
    for _, group in lines.groupby("condition", sort=False):
        papers = group[group["variant"].isin(PAIR)]
        ends = (papers if len(papers) == len(PAIR) else group).sort_values("exponent", kind="stable")
        if len(ends) > 1:
            low, high = ends.iloc[0], ends.iloc[-1]
            where = listed(ends.iloc[0].condition, _layers(ends))
            return f"{low.label}'s update grows with depth as {_power(low)}, {high.label}'s as {_power(high)}; {where}"
    if len(lines) == 1:
        return f"{lines.iloc[0].label}'s update grows with depth as {_power(lines.iloc[0])}; {_layers(lines)}"
    step = int(frame["reference_step"].iloc[0]) if len(frame) else 0
    return f"How far the output has moved after {step} updates, against depth"


def _power(line: pd.Series[Any]) -> str:
    """`N^0.54 (0.52 to 0.54 by seed)`."""
    spread = f" ({line['least']:.2f} to {line['greatest']:.2f} by seed)" if line["seeds"] > 1 else ""
    return f"N^{line['exponent']:.2f}{spread}"


def _layers(lines: pd.DataFrame) -> str:
    """`6–50 layers, one seed`: what the exponents of a title rest on."""
    seeds = int(lines["seeds"].max())
    layers = f"{int(lines['shallowest'].min())}–{int(lines['deepest'].max())} layers"
    return f"{layers}, {'one seed' if seeds == 1 else f'{seeds} seeds'}"


MOST_EXPONENTS = 6
"""Exponents under a picture."""


def exponents(frame: pd.DataFrame, *, ceiling: bool = True) -> str:
    """`DeepNorm as N^0.53, Post-LN as N^1.1`: of every curve that has a fit, the papers' two first, then the least; ""
    without one."""
    lines = fit(frame, ceiling=ceiling).sort_values("exponent", kind="stable")
    lines = pd.concat([lines[lines["variant"].isin(PAIR)], lines[~lines["variant"].isin(PAIR)]])
    told = [f"{listed(line.label, line.condition)} as N^{line.exponent:.2f}" for line in lines.itertuples()]
    many = [*told[:MOST_EXPONENTS], f"{len(told) - MOST_EXPONENTS} more"] if len(told) > MOST_EXPONENTS else told
    return ", ".join(many).replace("N^-", "N^−")


def alt(frame: pd.DataFrame) -> str:
    step = int(frame["reference_step"].iloc[0])
    parts = []
    for (_, condition), group in frame[reached(frame)].groupby(["variant", "condition"], sort=False):
        means = (f"{depth} {short(centre(rows['update']))}" for depth, rows in group.groupby("depth", sort=False))
        parts.append(f"{listed(group['label'].iloc[0], condition)}: {', '.join(means)}")
    return f"Chart of ‖ΔF‖ after {step} updates against depth, both logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """One panel a condition; methods by colour, a fitted line where there is one."""
    step = int(frame["reference_step"].iloc[0])
    frame = frame[~frame["condition"].isin(_flat(frame))]
    return against_depth(frame, f"‖ΔF‖ after {step} updates, output units", ceiling=True)


def _flat(frame: pd.DataFrame) -> set[str]:
    """The conditions whose every point lies beyond half of √(2d), where no exponent can be read, if others have one."""
    conditions = set(frame["condition"])
    told = set(fit(frame)["condition"])
    half = SATURATED * np.sqrt(2 * frame["width"])
    flat = {text for text in conditions - told if (frame["update"] >= half)[frame["condition"] == text].all()}
    return flat if told else set()


def _here(frame: pd.DataFrame) -> str:
    flat = sorted(_flat(frame))
    left = f"{exponents(frame)}; not drawn: {listed(*flat)}, where every point is beyond half of √(2d)"
    return left if flat else exponents(frame)


def against_depth(frame: pd.DataFrame, y_label: str, *, ceiling: bool) -> Figure | None:
    """The column `update` against depth; `ceiling`: it is a distance between outputs, which saturates. Of more methods
    than a legend can hold each is named at the end of its line, and has neither fit nor theory drawn."""
    with style.look():
        finite = frame[points.drawable_rows(frame["update"], log=True)]
        if finite.empty:
            return None
        groups, more = style.drawn_groups(list(frame.groupby("condition", sort=False)))
        columns = 2 if len(groups) > 1 and frame["label"].str.len().max() <= 20 else 1  # legends stand beside panels
        titles = [lettering.wrapped(str(condition), width=64) for condition, _ in groups]
        crowded = frame["method"].nunique() > MOST_IN_COLOUR
        rows = max(_legend_lines(group) for _, group in groups)
        most = max(group["variant"].nunique() for _, group in groups)
        tall = max(3.7, 0.6 + (0.14 * most if crowded else 0.16 * rows))
        figure, all_axes = style.panels(len(groups), columns, tall, titles=max(map(len, titles)), right=1.75, more=more)
        low, high = finite["update"].min() / 1.6, finite["update"].max() * 1.6
        top = math.sqrt(2 * frame["width"].max())
        near = ceiling and finite["update"].max() > top / 4  # where it begins to bend the curves
        high = max(high, top * 1.6) if near else high
        low = min(low, high / 10)  # a decade at least: a small difference is to look small
        depths = sorted(set(frame["layers"]))
        lines = fit(frame, ceiling=ceiling)
        for place, (axes, (condition, group)) in enumerate(zip(all_axes, groups, strict=True)):
            lettering.entitle(axes, str(condition), width=64)
            style.log_axis(axes, "x", depths[0] / 1.2, depths[-1] * 1.2, ticks=_ticks(depths))
            style.log_axis(axes, "y", low, high)
            if near:
                style.reference(axes, top, "√(2d): uncorrelated")
            handles: list[Line2D] = []
            for (variant, shape), of_method in group.groupby(["variant", "shape"], sort=False):
                chosen = lines[
                    (lines["variant"] == variant) & (lines["condition"] == condition) & (lines["shape"] == shape)
                ]
                handles.append(_method(axes, of_method, chosen, alone=not crowded))
            axes.set_xlabel(f"depth N, layers in each stack{' (N ≠ M: their mean)' if _unequal(frame) else ''}")
            if place % columns == 0:
                axes.set_ylabel(y_label)
            if crowded:
                ends = last_read(group, "layers", "update", "label", middle=centre, log=True)
                label_ends(axes, ends, 0.14 / tall)
            else:
                style.legend(axes, handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=2.4)
        return figure


def _legend_lines(group: pd.DataFrame) -> int:
    """Lines of a panel's legend, the longest that its entries can be."""
    several = group["seed"].nunique() > 1
    entries = group.groupby(["variant", "shape"])["predicted"].agg(lambda column: int(column.notna().any()))
    return int(len(entries) * (1 + several) + entries.sum())


def _method(axes: Axes, frame: pd.DataFrame, lines: pd.DataFrame, *, alone: bool) -> Line2D:
    shape: Stacks = frame["shape"].iloc[0]
    hue = style.colour(frame["method"].iloc[0])
    by_depth = frame[reached(frame)].groupby("layers" if shape in JOINED else "depth")
    x = by_depth["layers"].first().to_numpy()
    y = by_depth["update"].agg(centre).to_numpy()
    low, high = by_depth["update"].min().to_numpy(), by_depth["update"].max().to_numpy()
    seen = np.isfinite(y)
    method = str(frame["method"].iloc[0])
    name = listed(lettering.safe(str(frame["label"].iloc[0]), 40), unless_equal(shape))
    text, number = name, int(frame["theorem"].iloc[0])
    if alone and len(lines):
        line = lines.iloc[0]
        spread = f"\n({line.least:.2f} to {line.greatest:.2f} by seed)" if line.seeds > 1 else ""
        theory = f"\nTheorem {number}: N^{line.predicted:.2f}" if math.isfinite(line.predicted) else ""
        name += f" ∝ N^{line.exponent:.2f}{spread}{theory}"
        ends = np.array([line.shallowest, line.deepest])
        (fitted,) = axes.plot(
            ends, line.factor * ends**line.exponent, color=hue, linewidth=0.9, linestyle=(0, (4, 2)), alpha=0.8
        )
        style.mark(fitted, method)
    predicted = by_depth["predicted"].agg(centre).to_numpy()
    both = seen & np.isfinite(predicted)
    if alone and shape in JOINED and both.sum() > 1:
        start = int(np.flatnonzero(both)[0])
        (theory_line,) = axes.plot(
            x[both], predicted[both] * (y[start] / predicted[start]), color=hue, linewidth=1.0, linestyle=":"
        )
        style.mark(theory_line, method, f"{text}: Theorem {number}, scaled to the shallowest", x="depth N")
    if frame["seed"].nunique() > 1 and shape in JOINED and seen.sum() > 1:
        band: Artist = axes.fill_between(x[seen], low[seen], high[seen], color=hue, alpha=0.16, linewidth=0)
    else:
        band = axes.vlines(x[seen], low[seen], high[seen], color=hue, linewidth=1.4, alpha=0.55)
    style.mark(band, method)
    (dots,) = axes.plot(
        x[seen],
        y[seen],
        label=name,
        markerfacecolor="none"
        if frame["variant"].iloc[0] != method
        else hue,  # open: an option away from the method itself
        linewidth=1.4 if shape in JOINED else 0,
        **{**style.dotted(method), "markeredgewidth": 1, **({} if shape == "equal" else {"marker": "s"})},
    )
    style.mark(dots, method, text, x="depth N")
    lost = frame[frame["outcome"] == "diverged"]
    there = points.drawable_rows(lost["update"], log=True)
    cross: dict[str, Any] = {"marker": "x", "color": hue, "markersize": 8, "mew": 2, "zorder": 5, "linestyle": ""}
    crosses = axes.plot(lost[there]["layers"], lost[there]["update"], **cross)
    edge = lost[~there]["layers"]
    if len(edge):
        crosses += axes.plot(edge, [0.0] * len(edge), **cross, transform=axes.get_xaxis_transform(), clip_on=False)
    for one in crosses:
        style.mark(one, method)
    return dots


def _ticks(depths: list[float]) -> list[float]:
    """All depths, or where they crowd those at least a fifth apart."""
    kept: list[float] = []
    for depth in depths:
        if not kept or depth >= 1.2 * kept[-1]:
            kept.append(depth)
    return kept


def _unequal(frame: pd.DataFrame) -> bool:
    return bool((frame["shape"] == "unequal").any())


PICTURE: RunPicture = Picture(
    name="update_depth",
    short="‖ΔF‖ by depth",
    room="depth",
    caption="DeepNet Fig. 4 (journal version), against the depth.",
    see="a horizontal line: the same at every depth (slope 1 is growth in proportion to depth)",
    here=_here,
    tells=lambda frame: not fit(frame).empty,
    read=(
        Note("Points: median over seeds in a band from the lowest to the highest.", ("band",)),
        Note(
            "Of at most six methods, dashed: the fit over all depths from 6 to 50 layers, with its exponent. Deeper "
            "models, points beyond half of √(2d), and seeds missing at some depth are drawn, not fitted. Dotted: the "
            "bound of Theorem 3 (one stack: 2) from the measured ‖Δθ‖, an upper bound up to a constant, scaled to the "
            "shallowest depth; its exponent is fitted over the same depths."
        ),
        Note("✕: a run diverged, at its last finite value, or at the lower edge when it has none.", ("diverged",)),
    ),
    columns=update_fit.UPDATE_COLUMNS,
    value="update",
    select=update_fit.updates,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has a finite model update after its first step.",
)
