"""A method's residual as it is written in papers, made from its slots: what the model does, not what someone typed.

    x ← LN(ω·x + f(x))
    self-attention: x ← x + W_O·LN(heads(LN(x))); cross-attention: x ← x + f(LN(x)); …

A branch with nothing inside is f; ω and γ stand where they are not 1. LN is the comparison's own norm unless a method
names another. Where sub-layers differ, each kind has its own line, by layers where it is by layers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from stabkit.methods.base import HEADED, ONE, Kind, Known, Method, Place, Role, Scale, Site, Stack, defined, sites
from stabkit.methods.blocks import inner as standing
from stabkit.methods.count import places
from stabkit.methods.parts import Part, kind
from stabkit.methods.wirings import wired
from stabkit.spec import ModelConfig

KINDS: Mapping[Kind, str] = {"self": "self-attention", "cross": "cross-attention", "ffn": "feed-forward"}
PLAIN = ModelConfig(encoder_layers=0, decoder_layers=0)
LAYERS = 18
"""Of each stack of the model whose formula stands for a method."""


def text(method: Method, config: ModelConfig = PLAIN) -> str:
    """The whole in one line; `config` says the block (its depth is not looked at)."""
    return "; ".join(lines(method, *defined(method, LAYERS), config))


def lines(method: Method, n: int, m: int, config: ModelConfig = PLAIN) -> list[str]:
    """The residuals at a depth, the wiring, and what stands before and after the stacks."""
    method_sites = sites(n, m, config.hidden)
    names = _grouped(method_sites, lambda site: residual(method, site, config))
    wiring = wired(method.wiring)
    written = wiring.formula.replace("{N}", kind("norm", config.norm).function)
    if wiring.replaces:
        reads = _branch(method, method_sites[-1], config)
        names = [re.sub("f⟨(.*?)⟩", lambda found: re.sub(r"\bx\b", found[1], reads), written)]
        written = ""
    stacks = list(dict.fromkeys(site.stack for site in method_sites))
    beside = [
        *_beside(stacks, method.embedding, config, "before"),
        *_beside(stacks, method.final, config, "after"),
    ]
    values = ["V_l ← (V_l + V₁)/2 in self-attention"] if method.value_residual else []
    bare = ["no biases"] if config.biases and not any(method.bias(site) for site in method_sites) else []
    return [*names, *([written] if written else []), *values, *beside, *bare]


def residual(method: Method, site: Site, config: ModelConfig = PLAIN) -> str:
    """`x ← LN(ω·x + f(x))`, of one sub-layer."""
    branch = _branch(method, site, config)
    shortcut = "x" if method.omega(site) == ONE and not method.calibrate else "ω·x"
    return f"x ← {around(method.norm_out(site), f'{shortcut} + {branch}', config)}"


def _branch(method: Method, site: Site, config: ModelConfig) -> str:
    """`γ·f(LN(x))`."""
    branch = around(method.norm_branch(site), _inside(method, site, config), config)
    return branch if method.gamma(site) == ONE else f"γ·{_factor(branch)}"


def around(part: Part, inside: str, config: ModelConfig = PLAIN) -> str:
    """What stands there, written around what it reads."""
    if not part:
        return inside
    what = kind(part, config.norm)
    return f"{what.function}({inside})" if what.function else what.formula.format(_factor(inside))


def _inside(method: Method, site: Site, config: ModelConfig) -> str:
    """The branch: f, or spelled out as far as something stands inside."""
    read = around(method.norm_in(site), "x", config)
    method_sites = sites(site.encoder_layers, site.decoder_layers, site.width)
    read = read if all(method.kappa(each) == 1 for each in method_sites) else f"κ·{read}"
    parts: dict[Place, Part] = {
        place: part for place in places(site) if (part := standing(method, site, place, config))
    }
    gate = method.gate(site) if site.kind != "ffn" else ""
    if set(parts) - {"first", "end"} == set() and not gate:
        core = f"f({around(parts.get('first', ''), read, config)})"
    elif site.kind == "ffn":
        u = around(parts.get("first", ""), read, config)
        hidden = f"φ({around(parts.get('mid', ''), f'W₁·{_factor(u)}', config)})"
        core = f"W₂·{_factor(around(parts.get('last', ''), hidden, config))}"
    else:
        u = around(parts.get("first", ""), read, config)
        normed = [around(parts[place], place[0], config) for place in HEADED if place in parts]
        heads = f"heads({', '.join([u, *normed])})"
        heads = f"(σ(W_g·{_factor(u)}) ⊙ {heads})" if gate else heads
        core = f"W_O·{_factor(around(parts.get('last', ''), heads, config))}"
    return around(parts.get("end", ""), core, config)


def _factor(inside: str) -> str:
    """In brackets where it is a sum."""
    depth = 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and not depth:
            return f"({inside})"
    return inside


def _grouped(group: Sequence[Site], formula: Callable[[Site], str]) -> list[str]:
    """One line a formula, and where it holds unless that is everywhere."""
    held: dict[str, list[Site]] = {}
    for site in group:
        held.setdefault(formula(site), []).append(site)
    if len(held) == 1:
        return list(held)
    return [f"{_where(mine, group)}: {text}" for text, mine in held.items()]


def _where(mine: Sequence[Site], group: Sequence[Site]) -> str:
    """`feed-forward`, `encoder; decoder self-attention in layers 1–4`: kinds of sub-layers with their layers, those
    with the same layers together."""
    layers: dict[tuple[Stack, Kind], tuple[int, ...]] = {}
    for site in mine:
        key = (site.stack, site.kind)
        layers[key] = (*layers.get(key, ()), site.layer)
    parts = []
    for held in dict.fromkeys(layers.values()):
        words = _named([key for key, found in layers.items() if found == held], group)
        stacks = {stack for (stack, _), found in layers.items() if found == held}
        whole = all(len(held) == next(s.depth for s in group if s.stack == stack) for stack in stacks)
        where = "" if whole else f"{'in ' * bool(words)}layer{'s' * (len(held) > 1)} {runs(held)}"
        parts.append(" ".join(filter(None, (words, where))))
    return "; ".join(parts)


def _named(keys: Sequence[tuple[Stack, Kind]], group: Sequence[Site]) -> str:
    """Kinds of sub-layers in as few words as they have: of all stacks, of one stack, of some kinds everywhere."""
    every = list(dict.fromkeys((site.stack, site.kind) for site in group))
    if set(keys) == set(every):
        return ""
    kinds = list(dict.fromkeys(kind for _, kind in keys))
    if set(keys) == {key for key in every if key[1] in kinds}:
        return " and ".join(KINDS[kind] for kind in kinds)
    parts = []
    for stack in dict.fromkeys(stack for stack, _ in keys):
        of = [kind for each, kind in keys if each == stack]
        whole = len(of) == len([key for key in every if key[0] == stack])
        parts.append(stack if whole else f"{stack} {' and '.join(KINDS[kind] for kind in of)}")
    return ", ".join(parts)


def runs(layers: Iterable[int]) -> str:
    """`1–4, 9`."""
    spans: list[list[int]] = []
    for layer in layers:
        if spans and spans[-1][1] == layer - 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    return ", ".join(f"{first}–{last}" if last > first else f"{first}" for first, last in spans)


def _beside(stacks: Sequence[Stack], slot: Callable[[Stack], Part], config: ModelConfig, where: str) -> list[str]:
    """`after each stack LN(x)`."""
    held: dict[Part, list[Stack]] = {}
    for stack in stacks:
        held.setdefault(slot(stack), []).append(stack)
    parts = []
    for part, own in held.items():
        if part:
            which = "each stack" if len(own) == len(stacks) else f"the {own[0]}"
            parts.append(f"{where} {which} {around(part, 'x', config)}")
    return parts


def shown(method: Method) -> tuple[tuple[int, int], ...]:
    """Where the values of a method's constants are told: 6 and 18 layers a stack."""
    return defined(method, 6), defined(method, 18)


