"""Gradients and steps of a user's parameters, read at the optimiser: after accumulation, and whatever the model is.

‖∂L/∂θ_i‖₂ over all parameters of sub-layer i, reduced in float64; ‖θ_t − θ_{t−1}‖₂ likewise, and over
‖θ_{t−1}‖₂; ‖θ_t − θ_0‖₂, the factor of DeepNet's Theorems 2 and 3. Frozen parameters count nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from stabkit.own.sublayers.memory import full
from stabkit.own.sublayers.reading import Stream

OUTSIDE = "outside"
"""What belongs to no sub-layer."""
Groups = Mapping[str, Sequence[nn.Parameter]]
"""{site: its parameters}."""


def groups_of(model: nn.Module, stream: Stream) -> dict[str, list[nn.Parameter]]:
    """{sub-layer: its trained parameters}, and what belongs to none of them."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found = {place.name: [named.pop(n) for n in place.parameters if n in named] for place in stream.sublayers}
    return {**found, OUTSIDE: list(named.values())}


def arrived(parameters: Sequence[nn.Parameter]) -> bool:
    """Whether any of them has a gradient."""
    return any(p.grad is not None for p in parameters)


class Gradients:
    """What the hooks of `optimizer` see, in a `with`; `seen` is called before every step with no gradient touched."""

    def __init__(self, optimizer: torch.optim.Optimizer, groups: Groups, seen: Callable[[list[float]], None]) -> None:
        self.optimizer, self.groups, self._seen = optimizer, groups, seen
        self.steps = 0
        """Taken within the `with`."""

    def __enter__(self) -> Gradients:
        self._handles = [
            self.optimizer.register_step_pre_hook(self._before),
            self.optimizer.register_step_post_hook(self._after),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._seen(gradient_norms(self.groups))

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.steps += 1


def gradient_norms(groups: Groups) -> list[float]:
    """‖∂L/∂θ‖₂ of each group; NaN where none of its parameters has a gradient: cut off, or skipped in this step."""
    grads = ([p.grad for p in own if p.grad is not None] for own in groups.values())
    return [_root(own) if own else math.nan for own in grads]


class Weights:
    """The weights as they were, to measure steps by."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.first = self._copy()
        self.last = self.first

    def steps(self) -> tuple[list[float], list[float], list[float]]:
        """‖θ_t − θ_{t−1}‖, the same over ‖θ_{t−1}‖, ‖θ_t − θ_0‖ of each group; since the last call."""
        now = self._copy()
        found = [
            (_distance(new, old), _root(old), _distance(new, first))
            for new, old, first in zip(now, self.last, self.first, strict=True)
        ]
        self.last = now
        return (
            [step for step, _, _ in found],
            [step / size if size else 0.0 for step, size, _ in found],
            [far for _, _, far in found],
        )

    def _copy(self) -> list[list[torch.Tensor]]:
        return [[p.detach().clone() for p in own] for own in self.groups.values()]


def _distance(new: Sequence[torch.Tensor], old: Sequence[torch.Tensor]) -> float:
    return _root(full(a) - full(b) for a, b in zip(new, old, strict=True))


def _root(parts: Any) -> float:
    """√Σ‖part‖²."""
    real = (torch.view_as_real(part) if part.is_complex() else part for part in (part.detach() for part in parts))
    norms = [torch.linalg.vector_norm(part, dtype=torch.float64).cpu() for part in real]
    return float(torch.linalg.vector_norm(torch.stack(norms))) if norms else 0.0
