"""What a call of the library is given: memory to work in, addresses of tensors, where gradients are added."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch


class Spare:
    """What calls worked in that are over: pages that the system would have to give again at every step stay."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Spare:
        return Spare()


class Lease:
    """`work` of a call, given back when nothing holds it any more."""

    def __init__(self, spare: Spare, size: int, like: torch.Tensor) -> None:
        self.spare = spare
        with suppress(IndexError):  # taken by no one else, whatever a collection of garbage or a thread does meanwhile
            for _ in range(2):
                held = spare.tensors.pop()
                if len(held) >= size and held.dtype == like.dtype:
                    self.tensor = held
                    return
        self.tensor = torch.empty(size, dtype=like.dtype)

    def __del__(self) -> None:
        if hasattr(self, "tensor"):  # there was memory for it
            self.spare.tensors = [*self.spare.tensors[-1:], self.tensor]


def addresses(tensors: Sequence[torch.Tensor | None]) -> array[int]:
    """0 for none."""
    return array("q", [0 if t is None else t.data_ptr() for t in tensors])


def gradients_of(parameters: Sequence[torch.nn.Parameter]) -> array[int]:
    """Where each one's gradient is to be added, made where there is none yet, as a leaf's would be; 0: nowhere."""
    try:
        return array("q", [p.grad.data_ptr() if p.requires_grad else 0 for p in parameters])  # type: ignore[union-attr]
    except AttributeError:
        for p in parameters:
            if p.grad is None and p.requires_grad:
                p.grad = torch.zeros_like(p)
        return gradients_of(parameters)
