"""The numbers of the chain as functions of tensors: one definition, for the probes of our models and of a user's.

Norms are over the last axis, a token at a time, then means over tokens in float64. `keep` is true at the tokens that
are not padding, in the shape of the other axes; None: all.
"""

from __future__ import annotations

import math

import torch

Keep = torch.Tensor | None


def lengths(x: torch.Tensor) -> torch.Tensor:
    """‖x‖₂ of every token."""
    norms: torch.Tensor = torch.linalg.vector_norm(x, dim=-1)
    return norms


def mean(per_token: torch.Tensor, keep: Keep = None) -> torch.Tensor:
    """() float64."""
    return (per_token if keep is None else per_token[keep]).double().mean()


def moved(now: torch.Tensor, before: torch.Tensor, keep: Keep = None) -> torch.Tensor:
    """() ‖ΔF‖: mean over tokens of ‖F(x, θ) − F(x, θ')‖₂ (DeepNet eq. 1)."""
    return mean(lengths(now - before), keep)


def relative(now: torch.Tensor, before: torch.Tensor, keep: Keep = None) -> torch.Tensor:
    """() mean over tokens of ‖x(θ) − x(θ')‖₂/‖x(θ')‖₂, those of no length left out; NaN without any."""
    size = lengths(before)
    return mean(lengths(now - before) / size, size > 0 if keep is None else keep & (size > 0))


def weight(branch: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """‖γ·f‖/‖ω·x‖ of every token, of a branch and the sum ω·x + γ·f that it went into (Liu et al. 2020, §4)."""
    return lengths(branch) / lengths(total - branch)


def cosine(x: torch.Tensor, y: torch.Tensor, keep: Keep = None) -> torch.Tensor:
    """() mean over tokens of cos(x, y): near 1 where a sub-layer is an identity."""
    return mean(torch.nn.functional.cosine_similarity(x.double(), y.double(), dim=-1), keep)


def token_cosine(x: torch.Tensor, keep: Keep = None) -> torch.Tensor:
    """() mean over pairs of different tokens of cos(x_i, x_j) = (‖Σ u_i‖² − n)/(n·(n − 1)), u_i = x_i/‖x_i‖."""
    tokens = (x.reshape(-1, x.shape[-1]) if keep is None else x[keep]).double()
    n = len(tokens)
    if n < 2:
        return tokens.new_full((), math.nan)
    total = torch.nn.functional.normalize(tokens, dim=-1).sum(0)
    return (total @ total - n) / (n * (n - 1))
