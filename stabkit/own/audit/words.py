"""Where and how much, in words: many sub-layers as one phrase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from stabkit.methods.base import Kind, Role, Site, Stack
from stabkit.own.audit.case import KINDS, Case, Reading


def span(values: Iterable[float], digits: int = 4) -> str:
    """`0.3526`, or `0.05 … 1` for values that differ by more than a tenth."""
    numbers = sorted(values)
    middle = sum(numbers) / len(numbers)
    if numbers[-1] - numbers[0] <= 0.1 * abs(middle):
        return f"{middle:.{digits}g}"
    return f"{numbers[0]:.{digits}g} … {numbers[-1]:.{digits}g}"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def layers(numbers: Iterable[int], total: int) -> str:
    """`in all 18 layers`, `in layers 2–5, 7`."""
    numbers = sorted(set(numbers))
    if len(numbers) == total:
        return f"in all {total} layers" if total > 1 else "in its one layer"
    spans: list[list[int]] = []
    for layer in numbers:
        if spans and layer == spans[-1][1] + 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    return f"in layer{'s' * (len(numbers) > 1)} " + ", ".join(f"{a}–{b}" if a < b else str(a) for a, b in spans)


def where(case: Case, sites: Sequence[Site]) -> str:
    """`encoder in all 18 layers; decoder, feed-forward in layers 2–5`."""
    by_stack: dict[Stack, str] = {}
    for stack in dict.fromkeys(site.stack for site in sites):
        members = [site for site in sites if site.stack == stack]
        every = dict.fromkeys(site.kind for site, _ in case.pairs if site.stack == stack)
        some = [KINDS[kind] for kind in every if any(site.kind == kind for site in members)]
        kinds = "" if len(some) == len(every) else f", {listed(some)}"
        by_stack[stack] = f"{kinds} {layers((s.layer for s in members), case.stacks[stack].layers)}"
    return _together(by_stack)


def matrices(case: Case, readings: Sequence[Reading], tail: Callable[[Sequence[Reading]], str] = lambda own: "") -> str:
    """`encoder: value and out in all 18 layers; decoder: cross-attention's value in layer 3`, each with its tail."""
    by_stack: dict[Stack, str] = {}
    for stack in dict.fromkeys(r.site.stack for r in readings):
        members = [r for r in readings if r.site.stack == stack]
        every, here = (_kinds_of_roles(rs) for rs in ([r for r in case.readings if r.site.stack == stack], members))
        names = [_role(role, here[role], kinds) for role, kinds in every.items() if role in here]
        if here == every and case.whole:
            names = ["every matrix"]
        numbers = layers((r.site.layer for r in members), case.stacks[stack].layers)
        by_stack[stack] = f": {listed(names)} {numbers}{tail(members)}"
    return _together(by_stack)


def names(readings: Iterable[Reading]) -> tuple[str, ...]:
    """The parameters, each once."""
    return tuple(dict.fromkeys(r.part.name for r in readings if r.part.name))


T = TypeVar("T")
K = TypeVar("K")


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """{key: what has it}, in the order of the pairs."""
    groups: dict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def by_stack(sites: Sequence[Site], members: Sequence[T], text: Callable[[Sequence[T]], str]) -> str:
    """One text for all stacks, or `1.9 in the encoder, 2.7 in the decoder`: of the members at these sites."""
    of = grouped(zip((site.stack for site in sites), members, strict=True))
    texts = {stack: text(own) for stack, own in of.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{own} in the {stack}" for stack, own in texts.items())


def _together(by_stack: dict[Stack, str]) -> str:
    if len(set(by_stack.values())) == 1:
        return " and ".join(by_stack) + next(iter(by_stack.values()))
    return "; ".join(f"{stack}{text}" for stack, text in by_stack.items())


def _kinds_of_roles(readings: Sequence[Reading]) -> dict[Role, set[Kind]]:
    kinds: dict[Role, set[Kind]] = defaultdict(set)
    for r in readings:
        kinds[r.role].add(r.site.kind)
    return dict(kinds)


def _role(role: Role, here: set[Kind], everywhere: set[Kind]) -> str:
    return role if here == everywhere else f"{KINDS[next(iter(here))]}'s {role}"
