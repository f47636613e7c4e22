"""One rate tried on a user's model: what it lost after equal updates. Plain values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from stabkit.results.records import jsonable
from stabkit.results.valley import Trial

TRIAL_VERSION = 2
"""Of what a folder of a trial holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelTrial:
    """What `steps` updates at a rate came to."""

    factory: str
    depth: int | None
    width: int | None
    lr: float
    """What was asked for: of the first group of the first optimiser."""
    seed: int
    steps: int
    made: int
    """Updates until the end, or until the loss was no number."""
    start: float
    """Mean loss over HELD batches that no update is made on, in eval mode, before the first."""
    loss: float
    """The same after the last; infinite where it was not reached or is no number."""
    losses: tuple[float, ...]
    """Of every update, on its own batch."""
    frequencies: float | None
    """The loss of who knows how often each answer comes and nothing else, where that is known."""
    fresh: bool
    """Whether those batches are none of the updates'."""
    model: str
    parameters: int
    optimizer: str
    notes: tuple[str, ...]

    @property
    def trial(self) -> Trial:
        """As the search takes it: it trains where it ends below where it began, and below the frequencies' loss."""
        level = math.inf if self.frequencies is None else self.frequencies
        return Trial(self.loss, self.loss < min(self.start, level), self.start)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(jsonable(asdict(self)))
