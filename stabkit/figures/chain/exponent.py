"""The depth exponent of ‖ΔF‖ against the step at which it is fitted: how far one exponent can be trusted.

At every recorded step up to 100 the fit of `update_depth` is repeated (6 to 50 layers, median over seeds, at
least three depths below half of √(2d)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import update_fit as depth_fit
from stabkit.results.conditions import ends_in_norm, shown
from stabkit.results.once import once
from stabkit.results.readings import series
from stabkit.results.run import Run
from stabkit.words import listed, short

COLUMNS = ("run", "method", "label", "condition", "depth", "seed", "step", "exponent", "least", "greatest", "seeds")
LAST = 100
SHORTEST = 3
"""Steps of a curve that the title may tell of."""


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a method, condition, shape and step; `run` names the curve, `depth` the depths fitted."""
    rows = []
    for placed in shown(runs):
        facts = placed.facts()
        shape, layers = depth_fit.shape_of(facts["encoder_layers"], facts["decoder_layers"])
        if shape not in depth_fit.JOINED or not depth_fit.FIT_RANGE[0] <= layers <= depth_fit.FIT_RANGE[1]:
            continue
        steps, values = series(placed.run, "update", "state")
        early = (steps >= 1) & (steps <= LAST)
        for step, value in zip(steps[early].tolist(), values[early].tolist(), strict=True):
            rows.append(
                {
                    **facts,
                    "variant": placed.variant,
                    "width": placed.run.spec.model.hidden,
                    "bounded": ends_in_norm(placed.run.spec),
                    "shape": shape,
                    "layers": layers,
                    "reference_step": step,
                    "step": step,
                    "update": value,
                }
            )
    if not rows:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = pd.DataFrame(rows)
    enough = frame.groupby(["variant", "condition", "shape"])["layers"].transform("nunique") >= depth_fit.FIT_DEPTHS
    frame = frame[enough]
    order = list(dict.fromkeys((each.variant, each.condition.text) for each in shown(runs)))
    fitted = depth_fit.fit(frame, by=["step"]).itertuples(index=False)
    lines = sorted(fitted, key=lambda line: (order.index((str(line.variant), str(line.condition))), line.step))
    rows = [
        {
            "run": listed(line.label, line.condition, depth_fit.STACKS[str(line.shape)]),
            "method": line.method,
            "label": line.label,
            "condition": line.condition,
            "depth": f"{line.shallowest:g}–{line.deepest:g} layers",
            "seed": "all",
            "step": line.step,
            "exponent": line.exponent,
            "least": line.least,
            "greatest": line.greatest,
            "seeds": line.seeds,
        }
        for line in lines
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(runs: Sequence[Run]) -> str:
    """The range of the exponent of the method that grows fastest, of curves at least half as long as the longest and
    of three steps or more."""
    frame = select(runs)
    if frame.empty:
        return "The exponent of growth with depth, step by step"
    drawn = [rows for _, rows in frame.groupby("run", sort=False)]
    least = max(SHORTEST, max(map(len, drawn)) / 2)
    long = [rows for rows in drawn if len(rows) >= least]
    if not long:
        return "The exponent of growth with depth, step by step"
    rows = max(long, key=lambda rows: float(rows["exponent"].median()))
    low, high, steps = rows["exponent"].min(), rows["exponent"].max(), rows["step"]
    when = f"steps {steps.min()}–{steps.max()}"
    if rows["seeds"].max() > 1:
        when += f" ({rows['least'].min():.2f} to {rows['greatest'].max():.2f} by seed)"
    return f"{rows['label'].iloc[0]}'s exponent lies between {low:.2f} and {high:.2f} over {when}"


def alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{name} {short(rows['exponent'].iloc[0])} at step {rows['step'].iloc[0]}, "
        f"{short(rows['exponent'].iloc[-1])} at step {rows['step'].iloc[-1]}"
        for name, rows in frame.groupby("run", sort=False)
    ]
    return f"Line chart of the depth exponent against the step. {'; '.join(parts[:16])}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """One panel a condition."""
    if not np.isfinite(frame["exponent"]).any():
        return None
    groups, more = style.kept(list(frame.groupby("condition", sort=False)))
    titles = [lettering.wrapped(str(condition), width=60) for condition, _ in groups]
    labels = frame["label"].nunique()
    figure, all_axes = style.panels(
        len(groups), min(3, len(groups)), 3.0, titles=max(map(len, titles)), legend=-(-labels // 6), more=more
    )
    values = pd.concat([frame[name] for name in ("exponent", "least", "greatest")]).dropna()
    low, high = min(0.0, float(values.min())) - 0.1, max(1.1, float(values.max()) + 0.1)
    named: dict[str, Line2D] = {}
    for place, (axes, (condition, group)) in enumerate(zip(all_axes, groups, strict=True)):
        lettering.entitle(axes, str(condition), width=60)
        axes.set_ylim(low, high)
        axes.set_xlim(1, max(2, int(frame["step"].max())))
        for height, words in ((1.0, "1: in proportion to depth"), (0.0, "0: the same at every depth")):
            axes.axhline(height, color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.7)
            axes.text(0.98, height + 0.02, words, transform=axes.get_yaxis_transform(), fontsize=7, ha="right")
        for name, rows in group.groupby("run", sort=False):
            method, hue = str(rows["method"].iloc[0]), style.colour(rows["method"].iloc[0])
            if rows["seeds"].max() > 1:
                band = axes.fill_between(
                    rows["step"], rows["least"], rows["greatest"], color=hue, alpha=0.16, linewidth=0
                )
                style.mark(band, method)
            (line,) = axes.plot(
                rows["step"],
                rows["exponent"],
                linewidth=1.8,
                **style.signed(method, rows["exponent"]),
                label=lettering.safe(str(rows["label"].iloc[0]), 40),
            )
            style.mark(line, method, listed(str(name), str(rows["depth"].iloc[0])))
            named.setdefault(str(rows["label"].iloc[0]), line)
        axes.set_xlabel("step (updates done)")
        if place % 3 == 0:
            axes.set_ylabel("exponent p of ‖ΔF‖ ∝ N^p")
    style.legend(figure, list(named.values()), ncols=min(6, len(named)))
    return figure


def at(frame: pd.DataFrame, label: str, condition: str, step: int) -> float:
    """One method's exponent at a step; NaN where it has none."""
    rows = frame[(frame["label"] == label) & (frame["condition"] == condition) & (frame["step"] == step)]
    return float(rows["exponent"].iloc[0]) if len(rows) else math.nan


PICTURE: RunPicture = Picture(
    name="exponent",
    short="Exponent by step",
    room="chain",
    caption="DeepNet Fig. 4 (journal version): the growth with depth, at every step.",
    see="‖ΔF‖ ∝ N^p, p fitted at each step.",
    read=(
        Note(
            "Curves bend downwards as outputs near √(2d), where depths no longer differ: compare methods at "
            "one early step."
        ),
        Note(
            "Several seeds: the median of the single fits, in a band from the lowest to the highest seed.",
            ("band",),
        ),
    ),
    columns=COLUMNS,
    index="step",
    value="exponent",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="Too few depths for an exponent: at least three from 6 to 50 layers, at one early step.",
)
