"""Losses as the user gives them, kept where they lie until something is fetched anyway."""

from __future__ import annotations

from typing import Any

import torch

from stabkit.errors import UsageError
from stabkit.own.watch.journal import say

ALONE = 256
"""Losses of one update, more than gradients are accumulated over."""


class Losses:
    """Of one watch, by update; of several for one update the last counts."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        self._last, self._alone = -1, 0

    def give(self, step: int, value: Any) -> None:
        """Raises UsageError for what is no number, and where a later one was given."""
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.detach().clone()
        elif not isinstance(value, (int, float)):
            what = f"of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise UsageError(f"a loss must be a number or a one-element tensor, not {what}")
        if step < self._last or (step == self._last and step not in self._held):
            raise UsageError(f"the loss of update {step} came after that of update {self._last}")
        self._alone = self._alone + 1 if step == self._last else 0
        self._held[step] = value
        self._last = step
        if self._alone == ALONE:
            say(f"{ALONE} losses came after update {step}, but no update: was the watched optimizer replaced?")

    def taken(self) -> dict[int, float]:
        """Those since the last time, fetched."""
        held, self._held = self._held, {}
        return {step: float(value) for step, value in held.items()}
