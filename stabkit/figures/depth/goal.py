"""DeepNet's GOAL as a picture: ‖ΔF‖/η of one SGD step by depth, over its own value in the shallowest model.

GOAL (§3.3): after one SGD step ‖ΔF‖ = Θ(η), "independent of depth": a level line at 1. Drawn are the methods that were
derived to meet it, DeepNorm and Sub-LN (§4.3), seed by seed, and dotted what Theorem 3 (one stack: 2, Sub-LN: 4) makes
of the measured ‖Δθ‖ of the same step, over its own value there. The steps are those of `slope`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.depth import slope
from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS
from stabkit.figures.shared.depth_fit import JOINED, fit, unless_equal
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "shape", "layers", "theorem", "relative", "theorem_relative")
GOAL = "GOAL: depth changes nothing"
PROMISE = ("deepnorm", "sub-ln")
"""Methods whose constants are derived from an update that depth does not change."""


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a step of these methods: `relative` is ‖ΔF‖/η over that of the shallowest model of the same seed,
    `theorem_relative` the same of the theorem's sum. Seeds that the shallowest depth lacks are left out."""
    frame = slope.select(slope.trusted(runs))
    frame = frame[_promised(frame) & frame["shape"].isin(JOINED) & (frame["update"] > 0)]
    frames = []
    for _, rows in frame.groupby(["method", "condition", "shape"], sort=False):
        shallowest = rows["layers"].min()
        for _, of_seed in rows.groupby("seed", sort=False):
            first = of_seed[of_seed["layers"] == shallowest]
            if rows["layers"].nunique() > 1 and len(first) == 1:
                frames.append(
                    of_seed.assign(
                        relative=of_seed["update"] / first["update"].item(),
                        theorem_relative=of_seed["predicted"] / first["predicted"].item(),
                    )
                )
    return pd.concat(frames)[list(COLUMNS)] if frames else pd.DataFrame(columns=list(COLUMNS))


def _promised(frame: pd.DataFrame) -> pd.Series[bool]:
    """Rows of these methods as published: not of an option away from them."""
    return frame["variant"].isin(PROMISE)


def title(runs: Sequence[Run]) -> str:
    """DeepNorm's exponent, and what GOAL asks for."""
    return promise(runs) or "Does one SGD step move the output as far at every depth?"


def promise(runs: Sequence[Run]) -> str:
    """The same; "" where these runs do not give an exponent."""
    lines = fit(slope.select(slope.trusted(runs)), ceiling=False)
    lines = lines[_promised(lines)].sort_values("method", kind="stable")
    if lines.empty:
        return ""
    line = lines.iloc[0]
    layers = f"{line.shallowest:g}–{line.deepest:g} layers"
    seeds = "one seed" if line.seeds == 1 else f"{line.least:.2f} to {line.greatest:.2f} over {line.seeds} seeds"
    return f"{line.label}'s one-step update grows as N^{line.exponent:.2f} ({listed(layers, seeds)}); GOAL asks for N^0"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (_, condition), rows in frame.groupby(["method", "condition"], sort=False):
        values = (f"{depth} {short(centre(at['relative']))}" for depth, at in rows.groupby("depth", sort=False))
        parts.append(f"{listed(rows['label'].iloc[0], condition)}: {', '.join(values)}")
    return (
        "Chart of ‖ΔF‖/η of one SGD step against depth, over its value in the shallowest model, both logarithmic; a "
        f"level line is what GOAL asks for. {'; '.join(parts)}."
    )


