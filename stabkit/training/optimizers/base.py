"""What an optimiser is: something that updates one vector θ by its gradient, part by part.

A group is parts of the vector that are updated alike: they share a factor on the rate and one on ε (`Method.rate`,
`Method.epsilon`), decay or do not, and may be matrices of one shape. `factors.groups` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch

from stabkit.spec import TrainConfig


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of θ that are updated alike."""

    rate: float = 1.0
    """What the rate is multiplied by."""
    epsilon: float = 1.0
    """What ε is multiplied by."""
    parts: tuple[slice, ...] = (slice(None),)
    decays: bool = False
    """Whether they are weights of linear maps inside sub-layers: what decays, where anything does."""
    shape: tuple[int, int] | None = None
    """(out, in) of the matrices that the parts make, one after another; None where they make none, or nobody asks."""

    def of(self, vector: torch.Tensor) -> list[torch.Tensor]:
        """Views of these parts."""
        return [vector[part] for part in self.parts]


WHOLE = (Group(),)


class Optimizer(Protocol):
    """θ and what is remembered from one update to the next."""

    def step(self, lr: float) -> None:
        """One update in place, with the gradient as it stands."""

    def state(self) -> dict[str, torch.Tensor]:
        """What it remembers, by name; writing into these tensors restores it."""


Apart = Literal["nothing", "what decays", "matrices"]
"""What of θ an optimiser must have in groups of its own."""
Make = Callable[[TrainConfig, torch.Tensor, torch.Tensor, Sequence[Group]], Optimizer]
"""(configuration, θ, ∂L/∂θ, groups) → an optimiser of that vector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One optimiser."""

    make: Make
    apart: Apart = "nothing"
