"""What the last weights of a run lose on validation text that it was neither judged nor chosen by.

A run of 256 tokens a batch is judged on some twenty sentences; here it is all others, a thousand pairs of Multi30k. The
synthetic task has no such text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch

from stabkit.running import texts
from stabkit.spec import SHORTEST_JUDGED, RunSpec
from stabkit.storage import weights
from stabkit.storage.store import Run
from stabkit.tasks import objective
from stabkit.tasks.base import Batch, Task
from stabkit.tasks.text import ParallelText
from stabkit.training.train import build, evaluate


class UnseenText:
    """A task whose validation batches are the others."""

    def __init__(self, task: ParallelText) -> None:
        self.task = task

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def validation(self) -> tuple[Batch, ...]:
        """Every validation pair that is in none of the task's own."""
        return self.task.unseen()


def loss(run: Run, corpus: dict[str, str] | None, out: Path) -> float | None:
    """Nats a token, under the run's own loss; None of the synthetic task and of runs too short to be judged."""
    if not run.spec.task.source or run.spec.train.steps < SHORTEST_JUDGED:
        return None
    task = texts.task(run.spec, corpus, out)
    model = build(run.spec, task, torch.device("cpu"), run.texts)
    model.load(weights.arrays(run))
    return evaluate(model, others(run.spec, task).validation(), run.spec.train.label_smoothing)[0]


def others(spec: RunSpec, task: Task) -> Task:
    """A run's task, its validation batches all others."""
    plain = task.task if isinstance(task, objective.LanguageModel) else task
    rest = cast(Task, UnseenText(cast(ParallelText, plain)))
    return objective.of(rest, spec.model.encoder_layers, spec.model.decoder_layers)
