"""Folding back: a trained ADMIN or DeepNorm model as a plain Post-LN Transformer with the same outputs.

    x_i = LN_i(ω_i ⊙ x_{i−1} + f_i(x_{i−1}))        x_{i−1} = γ_{i−1} ⊙ n + ν_{i−1}, a norm's output, for i ≥ 2

    i ≥ 2    γ_{i−1} ← ω_i ⊙ γ_{i−1},  ν_{i−1} ← ω_i ⊙ ν_{i−1}, and the columns of what reads x_{i−1} in f_i divided by
             ω_i: W_Q, W_K, W_V of self-attention, W_Q alone of cross-attention, W₁ of the feed-forward
    i = 1    x_0 is the embedding, which is tied to the softmax. There W_O and b_O are divided by ω₁, one number, and
             the eps of LN_1 by ω₁², since LN_eps(ω·u) = LN_{eps/ω²}(u)

The last norm of a stack stays: cross-attention and the softmax read it without an ω. A sub-layer of a trained vector ω
folds too, but not the first of a stack, where LN does not undo a vector.

Liu et al. 2020 and X. Liu et al. 2020 §3 say that ω can be folded back; DeepNorm's α (DeepNet §3.3) is such an ω. Equal
are the outputs, not the gradients with respect to the weights: training does not go on from here as it would have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import blocks
from stabkit.methods.base import Kind, Method, Site, sites
from stabkit.methods.support import folds
from stabkit.model import draw
from stabkit.model.positions import MAX_POSITIONS
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig, RunSpec
from stabkit.streams import stream
from stabkit.tasks.base import PAD

EPS = 1e-5
"""Of every norm while it was trained: torch.nn.LayerNorm's own."""
MAPS: Mapping[Kind, tuple[tuple[str, ...], tuple[str]]] = {
    "self": (("qkv",), ("out",)),
    "cross": (("q", "kv"), ("out",)),
    "ffn": (("up",), ("down",)),
}
"""The first and the last linear map of a branch, by our names (`model/branch.py`)."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Folded:
    """A plain Post-LN model: weights and eps of its norms by torch.nn's names, and the ω that went into them."""

    model: ModelConfig
    arrays: Arrays
    eps: Mapping[str, float]
    omega: Mapping[str, NDArray[np.float64]]
    """By sub-layer, () or (d,); only those that were not 1."""

    def to(self, dtype: str) -> Folded:
        """The same with its weights rounded."""
        return replace(self, arrays={name: array.astype(dtype) for name, array in self.arrays.items()})


def fold(weights: Arrays, spec: RunSpec) -> Folded:
    """The plain Post-LN model with the outputs of this run's, in float64; `weights` as a run's file has them.

    Raises UsageError for a method that is not LN(ω·x + f(x)), for weights that are not this spec's or not finite, and
    for an ω that cannot be folded.
    """
    method = _method(spec)
    config = spec.model
    places = sites(config.encoder_layers, config.decoder_layers, config.hidden, config.base_init)
    if why := folds(method, places):
        raise UsageError(f"{method.label} does not fold into a plain Post-LN model: {why}")
    if not config.tied:
        raise UsageError("a model with a separate softmax (--untied) does not fold: the plain model's is tied")
    if (block := blocks.name_of(config)) != "classic":
        raise UsageError(f"a model of the block {block} does not fold: torch.nn's layers have the classic block")
    if config.hidden % config.heads:
        raise UsageError(f"a width of {config.hidden} does not divide into {config.heads} heads")
    omegas = _omegas(weights, method, places)
    arrays = _unfused(weights, spec, method, places)
    eps = {_names(site)[2]: EPS for site in places}
    norm_before = ""
    for site in places:
        omega = omegas[site.name]
        first, last, norm = _names(site)
        if site.index > 1:
            for part in ("weight", "bias"):
                arrays[f"{norm_before}.{part}"] *= omega
            reads = arrays[f"{first}weight"]
            reads[: config.hidden if site.kind == "cross" else None] /= omega  # keys and values read the memory
        else:
            for part in ("weight", "bias"):
                arrays[f"{last}{part}"] /= omega
            eps[norm] = float(EPS / omega**2)
        norm_before = norm
    return Folded(config, arrays, eps, {name: omega for name, omega in omegas.items() if np.any(omega != 1.0)})


def _method(spec: RunSpec) -> Method:
    method = methods.of(spec)
    if spec.own is not None:
        raise UsageError(f"{spec.own.label} does not fold: it is from a user's file, which is never run from a store")
    if method is None:
        raise UsageError(f"there is no method {spec.method!r} with the options {dict(spec.options)} here")
    return method


