"""Updates of a model that one optimiser steps, or several: Muon for matrices and AdamW for the rest.

An update is the step in which each of them has stepped. Its order is that in which they first step; it ends with the
last of them. One that is skipped (its gradients were not finite) or that steps more often than the others (a critic)
belongs to the update that ends next: said, not guessed.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from stabkit.errors import UsageError

MUON = (
    "Muon's step size does not depend on the gradient: the gradient ratio predicts less than under AdamW "
    "(docs/evidence/verdict.md)"
)
"""What the forecast is worth under it stands in docs/evidence/verdict.md, held out by optimiser."""
WAITING = 16
"""Steps of one optimiser without an update ended, after which that is said."""


def several(given: Any) -> tuple[Any, ...]:
    """Those that step: of a list of optimisers, inside accelerate's or Lightning's wrapper, inside one that steps
    several (`optimizers`); what is none is left as it is."""
    if given is None:
        return ()
    if isinstance(given, (list, tuple)):
        return tuple(optimizer for part in given for optimizer in several(part))
    for attribute in ("optimizer", "optimizers"):
        inner = several(getattr(given, attribute, None))
        if inner and all(isinstance(part, torch.optim.Optimizer) for part in inner):
            return inner
    return (given,)


def name(optimizers: Sequence[torch.optim.Optimizer]) -> str:
    """`Muon + AdamW`."""
    return " + ".join(type(optimizer).__name__ for optimizer in optimizers) or "none"


def rate(optimizers: Sequence[torch.optim.Optimizer]) -> float:
    """That of the first group of the first; NaN where it has none."""
    return group_rate(optimizers[0].param_groups[0]) if optimizers else math.nan


def group_rate(group: Mapping[str, Any]) -> float:
    """NaN where a group has none, or leaves it to its optimiser (None)."""
    rate = group.get("lr")
    try:
        return math.nan if rate is None else float(rate)
    except (TypeError, ValueError):
        raise UsageError(f"the rate of an optimizer must be a number, not {repr(rate)[:60]}") from None


def rates(optimizers: Sequence[torch.optim.Optimizer]) -> str:
    """`Muon 0.02, AdamW 0.0003`."""
    return ", ".join(f"{name([optimizer])} {rate([optimizer]):.4g}" for optimizer in optimizers)


def notes(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[str]:
    """What is to be known of a training by these."""
    if len(optimizers) > 1:
        yield f"an update ends when each optimizer has stepped; their rates: {rates(optimizers)}"
    if any("muon" in type(optimizer).__name__.lower() for optimizer in optimizers):
        yield MUON


def parameter_ids(optimizer: torch.optim.Optimizer) -> set[int]:
    """The identities of its parameters."""
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def empty(optimizers: Sequence[torch.optim.Optimizer]) -> bool:
    """Whether optimisers that keep moments have none yet: those of a restart that did not load them, or of a start."""
    groups = [group for own in optimizers for group in own.param_groups]
    keeps = any(group.get("betas") or group.get("momentum") for group in groups)
    return keeps and not any(own.state for own in optimizers)


def refuse(optimizers: Sequence[Any], whose: str) -> None:
    """Raises UsageError for what is no optimiser, or given twice, or hides its gradients."""
    for optimizer in optimizers:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise UsageError(f"{whose}: optimizer must be a torch.optim.Optimizer, not {type(optimizer).__name__}")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise UsageError(f"{whose}: LBFGS steps by a closure, which hides its gradients; use another optimizer")
    if len({id(optimizer) for optimizer in optimizers}) < len(optimizers):
        raise UsageError(f"{whose}: the same optimizer is given twice")


class Updates:
    """Calls `before(optimizer)` before the first step that each makes in an update, and `after()` when it has ended."""

    def __init__(
        self,
        optimizers: Sequence[torch.optim.Optimizer],
        before: Callable[[torch.optim.Optimizer], None],
        after: Callable[[], None],
        waiting: Callable[[str], None],
    ) -> None:
        """`waiting(sentence)`: told once where one steps again and again and no update ends."""
        self.optimizers, self._before, self._after, self._waiting = tuple(optimizers), before, after, waiting
        self.uneven = 0
        """The most steps that one of them made in an update, where another made fewer."""
        self.inside, self.count = False, 0
        """Whether one of them is stepping now, and how many steps they have made."""
        self._order: list[torch.optim.Optimizer] = []
        self._steps: dict[int, int] = {}
        self._told = False
        self._handles = [
            handle
            for optimizer in self.optimizers
            for handle in (
                optimizer.register_step_pre_hook(self._stepping),
                optimizer.register_step_post_hook(self._stepped),
            )
        ]

    def remove(self) -> None:
        """No more is told."""
        while self._handles:
            self._handles.pop().remove()

    @property
    def note(self) -> str:
        """What is to be known of updates in which one stepped more often than another; "" where none did."""
        if not self.uneven:
            return ""
        return (
            f"{name(self.optimizers)} did not step in turn (one stepped {self.uneven} times in one update): an update "
            "ends when each has stepped"
        )

    def _stepping(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        """Before a step. Of one that is given a closure, which makes the gradients, after that."""
        self.inside = True
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure):
            return self._begin(optimizer)

        def watched() -> Any:
            loss = closure()
            self._begin(optimizer)
            return loss

        return ((args[0], watched, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": watched})

    def _begin(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer not in self._order:
            self._order.append(optimizer)
        if id(optimizer) not in self._steps:
            self._before(optimizer)
            self._steps[id(optimizer)] = 0

    def _stepped(self, optimizer: torch.optim.Optimizer, *seen: Any) -> None:
        self.inside, self.count = False, self.count + 1
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        taken = self._steps
        if len(taken) == len(self.optimizers) and optimizer is self._order[-1]:
            if len(set(taken.values())) > 1:
                self.uneven = max(self.uneven, *taken.values())
            self._steps = {}
            self._after()
        elif taken[id(optimizer)] == WAITING and not self._told:
            self._told = True
            idle = name([own for own in self.optimizers if id(own) not in taken]) or name(self._order[-1:])
            self._waiting(
                f"{type(optimizer).__name__} has stepped {WAITING} times, {idle} has not: an update ends when each "
                "given optimizer has stepped, so none has ended"
            )


class UnknownOptimizers:
    """Tells once of an optimiser that was not given and steps parameters of the model: one that took the place of
    another in mid-training. What steps inside one that was given, or around one, is no stranger."""

    def __init__(self, model: torch.nn.Module, ours: Callable[[], Updates | None], tell: Callable[[str], None]) -> None:
        """`ours`: those that were given, as they are now; None once nobody watches. The hooks are of every optimiser of
        the process: they keep no model alive."""
        self._model, self._ours, self._tell = weakref.ref(model), ours, tell
        self._before: dict[int, int] = {}
        self._told = False
        self._handles = [
            register_optimizer_step_pre_hook(self._begin),
            register_optimizer_step_post_hook(self._stepped),
        ]

    def remove(self) -> None:
        """No more is told."""
        while self._handles:
            self._handles.pop().remove()

    def _begin(self, other: torch.optim.Optimizer, *seen: Any) -> None:
        if (ours := self._ours()) is not None:
            self._before[id(other)] = ours.count

    def _stepped(self, other: torch.optim.Optimizer, *seen: Any) -> None:
        ours = self._ours()
        if self._told or ours is None or other in ours.optimizers or ours.inside:
            return
        if self._before.pop(id(other), ours.count) != ours.count:
            return
        if any(value is one for value in vars(other).values() for one in ours.optimizers):
            return  # around one that was given: it tells of its steps itself
        model = self._model()
        if model is not None and parameter_ids(other) & {id(p) for p in model.parameters()}:
            self._told = True
            self._tell(
                f"{type(other).__name__} steps parameters of the watched model but was not given: its updates "
                "are not recorded; watch.optimizer(it) adds it"
            )
