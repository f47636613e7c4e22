"""What a model is built of against the recipe: depth, sub-layers, where norms stand, where layers read."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stabkit.methods import formula
from stabkit.methods.base import PLACES, Method, Site, Stack
from stabkit.methods.parts import normalises
from stabkit.own.audit.case import Case, Violation, depth
from stabkit.own.audit.words import by_stack, grouped, layers, listed, where
from stabkit.own.sublayers.sublayer import TracedSublayer

STANDS = ("before the branch", "inside the branch", "after the branch", "after the sum")
GROWS = 1.01
"""A shortcut's scale above this multiplies the stream when no norm follows the sum."""


def judge(case: Case, n: int, m: int, *, whole: bool = True) -> Iterator[Violation]:
    """Violations in structure; `whole`: of all layers, most of whose matrices were read."""
    if whole:
        yield from _depth(case, n, m)
        yield from _sublayers(case)
        yield from _wiring(case)
    yield from _norms(case)
    yield from _reads(case)
    yield from _twice(case)
    yield from _final(case)


def stands(norms: Iterable[bool]) -> str:
    """Where norms stand, in words."""
    return " and ".join(name for name, there in zip(STANDS, norms, strict=True) if there) or "nowhere"


def measured(sublayer: TracedSublayer) -> tuple[bool, bool, bool, bool]:
    """Whether a norm stands before the branch, inside, after it, after the sum."""
    return sublayer.norm_in, sublayer.norm_inner, sublayer.norm_branch, sublayer.norm_out