def _taken(weights: Arrays, name: str, *shape: int) -> NDArray[np.float64]:
    """A copy of one tensor of a run, in float64."""
    held = weights.get(name)
    if held is None or held.dtype.kind != "f" or held.shape != shape:
        came = "missing" if held is None else f"{held.dtype} {held.shape}"
        raise UsageError(f"these weights are not those of this run: {name} must have shape {shape}, but is {came}")
    if not np.isfinite(held).all():
        raise UsageError(f"there is nothing to fold: {name} is not finite, as in a diverged run")
    return np.array(held, dtype=np.float64)


def _omegas(weights: Arrays, method: Method, places: tuple[Site, ...]) -> dict[str, NDArray[np.float64]]:
    """{sub-layer: ω}, () or (d,). Raises UsageError for one that has no exact way."""
    fixed, omegas = _taken(weights, "omega", len(places)), dict[str, NDArray[np.float64]]()
    for site, number in zip(places, fixed, strict=True):
        scale, omega = method.omega(site), np.array(number)
        if scale.trainable or scale.vector:
            layer = [other for other in places if (other.stack, other.layer) == (site.stack, site.layer)]
            holder = layer[0] if scale.shared == "layer" else site
            shape = (site.width,) if scale.vector else ()
            omega = _taken(weights, f"layers.{holder.name.replace('.', '_')}.omega", *shape)
        least, most = float(omega.min()), float(omega.max())
        if least == most:
            omega = np.array(most)
        if site.index == 1 and (omega.shape or most <= 0):
            raise UsageError(
                f"ω of {site.name} is not one number above 0 (its entries: {least:.6g} to {most:.6g}), and at the "
                f"first sub-layer of a stack there is no exact way to fold it; {method.label} with a fixed ω folds"
            )
        if not omega.all():
            raise UsageError(f"ω of {site.name} has an entry that is 0: what the branch reads there would be lost")
        omegas[site.name] = omega
    return omegas


def _names(site: Site) -> tuple[str, str, str]:
    """What the names of a sub-layer's first and last maps begin with, and its norm, in torch.nn's layers."""
    layer = f"{site.stack}.layers.{site.layer - 1}"
    norm = f"{layer}.norm{site.index - (site.layer - 1) * (site.sublayers // site.depth)}"
    if site.kind == "ffn":
        return f"{layer}.linear1.", f"{layer}.linear2.", norm
    attention = f"{layer}.{'self_attn' if site.kind == 'self' else 'multihead_attn'}"
    return f"{attention}.in_proj_", f"{attention}.out_proj.", norm


def _unfused(
    weights: Arrays, spec: RunSpec, method: Method, places: tuple[Site, ...]
) -> dict[str, NDArray[np.float64]]:
    """Copies of a run's weights by torch.nn's names."""
    arrays = {"embedding.weight": _taken(weights, "embedding", spec.task.vocab, spec.model.hidden)}
    for site in places:
        ours, (first, last, norm) = f"layers.{site.name.replace('.', '_')}", _names(site)
        for names, to in zip(MAPS[site.kind], (first, last), strict=True):
            maps = [_map(weights, f"{ours}.g", name, spec.model, method.bias(site)) for name in names]
            arrays[f"{to}weight"] = np.concatenate([weight for weight, _ in maps])
            arrays[f"{to}bias"] = np.concatenate([bias for _, bias in maps])
        for part in ("weight", "bias"):
            arrays[f"{norm}.{part}"] = _taken(weights, f"{ours}.norm_out.{part}", site.width)
    return arrays


