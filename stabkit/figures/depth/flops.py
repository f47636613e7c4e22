"""Quality at equal training FLOPs: DeepNet Table 4, deep and narrow against shallow and wide.

FLOPs = 6·N·D: N parameters without the embedding table, D = updates planned × tokens a batch (`--max-tokens`, an upper
bound; padding counts). A run that ended early stands at the budget that it was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.line_ends import spread
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import points
from stabkit.results.conditions import FACTS, conditions, shown
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.words import SUPERSCRIPT, listed, short

ALIKE = 1.15
"""Budgets whose ratio is below this are equal."""
COLUMNS = (
    *(*FACTS, "hidden", "ffn", "parameters", "tokens", "flops", "unigram_loss", "validation_loss"),
    "shape",
)
MOST, NAMED, NAMES = 6, 14, 2.1
"""Conditions drawn; models named in a panel; inches that their names take."""


def parameters(run: Run) -> float:
    """Without the one table that source, target and output share."""
    return float(run.parameters) - run.spec.task.vocab * run.spec.model.hidden


def tokens(spec: RunSpec) -> int:
    """D: what its updates are given to read."""
    return spec.train.steps * spec.train.max_tokens


def flops(run: Run) -> float:
    """6·N·D."""
    return 6 * parameters(run) * tokens(run.spec)


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of every condition in which two shapes of model cost the same."""
    placed = shown(runs)
    held = [
        replace(run.spec, model=replace(run.spec.model, hidden=0, ffn=0, heads=0))
        for run in (each.run for each in placed)
    ]
    rows = []
    for each, condition in zip(placed, conditions(held), strict=True):
        run, model = each.run, each.run.spec.model
        rows.append(
            {
                **each.facts(),
                "condition": condition.text,
                "hidden": model.hidden,
                "ffn": model.ffn,
                "parameters": parameters(run),
                "tokens": tokens(run.spec),
                "flops": flops(run),
                "unigram_loss": run.outcome.unigram_loss,
                "validation_loss": run.outcome.validation_loss,
                "shape": f"{run.spec.depth} d={model.hidden}",
            }
        )
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    kept = [own for _, own in frame.groupby("condition", sort=False) if next(pairs(own), None) is not None]
    return pd.concat(kept).reset_index(drop=True) if kept else frame.head(0)


@dataclass(frozen=True, slots=True)
class Model:
    """All seeds of one method at one depth and width under one condition."""

    label: str
    shape: str
    condition: str
    flops: float
    rows: pd.DataFrame

    @property
    def name(self) -> str:
        """`DeepNorm 48L-48L d=64`."""
        return f"{self.label} {self.shape}"

    @property
    def word(self) -> str:
        """The worst outcome."""
        words = set(self.rows["outcome"])
        return next((word for word in ("diverged", "stuck", "early") if word in words), "trains")


def models(frame: pd.DataFrame) -> list[Model]:
    """Every model that costs something."""
    merged = []
    by = ["method", "label", "shape", "condition", "ffn"]
    for (_, label, shape, condition, _), rows in frame.groupby(by, sort=False):
        cost = float(rows["flops"].mean())
        if cost > 0 and math.isfinite(cost):
            merged.append(Model(str(label), str(shape), str(condition), cost, rows))
    return merged


def pairs(frame: pd.DataFrame) -> Iterator[tuple[Model, Model]]:
    """Every two models of one condition that differ in shape and cost the same, in both orders."""
    every = models(frame)
    for model in every:
        for other in every:
            ratio = max(model.flops, other.flops) / min(model.flops, other.flops)
            if model.condition == other.condition and model.shape != other.shape and ratio < ALIKE:
                yield model, other


def title(runs: Sequence[Run]) -> str:
    """The best of all models that have others of their cost, and the best of those."""
    ranked: list[tuple[float, float, Model, Model]] = []
    for one, other in pairs(select(runs)):
        ours, theirs = (float(model.rows["validation_loss"].mean()) for model in (one, other))
        if math.isfinite(ours) and math.isfinite(theirs):
            ranked.append((ours, theirs, one, other))
    if not ranked:
        return "Quality at equal training FLOPs"
    ours, theirs, one, other = min(ranked, key=lambda each: (each[0], each[1]))
    sentence = f"{one.name} ends at {short(ours, 3)} nats, {other.name} at {short(theirs, 3)}"
    return f"At equal FLOPs {sentence}{f' ({one.condition})' if one.condition else ''}"


def alt(frame: pd.DataFrame) -> str:
    texts = []
    for model in models(frame):
        loss = short(float(model.rows["validation_loss"].mean()), 3)
        texts.append(listed(f"{model.name} {flops_text(model.flops)} FLOPs", model.condition, f"loss {loss}"))
    more = f"; and {len(texts) - 24} more" if len(texts) > 24 else ""
    return f"Quality against training FLOPs, one point per model. {'; '.join(texts[:24])}{more}."


def flops_text(value: float) -> str:
    """`1.2·10¹²`."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPT)}"


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a condition."""
    every = models(frame)
    places = list(dict.fromkeys(model.condition for model in every))[:MOST]
    figure, panels = style.panels(len(places), 1, 3.4, titles=1 + any(places), legend=1, right=0.2)
    for condition, axes in zip(places, panels, strict=True):
        lettering.entitle(axes, *([condition] if condition else []), "validation loss", width=60)
        axes.set_ylabel("validation loss, nats a token")
        _panel(axes, [model for model in every if model.condition == condition], NAMES / (style.WIDTH - 0.9))
    handles = list({model.label: _key(model) for model in every}.values())
    style.legend(figure, handles, ncols=6)
    return figure


