"""What a wrong number looks like: each slip that is known to happen, as the number it would have given.

A measured gain g stands against the recipe's e, a measured ratio ω/γ against the recipe's, layer by layer. The slip
whose number fits every layer best is the cause. All numbers come from the method's own slots, asked for other places,
depths and architectures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stabkit.methods.base import Method, Role, Site

DEEPEST = 100
"""Depths that a wrong scale is looked for at."""
CUT = 0.8796
"""Standard deviation of a normal cut at ±2."""

USUAL = "N(0, 0.02²) for every shape, as in BERT and GPT-2"

SAME = 1e-6
"""Two slips whose numbers differ by less are one number."""

Value = Callable[[Site], float]


@dataclass(frozen=True, slots=True)
class Cause:
    """A slip: what it gives at each site, in the same order, and the words for it."""

    values: tuple[float, ...]
    words: str


def of_gain(
    method: Method, role: Role, sites: Sequence[Site], base: Sequence[float], shapes: Sequence[tuple[int, int]]
) -> Iterator[Cause]:
    """Slips in the gain of one role's matrices, whose base initialisation has the standard deviation `base`."""

    def gain(site: Site) -> float:
        return method.gain(site, role)

    expected = [gain(site) for site in sites]
    if any(e != 1.0 for e in expected):
        yield Cause((1.0,) * len(sites), "not scaled at all")
    yield from _of_constant(gain, sites, "gain")
    yield Cause(tuple(e**2 for e in expected), "scaled twice")
    if all(e > 0 for e in expected):
        yield Cause(tuple(math.sqrt(e) for e in expected), "the factor was applied to the variance, not to the weights")
    value = tuple(method.gain(site, "value") for site in sites)
    if role in ("query", "key") and value != tuple(expected):
        yield Cause(value, "scaled like the values; the recipe does not scale this role")
    if role in ("query", "key", "value"):
        root = math.sqrt(2.0)
        yield Cause(tuple(e / root for e in expected), "drawn as rows of one fused matrix: 1/√2 of the others' base")
        yield Cause(tuple(e * root for e in expected), "drawn separately, while the others have a fused matrix's 1/√2")
    yield Cause(tuple(CUT * e for e in expected), "a normal truncated at two standard deviations, which is narrower")
    if any(abs(b / 0.02 - 1) > SAME for b in base):
        yield Cause(tuple(0.02 / b for b in base), USUAL)
    for share, side, name in (
        (2, 0, "Kaiming's √(2/fan_in)"),
        (1, 0, "as √(1/fan_in) gives, LeCun's"),
        (2, 1, "Kaiming's with the wrong fan, √(2/fan_out)"),
        (1, 1, "as √(1/fan_out) gives, LeCun's with the wrong fan"),
    ):
        yield Cause(tuple(math.sqrt(share / fans[side]) / b for fans, b in zip(shapes, base, strict=True)), name)
    mirrored = tuple(gain(replace(site, layer=site.depth - site.layer + 1)) for site in sites)
    yield Cause(mirrored, "the layers are counted from the other end")


def of_scale(method: Method, sites: Sequence[Site]) -> Iterator[Cause]:
    """Slips in ω/γ, the weight of the shortcut against the branch."""

    def weight(site: Site) -> float:
        gamma = method.gamma(site).init
        return method.omega(site).init / gamma if gamma else math.inf

    expected = [weight(site) for site in sites]
    yield Cause((1.0,) * len(sites), "there is no scale at all")
    yield Cause(tuple(1 / e for e in expected), "the factor is on the branch; the recipe has it on the shortcut")
    yield from _of_constant(weight, sites, "scale", inverted=False)
    yield Cause(tuple(e**2 for e in expected), "it is applied twice")
    for depth in range(1, DEEPEST + 1):
        other = [
            _deep(site, depth if site.encoder_layers else 0, depth if site.decoder_layers else 0) for site in sites
        ]
        yield Cause(tuple(weight(site) for site in other), f"it is that of {depth} layers")


def _of_constant(value: Value, sites: Sequence[Site], what: str, inverted: bool = True) -> Iterator[Cause]:
    """Slips in how a constant c·(a power of depth) is computed."""
    expected = [value(site) for site in sites]
    if inverted and all(e > 0 for e in expected):
        yield Cause(tuple(1 / e for e in expected), f"the {what} is inverted")
    front = [value(_deep(site, min(site.encoder_layers, 1), min(site.decoder_layers, 1))) for site in sites]
    if all(c > 0 for c in front):
        slipped = tuple(e / c**2 for e, c in zip(expected, front, strict=True))
        yield Cause(slipped, f"the {what}'s constant is inverted (1/{front[0]:.3g} for {front[0]:.3g})")
    n, m = sites[0].encoder_layers, sites[0].decoder_layers
    if n and m:
        other = [
            _deep(replace(site, stack="decoder" if site.stack == "encoder" else "encoder"), n, m) for site in sites
        ]
        yield Cause(tuple(value(site) for site in other), f"it is the {other[0].stack}'s")
        alone = [_deep(site, *((n, 0) if site.stack == "encoder" else (0, m))) for site in sites]
        stack = f"{'an' if sites[0].stack == 'encoder' else 'a'} {sites[0].stack}"
        yield Cause(tuple(value(site) for site in alone), f"it is that of {stack} without the other stack")
    counted = [_deep(s, 2 * n, (3 if n else 2) * m) for s in sites]
    yield Cause(tuple(value(site) for site in counted), "sub-layers are counted instead of layers")


def _deep(site: Site, n: int, m: int) -> Site:
    depth = n if site.stack == "encoder" else m
    return replace(site, encoder_layers=n, decoder_layers=m, layer=min(site.layer, depth))


def best(causes: Iterator[Cause], measured: Sequence[float], slack: Sequence[float], pooled: float) -> tuple[str, ...]:
    """The words of the slip nearest to what was measured, when every layer is within `slack` and their mean within
    `pooled`. Those that give the same numbers are all named: they cannot be told apart here."""
    near: tuple[float, ...] = ()
    texts: list[str] = []
    distance = pooled
    for cause in causes:
        if any(value <= 0 or not math.isfinite(value) for value in (*cause.values, *measured)):
            continue
        away = [math.log(g / value) for g, value in zip(measured, cause.values, strict=True)]
        mean = abs(sum(away) / len(away))
        if any(abs(a) > s for a, s in zip(away, slack, strict=True)):
            continue
        if texts and all(abs(a / b - 1) < SAME for a, b in zip(cause.values, near, strict=True)):
            texts.append(cause.words)
        elif mean < distance - 1e-9:
            near, texts, distance = cause.values, [cause.words], mean
    return tuple(dict.fromkeys(texts))