def _map(
    weights: Arrays, ours: str, name: str, config: ModelConfig, biased: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One linear map of ours: weight and bias, zeros where it has none.

    Where it holds several roles, ours stand head by head (`model/branch.py`); torch.nn's are all of q, then k, then v.
    """
    d, heads, parts = config.hidden, config.heads, {"qkv": 3, "kv": 2}.get(name, 1)
    rows, columns = config.ffn if name == "up" else parts * d, config.ffn if name == "down" else d
    weight = _taken(weights, f"{ours}.{name}.weight", rows, columns)
    bias = _taken(weights, f"{ours}.{name}.bias", rows) if biased else np.zeros(rows)
    if parts > 1:
        weight = weight.reshape(heads, parts, d // heads, columns).swapaxes(0, 1).reshape(rows, columns)
        bias = bias.reshape(heads, parts, d // heads).swapaxes(0, 1).reshape(rows)
    return weight, bias


class Plain(nn.Module):
    """A Post-LN Transformer of torch.nn's own layers (norm_first=False, relu, no dropout) with given weights.

    (B, S), (B, T) → states (T, B, D) and logits (T, B, V), as `Transformer`, with which it shares only the sinusoids.
    A decoder without an encoder is of TransformerEncoderLayers and a causal mask. Every layer gets its own weights.
    """

    def __init__(self, config: ModelConfig, arrays: Mapping[str, NDArray[Any]], eps: Mapping[str, float]) -> None:
        """`arrays` and `eps` (of every norm) by torch.nn's names."""
        super().__init__()
        vocab, self.width = arrays["embedding.weight"].shape
        depth = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
        with torch.device("meta"):  # nothing is drawn, and nobody's random state moves
            self.embedding = nn.Embedding(vocab, self.width)
            for stack in [stack for stack in depth if depth[stack]]:
                crossed = stack == "decoder" and config.encoder_layers
                kind = nn.TransformerDecoderLayer if crossed else nn.TransformerEncoderLayer
                layers = [kind(self.width, config.heads, config.ffn, dropout=0.0) for _ in range(depth[stack])]
                self.add_module(stack, nn.ModuleDict({"layers": nn.ModuleList(layers)}))
        for name, value in eps.items():
            norm = self.get_submodule(name)
            if not isinstance(norm, nn.LayerNorm):
                raise ValueError(f"{name} is not a norm")
            norm.eps = float(value)
        self.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()}, assign=True)
        positions = draw.positions(MAX_POSITIONS, self.width).float()  # rounded, as Transformer's are
        self.register_buffer("positions", positions.to(self.embedding.weight.dtype), persistent=False)

    def forward(self, source_BS: torch.Tensor, target_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """States before the softmax (T, B, D) and logits (T, B, V); of an encoder alone (S, …)."""
        pad_BS = source_BS == PAD
        states: torch.Tensor | None = None
        for stack, held in self.named_children():
            if stack == "encoder":
                x = self._embed(source_BS)
                for layer in held.layers:  # type: ignore[union-attr]  # a child is typed Tensor | Module
                    x = layer(x, src_key_padding_mask=pad_BS)
                states = x
            elif stack == "decoder":
                x, t = self._embed(target_BT), target_BT.shape[1]
                later = torch.ones(t, t, dtype=torch.bool, device=target_BT.device).triu(1)
                for layer in held.layers:  # type: ignore[union-attr]
                    if states is None:
                        x = layer(x, src_mask=later)
                    else:
                        x = layer(x, states, tgt_mask=later, memory_key_padding_mask=pad_BS)
                states = x
        if states is None:
            raise ValueError("a Transformer without a layer")
        return states, functional.linear(states, self.embedding.weight)

    def _embed(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        x_TBD = self.embedding(tokens_BT.t()) * math.sqrt(self.width)
        embedded: torch.Tensor = x_TBD + self.positions[: tokens_BT.shape[1], None]  # type: ignore[index]
        return embedded


def plain(folded: Folded) -> Plain:
    """The folded model, ready to run."""
    return Plain(folded.model, folded.arrays, folded.eps)


def original(weights: Arrays, spec: RunSpec) -> Transformer:
    """The run's own model with these weights, in float64 and eval mode."""
    model = Transformer(spec.model, _method(spec), spec.task.vocab, spec.seed).double()
    model.load(weights)
    model.eval()
    return model


def batch(spec: RunSpec) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens, (6, 19) and (6, 23), with padding on the right: what outputs are compared on."""
    rng = stream(0, "fold")
    held = []
    for layers, length in ((spec.model.encoder_layers, 19), (spec.model.decoder_layers, 23)):
        tokens = rng.integers(min(PAD + 1, spec.task.vocab - 1), spec.task.vocab, (6, length if layers else 0))
        for row, sentence in enumerate(tokens):
            sentence[length - 3 * row :] = PAD
        held.append(torch.from_numpy(tokens))
    return held[0], held[1]


@torch.no_grad()
def difference(weights: Arrays, spec: RunSpec, folded: Folded) -> tuple[float, float]:
    """(the largest difference between the two models' logits on `batch`, the largest logit), computed in float64."""
    tokens = batch(spec)
    ours, theirs = original(weights, spec)(*tokens)[1], plain(folded).double().eval()(*tokens)[1]
    return float((ours - theirs).abs().max()), float(ours.abs().max())