def asked(method: Method, site: Site) -> tuple[bool, bool, bool, bool]:
    """Whether the recipe has one there. A history's norms follow the last sum of a layer."""
    inner = {place for place in PLACES if normalises(method.inner(site, place), "layer")}
    last_of_layer = site.index % (site.sublayers // site.depth) == 0
    return (
        bool(method.norm_in(site)) or "first" in inner,
        bool(inner & {"mid", "last"}),
        bool(method.norm_branch(site)) or "end" in inner,
        bool(method.norm_out(site)) or (method.wiring == "history, normed" and last_of_layer),
    )


def stands_elsewhere(case: Case) -> bool:
    """Whether most sub-layers have their norms in other places than the recipe."""
    elsewhere = sum(own.entered and asked(case.method, site) != measured(own) for site, own in case.pairs)
    return 2 * elsewhere > len(case.pairs)


def _depth(case: Case, n: int, m: int) -> Iterator[Violation]:
    if (case.n, case.m) != (n, m):
        yield Violation(
            topic="depth",
            what=f"the model has {case.depth}, not {depth(n, m)}",
            recipe=f"scales and gains depend on the depth; what follows is compared with {case.depth}",
            measured=", ".join(f"{stack}: {found.layers} layers" for stack, found in case.stacks.items()),
            remedy="correct --depths, or find out why the layers differ",
        )


def _sublayers(case: Case) -> Iterator[Violation]:
    for stack, model_stack in case.stacks.items():
        wanted = tuple(dict.fromkeys(site.kind for site in case.sites if site.stack == stack))
        odd: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for layer in range(1, model_stack.layers + 1):
            kinds = _words([own for own in model_stack.sublayers if own.layer == layer], wanted)
            if kinds != wanted:
                odd[kinds].append(layer)
        for kinds, numbers in odd.items():
            has = ", ".join(kinds)
            beside = any("+" in kind for kind in kinds)
            yield Violation(
                topic="sub-layers",
                what=f"{stack}: {has} {layers(numbers, model_stack.layers)}, not {', '.join(wanted)}",
                recipe=f"a layer is {', '.join(wanted)}, each with its own shortcut",
                measured=has,
                remedy="parallel branches in one sum are not the recipe's method: its scales do not fit"
                if beside
                else "the recipe's scales and gains are for layers of these sub-layers, in this order",
            )


def _words(layer: Sequence[TracedSublayer], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of a layer's sub-layers. Cross-attention that a recipe lacks reads what is no stack: beside
    self-attention it is not judged, alone it stands for it."""
    words = [own.word for own in layer]
    if "cross" not in wanted and "self" in words:
        words = [word for word in words if word != "cross"]
    return tuple("self" if word == "cross" and word not in wanted else word for word in words)


def _norms(case: Case) -> Iterator[Violation]:
    groups: dict[Any, list[tuple[Site, TracedSublayer]]] = defaultdict(list)
    normed = _shortcuts_normed(case)
    followed = _mistaken(case)
    shortcuts = {id(sublayer) for _, sublayer, _ in normed}
    for site, sublayer in case.pairs:
        if not sublayer.entered:
            continue  # no way to it was followed
        before, inside, after, behind = measured(sublayer)
        has = before or id(sublayer) in shortcuts, inside, after, behind and id(sublayer) not in followed
        if asked(case.method, site) != has:
            groups[asked(case.method, site), has].append((site, sublayer))
    if normed:
        places = [site for site, _, _ in normed]
        yield Violation(
            topic="shortcut",
            what=f"{where(case, places)}: the shortcut takes the normed x, not x",
            recipe=f"x itself goes on: {formula.text(case.method)} ({case.method.source})",
            measured="N(x) + f(N(x))",
            remedy="keep x for the sum, and give the norm's output only to the branch",
        )
    for (wanted, has), pairs in groups.items():
        growth = ""
        if wanted[3] and not has[3] and max(sublayer.omega for _, sublayer in pairs) > GROWS:
            growth = f"; with no norm after the sum, the shortcut's scale multiplies the stream by {_grown(pairs)}"
        what = f"the norm stands {stands(has)}, not {stands(wanted)}"
        if not any(wanted) or not any(has):
            what = f"a norm stands {stands(has)}" if any(has) else f"no norm stands {stands(wanted)}"
        yield Violation(
            topic="norm placement",
            what=f"{where(case, [site for site, _ in pairs])}: {what}{growth}",
            recipe=f"{f'a norm {stands(wanted)}' if any(wanted) else 'no norm'}: {formula.text(case.method)} "
            f"({case.method.source})",
            measured=f"{stands(has)}{_style(has)}",
            remedy=_moved(wanted, has),
        )


def _moved(wanted: Sequence[bool], has: Sequence[bool]) -> str:
    """What to do about norms that stand where they do."""
    surplus, lacking = ([a and not b for a, b in zip(*own, strict=True)] for own in ((has, wanted), (wanted, has)))
    if any(surplus) and any(lacking):
        return f"move it {stands(wanted)}"
    only = any(wanted) and any(has)
    return (
        (f"add the one {stands(lacking)}" if only else "add it")
        if any(lacking)
        else (f"remove the one {stands(surplus)}" if only else "remove it")
    )


def _shortcuts_normed(case: Case) -> list[tuple[Site, TracedSublayer, TracedSublayer | None]]:
    """(site, its sub-layer, the one before) where one norm stands before shortcut and branch, and the recipe has it
    before the branch alone: it was seen as a norm after the sum before."""
    found: list[tuple[Site, TracedSublayer, TracedSublayer | None]] = []
    for stack in case.stacks:
        before: tuple[Site, TracedSublayer] | None = None
        if not any(measured(own)[0] for s, own in case.pairs if s.stack == stack):
            continue  # every norm stands after a sum: that is Post-LN
        for site, sublayer in ((s, own) for s, own in case.pairs if s.stack == stack):
            wanted = asked(case.method, site)
            if wanted[0] and not measured(sublayer)[0] and sublayer.fork_normed:
                if before is None:
                    found.append((site, sublayer, None))
                elif measured(before[1])[3] and not asked(case.method, before[0])[3]:
                    found.append((site, sublayer, before[1]))
            before = site, sublayer
    return found if any(before is not None for _, _, before in found) else []  # the first alone: the embedding's norm


def _mistaken(case: Case) -> set[int]:
    """Sub-layers whose norm after the sum is the next one's, and with them the last, whose norm is then the stack's."""
    normed = _shortcuts_normed(case)
    mistaken = {id(before) for _, _, before in normed if before is not None}
    for stack in {site.stack for site, _, before in normed if before is not None}:
        site, last = [(s, own) for s, own in case.pairs if s.stack == stack][-1]
        if measured(last)[3] and not asked(case.method, site)[3]:
            mistaken.add(id(last))
    return mistaken


def _reads(case: Case) -> Iterator[Violation]:
    """Of queries, keys and values some read the stream as it is."""
    raw = ((own.raw, site) for site, own in case.pairs if own.raw and asked(case.method, site)[0])
    for roles, places in grouped(raw).items():
        yield Violation(
            topic="norm placement",
            what=f"{where(case, places)}: {listed(roles)} read the stream without a norm",
            recipe=f"query, key and value read one norm's output: {formula.text(case.method)} ({case.method.source})",
            measured=f"{listed(roles)}: none",
            remedy=f"let {listed(roles)} read what the query reads",
        )


def _twice(case: Case) -> Iterator[Violation]:
    """Two norms in a row where the recipe has one."""
    rows = ((own.norms_in, site) for site, own in case.pairs if own.norms_in > 1 and asked(case.method, site)[0])
    for count, places in grouped(rows).items():
        yield Violation(
            topic="norm placement",
            what=f"{where(case, places)}: {count} norms stand in a row before the branch",
            recipe=f"one: {formula.text(case.method)} ({case.method.source})",
            measured=f"{count} norms",
            remedy="remove all but one",
        )


def _grown(pairs: Sequence[tuple[Site, TracedSublayer]]) -> str:
    """The product of all shortcuts' scales, a stack by itself."""
    omegas = [sublayer.omega for _, sublayer in pairs]
    return by_stack([site for site, _ in pairs], omegas, lambda own: f"{math.prod(own):.2g}")


def _style(norms: tuple[bool, bool, bool, bool]) -> str:
    return {(False, False, False, True): " (Post-LN)", (True, False, False, False): " (Pre-LN)"}.get(norms, "")


def _final(case: Case) -> Iterator[Violation]:
    missing: dict[bool, list[Stack]] = defaultdict(list)
    mistaken = _mistaken(case)
    for stack, model_stack in case.stacks.items():
        placed = [(site, sublayer) for site, sublayer in case.pairs if site.stack == stack]
        if placed and all(asked(case.method, site)[3] != sublayer.norm_out for site, sublayer in placed):
            continue  # the whole stack is of the other kind, and said to be
        wanted = int(normalises(case.method.final(stack), "layer"))
        site, last = placed[-1] if placed else (None, model_stack.sublayers[-1])
        ends = site is not None and last.norm_out and not asked(case.method, site)[3]  # a block's own norm is the last
        has = max(model_stack.final_norms + (id(last) in mistaken), int(ends))
        if wanted != has:
            missing[wanted > has].append(stack)
    for absent, stacks in missing.items():
        has_norm = any(normalises(case.method.final(stack), "layer") for stack in stacks)
        surplus = "remove all but one" if has_norm else "remove it: the last sub-layer's own norm is the last"
        yield Violation(
            topic="final norm",
            what=f"{' and '.join(stacks)}: {'no norm' if absent else 'a further norm'} stands after the last layer",
            recipe=f"{'one norm' if has_norm else 'no norm'} after each stack ({case.method.source})",
            measured=", ".join(f"{case.stacks[s].final_norms} after the {s}" for s in case.stacks if s in stacks),
            remedy="add one" if absent else surplus,
        )


def _wiring(case: Case) -> Iterator[Violation]:
    for stack, model_stack in case.stacks.items():
        wanted, has = case.method.wiring != "chain", any(own.history for own in model_stack.sublayers)
        if wanted != has and model_stack.layers > 2:
            names = "only the layer before", "a combination of earlier layers"
            yield Violation(
                topic="wiring",
                what=f"{stack}: layers read {names[has]}, not {names[wanted]}",
                recipe=f"{formula.text(case.method)} ({case.method.source})",
                measured=names[has],
                remedy=f"let each layer read {names[wanted]}",
            )
