"""What `audit` can do for a method: read from its slots, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stabkit.methods.base import PLACES, Method, Site
from stabkit.methods.parts import Part
from stabkit.methods.wirings import wired


def audits(method: Method, places: Sequence[Site]) -> str:
    """Why a model of this method is not followed by `audit`; "" where it is."""
    if not wired(method.wiring).followed:
        return "audit follows only chains and DLCL's sums"
    if method.value_residual:
        return "audit does not follow another layer's values"
    if {"dyt", "dyt 1", "derf"} & set(_parts(method, places)):
        return "audit recognises LayerNorm and RMSNorm, not DyT or Derf"
    return ""


def unjudged(method: Method, places: Sequence[Site]) -> tuple[str, ...]:
    """What of its recipe `audit` does not look at, in words."""
    stacks = dict.fromkeys(site.stack for site in places)
    heads = any(method.inner(site, place) for site in places for place in ("query", "key", "value"))
    reasons = {
        "parts on queries, keys and values": heads,
        "the gate on attention": any(method.gate(site) for site in places),
        "parts before the first layer": any(method.embedding(stack) for stack in stacks),
        "the factors on rate and ε (set in the optimiser)": method.scaled,
        "ω (from data)": method.calibrate is not None,
    }
    return tuple(words for words, holds in reasons.items() if holds)


def _parts(method: Method, places: Sequence[Site]) -> Iterator[Part]:
    """Whatever stands in or around its residuals."""
    for site in places:
        yield from (method.norm_in(site), method.norm_branch(site), method.norm_out(site))
        yield from (method.inner(site, place) for place in PLACES)


def audit_words(method: Method, places: Sequence[Site]) -> str:
    """What `audit` can do for this method."""
    if refused := audits(method, places):
        return f"refuses it: {refused}"
    beside = unjudged(method, places)
    return "judges sums, norms, scales and initialisation" + (f"; not {', nor '.join(beside)}" if beside else "")
