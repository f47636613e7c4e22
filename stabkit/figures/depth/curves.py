"""Curves over a model's size, one row each: DeepNet Table 4, deep and narrow against shallow and wide, and the loss at
θ₀ against the width.

A method whose shortcut is large hands its input on almost unchanged. With tied embeddings the softmax then finds in the
output state the token that came in, at a logit of about √d, before anything was learned; with a softmax of its own it
finds nothing there. The loss at θ₀ shows how much of that there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from stabkit.figures.curve_picture import Rows, curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves, Strokes
from stabkit.figures.picture import Note, always
from stabkit.results import flops, points
from stabkit.results.conditions import FACTS, Shown, conditions, shown
from stabkit.results.once import once
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.words import SUPERSCRIPT, listed, short, some

FLOPS_COLUMNS = (
    *(*FACTS, "hidden", "ffn", "parameters", "tokens", "flops", "unigram_loss", "validation_loss"),
    "shape",
)


@once
def equal_flops(runs: Sequence[Run]) -> pd.DataFrame:
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
                **each.facts("unigram_loss", "validation_loss"),
                "condition": condition.text,
                "hidden": model.hidden,
                "ffn": model.ffn,
                "parameters": flops.parameters(run),
                "tokens": flops.tokens(run.spec),
                "flops": flops.flops(run),
                "shape": f"{run.spec.depth} d={model.hidden}",
            }
        )
    frame = pd.DataFrame(rows, columns=list(FLOPS_COLUMNS))
    kept = [own for _, own in frame.groupby("condition", sort=False) if next(flops.pairs(own), None) is not None]
    return pd.concat(kept).reset_index(drop=True) if kept else frame.head(0)


def best_of_its_cost(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """The best of all models that have others of their cost, and the best of those."""
    ranked: list[tuple[float, float, flops.Model, flops.Model]] = []
    for one, other in flops.pairs(frame):
        ours, theirs = (float(model.rows["validation_loss"].mean()) for model in (one, other))
        if math.isfinite(ours) and math.isfinite(theirs):
            ranked.append((ours, theirs, one, other))
    if not ranked:
        return "Quality at equal training FLOPs"
    ours, theirs, one, other = min(ranked, key=lambda each: (each[0], each[1]))
    sentence = f"{one.name} ends at {short(ours, 3)} nats, {other.name} at {short(theirs, 3)}"
    return f"At equal FLOPs {sentence}{f' ({one.condition})' if one.condition else ''}"


def flops_text(value: float) -> str:
    """`1.2·10¹²`."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPT)}"


def _budgets(group: pd.DataFrame) -> list[float]:
    """The costs of the models, without those too near another."""
    costs = sorted(group["flops"].unique())
    span = (costs[-1] / costs[0]) ** 0.13
    ticks: list[float] = []
    for cost in costs:
        if not ticks or cost / ticks[-1] > span:
            ticks.append(cost)
    return ticks


def _models(frame: pd.DataFrame) -> str:
    texts = []
    for model in flops.models(frame):
        loss = short(float(model.rows["validation_loss"].mean()), 3)
        texts.append(listed(f"{model.name} {flops_text(model.flops)} FLOPs", model.condition, f"loss {loss}"))
    return some(texts, 24)


FLOPS = curves_of(
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
    columns=FLOPS_COLUMNS,
    value="validation_loss",
    frame=equal_flops,
    optional=True,
    arranged=lambda frame: frame.assign(panel=frame["condition"]),
    title=best_of_its_cost,
    alt=lambda frame: f"Quality against training FLOPs, one point per model. {_models(frame)}.",
    none="No two shapes of model cost the same to train.",
    what=lambda frame: Curves(
        x="flops",
        y="validation_loss",
        x_name="training FLOPs, 6·N·D",
        x_text=flops_text,
        y_label="validation loss, nats a token",
        log_y=False,
        middle=points.mean,
        reference=lambda group: [(group["unigram_loss"].median(), "unigram loss")],
        across="factors",
        ticks=_budgets,
        marks=True,
        strokes=curves.solid("shape", 1.1),
        columns=2,
        height=3.4,
    ),
)


