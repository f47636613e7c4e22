"""Muon: the momentum of every hidden matrix made orthogonal; AdamW for all else (Jordan et al. 2024; Liu et al. 2025).

A matrix is what the papers call one: W_Q, W_K, W_V, W_O of a sub-layer each by itself, though they lie packed in a map.
Embeddings, the softmax, biases, norms, scales and what a wiring trains are AdamW's, undecayed.

    B ← μ·B + (1 − μ)·g,   U = (1 − μ)·g + μ·B,   O = NS₅(U),   θ ← θ·(1 − lr·λ) − lr·s·O

    muon            s = 0.2·√max(out, in), so that entries move as far as AdamW's (Liu et al. 2025, arXiv 2502.16982,
                    eq. 4); AdamW's rate is the same
    muon-original   s = √max(1, out/in), the released code's (Jordan et al. 2024); AdamW's rate is 0.015 times Muon's,
                    as in its README (3·10⁻⁴ beside 0.02)

NS₅ are five Newton–Schulz steps of the released coefficients, in the weights' own precision, where torch and the
released code take bfloat16: on a CPU that is no faster, and its rounding, 1 part in 256, would differ between
processors. All matrices of one shape take each step together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from stabkit.spec import TrainConfig
from stabkit.training.optimizers.adam import Adam
from stabkit.training.optimizers.base import Group, Row

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS, SMALLEST = 5, 1e-7
"""Newton–Schulz steps, and the least norm that a matrix is divided by."""


class Muon:
    """Groups with a `shape` by Muon, the others by AdamW at `share` times the rate; `scale`: (out, in) → s."""

    def __init__(
        self,
        config: TrainConfig,
        theta: torch.Tensor,
        grad: torch.Tensor,
        groups: Sequence[Group],
        scale: Callable[[int, int], float],
        share: float,
    ) -> None:
        self.config, self.share = config, share
        rest = [group for group in groups if group.shape is None]
        self.rest = Adam(theta, grad, config.adam_beta1, config.adam_beta2, config.adam_eps, rest)
        self.matrices = [
            (group, scale(*group.shape), group.of(theta), group.of(grad), torch.cat(group.of(torch.zeros_like(grad))))
            for group in groups
            if group.shape is not None
        ]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.rest.step(lr * self.share)
        for group, scale, theta, grad, moving in self.matrices:
            assert group.shape is not None
            here = torch.cat(grad)
            moving.lerp_(here, 1 - self.config.momentum)
            update = orthogonal(here.lerp_(moving, self.config.momentum).view(-1, *group.shape)).reshape(-1)
            rate = lr * group.rate
            if self.config.weight_decay:
                torch._foreach_mul_(theta, 1 - rate * self.config.weight_decay)
            torch._foreach_sub_(theta, list(update.split_with_sizes([len(part) for part in theta])), alpha=rate * scale)

    def state(self) -> dict[str, torch.Tensor]:
        moving = {f"moving.{i}": matrices[-1] for i, matrices in enumerate(self.matrices)}
        return {**moving, **{f"rest.{name}": value for name, value in self.rest.state().items()}}


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """(K, out, in) → the same of matrices U·S·Vᵀ → U·S'·Vᵀ with S' about 1 (0.7 to 1.2 where S is no smaller than a
    hundredth of ‖S‖)."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=SMALLEST)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def _muon(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> Muon:
    return Muon(config, theta, grad, groups, lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)), 1.0)


def _original(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> Muon:
    return Muon(config, theta, grad, groups, lambda rows, columns: math.sqrt(max(1.0, rows / columns)), 0.015)


MUON = Row(make=_muon, apart="matrices")
ORIGINAL = Row(make=_original, apart="matrices")
