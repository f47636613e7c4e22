"""A case of the design as a user's factory, probed and trained to an outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from stabkit.own.probe.built_model import seeded
from stabkit.own.probe.learnable import Pictures, Words, classified, masked, next_token
from stabkit.streams import stream
from studies.own.design import IMAGES, LENGTH, ROWS, UPDATES, Case
from studies.own.models import PATCH, Model, Shape
from studies.own.steppers import optimizers, ramps
from studies.texts import HELD_OUT, letters, subwords

Word = Literal["trains", "stuck", "diverged", "unclear"]
LEARNT, NOTHING = 0.5, 0.15
"""Of the way from the level of frequencies to the reference: at least, and at most."""
BATCHES = 8
"""Held-out batches."""
REFERENCE = 2
"""Blocks of the shallow reference."""
CPU = torch.device("cpu")


def series(model: nn.Module, step: int) -> torch.Tensor:
    """Mean squared error of the next numbers, a patch from those before it: two waves and noise of a tenth, of variance
    1 together."""
    random = stream(0, f"series {step}")
    t = np.arange((LENGTH + 1) * PATCH)
    period, phase = random.uniform(6.0, 60.0, (2, ROWS, 1)), random.uniform(0.0, 2 * np.pi, (2, ROWS, 1))
    value = np.sin(2 * np.pi * t / period + phase).sum(axis=0) + 0.1 * random.standard_normal((ROWS, len(t)))
    patches = torch.from_numpy(value).float().reshape(ROWS, -1, PATCH) / math.sqrt(1.01)
    return nn.functional.mse_loss(model(patches[:, :-1]), patches[:, 1:])


def noise(model: nn.Module, pictures: Pictures, step: int) -> torch.Tensor:
    """Mean squared error of the noise in a picture, a patch from all: x = cos(a)·picture + sin(a)·noise, the share of
    noise another in each."""
    random = stream(0, f"noise {step}")
    labels = random.integers(0, pictures.classes, IMAGES)
    angle = random.uniform(0.1, np.pi / 2, (IMAGES, 1, 1, 1))
    added = random.standard_normal((IMAGES, *pictures.size))
    mixed = torch.from_numpy(np.cos(angle) * pictures.means[labels] + np.sin(angle) * added).float()
    target = nn.functional.unfold(torch.from_numpy(added).float(), PATCH, stride=PATCH).transpose(1, 2)
    return nn.functional.mse_loss(model(mixed), target)


@dataclass(frozen=True)
class Task:
    """A loss as a function of the step, and the level of who knows frequencies alone; of a regression that of the best
    constant."""

    at: Callable[[nn.Module, int], torch.Tensor]
    frequencies: float


def task(case: Case, data: Path) -> Task:
    """Of a case."""
    source = Words(case.shape.words, 0)
    match case.task:
        case "chain":
            return Task(lambda m, t: next_token(m, source, (ROWS, LENGTH), t, CPU), source.frequencies)
        case "masked":
            return Task(lambda m, t: masked(m, source, (ROWS, LENGTH), t, CPU), source.frequencies)
        case "images":
            pictures = Pictures(case.shape.words, (3, case.shape.size, case.shape.size), 0)
            return Task(lambda m, t: classified(m, pictures, IMAGES, t, CPU), pictures.frequencies)
        case "series":
            return Task(series, 1.0)
        case "noise":
            seen = Pictures(10, (3, case.shape.size, case.shape.size), 0)
            return Task(lambda m, t: noise(m, seen, t), 1.0)
    text = letters(data) if case.task == "text" else subwords(case.task, data)

    def guess(model: nn.Module, step: int) -> torch.Tensor:
        tokens = text.batch((ROWS, LENGTH), step).to(next(model.parameters()).device)
        return nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    return Task(guess, text.frequencies)


def factory(case: Case, data: Path, device: str = "cpu") -> Callable[[int], Any]:
    """`factory(depth)` → (model, loss, optimizers, schedulers), as a user writes it; drawn on the CPU. Another
    device is for texts alone."""
    at = task(case, data).at

    def built(depth: int) -> Any:
        model = Model(replace(case.shape, depth=depth)).to(device)
        own = optimizers(model, case.optimizer, case.rate)
        return model, lambda model, step: at(model, step), own, ramps(own, case.warmup)

    return built


@dataclass(frozen=True)
class Trained:
    """What became of a training: of the way from the level of frequencies to a shallow reference LEARNT or more is
    `trains`, NOTHING or less `stuck`; what lies between is trained as long again, and then unclear."""

    word: Word
    updates: int
    held_out: float
    """Loss, nats."""
    losses: tuple[float, ...]
    """Of training: means of ten updates each."""


Watching = Callable[[nn.Module, Sequence[torch.optim.Optimizer]], Any]
"""What looks at a training: has `loss(value)` and `close()`."""


def trained(
    case: Case,
    data: Path,
    reference: float,
    change: Callable[[Any], Any] = lambda made: made,
    watching: Watching | None = None,
    device: str = "cpu",
) -> Trained:
    """Train a case to an outcome. `reference`: the held-out loss of the shallow one; `change`: of what the factory
    made, before the first update."""
    seeded(case.seed)
    model, loss, own, schedules = change(factory(case, data, device)(case.shape.depth))
    level = task(case, data).frequencies
    watch = watching(model, own) if watching is not None else None
    losses: list[float] = []
    word: Word = "unclear"
    held = math.inf
    try:
        for length in (case.updates, case.updates + UPDATES):
            while len(losses) < length:
                for optimizer in own:
                    optimizer.zero_grad()
                value = loss(model, len(losses) + 1)
                losses.append(float(value.detach()))
                if watch is not None:
                    watch.loss(value)
                value.backward()
                if not math.isfinite(losses[-1]):
                    break
                for stepper in (*own, *schedules):
                    stepper.step()
            held = held_out(model, loss)
            word = label(losses, held, level, reference)
            if word != "unclear":
                break
    finally:
        if watch is not None:
            watch.close()
    tens = [float(np.mean(losses[i : i + 10])) for i in range(0, len(losses), 10)]
    return Trained(word, len(losses), held, tuple(tens))


def held_out(model: nn.Module, loss: Callable[[nn.Module, int], torch.Tensor]) -> float:
    """Mean loss on batches that no update saw."""
    with torch.no_grad():
        return float(np.mean([float(loss(model, HELD_OUT + i)) for i in range(BATCHES)]))


def label(losses: Sequence[float], held: float, level: float, reference: float) -> Word:
    """By held-out loss, between the level of frequencies and the reference's."""
    if not math.isfinite(losses[-1]) or not math.isfinite(held) or held > 3 * max(losses[0], level):
        return "diverged"
    way = (level - held) / (level - reference)
    return "trains" if way >= LEARNT else "stuck" if way <= NOTHING else "unclear"


def reference(case: Case, data: Path, device: str = "cpu") -> float:
    """Held-out loss of two Pre-LN blocks on a case's task at its width: AdamW, 1e-3, as many updates as a case has."""
    shape = Shape(
        kind=case.shape.kind, scheme="pre", width=case.shape.width, depth=REFERENCE, init="xavier", activation="gelu",
        norm="layer", tied=False, bias=True, words=case.shape.words, length=LENGTH,
    )  # fmt: skip
    plain = Case(number=-1, shape=shape, task=case.task, optimizer="adamw", rate=1e-3, warmup=0, seed=0)
    return trained(plain, data, -math.inf, device=device).held_out
