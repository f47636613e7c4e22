"""What Theorems 2 and 3 of DeepNet make of a run's measured ‖Δθ‖: the size of ‖ΔF‖ up to a constant.

    one stack (Thm 2)          Σ_i √(v_i² + w_i²)/α_i · ‖Δθ_i‖
    encoder-decoder (Thm 3)    Σ_cross v·w/α · Σ_encoder √(v² + w²)/α · ‖Δθ‖  +  Σ_decoder √(v² + w²)/α · ‖Δθ‖

v and w are the scales of the value and output projections (W₁ and W₂ of a feed-forward): β, the initial gain of the
method at that site, 1 at Xavier initialisation. α is the weight of the shortcut, read from the records (‖LN input‖ over
its own value in units of ω√d gives ω). The theorems speak of norms after the sum: other methods have no prediction.
"""

from __future__ import annotations

import math

import numpy as np

from stabkit import methods
from stabkit.methods.base import sites
from stabkit.spec import RunSpec
from stabkit.store import Run


def number_of(spec: RunSpec) -> int:
    """3 for an encoder-decoder, 2 for one stack."""
    return 3 if spec.model.encoder_layers and spec.model.decoder_layers else 2


def predicted(run: Run, step: int) -> float:
    """The sum at a recorded step; NaN where the theorem does not speak of this method or the records lack it."""
    parts = sums(run, step)
    if parts is None:
        return math.nan
    crossing, encoder, decoder = parts
    return crossing * encoder + decoder


def sums(run: Run, step: int) -> tuple[float, float, float] | None:
    """(Σ_cross v·w/α, Σ_encoder, Σ_decoder) of √(v² + w²)/α · ‖Δθ‖; None where `predicted` has no value.

    Of an encoder alone the second is written as the third, and the first two are 0.
    """
    spec, records = run.spec, run.records
    moved, ln_input = records.get("parameter_update"), records.get("ln_input")
    if spec.method not in methods.KEYS or moved is None or ln_input is None or not (moved.steps == step).any():
        return None
    method = methods.build(spec.method, spec.options, spec.alpha_scale, spec.beta_scale)
    row = moved.values[int(np.flatnonzero(moved.steps == step)[0])]
    delta = dict(zip(moved.sites, row.tolist(), strict=True))
    first = dict(zip(ln_input.sites, ln_input.values[0].tolist(), strict=True))
    encoder = decoder = crossing = 0.0
    for site in sites(spec.model.encoder_layers, spec.model.decoder_layers, spec.model.hidden):
        if method.norm_in(site) or not method.norm_out(site) or site.name not in delta or site.name not in first:
            return None
        over = first[f"{site.name}@omega"] * math.sqrt(site.width)
        alpha = first[site.name] / over if over > 0 else 0.0
        if not 0 < alpha < math.inf:  # nothing enters this norm, or nothing finite
            return None
        v, w = (method.gain(site, role) for role in (("up", "down") if site.kind == "ffn" else ("value", "out")))
        term = math.hypot(v, w) / alpha * delta[site.name]
        if site.stack == "encoder" and spec.model.decoder_layers:
            encoder += term
        else:
            decoder += term
            crossing += v * w / alpha if site.kind == "cross" else 0.0
    return crossing, encoder, decoder