def _key(model: Model) -> Line2D:
    method = str(model.rows["method"].iloc[0])
    handle = Line2D([], [], color=style.colour(method), marker="o", linestyle="", label=lettering.safe(model.label, 40))
    style.mark(handle, method)
    return handle


def _panel(axes: Axes, every: Sequence[Model], share: float) -> None:
    """Points with their names, which stand as near as they can without covering each other; right of the last point
    `share` of the panel is for its name."""
    drawable = [
        rows[points.drawable_rows(rows, log=False)] if model.word != "diverged" else rows.iloc[:0]
        for model in every
        for rows in [model.rows["validation_loss"]]
    ]
    values = [float(own.mean()) if len(own) else math.nan for own in drawable]
    seen = [v for own in drawable for v in own if math.isfinite(v)]
    unigram = [float(v) for model in every for v in model.rows["unigram_loss"] if math.isfinite(v)]
    if unigram:
        seen.append(float(np.median(unigram)))
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    room = 0.1 * (high - low or abs(high) or 1.0)
    axes.set_ylim(low - room, high + room)
    costs = [model.flops for model in every]
    span = max(1.1, (max(costs) / min(costs)) ** 1.1)
    last = max(costs) * span ** (share / (1 - share))
    first = min(costs) / span**0.1
    style.log_axis(axes, "x", first, last, _ticks(costs, last / first))
    axes.xaxis.set_major_formatter(lambda value, _: flops_text(value))
    axes.set_xlabel("training FLOPs, 6·N·D")
    if unigram:
        style.reference(axes, float(np.median(unigram)), "unigram loss")
    bottom, top = axes.get_ylim()
    heights = [(v - bottom) / (top - bottom) if math.isfinite(v) else 0.95 for v in values]
    for model, own, height in zip(every, drawable, heights, strict=True):
        _point(axes, model, own, height)
    line = (float(np.median(unigram)) - bottom) / (top - bottom) if unigram else -1.0
    wanted = [line + 0.045 if abs(height - line) < 0.04 else height for height in heights]  # beside its line
    chosen = points.evenly(sorted(range(len(every)), key=lambda i: wanted[i]), NAMED)
    spots = spread([wanted[i] for i in chosen], 0.066)
    shift = min(0.0, 0.98 - max(spots, default=0.0))
    for i, spot in zip(chosen, spots, strict=True):
        _beside(axes, every[i], heights[i], spot + shift)


def _ticks(costs: Sequence[float], span: float) -> list[float]:
    """The costs themselves, without those too near another."""
    kept: list[float] = []
    for cost in sorted(costs):
        if not kept or cost / kept[-1] > span**0.13:
            kept.append(cost)
    return kept


def _point(axes: Axes, model: Model, own: pd.Series[float], height: float) -> None:
    """At its FLOPs, `height` of the panel up; without a value a cross."""
    method = str(model.rows["method"].iloc[0])
    hue, across = style.colour(method), axes.get_xaxis_transform()
    if len(own) > 1:
        bar = axes.vlines([model.flops], own.min(), own.max(), color=hue, alpha=0.55, linewidth=1.4)
        style.mark(bar, method)
    marker = MARKS["diverged"] if own.empty else MARKS.get(model.word, MARKS["early"])
    (point,) = axes.plot([model.flops], [height], color=hue, linestyle="", transform=across, **marker)
    values = [(model.flops, math.nan if own.empty else float(own.mean()))]
    style.mark(point, method, listed(model.name, model.condition, model.word), values, x="training FLOPs")


def _beside(axes: Axes, model: Model, height: float, spot: float) -> None:
    """`DeepNorm 48L-48L d=64` right of its point, with a thin lead where it had to move."""
    method = str(model.rows["method"].iloc[0])
    figure = axes.get_figure(root=True)
    tall = 72 * axes.get_position().height * (figure.get_figheight() if figure else 1.0)
    word = f" ({model.word})" if model.word in ("stuck", "diverged") else ""
    moved = abs(spot - height) > 0.02
    text = axes.annotate(
        lettering.safe(model.name + word, 40),
        (model.flops, height),
        xycoords=axes.get_xaxis_transform(),
        xytext=(14 if moved else 7, (spot - height) * tall),
        textcoords="offset points",
        fontsize=7.5,
        va="center",
        arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": style.INK, "alpha": 0.5} if moved else None,
    )
    style.mark(text, method)


PICTURE: RunPicture = Picture(
    name="flops",
    short="Equal FLOPs",
    room="depth",
    caption="DeepNet Table 4: Post-LN 12L-12L, DeepNet 90L-6L and 48L-48L given similar training FLOPs, OPUS-100.",
    see=(
        "Each point is a model, the mean of its seeds with a bar from lowest to highest. Models above each other cost "
        "the same to train."
    ),
    read=(
        Note(
            "FLOPs are 6·N·D: N parameters without embeddings, D updates times tokens per batch. Only models within "
            "15 % of each other are comparable."
        ),
        Note("A diverged model is a ✕ at the edge, a stuck model a square.", ("diverged", "stuck")),
    ),
    columns=COLUMNS,
    value="validation_loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No two shapes of model cost the same to train.",
    optional=True,
)
