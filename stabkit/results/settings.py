"""Runs that differ in one setting alone: the learning rate, the batch or the width, one at a time.

Two runs stand on one axis when nothing but that setting differs between them; a width takes its feed-forward width and
its heads along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from stabkit.results.conditions import FACTS, Shown, condition_order, conditions, depth_rank, flat, shown
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.spec import RunSpec

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


def phrase(axis: object, value: str) -> str:
    """`1024 tokens per batch`."""
    return next(each.words for each in AXES if each.name == axis).format(value)


@once
def frame(runs: Sequence[Run]) -> pd.DataFrame:
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
                **each.facts("steps", "unigram_loss", "validation_loss"),
                "condition": condition.text,
                "axis": axis.name,
                "value": _value(each.run.spec, axis),
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
