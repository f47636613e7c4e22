"""Larger learning rates, batches and widths, one at a time: DeepNet Fig. 7.

The paper draws loss curves; here a run is its end. Two runs stand on one axis when nothing but that setting differs
between them; a width takes its feed-forward width and its heads along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import points
from stabkit.results.conditions import FACTS, Shown, condition_order, conditions, depth_rank, flat, shown
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.words import listed, short

COLUMNS = (*FACTS, "axis", "value", "steps", "unigram_loss", "validation_loss")


@dataclass(frozen=True, slots=True)
class Axis:
    """One setting, and what goes along with it."""

    name: str
    words: str
    """How one value reads."""
    setting: str
    along: tuple[str, ...] = ()


AXES = (
    Axis("learning rate", "learning rate {}", "train.lr"),
    Axis("tokens per batch", "{} tokens per batch", "train.max_tokens", ("task.digest",)),
    Axis("hidden size", "hidden size {}", "model.hidden", ("model.ffn", "model.heads")),
)
LABELS = {axis.name: axis.name for axis in AXES} | {"hidden size": "hidden size d"}


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and axis on which it has company: runs of the same method and depth at another value."""
    rows = []
    placed = shown(runs)
    for axis in AXES:
        groups: dict[tuple[str, ...], list[Shown]] = {}
        for each in placed:
            groups.setdefault(_others(each.run.spec, axis), []).append(each)
        members = [
            each
            for group in groups.values()
            if len({_value(each.run.spec, axis) for each in group}) > 1
            for each in group
        ]
        held = [_without(each.run.spec, axis) for each in members]
        order = condition_order(held)
        own_rows = [
            {
                **each.facts(),
                "condition": condition.text,
                "axis": axis.name,
                "value": _value(each.run.spec, axis),
                "steps": each.run.outcome.steps,
                "unigram_loss": each.run.outcome.unigram_loss,
                "validation_loss": each.run.outcome.validation_loss,
            }
            for each, condition in zip(members, conditions(held), strict=True)
        ]
        methods = list(dict.fromkeys(each.variant for each in placed))
        ranks = [
            (
                methods.index(each.variant),
                depth_rank(each.run.spec),
                order[condition],
                _value(each.run.spec, axis),
                each.run.spec.seed,
            )
            for each, condition in zip(members, conditions(held), strict=True)
        ]
        rows += [row for _, row in sorted(zip(ranks, own_rows, strict=True), key=lambda item: item[0])]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _value(spec: RunSpec, axis: Axis) -> float:
    return float(flat(spec)[axis.setting])


def _others(spec: RunSpec, axis: Axis) -> tuple[str, ...]:
    """Everything that must be the same: all settings but the seed, and but the axis with what goes along."""
    return tuple(repr(value) for key, value in flat(_without(spec, axis)).items() if key != "seed")


def _without(spec: RunSpec, axis: Axis) -> RunSpec:
    """The spec with the axis's settings the same for all."""
    changes: dict[str, dict[str, Any]] = {}
    for key in (axis.setting, *axis.along):
        part, _, name = key.partition(".")
        if key != "task.digest" or not spec.task.source:  # only the language without files is another for each batch
            changes.setdefault(part, {})[name] = type(getattr(getattr(spec, part), name))()
    return replace(spec, **{part: replace(getattr(spec, part), **own) for part, own in changes.items()})


def title(runs: Sequence[Run]) -> str:
    """Who fails at which value, or that all train."""
    frame = select(runs)
    judged = frame[frame["outcome"] != "early"]
    if judged.empty:
        return "Larger learning rates, batches and widths, one at a time"
    lost = judged[judged["outcome"] != "trains"]
    if lost.empty:
        who = judged["label"].unique()
        spans = [_span(judged, axis) for axis in AXES if axis.name in set(judged["axis"])]
        return f"{who[0] if len(who) == 1 else 'Every method'} trains at every setting: {', '.join(spans)}"
    at = [
        f"{label} at {words(axis, f'{value:g}')}"
        for (label, axis, value), rows in judged.groupby(["label", "axis", "value"], sort=False)
        if (rows["outcome"] != "trains").any()
    ]
    more = f" and {len(at) - 3} more" if len(at) > 3 else ""
    runs_ = judged.drop_duplicates("run")
    count = int((runs_["outcome"] == "trains").sum())
    return f"{count} of {len(runs_)} runs train; not {', '.join(at[:3])}{more}"


def words(axis: object, value: str) -> str:
    """`1024 tokens per batch`."""
    return next(each.words for each in AXES if each.name == axis).format(value)


def _span(frame: pd.DataFrame, axis: Axis) -> str:
    values = frame.loc[frame["axis"] == axis.name, "value"]
    return words(axis.name, f"{values.min():g} to {values.max():g}")


def alt(frame: pd.DataFrame) -> str:
    cells = [
        f"{listed(label, depth, condition, words(axis, f'{value:g}'))}: "
        f"{short(float(rows['validation_loss'].median()), 3)} ({' and '.join(dict.fromkeys(rows['outcome']))})"
        for (label, depth, condition, axis, value), rows in frame.groupby(
            ["label", "depth", "condition", "axis", "value"], sort=False
        )
    ]
    more = f"; and {len(cells) - 40} more" if len(cells) > 40 else ""
    return f"Validation loss at the end against one setting at a time. {'; '.join(cells[:40])}{more}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """A panel an axis, of several depths a panel each."""
    several = frame["depth"].nunique() > 1
    panel = frame["axis"] + (", " + frame["depth"] if several else "")
    return curves.draw(
        frame.assign(panel=panel),
        Curves(
            x="value",
            y="validation_loss",
            x_name=lambda group: LABELS[str(group["axis"].iloc[0])],
            y_label="validation loss, nats a token",
            log_y=False,
            middle=points.median,
            reference=_unigram,
            across="factors",
            columns=3,
            height=3.0,
        ),
    )


def _unigram(group: pd.DataFrame) -> list[tuple[float, str]]:
    """One line: of other batches it is of other sentences, and as good as the same."""
    height = float(group["unigram_loss"].median())
    return [(height, "unigram loss")] if np.isfinite(height) else []


PICTURE: RunPicture = Picture(
    name="robustness",
    short="Rate, batch, width",
    room="ablation",
    caption="DeepNet Fig. 7 (18L-18L on WMT-17 En-De: loss curves at larger rates, batches and widths).",
    see="The validation loss at the end, all settings but one the same; a run that diverged is a ✕.",
    read=(
        Note(
            "All runs have the same number of updates, so a larger batch sees more text. Validation text is batched "
            "like training text, so batch sizes do not use exactly the same sentences; the dashed unigram loss is "
            "their median."
        ),
    ),
    columns=COLUMNS,
    value="validation_loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run varies the learning rate, the batch or the width alone.",
    optional=True,
)