def values(method: Method, n: int, m: int) -> str:
    """The scales and gains that are not 1, computed at a depth: `ω 3.09 (decoder 3.54), W_V 0.26 …`; "" for none."""
    method_sites = sites(n, m, PLAIN.hidden)
    stacks = list(dict.fromkeys(site.stack for site in method_sites))
    texts: dict[str, list[str]] = {}
    for stack in stacks:
        mine = [site for site in method_sites if site.stack == stack]
        for name, text in _numbers(method, mine).items():
            texts.setdefault(name, []).append(text)
    names: dict[str, list[str]] = {}
    for name, of_stacks in texts.items():
        if set(of_stacks) != {"1"}:
            names.setdefault(" | ".join(dict.fromkeys(of_stacks)), []).append(name)
    return "; ".join(f"{', '.join(alike)} {text}" for text, alike in names.items())


def factors(method: Method, n: int, m: int) -> str:
    """What a method multiplies rate and ε by at a depth, where it does: `rate: W_Q 0.33; ε: …`; "" where all is 1."""
    method_sites = sites(n, m, PLAIN.hidden)
    parts = []
    for name, factor in (("rate", method.rate), ("ε", method.epsilon)):
        by_role = {role: _span([factor(site, role) for site in method_sites if _has(site, role)]) for role in KNOWN}
        alike: dict[str, list[str]] = {}
        for role, span in by_role.items():
            alike.setdefault(span, []).append(role)
        if set(alike) != {"1"}:
            parts.append(f"{name} × " + "; ".join(f"{span} ({', '.join(each)})" for span, each in alike.items()))
    return ", ".join(parts)


