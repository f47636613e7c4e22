"""Gradients and steps of a user's parameters, read at the optimiser: after accumulation, and whatever the model is.

‖∂L/∂θ_i‖₂ over all parameters of sub-layer i, reduced in float64; ‖θ_t − θ_{t−1}‖₂ likewise, and over
‖θ_{t−1}‖₂; ‖θ_t − θ_0‖₂, the factor of DeepNet's Theorems 2 and 3. Frozen parameters count nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from stabkit.own.sublayers.memory import full
from stabkit.own.sublayers.reading import Stream
from stabkit.results.own.cell import Sublayer

OUTSIDE = "outside"
"""What belongs to no sub-layer."""
Groups = Mapping[str, Sequence[nn.Parameter]]
"""{site: its parameters}."""


def groups_of(model: nn.Module, stream: Stream) -> dict[str, list[nn.Parameter]]:
    """{sub-layer: its trained parameters}, and what belongs to none of them."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found = {place.name: [named.pop(n) for n in place.parameters if n in named] for place in stream.sublayers}
    return {**found, OUTSIDE: list(named.values())}


def sublayers(stream: Stream, groups: Groups) -> tuple[Sublayer, ...]:
    """As results know them."""
    return tuple(
        Sublayer(stack=own.stack, layer=own.layer, kind=own.kind, parameters=len(groups[own.name]))
        for own in stream.sublayers
    )


def arrived(parameters: Sequence[nn.Parameter]) -> bool:
    """Whether any of them has a gradient."""
    return any(p.grad is not None for p in parameters)


def gradient_norms(groups: Groups, scale: torch.Tensor | None = None) -> torch.Tensor:
    """(groups,) float64 ‖∂L/∂θ‖₂, over `scale` where a scaler has left its factor on them; NaN where none of a group's
    parameters has a gradient: cut off, or skipped in this step. On the parameters' device: nothing waits for it."""
    found = [_root([p.grad for p in own if p.grad is not None]) for own in groups.values()]
    norms = _together(found)
    return norms if scale is None else norms / scale.to(norms)


class Weights:
    """The weights as they were, to measure steps by."""

    def __init__(self, groups: Groups, start: bool = True) -> None:
        """`start`: keep a copy of θ_0, to measure from."""
        self.groups = groups
        self.first = self._copy() if start else None
        self.held = self.first

    def hold(self) -> None:
        """Measure from here."""
        self.held = self._copy()

    def moved(self) -> dict[str, torch.Tensor]:
        """(groups,) float64 each: ‖θ − θ'‖ since `hold`, `@relative` the same over ‖θ'‖, `@start` ‖θ − θ_0‖."""
        assert self.held is not None
        now = [[p.detach() for p in own] for own in self.groups.values()]
        step = _together([_distance(new, old) for new, old in zip(now, self.held, strict=True)])
        size = _together([_root(old) if old else None for old in self.held]).nan_to_num(0.0)
        found = {"": step.nan_to_num(0.0), "@relative": torch.where(size > 0, step / size, 0.0)}
        if self.first is not None:
            start = _together([_distance(new, old) for new, old in zip(now, self.first, strict=True)])
            found["@start"] = start.nan_to_num(0.0)
        return found

    def release(self) -> None:
        """Give the memory back."""
        self.held = None

    def _copy(self) -> list[list[torch.Tensor]]:
        return [[p.detach().clone() for p in own] for own in self.groups.values()]


def _distance(new: Sequence[torch.Tensor], old: Sequence[torch.Tensor]) -> torch.Tensor | None:
    return _root([full(a) - full(b) for a, b in zip(new, old, strict=True)])


def _root(parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """() √Σ‖part‖²; None of none."""
    real = (torch.view_as_real(part) if part.is_complex() else part for part in (part.detach() for part in parts))
    norms = [torch.linalg.vector_norm(part, dtype=torch.float64) for part in real]
    return torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms])) if norms else None


def _together(found: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """One tensor; NaN for none."""
    device = next((one.device for one in found if one is not None), torch.device("cpu"))
    none = torch.full((), math.nan, dtype=torch.float64, device=device)
    return torch.stack([none if one is None else one.to(device) for one in found])
