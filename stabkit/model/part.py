"""The modules of what may stand at a place (`methods/parts.py` says what each is, and what it costs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from stabkit.methods.parts import Part, resolved
from stabkit.spec import Norm

EPS = 1e-5
"""Of every norm."""


class DyT(nn.Module):
    """γ ⊙ tanh(α·x) + β, α as given at first."""

    def __init__(self, size: int, alpha: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.full((), alpha))
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self.bias, torch.tanh(self.alpha * x), self.weight)


class Derf(nn.Module):
    """γ ⊙ erf(α·x + s) + β, α = 0.5 and s = 0 at first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.alpha, self.shift = nn.Parameter(torch.full((), 0.5)), nn.Parameter(torch.zeros(()))
        self.weight, self.bias = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self.bias, torch.erf(self.alpha * x + self.shift), self.weight)


class Shift(nn.Module):
    """x + b."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.b


class ScaleShift(nn.Module):
    """s·(x + b)."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.zeros(()))
        self.s = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.s * (x + self.b)


class Heads(nn.Module):
    """γ_h·x_h."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(heads))

    def forward(self, x_TBD: torch.Tensor) -> torch.Tensor:
        t, b, d = x_TBD.shape
        return (x_TBD.view(t, b, len(self.gamma), -1) * self.gamma[:, None]).view(t, b, d)


class AcrossHeads(nn.Module):
    """RMSNorm of (…, heads, size) over both at once."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.shape = (heads, size)
        self.weight = nn.Parameter(torch.ones(heads * size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.rms_norm(x, self.shape, self.weight.view(self.shape), EPS)


MODULES: Mapping[Part, Callable[[int, int], nn.Module]] = {
    "layer": lambda size, heads: nn.LayerNorm(size, eps=EPS),
    "rms": lambda size, heads: nn.RMSNorm(size, eps=EPS),
    "dyt": lambda size, heads: DyT(size, 0.5),
    "dyt 1": lambda size, heads: DyT(size, 1.0),
    "derf": lambda size, heads: Derf(size),
    "shift": lambda size, heads: Shift(),
    "scale shift": lambda size, heads: ScaleShift(),
    "heads": lambda size, heads: Heads(heads),
    "rms across heads": AcrossHeads,
}
"""(entries of the vectors there, heads) → the module, of every name in `methods.parts.PARTS`."""


CODES: Mapping[type[nn.Module], str] = {
    nn.LayerNorm: "layer",
    nn.RMSNorm: "rms",
    DyT: "dyt",
    Shift: "shift",
    ScaleShift: "scale shift",
    Heads: "heads",
    AcrossHeads: "rms across heads",
}
"""By which the fused kernel knows them (`kernels.native.CODES`)."""


def coded(modules: Mapping[str, nn.Module | None]) -> dict[str, tuple[str, tuple[nn.Parameter, ...]]]:
    """{place: what stands there, as the fused kernel takes it}; places where nothing stands are left out."""
    return {
        place: (CODES.get(type(module), "unknown"), tuple(module.parameters()))
        for place, module in modules.items()
        if module is not None
    }


def norm(kind: Norm, size: int) -> nn.Module:
    """The comparison's own norm."""
    return MODULES[kind](size, 1)


def part(name: Part, of: Norm, size: int, heads: int) -> nn.Module | None:
    """What stands at a place where vectors have `size` entries, of a comparison whose norm is `of`; None: nothing."""
    return MODULES[resolved(name, of)](size, heads) if name else None
