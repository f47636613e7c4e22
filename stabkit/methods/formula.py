"""A method's residual as it is written in papers, made from its slots: what the model does, not what someone typed.

    x ← LN(ω·x + f(x))
    self-attention: x ← x + W_O·LN(heads(LN(x))); cross-attention: x ← x + f(LN(x)); …

A branch with nothing inside is f; ω and γ stand where they are not 1. LN is the comparison's own norm unless a method
names another. Where sub-layers differ, each kind has its own line, by layers where it is by layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from stabkit.methods.base import HEADED, ONE, Method, Place, Recipe, Role, Scale, Site, Stack, sites
from stabkit.methods.blocks import inner as standing
from stabkit.methods.count import places
from stabkit.methods.parts import Part, kind
from stabkit.methods.wirings import WIRINGS
from stabkit.spec import ModelConfig

KINDS = {"self": "self-attention", "cross": "cross-attention", "ffn": "feed-forward"}
PLAIN = ModelConfig(encoder_layers=0, decoder_layers=0)
AT = ((18, 18), (18, 0), (0, 18))
"""The first of these (N, M) that a method is defined at is the one whose formula stands for it."""


def text(method: Method, config: ModelConfig = PLAIN) -> str:
    """The whole in one line; `config` says the block (its depth is not looked at)."""
    n, m = next((depth for depth in AT if not method.undefined(*depth)), AT[0])
    return "; ".join(lines(method, n, m, config))


def lines(method: Method, n: int, m: int, config: ModelConfig = PLAIN) -> list[str]:
    """The residuals at a depth, the wiring, and what stands before and after the stacks."""
    own = sites(n, m, config.hidden)
    found = _grouped(own, lambda site: residual(method, site, config))
    wired = WIRINGS[method.wiring].formula.replace("{N}", kind("norm", config.norm).formula.removesuffix("({})"))
    stacks = list(dict.fromkeys(site.stack for site in own))
    beside = [
        *_beside(stacks, method.embedding, config, "before"),
        *_beside(stacks, method.final, config, "after"),
    ]
    bare = ["no biases"] if config.biases and not any(method.bias(site) for site in own) else []
    return [*found, *([wired] if wired else []), *beside, *bare]


def residual(method: Method, site: Site, config: ModelConfig = PLAIN) -> str:
    """`x ← LN(ω·x + f(x))`, of one sub-layer."""
    branch = around(method.norm_branch(site), _inside(method, site, config), config)
    branch = branch if method.gamma(site) == ONE else f"γ·{_factor(branch)}"
    shortcut = "x" if method.omega(site) == ONE and not method.calibrate else "ω·x"
    return f"x ← {around(method.norm_out(site), f'{shortcut} + {branch}', config)}"


def around(part: Part, inside: str, config: ModelConfig = PLAIN) -> str:
    """What stands there, written around what it reads."""
    if not part:
        return inside
    formula = kind(part, config.norm).formula
    return formula.format(inside if formula.endswith("({})") else _factor(inside))


def _inside(method: Method, site: Site, config: ModelConfig) -> str:
    """The branch: f, or spelled out as far as something stands inside."""
    read = around(method.norm_in(site), "x", config)
    parts: dict[Place, Part] = {
        place: part for place in places(site) if (part := standing(method, site, place, config))
    }
    if set(parts) - {"first", "end"} == set():
        core = f"f({around(parts.get('first', ''), read, config)})"
    elif site.kind == "ffn":
        u = around(parts.get("first", ""), read, config)
        hidden = f"φ({around(parts.get('mid', ''), f'W₁·{_factor(u)}', config)})"
        core = f"W₂·{_factor(around(parts.get('last', ''), hidden, config))}"
    else:
        u = around(parts.get("first", ""), read, config)
        normed = [around(parts[place], place[0], config) for place in HEADED if place in parts]
        heads = f"heads({', '.join([u, *normed])})"
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


def _grouped(own: Sequence[Site], formula: Callable[[Site], str]) -> list[str]:
    """One line a formula, and where it holds unless that is everywhere."""
    held: dict[str, list[Site]] = {}
    for site in own:
        held.setdefault(formula(site), []).append(site)
    if len(held) == 1:
        return list(held)
    return [f"{_where(mine, own)}: {text}" for text, mine in held.items()]


def _where(mine: Sequence[Site], own: Sequence[Site]) -> str:
    """`encoder self-attention, feed-forward in layers 1–4`: by kind, by stack where stacks differ, by layers where
    layers do."""
    for stack in dict.fromkeys(site.stack for site in own):
        if list(mine) == [site for site in own if site.stack == stack]:
            return stack
    kinds = list(dict.fromkeys(site.kind for site in mine))
    stacks = {site.stack for site in mine}
    alike = [site for site in own if site.kind in kinds]
    every = all(site in mine for site in alike)
    one_stack = not every and len(stacks) == 1 and len({site.stack for site in alike}) > 1
    words = [KINDS[kind] for kind in kinds]
    told = "" if len(kinds) == len({site.kind for site in own}) and not every else " and ".join(words)
    told = " ".join([*stacks, told] if one_stack else [told]).strip()
    whole = all(site in mine for site in alike if not one_stack or site.stack in stacks)
    if whole:
        return told or "everywhere"
    layers = sorted({site.layer for site in mine})
    return f"{told} in layers {_runs(layers)}".strip() if told else f"layers {_runs(layers)}"


def _runs(layers: Iterable[int]) -> str:
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
    told = []
    for part, own in held.items():
        if part:
            which = "each stack" if len(own) == len(stacks) else f"the {own[0]}"
            told.append(f"{where} {which} {around(part, 'x', config)}")
    return told


def values(method: Method, n: int, m: int) -> str:
    """The scales and gains that are not 1, computed at a depth: `ω 3.09 (decoder 3.54), W_V 0.26 …`; "" for none."""
    own = sites(n, m, PLAIN.hidden)
    stacks = list(dict.fromkeys(site.stack for site in own))
    told: dict[str, str] = {}
    for stack in stacks:
        mine = [site for site in own if site.stack == stack]
        for name, found in _numbers(method, mine).items():
            told[name] = f"{told[name]} | {found}" if name in told else found
    kept = {name: _once(found) for name, found in told.items() if set(found.split(" | ")) != {"1"}}
    names: dict[str, list[str]] = {}
    for name, found in kept.items():
        names.setdefault(found, []).append(name)
    return "; ".join(f"{', '.join(alike)} {found}" for found, alike in names.items())


def factors(recipe: Recipe, n: int, m: int) -> str:
    """What a recipe multiplies rate and ε by at a depth, where it does: `rate: W_Q 0.33; ε: …`; "" where all is 1."""
    own = sites(n, m, PLAIN.hidden)
    told = []
    for name, factor in (("rate", recipe.rate), ("ε", recipe.epsilon)):
        found = {role: _span([factor(site, role) for site in own if _has(site, role)]) for role in KNOWN}
        alike: dict[str, list[str]] = {}
        for role, span in found.items():
            alike.setdefault(span, []).append(role)
        if set(alike) != {"1"}:
            told.append(f"{name} × " + "; ".join(f"{span} ({', '.join(each)})" for span, each in alike.items()))
    return ", ".join(told)


KNOWN: tuple[Role | Literal["vector"], ...] = (
    *("query", "key", "value", "out", "up", "down"),
    *("embedding", "head", "vector"),
)


def _has(site: Site, role: Role | Literal["vector"]) -> bool:
    """Whether a site decides this role's factor."""
    if role in ("embedding", "head"):
        return site.index == 1
    return role == "vector" or (role in ("up", "down")) == (site.kind == "ffn")


