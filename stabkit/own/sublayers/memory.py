"""Whose memory a tensor stands on: the parameter or buffer it is or was computed from, and what a pass overwrote."""

from __future__ import annotations

import bisect
import hashlib
from typing import Any

import torch
from torch import nn


class Memory:
    """The parameters and buffers of a module, found by where they lie."""

    def __init__(self, module: nn.Module) -> None:
        self.derived: dict[int, str] = {}
        """{identity of a constant: the parameter it was computed from}."""
        self.starts: dict[int, list[tuple[int, str]]] = {}
        """{memory: where each parameter and buffer on it begins}; many may share one (a flat vector of all weights)."""
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self.starts.setdefault(storage(tensor), []).append((int(tensor.storage_offset()), name))
        for starts in self.starts.values():
            starts.sort()

    @torch.no_grad()
    def undo(self) -> None:
        """Give back what the pass overwrote."""
        for tensor, old in reversed(self._before.values()):
            tensor.copy_(old)

    def guard(self, func: Any, args: Any, kwargs: Any) -> None:
        """Copy what belongs to the module before it is written to."""
        if not func._schema.is_mutable:
            return
        for argument, value in (
            *zip(func._schema.arguments, args, strict=False),
            *((None, v) for v in kwargs.values()),
        ):
            if argument is None or (argument.alias_info and argument.alias_info.is_write):
                for tensor in tensors(value):
                    if storage(tensor) in self.starts:
                        self._before.setdefault(id(tensor), (tensor, tensor.detach().clone()))

    def name(self, tensor: Any) -> str:
        """The parameter or buffer that this constant is, or was computed from; "" for none."""
        if not isinstance(tensor, torch.Tensor):
            return ""
        if known := self.derived.get(id(tensor)):
            return known
        starts = self.starts.get(storage(tensor), [])
        place = bisect.bisect_right(starts, tensor.storage_offset(), key=lambda start: start[0])
        return starts[place - 1][1] if place else ""


def tensors(given: Any) -> list[torch.Tensor]:
    """The tensors among an operation's arguments or results, in order."""
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, dict):
        given = given.values()
    elif not isinstance(given, (list, tuple)):
        return []
    return [tensor for one in given for tensor in tensors(one)]


def full(x: torch.Tensor) -> torch.Tensor:
    """In float32 at least: differences and norms of bfloat16 lose their digits."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def raw(x: torch.Tensor) -> bytes:
    """Its numbers as they lie in memory, row by row."""
    flat = x.detach().cpu().contiguous().reshape(-1)
    held: bytes = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return held


def digest(given: Any) -> str:
    """sha256 of the tensors among an operation's arguments: their kinds, shapes and numbers."""
    hashed = hashlib.sha256()
    for tensor in tensors(given):
        hashed.update(str((tensor.dtype, list(tensor.shape))).encode())
        hashed.update(raw(tensor))
    return hashed.hexdigest()


def storage(tensor: torch.Tensor) -> int:
    """Where its memory begins; 0 for a tensor without one."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without memory: sparse, functional, fake
        return 0