def draw(frame: pd.DataFrame) -> Figure:
    """One panel a condition; a colour a method."""
    groups, more = style.kept(list(frame.groupby(["condition", "shape"], sort=False)))
    titles = [lettering.wrapped(listed(c, unless_equal(s)), width=64) for (c, s), _ in groups]
    figure, all_axes = style.panels(len(groups), 1, 3.4, titles=max(map(len, titles)), right=1.75, more=more)
    depths = sorted(set(frame["layers"]))
    values = frame[["relative", "theorem_relative"]].to_numpy(dtype=float)
    low, high = 0.5 * np.nanmin([1.0, np.nanmin(values)]), 1.6 * max(2.0, np.nanmax(values))
    for axes, (_, panel), lines in zip(all_axes, groups, titles, strict=True):
        lettering.entitle(axes, *lines, width=64)
        style.log_axis(axes, "x", depths[0] / 1.2, depths[-1] * 1.2, ticks=depths)
        style.log_axis(axes, "y", low, high, ticks=[t for t in (0.5, 1, 2, 5, 10, 20, 50, 100) if low < t < high])
        style.reference(axes, 1.0)
        axes.text(0.99, 0.96, GOAL, transform=axes.get_yaxis_transform(), ha="right", va="top", fontsize=7)
        handles: list[Artist] = []
        for method, rows in panel.groupby("method", sort=False):
            handles += _method(axes, str(method), rows)
        axes.set_xlabel("depth N, layers in each stack")
        axes.set_ylabel("‖ΔF‖ / η over the shallowest model's")
        style.legend(axes, handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=2.4)
    return figure


def _method(axes: Axes, method: str, rows: pd.DataFrame) -> list[Artist]:
    """A method's seeds, their median and the theorem's sum; its handles for the legend."""
    hue, name = style.colour(method), lettering.safe(str(rows["label"].iloc[0]), 40)
    if rows["seed"].nunique() > 1:
        for seed, one in rows.groupby("seed"):
            seen = style.line(axes, one["layers"], one["relative"], color=hue, linewidth=0.7, alpha=0.55)
            style.mark(seen, method, f"{name}, seed {seed}", x="depth N")
    by = rows.groupby("layers")
    layers = np.array(sorted(rows["layers"].unique()))
    (points,) = axes.plot(layers, by["relative"].agg(centre), label=name, **style.dotted(method))
    style.mark(points, method, name, x="depth N")
    theory = by["theorem_relative"].agg(centre).to_numpy()
    if not np.isfinite(theory).any():
        return [points]
    number = f"Theorem {int(rows['theorem'].iloc[0])}'s sum"
    (dotted,) = axes.plot(layers, theory, ":", color=hue, linewidth=1.2, label=number)
    style.mark(dotted, method, f"{name}: {number}", x="depth N")
    return [points, dotted]


def here(frame: pd.DataFrame) -> str:
    """How far the step moves the deepest of each curve, as a multiple of its shallowest; the median over seeds."""
    deepest = frame[frame["layers"] == frame.groupby(["label", "condition"])["layers"].transform("max")]
    told = [
        f"{listed(label, condition)} {short(centre(rows['relative']))} times at {rows['depth'].iloc[0]}"
        + (f" (the theorem's sum: {short(theory)} times)" if math.isfinite(theory) else "")
        for (label, condition), rows in deepest.groupby(["label", "condition"], sort=False)
        for theory in (centre(rows["theorem_relative"]),)
    ]
    return ", ".join(told)


PICTURE: RunPicture = Picture(
    name="goal",
    short="GOAL of DeepNet §3.3",
    room="depth",
    caption="DeepNet §3.3, GOAL: not drawn in the paper.",
    see="level, as the GOAL behind α and β asks: one SGD step moves the output equally far at every depth",
    here=here,
    read=(
        Note(
            "Drawn: ‖ΔF‖/η over its value in the shallowest model, one thin line per seed, points their median. "
            "Dotted: the theorem's prediction for the same steps (2 and 3 from the measured ‖Δθ‖, 4 from η alone), "
            "over its own value there. It bounds ‖ΔF‖ up to a constant; growth beyond it suggests that the bound's "
            "terms leave something out, but does not refute it."
        ),
    ),
    columns=COLUMNS,
    value="relative",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No two depths of DeepNorm or Sub-LN have a single step of SGD.",
    optional=True,
    at_start=True,
    single_steps=True,
)
