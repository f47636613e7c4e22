"""The largest attention logit of a pass: max over all q·kᵀ·scale that a softmax is taken of, masked ones left out
(Wortsman et al. 2309.14322, §3.1).

What is seen is the softmax of a square of tokens, or torch's attention in one operation, whose logits are made anew, so
many at a time; a kernel of another package is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

AT_ONCE = 1 << 22
"""Logits that are held at a time."""
SOFTMAX = ("_softmax", "_safe_softmax")
FUSED = "_scaled_dot_product"


def largest_logit(name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """Of an operation of torch's, a number on its device; None of one that is no attention."""
    if name in SOFTMAX:
        x = args[0]
        return x.max().detach() if x.dim() > 2 and x.shape[-1] == x.shape[-2] else None
    if not name.startswith(FUSED):
        return None
    names = [own.name for own in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    query, key = given["query"].detach(), given["key"].detach()
    key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scale = given.get("scale") or 1 / math.sqrt(query.shape[-1])
    mask = given.get("attn_mask", given.get("attn_bias"))
    rows = max(1, AT_ONCE // max(key[..., 0].numel(), 1))
    parts = [
        _of_rows(query[..., at : at + rows, :], key, at, scale, mask, causal=bool(given.get("is_causal")))
        for at in range(0, query.shape[-2], rows)
    ]
    return torch.stack(parts).max()


def _of_rows(
    query: torch.Tensor, key: torch.Tensor, at: int, scale: float, mask: torch.Tensor | None, *, causal: bool
) -> torch.Tensor:
    """Of the queries that begin `at` this place."""
    logits = (query @ key.transpose(-1, -2)).float() * scale
    if mask is not None:
        own = mask if mask.shape[-2] == 1 else mask[..., at : at + query.shape[-2], :]
        logits = logits.masked_fill(~own, -math.inf) if own.dtype == torch.bool else logits + own
    if causal:
        ahead = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(at + 1)
        logits = logits.masked_fill(ahead, -math.inf)
    return logits.max()
