"""ADMIN: x ← LN(ω·x + f(x)), ω profiled so that every sub-layer's branch weighs little against what came before it.

Liu et al. 2020; X. Liu et al. 2020 §3 (P1). Profiling is one forward pass over one large batch, in training mode:

    ω₁ = 1,   ω_i² = Var(x₀) + Σ_{j<i} Var(f_j)   for i ≥ 2

in the encoder and the decoder apart. That is what the released code computes: it accumulates Var(ω·x) + Var(f), so the
embedding's variance is in, which the paper's printed sum leaves out (`embedding="no"`; its ω₁ = √0 would erase the
input, so ω₁ = 1 there too). Var is one population variance over batch, positions and features, padding included
(`padding="no"` leaves it out). ω is fixed, as the paper says; `trainable="yes"` is the released code: a vector of d
equal entries, trained. While later sub-layers are profiled the earlier ones already use their ω
(`profile="sequential"`, the released code); the paper's words, "setting ω_i = 1", are `profile="ones"`.

`omega="closed"`: without data, ω² = (n+1)/ln(n+1) − 1 with n the number of *sub-layers* of the stack (admin-torch's
default, its O(log n) output change); `omega="constant"` is its O(1), ω = √n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from stabkit.methods.base import ONE, Method, Profiled, Recipe, Scale, Site
from stabkit.tasks.base import PAD, Batch

if TYPE_CHECKING:
    import torch

Flag = Literal["yes", "no"]


CONSTANTS = {
    "profile": "profiled: ω_i² = Var(x₀) + Σ_{j<i} Var(f_j), ω₁ = 1",
    "closed": "ω² = (n+1)/ln(n+1) − 1, n sub-layers of the stack",
    "constant": "ω² = n sub-layers of the stack",
}


def closed(sublayers: int) -> float:
    """ω of every sub-layer of a stack of `sublayers`: √((n+1)/ln(n+1) − 1). 18L: encoder 3.041, decoder 3.567."""
    return math.sqrt((sublayers + 1) / math.log(sublayers + 1) - 1)


def method(
    omega: Literal["profile", "closed", "constant"] = "profile",
    embedding: Flag = "yes",
    padding: Flag = "yes",
    profile: Literal["sequential", "ones"] = "sequential",
    trainable: Flag = "no",
) -> Method:
    """x ← LN(ω·x + f(x)) with profiled or closed-form ω."""
    trained = trainable == "yes"

    def scale(site: Site) -> Scale:
        if omega == "profile":
            return ONE if not trained else Scale(vector=True, trainable=True)
        value = closed(site.sublayers) if omega == "closed" else math.sqrt(site.sublayers)
        return Scale(init=value, vector=trained, trainable=trained)

    def calibrate(model: Profiled, batch: Batch) -> Mapping[str, float]:
        return profiled(model, batch, embedding=embedding == "yes", padding=padding == "yes", profile=profile)

    return Method(
        key="admin",
        label="ADMIN",
        source="Liu et al. 2020; X. Liu et al. 2020 §3",
        constants=CONSTANTS[omega],
        omega=scale,
        calibrate=calibrate if omega == "profile" else None,
        assumes=() if omega == "profile" else ("LayerNorm",),
        recipe=Recipe(source="X. Liu et al. 2020 §4: WMT'14 En-De", optimizer="radam", lr=1e-3),
    )


def profiled(
    model: Profiled, batch: Batch, *, embedding: bool, padding: bool, profile: Literal["sequential", "ones"]
) -> dict[str, float]:
    """{site name: ω} from one forward pass in training mode (dropout on), watched at each residual's two inputs.

    The accumulator of a stack starts at Var(x₀) (0 without the embedding) and takes each branch's variance; a site's ω
    is its root as it stands when the site is reached, and 1 for the first.
    """
    import torch

    omegas: dict[str, float] = {}
    total: dict[str, float] = {}
    keep = {"encoder": batch.source.T != PAD, "decoder": batch.target_in.T != PAD}

    def variance(stack: str, x_TBD: torch.Tensor) -> float:
        values = x_TBD.double() if padding else x_TBD[torch.from_numpy(keep[stack])].double()
        return float(values.var(correction=0))

    def before(site: Site) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            if site.index == 1:
                total[site.stack] = variance(site.stack, inputs[0]) if embedding else 0.0
                omegas[site.name] = 1.0
            else:
                omegas[site.name] = math.sqrt(total[site.stack])
            if profile == "sequential":
                model.residuals[site].set_omega(omegas[site.name])

        return hook

    def after(site: Site) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], branch: torch.Tensor) -> None:
            total[site.stack] += variance(site.stack, branch)

        return hook

    handles = [r.register_forward_pre_hook(before(site)) for site, r in model.residuals.items()]
    handles += [r.branch.register_forward_hook(after(site)) for site, r in model.residuals.items()]
    try:
        model.read(batch)
    finally:
        for handle in handles:
            handle.remove()
    return omegas
