"""A model beside its recipe: every sub-layer at its site, every matrix measured, in units of a base initialisation.

    gain = standard deviation / base,   base = √(2/(fan_in + fan_out)), for query, key and value perhaps that by √2

Standard deviations are compared per role, of a fused matrix too. The base is the one of BASES that explains most of the
whole model; which one it is, is said. A matrix of n entries is judged within max(5 %, 6/√(2n)), six standard errors of
a standard deviation.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

import torch

from stabkit.methods.base import Kind, Method, Role, Site, Stack, sites
from stabkit.own.sublayers.anatomy import Stack as Found
from stabkit.own.sublayers.columns import RoleWeight
from stabkit.own.sublayers.sublayer import TracedSublayer
from stabkit.spec import BaseInit

Base = BaseInit | Literal["linear", "constant"]
BASES: dict[Base, str] = {
    "xavier_normal": "Xavier",
    "fairseq_uniform": "Xavier, with query, key and value by 1/√2 (fairseq, nn.MultiheadAttention)",
    "torch_uniform": "torch's default, with query, key and value Xavier by 1/√2 (nn.TransformerEncoderLayer)",
    "linear": "torch's default for every matrix (nn.Linear)",
    "constant": "the same standard deviation for every shape",
}
"""`linear` is nobody's recipe: it is what gains multiply where a recipe's rules were put on top of nn.Linear's draw.
`constant` is GPT-2's, BERT's and most language models': N(0, 0.02²)."""
CONSTANT = frozenset({"gpt2-init"})
"""Methods whose authors draw so."""
USUAL = 0.02
FOLDED = 0.1
"""How far a query's draw may be from the factor that it stands for."""
FUSED: tuple[Role, ...] = ("query", "key", "value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """One violation: its topic, where and what, what the recipe says, what was measured, what to do."""

    topic: str
    what: str
    recipe: str
    measured: str
    remedy: str
    parameters: tuple[str, ...] = ()
    """Those concerned, in the module's own names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One role's matrix of one sub-layer, measured."""

    site: Site
    part: RoleWeight
    std: float
    shape: tuple[int, int]
    """(in, out)."""
    default: bool
    """Whether it is drawn as nn.Linear draws: U(±1/√fan_in)."""

    @property
    def role(self) -> Role:
        role = self.part.role
        assert role != "other"  # those stand outside of sub-layers
        return role

    @property
    def slack(self) -> float:
        return max(0.05, 6 / math.sqrt(2 * self.shape[0] * self.shape[1]))

    def gain(self, base: Base, sigma: float) -> float:
        return self.std / deviation(base, self.role, self.shape, sigma)


def deviation(base: Base, role: Role, shape: tuple[int, int], sigma: float) -> float:
    """The standard deviation that a base initialisation gives a matrix (in, out); `sigma` is that of `constant`."""
    fan_in, fan_out = shape
    if base == "constant":
        return sigma
    if base == "linear" or (base == "torch_uniform" and role not in FUSED):
        return 1 / math.sqrt(3 * fan_in)
    return math.sqrt(2 / (fan_in + fan_out)) / (math.sqrt(2) if base != "xavier_normal" and role in FUSED else 1.0)


class Case:
    """A model's stacks, its sub-layers paired with the method's sites, and the readings of their matrices."""

    def __init__(self, method: Method, stacks: dict[Stack, Found], whole: bool = True) -> None:
        self.method, self.stacks = method, stacks
        self.n, self.m = (stacks[name].layers if name in stacks else 0 for name in ("encoder", "decoder"))
        self.width = next(iter(stacks.values())).sublayers[0].width
        self.base: Base = "xavier_normal"
        self.sites = sites(self.n, self.m, self.width)
        asked = {(site.stack, site.layer, site.kind): site for site in self.sites}
        self.pairs: list[tuple[Site, TracedSublayer]] = [
            (asked[stack, own.layer, own.kind], own)
            for stack, found in stacks.items()
            for own in found.sublayers
            if own.kind is not None and (stack, own.layer, own.kind) in asked
        ]
        self.apart = Counter(
            own.kind
            for stack, found in stacks.items()
            for own in found.sublayers
            if own.kind is not None and (stack, own.layer, own.kind) not in asked
        )
        """Sub-layers of a kind that the recipe lacks: cross-attention in one stack."""
        self.whole = whole and not self.apart
        """Whether the readings are of all matrices."""
        self.readings = [_read(site, part) for site, own in self.pairs for part in own.parts]
        own: Base = method.recipe.base_init if method.recipe else "xavier_normal"
        usual: list[Base] = [b for b in BASES if b != "linear" and (b != "torch_uniform" or b == own)]
        usual.remove("constant")
        self.sigma = self._sigma()
        """The one standard deviation of a `constant` base."""
        self.recipe_base: Base = min(usual, key=lambda base: (*self._misfit(base), base != own))
        """The base on which the recipe is judged."""
        alike = [r for r in self.readings if abs(r.std / self.sigma - 1) <= r.slack or self.fits(r, "constant")]
        several = self.sigma == USUAL or all(
            len({r.shape[side] for r in alike}) > 1 for side in (0, 1)
        )  # no fan's draw
        plain = all(self.fits(r, "constant") or not r.std for r in self.readings if self.expected(r, "constant") == 1)
        if plain and several and self._misfit("constant")[0] < self._misfit(self.recipe_base)[0]:
            self.recipe_base = "constant"
        self.base = self.recipe_base
        """What was drawn."""
        if self._scaled_default():
            self.base, self.recipe_base = "linear", own

    def folds(self, site: Site, sublayer: TracedSublayer) -> bool:
        """Whether the draw of a sub-layer's query has the factor that its logits lack (T5; Raffel et al. 2020)."""
        if not sublayer.logit or not sublayer.head:
            return False
        lacks = sublayer.head**-0.5 / sublayer.logit
        drawn = [self.over(r) for r in self.readings if r.site == site and r.role == "query"]
        return abs(lacks - 1) > FOLDED and bool(drawn) and all(abs(own / lacks - 1) < FOLDED for own in drawn)

    def expected(self, reading: Reading, base: Base | None = None) -> float:
        """The recipe's gain for this matrix."""
        known = base or self.base
        of: BaseInit = "xavier_normal" if known == "linear" or known == "constant" else known
        return self.method.gain(replace(reading.site, base=of), reading.role)

    def over(self, reading: Reading) -> float:
        """Its standard deviation over the recipe's; over the base's where the recipe says 0."""
        return self._gain(reading, self.recipe_base) / (self.expected(reading, self.recipe_base) or 1.0)

    def gain(self, reading: Reading) -> float:
        return self._gain(reading, self.base)

    def words(self, base: Base) -> str:
        """What a base is called."""
        return f"N(0, {self.sigma:.3g}²) for every shape" if base == "constant" else BASES[base]

    @property
    def drawn(self) -> str:
        """The base in words; that none was recognised where it explains fewer than half of the matrices, scaled as the
        recipe has it or not at all."""
        plain = [abs(self.gain(r) - 1) <= r.slack for r in self.readings]
        explained = sum(one or self.fits(r) for one, r in zip(plain, self.readings, strict=True))
        name = self.words(self.base)
        return name if 2 * explained >= len(self.readings) else f"not recognised; gains below are multiples of {name}"

    def _gain(self, reading: Reading, base: Base) -> float:
        return reading.gain(base, self.sigma)

    def _sigma(self) -> float:
        """The median of what the recipe leaves unscaled; 0.02 where it is about that."""
        plain = [
            r.std for r in self.readings if r.std > 0 and math.isfinite(r.std) and self.expected(r, "constant") == 1
        ]
        middle = statistics.median(plain) if plain else USUAL
        return USUAL if abs(middle / USUAL - 1) < 0.05 else middle

    def fits(self, reading: Reading, base: Base | None = None) -> bool:
        """Whether this matrix has the standard deviation that the recipe gives it."""
        gain, expected = self._gain(reading, base or self.base), self.expected(reading, base)
        return gain < 1e-6 if expected == 0 else abs(gain / expected - 1) <= reading.slack

    @property
    def drawn_by_default(self) -> bool:
        """Whether torch's own draw is what the recipe asks for."""
        return self.method.recipe is not None and self.method.recipe.base_init == "torch_uniform"

    @property
    def depth(self) -> str:
        return depth(self.n, self.m)

    def _scaled_default(self) -> bool:
        """Whether the recipe's gains stand on nn.Linear's draw: most of what they scale fits there, and not before."""
        scaled = [r for r in self.readings if math.isfinite(r.std) and self.expected(r, "linear") not in (0.0, 1.0)]
        there, here = (sum(self.fits(r, base) for r in scaled) for base in ("linear", self.recipe_base))
        plain = sum(abs(self._gain(r, self.recipe_base) - 1) <= r.slack for r in scaled)  # √3 is near a gain
        usual = self.drawn_by_default
        return 2 * there >= len(scaled) > 0 and there > max(here, plain) and not usual

    def _misfit(self, base: Base) -> tuple[int, float]:
        """(matrices that this base does not explain, how far they are off)."""
        by_default = self.drawn_by_default
        judged = [r for r in self.readings if math.isfinite(r.std) and (by_default or not r.default)]
        away = [(self._gain(r, base), self.expected(r, base)) for r in judged]
        return (
            sum(not self.fits(r, base) for r in judged),
            sum(abs(math.log(gain / expected)) for gain, expected in away if gain > 0 and expected > 0),
        )


def depth(n: int, m: int) -> str:
    """`18L-18L`; `18L` for one stack."""
    return f"{n}L-{m}L" if n and m else f"{n or m}L"


def _read(site: Site, part: RoleWeight) -> Reading:
    weight = part.weight.detach()
    weight = weight if weight.dtype == torch.float64 else weight.float()
    fan_in, fan_out = weight.shape
    std, peak, bound = float(weight.std(correction=0)), float(weight.abs().max()), 1 / math.sqrt(fan_in)
    near = abs(std * math.sqrt(3) / bound - 1) < max(0.05, 6 / math.sqrt(2 * weight.numel()))
    default = near and 0.98 * bound < peak <= 1.0001 * bound
    return Reading(site=site, part=part, std=std, shape=(fan_in, fan_out), default=default)


KINDS: dict[Kind, str] = {"self": "self-attention", "cross": "cross-attention", "ffn": "feed-forward"}
