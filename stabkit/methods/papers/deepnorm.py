"""DeepNorm: x ← LN(α·x + f(x)) with W_V, W_O, W₁, W₂ drawn β times smaller; W_Q and W_K stay. DeepNet §3.3.

    architecture           α encoder        β encoder          α decoder    β decoder
    encoder-decoder N, M   0.81 (N⁴M)^1/16  0.87 (N⁴M)^−1/16   (3M)^1/4     (12M)^−1/4
    encoder only           (2N)^1/4         (8N)^−1/4
    decoder only                                               (2M)^1/4     (8M)^−1/4

`alpha_scale` and `beta_scale` multiply every α and every β, encoder and decoder alike (Fig. 9). `alpha="one"` puts 1 in
the place of every α and keeps β, `beta="one"` the other way round: Table 11's "− DeepNorm" and "− Init".
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import Method, Recipe, Role, Scale, Site

UNTOUCHED: tuple[Role, ...] = ("query", "key", "gate", "embedding", "head")

TABLE_11 = {"deepnorm": {"alpha": "one"}, "init": {"beta": "one"}}
"""DeepNet Table 11: what "− DeepNorm" and "− Init" take away, as options."""

WORDS = {
    "alpha": "ω = α = 0.81 (N⁴M)^(1/16) in the encoder, (3M)^(1/4) in the decoder, (2N)^(1/4) in a single stack",
    "beta": "W_V, W_O, W₁, W₂ × β = 0.87 (N⁴M)^(−1/16) in the encoder, (12M)^(−1/4) in the decoder, (8N)^(−1/4) in a "
    "single stack",
}


def alpha_beta(site: Site) -> tuple[float, float]:
    """(α, β) of this site's stack, from the table above."""
    n, m = site.encoder_layers, site.decoder_layers
    if n and m:
        if site.stack == "encoder":
            return 0.81 * (n**4 * m) ** (1 / 16), 0.87 * (n**4 * m) ** (-1 / 16)
        return (3 * m) ** 0.25, (12 * m) ** -0.25
    return (2 * site.depth) ** 0.25, (8 * site.depth) ** -0.25


def method(
    alpha: Literal["paper", "one"] = "paper",
    beta: Literal["paper", "one"] = "paper",
    alpha_scale: float = 1.0,
    beta_scale: float = 1.0,
) -> Method:
    """x ← LN(α·x + f(x)), β on values, outputs and the feed-forward."""

    def omega(site: Site) -> Scale:
        return Scale(init=alpha_scale * (alpha_beta(site)[0] if alpha == "paper" else 1.0))

    def gain(site: Site, role: Role) -> float:
        return 1.0 if role in UNTOUCHED else beta_scale * (alpha_beta(site)[1] if beta == "paper" else 1.0)

    return Method(
        key="deepnorm",
        label="DeepNorm",
        source="DeepNet §3.3",
        constants=", ".join(WORDS[slot] for slot, kept in (("alpha", alpha), ("beta", beta)) if kept == "paper"),
        group="DeepNorm",
        omega=omega,
        gain=gain,
        assumes=("LayerNorm", "ReLU"),
        recipe=Recipe(source="DeepNet (first version), Appendix D.2", base_init="xavier_normal", lr=1.5e-3),
    )
