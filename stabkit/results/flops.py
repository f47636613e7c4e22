"""Training FLOPs of a run, and which models cost the same.

FLOPs = 6·N·D: N parameters without the embedding table, D = updates planned × tokens a batch (`--max-tokens`, an upper
bound; padding counts). A run that ended early stands at the budget that it was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from stabkit.results.run import Run
from stabkit.spec import RunSpec

ALIKE = 1.15
"""Budgets whose ratio is below this are equal."""


def parameters(run: Run) -> float:
    """Without the one table that source, target and output share."""
    return float(run.parameters) - run.spec.task.vocab * run.spec.model.hidden


def tokens(spec: RunSpec) -> int:
    """D: what its updates are given to read."""
    return spec.train.steps * spec.train.max_tokens


def flops(run: Run) -> float:
    """6·N·D."""
    return 6 * parameters(run) * tokens(run.spec)


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
        return next((word for word in ("diverged", "stuck", "undecided") if word in words), "trains")


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