def _numbers(method: Method, mine: Sequence[Site]) -> dict[str, str]:
    """{ω, γ, W_Q …: its value, or from first to last layer} of a stack."""
    attention, forward = [s for s in mine if s.kind == "self"], [s for s in mine if s.kind == "ffn"]
    found = {
        "ω": "profiled" if method.calibrate else _scales([method.omega(site) for site in mine]),
        "γ": _scales([method.gamma(site) for site in mine]),
    }
    found |= {
        name: _span([method.gain(site, role) for site in attention])  # type: ignore[arg-type]  # literal names below
        for name, role in (("W_Q", "query"), ("W_K", "key"), ("W_V", "value"), ("W_O", "out"))
    }
    found |= {
        name: _span([method.gain(site, role) for site in forward])  # type: ignore[arg-type]
        for name, role in (("W₁", "up"), ("W₂", "down"))
    }
    return found | {"embedding": _span([method.gain(mine[0], "embedding")])}


def _scales(scales: Sequence[Scale]) -> str:
    return _span([scale.init for scale in scales]) + (" trained" if any(scale.trainable for scale in scales) else "")


def _span(numbers: Sequence[float]) -> str:
    first, last = (f"{number:.4g}" for number in (numbers[0], numbers[-1]))
    return first if first == last else f"{first} … {last}"


def _once(found: str) -> str:
    return " | ".join(dict.fromkeys(found.split(" | ")))