KNOWN: tuple[Known, ...] = (
    *("query", "key", "value", "out", "up", "gate", "down"),
    *("vector", "outer", "embedding", "head"),
)


def _has(site: Site, role: Known) -> bool:
    """Whether a site decides this role's factor."""
    if role in ("embedding", "head"):
        return site.index == 1
    return role in ("vector", "outer") or (role in ("up", "gate", "down")) == (site.kind == "ffn")


def _numbers(method: Method, mine: Sequence[Site]) -> dict[str, str]:
    """{ω, γ, W_Q …: its value, or from first to last layer} of a stack."""
    attention, cross, forward = ([s for s in mine if s.kind == kind] for kind in ("self", "cross", "ffn"))
    numbers = {
        "ω": "profiled" if method.calibrate else _scales([method.omega(site) for site in mine]),
        "γ": _scales([method.gamma(site) for site in mine]),
        "κ": _span([method.kappa(site) for site in mine]),
    }
    roles: dict[str, Role] = {"W_Q": "query", "W_K": "key", "W_V": "value", "W_O": "out"}
    for name, role in roles.items():
        text, other = (
            _span([method.gain(site, role) for site in sites]) if sites else "" for sites in (attention, cross)
        )
        numbers[name] = text if other in ("", text) else f"{text} ({other} in cross-attention)"
    numbers |= {
        name: _span([method.gain(site, role) for site in forward])  # type: ignore[arg-type]
        for name, role in (("W₁", "up"), ("W₂", "down"))
    }
    return numbers | {"embedding": _span([method.gain(mine[0], "embedding")])}


def _scales(scales: Sequence[Scale]) -> str:
    return _span([scale.init for scale in scales]) + (" trained" if any(scale.trainable for scale in scales) else "")


def _span(numbers: Sequence[float]) -> str:
    """One number, or from the first to the last; where others lie beyond these, from which to which."""
    first, last = (f"{number:.4g}" for number in (numbers[0], numbers[-1]))
    least, most = (f"{number:.4g}" for number in (min(numbers), max(numbers)))
    if {least, most} <= {first, last}:
        return first if first == last else f"{first} … {last}"
    return f"{least} to {most}"
