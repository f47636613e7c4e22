"""A method's forward pass once more, in plain numpy and float64, from the slots: what the model is checked with.

It shares no code with `transformer.py` and below: no torch, no fused maps, one sentence and one head at a time, every
formula as in the papers. Slow, and only for small models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.methods.base import Method, Site, Stack, sites
from stabkit.methods.parts import Part
from stabkit.spec import ModelConfig
from tests.methods.numpy_wirings import NUMPY

Array = NDArray[np.float64]
EPS = 1e-5


def logits(
    method: Method, config: ModelConfig, weights: Mapping[str, NDArray[Any]], source: NDArray[Any], target: NDArray[Any]
) -> Array:
    """(B, T, V) of a batch; of an encoder alone (B, S, V). `weights` by the names that `Transformer.arrays` gives.
    Token 0 is padding, on the right; what stands at it is not defined."""
    second = Second(method, config, weights)
    outputs = [second.sentence(s, t) for s, t in zip(source, target, strict=True)]
    return np.stack(outputs)


class Second:
    """One model; `w` are its weights in float64."""

    def __init__(self, method: Method, config: ModelConfig, weights: Mapping[str, NDArray[Any]]) -> None:
        self.method, self.config = method, config
        self.w = {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}
        self.sites = sites(config.encoder_layers, config.decoder_layers, config.hidden, config.base_init)
        self.values: list[Array] | None = None
        """Each head's values in the first self-attention of the stack, where the method hands them on."""

    def sentence(self, source: NDArray[Any], target: NDArray[Any]) -> Array:
        """(T, V) of one pair."""
        x = np.empty((0, self.config.hidden))
        seen = source != 0
        if self.config.encoder_layers:
            everyone = np.tile(seen, (len(source), 1))
            x = self.stack("encoder", source, x, everyone, everyone)
        if self.config.decoder_layers:
            before = np.tril(np.ones((len(target), len(target)), dtype=bool))
            x = self.stack("decoder", target, x, before, np.tile(seen, (len(target), 1)))
        return x @ self.w.get("head", self.w["embedding"]).T

    def stack(
        self, stack: Stack, tokens: NDArray[Any], memory: Array, state: NDArray[Any], other: NDArray[Any]
    ) -> Array:
        """(T, d) that leaves a stack. `own` and `other` say which keys a query may see, of the stack and of memory."""
        x = self.part(self.method.embedding(stack), f"begin.{stack}", self.embedded(tokens))
        mine = [site for site in self.sites if site.stack == stack]
        name = f"history.{stack}"
        wiring = NUMPY[self.method.wiring](
            lambda weight: self.w[f"{name}.{weight}"], lambda norm, y: self.part("norm", f"{name}.{norm}", y), mine, x
        )
        self.values = None
        for i, site in enumerate(mine):
            read = wiring.read(i)
            f = self.branch(site, read, memory, other if site.kind == "cross" else state)
            at = self.at(site)
            y = self.part(self.method.norm_out(site), f"{at}.norm_out", self.scale("omega", site) * read + f)
            wiring.join(i, y, f)
        return self.part(self.method.final(stack), f"final.{stack}", wiring.end())

    def branch(self, site: Site, x: Array, memory: Array, sees: NDArray[Any]) -> Array:
        """γ·N_branch(G(κ·N_in(x)))."""
        at = self.at(site)
        u = self.method.kappa(site) * self.part(self.method.norm_in(site), f"{at}.norm_in", x)
        u = self.inner(site, "first", u)
        f = self.feed_forward(site, u) if site.kind == "ffn" else self.attention(site, u, memory, sees)
        f = self.inner(site, "end", f)
        return self.scale("gamma", site) * self.part(self.method.norm_branch(site), f"{at}.norm_branch", f)

    def feed_forward(self, site: Site, u: Array) -> Array:
        at = f"{self.at(site)}.g"
        if self.config.ffn_kind == "swiglu":
            half = len(self.w[f"{at}.up.weight"]) // 2
            gate, up = (self.map(f"{at}.up", u, rows) for rows in (slice(0, half), slice(half, None)))
            gate = self.inner(site, "mid", gate)
            h = gate * (0.5 + 0.5 * np.tanh(gate / 2)) * up  # gate·σ(gate), whatever its size
        else:
            h = np.maximum(self.inner(site, "mid", self.map(f"{at}.up", u)), 0.0)
        return self.map(f"{at}.down", self.inner(site, "last", h))

    def attention(self, site: Site, u: Array, memory: Array, sees: NDArray[Any]) -> Array:
        """Head by head; every map's rows are head by head too, and within a head by role."""
        at, size = f"{self.at(site)}.g", self.config.hidden // self.config.heads
        alone = site.kind == "self"
        outputs: list[list[Array]] = [[], [], []]
        for head in range(self.config.heads):
            if alone:
                of_head = [self.map(f"{at}.qkv", u, block(3 * head + i, size)) for i in range(3)]
            else:
                of_head = [self.map(f"{at}.q", u, block(head, size))]
                of_head += [self.map(f"{at}.kv", memory, block(2 * head + i, size)) for i in range(2)]
            for own, mapped in zip(outputs, of_head, strict=True):
                own.append(mapped)
        if alone and self.method.value_residual:
            if self.values is None:
                self.values = list(outputs[2])
            else:
                outputs[2] = [(v + first) / 2 for v, first in zip(outputs[2], self.values, strict=True)]
        for place, own in zip(("query", "key", "value"), outputs, strict=True):
            own[:] = self.of_heads(site, place, own)
        heads = []
        for q, k, v in zip(*outputs, strict=True):
            if alone and self.config.positions == "rotary":
                q, k = turned(q), turned(k)
            score = np.where(sees, q @ k.T / math.sqrt(size), -np.inf)
            weight = np.exp(score - score.max(axis=1, keepdims=True))
            heads.append(weight / weight.sum(axis=1, keepdims=True) @ v)
        if gate := self.method.gate(site):
            rows = size if gate == "entry" else 1
            for head, o in enumerate(heads):
                heads[head] = o / (1 + np.exp(-self.map(f"{at}.gate", u, block(head, rows))))
        return self.map(f"{at}.out", self.inner(site, "last", np.concatenate(heads, axis=1)))

    def of_heads(self, site: Site, place: Any, parts: list[Array]) -> list[Array]:
        """What stands on queries, keys or values: on each head's by itself, or on all heads' beside each other."""
        if self.method.inner(site, place) != "rms across heads":
            return [self.inner(site, place, x) for x in parts]
        return np.split(self.inner(site, place, np.concatenate(parts, axis=1)), len(parts), axis=1)

    def map(self, name: str, x: Array, rows: slice = slice(None)) -> Array:
        """x·Wᵀ + b of some rows of a map."""
        y: Array = x @ self.w[f"{name}.weight"][rows].T
        return y + self.w[f"{name}.bias"][rows] if f"{name}.bias" in self.w else y

    def inner(self, site: Site, place: Any, x: Array) -> Array:
        """What stands at a place inside a branch, the block's q/k-norm where the method has nothing there."""
        part = self.method.inner(site, place)
        if not part and self.config.qk_norm and place in ("query", "key"):
            part = "norm"
        return self.part(part, f"{self.at(site)}.g.{place}", x)

    def part(self, part: Part, name: str, x: Array) -> Array:
        """What stands at a place, of x (T, entries)."""
        kind = self.config.norm if part == "norm" else part
        w = {key.rpartition(".")[2]: array for key, array in self.w.items() if key.rpartition(".")[0] == name}
        if kind == "layer":
            centred: Array = x - x.mean(axis=-1, keepdims=True)
            size: Array = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPS)
            return centred / size * w["weight"] + w["bias"]
        if kind in ("rms", "rms across heads"):
            rms: Array = np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS)
            return x / rms * w["weight"]
        if kind in ("dyt", "dyt 1"):
            return np.tanh(w["alpha"] * x) * w["weight"] + w["bias"]
        if kind == "derf":
            erf: Array = np.vectorize(math.erf)(w["alpha"] * x + w["shift"])
            return erf * w["weight"] + w["bias"]
        if kind == "shift":
            return x + w["b"]
        if kind == "scale shift":
            return w["s"] * (x + w["b"])
        if kind == "heads":
            return x * np.repeat(w["gamma"], x.shape[-1] // len(w["gamma"]))
        return x

    def scale(self, name: str, site: Site) -> Array | float:
        """ω or γ: a number that is fixed, or what was trained, of the site or the first of its layer."""
        asked = self.method.omega(site) if name == "omega" else self.method.gamma(site)
        if not asked.trainable and not asked.vector:
            return float(self.w["omega"][self.sites.index(site)]) if name == "omega" else asked.init
        slot = getattr(self.method, name)
        layer = [s for s in self.sites if (s.stack, s.layer) == (site.stack, site.layer) and slot(s).shared == "layer"]
        holder = layer[0] if asked.shared == "layer" else site
        return self.w[f"{self.at(holder)}.{name}"]

    def embedded(self, tokens: NDArray[Any]) -> Array:
        """√d times the rows, and sinusoids unless positions are rotary; their table is kept in float32."""
        d = self.config.hidden
        x: Array = self.w["embedding"][tokens] * math.sqrt(d)
        if self.config.positions == "rotary":
            return x
        values = np.arange(len(tokens))[:, None] / 10_000.0 ** (np.arange(0, d, 2) / d)
        waves = np.empty((len(tokens), d))
        waves[:, 0::2], waves[:, 1::2] = np.sin(values), np.cos(values)
        return x + waves.astype(np.float32)

    def at(self, site: Site) -> str:
        """What the names of a sub-layer's weights begin with."""
        return f"layers.{site.stack}_{site.layer}_{site.kind}"


def block(number: int, size: int) -> slice:
    return slice(number * size, (number + 1) * size)


def turned(x: Array) -> Array:
    """Entry i and entry i + E/2 of position m as a complex number, times e^{i·m·θ}, θ = 10000^(−2i/E)."""
    half = x.shape[1] // 2
    angle = np.arange(len(x))[:, None] * 10_000.0 ** (-np.arange(half) / half)
    wave = np.cos(angle).astype(np.float32) + 1j * np.sin(angle).astype(np.float32)
    z = (x[:, :half] + 1j * x[:, half:]) * wave
    return np.concatenate([z.real, z.imag], axis=1)