def _starts(placed: Shown) -> Rows:
    """A row a run at the method's own factors: its loss before any update."""
    spec, table = placed.run.spec, placed.run.records.get("loss")
    if table is not None and spec.alpha_scale == 1 == spec.beta_scale:
        loss = float(table.at("probe")[0])
        unigram = placed.run.outcome.unigram_loss
        yield {"hidden": spec.model.hidden, "tied": spec.model.tied, "loss": loss, "unigram_loss": unigram}


def _of_several_widths(frame: pd.DataFrame) -> pd.DataFrame:
    """Nothing where all have one width."""
    return frame if frame["hidden"].nunique() > 1 else frame.head(0)


def _middles(frame: pd.DataFrame) -> pd.DataFrame:
    """The median over seeds (and over runs that differ in what comes after θ₀)."""
    keys = ["depth", "label", "method", "tied", "hidden"]
    return frame.groupby(keys, sort=False)["loss"].agg(centre).reset_index()


def tying(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """What tying adds to the start of the method for which it adds most, at the greatest width."""
    if frame.empty:
        return "The loss before any update, by width"
    middle = _middles(frame)
    both = middle.pivot_table(index=["depth", "label", "hidden"], columns="tied", values="loss").dropna()
    wide = both[both.index.get_level_values("hidden") == frame["hidden"].max()] if len(both) else both
    if wide.empty or wide.shape[1] < 2:
        top = middle[middle["hidden"] == frame["hidden"].max()].sort_values("loss").iloc[-1]
        return f"At width {top['hidden']} {top['label']} begins at a loss of {short(top['loss'])} ({top['depth']})"
    gap = (wide[True] - wide[False]).sort_values()
    depth, label, hidden = gap.index[-1]
    tied, name = (short(float(wide.loc[gap.index[-1], side])) for side in (True, False))
    return f"{label} {depth}, width {hidden}: the initial loss is {tied} with tied embeddings, {name} without"


def start_alt(frame: pd.DataFrame) -> str:
    parts = []
    for (depth, label, tied), rows in _middles(frame).groupby(["depth", "label", "tied"], sort=False):
        values = ", ".join(f"{row['hidden']}: {short(row['loss'])}" for row in rows.to_dict("records"))
        parts.append(f"{label} {depth} {'tied' if tied else 'untied'}, {values}")
    return f"Chart of the loss before any update against the width. {'; '.join(parts)}."


def _ties(frame: pd.DataFrame) -> Strokes:
    """Solid with the softmax tied to the embedding, dashed with one of its own."""
    looks: dict[str, dict[str, Any]] = {"tied": {"linestyle": "-"}, "separate": {"linestyle": (0, (3, 1.5))}}
    return Strokes(column="softmax", looks=looks, named=[name for name in looks if name in set(frame["softmax"])])


def _at_start(frame: pd.DataFrame) -> pd.DataFrame:
    """How training goes on changes nothing at its start."""
    frame = curves.by_depth(frame)
    softmax = frame["tied"].map({True: "tied", False: "separate"})
    return frame.assign(condition="", outcome="", softmax=softmax)


LOSS_START = curves_of(
    name="loss_start",
    short="Loss at the start, by width",
    room="depth",
    caption="Not in the papers, whose widths are 512 and 1,024.",
    see=(
        "The probe batch's loss before any update; solid with the softmax tied to the embedding, dashed with a "
        "separate softmax drawn alike; median over seeds."
    ),
    read=always("The level line is the loss of the best constant predictor."),
    columns=("hidden", "tied", "loss", "unigram_loss"),
    value="loss",
    optional=True,
    rows=_starts,
    ordered=_of_several_widths,
    arranged=_at_start,
    title=tying,
    alt=start_alt,
    none="The runs have one width.",
    what=lambda frame: Curves(
        x="hidden",
        y="loss",
        x_name="width d",
        y_label="loss at θ₀, nats",
        reference=lambda group: [(group["unigram_loss"].median(), "unigram loss")],
        across="factors",
        strokes=_ties,
        columns=2,
        height=3.2,
    ),
)
