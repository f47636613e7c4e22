"""Initial weights: each drawn from a stream keyed by (seed, site, role), so that no method, no depth of another stack
and no added slot changes anyone else's draw, and no two layers start alike.

    xavier_normal     N(0, 2/(fan_in + fan_out)) for every linear map           (DeepNet, pseudo-code of P4 Fig. 2)
    fairseq_uniform   U(−b, b), b = √(6/(fan_in + fan_out)); query, key and value with b/√2    (fairseq's Transformer)
    torch_uniform     query, key and value as there; all others U(−c, c), c = 1/√fan_in (torch.nn's Transformer layers,
                      whose biases are drawn too: ours are 0)

times the method's gain for that role. Embeddings are N(0, 1/d) with the padding row 0, biases 0, norms 1 and 0.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import torch

from stabkit.spec import BaseInit
from stabkit.streams import stream
from stabkit.tasks.base import PAD

SMALL = 128 * 128
"""Numbers of a map up to which a worker keeps what it drew: 134 MB at most, 50 MB of 50L-50L."""


def _normal(seed: int, site: str, role: str, out_in: tuple[int, int]) -> np.ndarray:
    return stream(seed, "init", site, role).standard_normal(out_in)


_kept = functools.lru_cache(maxsize=1024)(_normal)
"""Methods that are compared draw the same numbers, and deeper stacks those of shallower ones."""


def matrix(base: BaseInit, seed: int, site: str, role: str, out_in: tuple[int, int], gain: float) -> torch.Tensor:
    """(out, in) weights of one role at one site, float64, drawn as this base initialisation says, times `gain`."""
    std = math.sqrt(2.0 / sum(out_in))
    if base == "xavier_normal":
        drawn = _kept if math.prod(out_in) <= SMALL else _normal
        return torch.from_numpy(drawn(seed, site, role, out_in) * (gain * std))
    generator = stream(seed, "init", site, role)
    if role in ("query", "key", "value"):
        bound = math.sqrt(3.0 / 2.0) * std * gain
    else:
        bound = gain * (math.sqrt(3.0) * std if base == "fairseq_uniform" else 1.0 / math.sqrt(out_in[1]))
    return torch.from_numpy(generator.uniform(-bound, bound, out_in))


def embedding(seed: int, vocab: int, width: int, role: str = "embedding") -> torch.Tensor:
    """(vocab, width) ~ N(0, 1/width), the padding row zero; an untied `head` has the same from a stream of its own."""
    table = stream(seed, "init", role).standard_normal((vocab, width)) / math.sqrt(width)
    table[PAD] = 0.0
    return torch.from_numpy(table)


def positions(length: int, width: int) -> torch.Tensor:
    """(length, width) sinusoids, sin and cos alternating: mean square ½ (Vaswani et al. 2017, §3.5)."""
    angle = np.arange(length)[:, None] * np.exp(np.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.from_numpy(np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, -1)[:, :width])
