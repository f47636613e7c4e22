"""The largest attention logit of a pass: max over all q·kᵀ·scale that a softmax is taken of, masked ones left out
(Wortsman et al. 2309.14322, §3.1).

Seen are the softmax of (sentences, heads, places, places) or of a square of places, and torch's attention in one
operation, whose logits are made anew in float32: of its first sentences, LIMIT logits at most, AT_ONCE at a time. A
kernel of another package is not seen. A softmax over something else, a router's, would be counted, so that the number
of those seen is compared with that of the attentions of the model (`chain/reader.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

AT_ONCE, LIMIT = 1 << 22, 1 << 26
"""Logits that are held at a time, and that are made for one attention."""
SOFTMAX = ("_softmax", "_safe_softmax")
FUSED = "_scaled_dot_product"


def largest_logit(name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor | None:
    """Of an operation of torch's by its `name`, a number on its device; None of one that is no attention."""
    if name in SOFTMAX:
        x = args[0].detach()
        return x.max() if x.dim() == 4 or (x.dim() == 3 and x.shape[-1] == x.shape[-2]) else None
    if not name.startswith(FUSED):
        return None
    names = [own.name for own in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    query, key = given["query"].detach(), given["key"].detach()
    if query.dim() == 4:
        few = max(1, LIMIT // max(query.shape[1] * query.shape[2] * key.shape[2], 1))
        query, key = query[:few], key[:few]
        if query.shape[1] != key.shape[1]:
            key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    scale = given.get("scale")
    query = query.float() * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    mask = given.get("attn_mask", given.get("attn_bias"))
    if mask is not None and mask.dim() == 4 and len(mask) > len(query):
        mask = mask[: len(query)]
    rows = max(1, AT_ONCE // max(key[..., 0].numel(), 1))
    causal = bool(given.get("is_causal"))
    places = range(0, query.shape[-2], rows)
    return torch.stack([_of_rows(query[..., at : at + rows, :], key, at, mask, causal=causal) for at in places]).max()


def _of_rows(
    query: torch.Tensor, key: torch.Tensor, at: int, mask: torch.Tensor | None, *, causal: bool
) -> torch.Tensor:
    """Of the scaled queries that begin `at` this place."""
    logits = query @ key.float().transpose(-1, -2)
    if mask is not None:
        own = mask if mask.shape[-2] == 1 else mask[..., at : at + query.shape[-2], :]
        logits = logits.masked_fill_(~own, -math.inf) if own.dtype == torch.bool else logits + own
    if causal:
        ahead = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).triu(at + 1)
        logits.masked_fill_(ahead, -math.inf)
    return logits.max()
