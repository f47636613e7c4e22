"""What `fold` and `audit` can do for a method: read from its slots, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stabkit.methods.base import ONE, PLACES, Method, Site
from stabkit.methods.parts import Part
from stabkit.methods.wirings import named, wired


def folds(method: Method, places: Sequence[Site]) -> str:
    """Why this method is not x ← LN(ω·x + f(x)) and nothing else, so that it does not fold; "" where it is."""
    for site in places:
        reasons = {
            "a norm stands before the branch": method.norm_in(site),
            "a norm stands on the branch, before the sum": method.norm_branch(site),
            "no norm stands after the sum": not method.norm_out(site),
            "the branch is scaled by γ": method.gamma(site) != ONE,
            "the branch's input is scaled by κ": method.kappa(site) != 1,
            "the branch has an inner part": any(method.inner(site, place) for place in PLACES),
            f"the norm is {method.norm_out(site)}, not LayerNorm": method.norm_out(site) not in ("norm", "layer"),
        }
        for reason, holds in reasons.items():
            if holds:
                return f"{reason} (at {site.name})"
    for stack in dict.fromkeys(site.stack for site in places):
        for part, where in ((method.embedding(stack), "before"), (method.final(stack), "after")):
            if part:
                return f"a {part} stands {where} the {stack}"
    if any(method.gate(site) for site in places):
        return "its attention has a gate"
    if method.value_residual:
        return "its attention takes the first layer's values"
    return "" if method.wiring == "chain" else f"its wiring is not a chain: {named(method.wiring)}"


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


def told(method: Method, places: Sequence[Site]) -> tuple[tuple[str, str], ...]:
    """(command, what it can do for this method)."""
    beside = unjudged(method, places)
    most = "sums, norms, scales and initialisation" + (f"; not {', nor '.join(beside)}" if beside else "")
    refused, plain = audits(method, places), folds(method, places)
    fold = f"refuses it: {plain}" if plain else "turns it into a plain Post-LN model"
    return ("audit", f"refuses it: {refused}" if refused else f"judges {most}"), ("fold", fold)
