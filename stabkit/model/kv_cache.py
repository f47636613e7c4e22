"""The key/value cache of one attention layer, for decoding token by token.

Self-attention keeps the keys and values of every position so far and adds the new one's; cross-attention makes those of
the source once. A value that passes through `forward`: nothing of it rests on a module.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


class Past:
    """Keys and values of one attention (S, B, H·2·E): None before the first position."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None

    @property
    def length(self) -> int:
        """Positions so far."""
        return 0 if self.keys is None else len(self.keys)

    def extended(self, qkv_TBC: torch.Tensor, heads: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The queries (T, B, H·E) of new positions, and all keys and values with theirs at the end."""
        t, b, _ = qkv_TBC.shape
        parts = qkv_TBC.view(t, b, heads, 3, -1)
        new = parts[:, :, :, 1:].reshape(t, b, -1)
        self.keys = new if self.keys is None else torch.cat([self.keys, new])
        return parts[:, :, :, 0].reshape(t, b, -1), self.keys

    def once(self, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """The keys and values of the source, made the first time."""
        self.keys = make() if self.keys is None else self.keys
        return self.keys

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with these rows of the batch, in this order; one may stand twice."""
        if self.keys is not None:
            self.keys = self.keys.index_select(1, rows)
