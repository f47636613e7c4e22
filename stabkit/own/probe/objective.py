"""What a user's loss is asked for: a batch at every step.

    loss(model)                 one batch, whatever the step
    loss(model, step)           a batch of that step: `step` by name, or a second parameter without a default
    (loss, batches)             loss(model, batch), the batches of an iterable in their order, again from the first
                                where they end
    none                        `defaults.py`: something to learn

Step 0 is the batch that the chain is read on; update t is made on that of step t. A model that sees one batch again and
again learns it by heart, which keeps alive gradients that fade on fresh ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError

STEP = "step"
MOST_BATCHES = 4096
"""Batches of an iterable that are kept."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A loss as a function of the step."""

    at: Callable[[nn.Module, int], torch.Tensor]
    """(model, step) → scalar; the same again for the same step and weights."""
    fresh: bool
    """Whether a step has a batch of its own, as far as the loss's form tells."""
    frequencies: float | None = None
    """The loss of who knows how often each answer comes and nothing else (nats), where that is known."""
    entropy: float | None = None
    """The loss of who knows all that can be learnt (nats), where that is known and an outcome is asked for."""
    batches: Callable[[], int] = lambda: 0
    """How many there are, of an iterable that has ended; 0: as many as steps."""


def objective(given: Any, name: str) -> Objective:
    """Of what a factory gave in second place; raises UsageError for what is no loss."""
    if isinstance(given, tuple) and len(given) == 2 and callable(given[0]) and isinstance(given[1], Iterable):
        return _of_batches(*given, name)
    if not callable(given):
        raise UsageError(
            f"{name}: the second value must be loss(model), loss(model, step) or (loss, batches), "
            f"got {type(given).__name__}"
        )
    if takes_step(given):
        return Objective(at=lambda model, step: given(model, step), fresh=True)
    return Objective(at=lambda model, step: given(model), fresh=False)


def takes_step(loss: Callable[..., Any]) -> bool:
    """Whether a loss wants to know the step: by a parameter of that name, or by a second one that has no default."""
    try:
        parameters = list(inspect.signature(loss).parameters.values())
    except (TypeError, ValueError):
        return False
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    second = placed[1] if len(placed) > 1 else None
    return second is not None and (second.name == STEP or second.default is second.empty)


def _of_batches(loss: Callable[..., torch.Tensor], batches: Iterable[Any], name: str) -> Objective:
    drawn: list[Any] = []
    source: Iterator[Any] = iter(batches)
    ended = False

    def batch(step: int) -> Any:
        nonlocal ended
        while not ended and len(drawn) <= step:
            if len(drawn) >= MOST_BATCHES:
                raise UsageError(f"{name}: more than {MOST_BATCHES} batches are requested")
            try:
                drawn.append(next(source))
            except StopIteration:
                ended = True
        if not drawn:
            raise UsageError(f"{name}: there are no batches: the iterable is empty")
        return drawn[step % len(drawn)]

    batch(1)
    return Objective(
        at=lambda model, step: loss(model, batch(step)),
        fresh=len(drawn) > 1,
        batches=lambda: len(drawn) if ended else 0,
    )
