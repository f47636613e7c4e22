"""A graph as stacks of residual sub-layers, with what stands around them.

Sums follow one another along norms and scales, or through a combination of all before: that is a stack. The decoder is
the one with cross-attention, its encoder the one that the keys come from.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

import torch

from stabkit.methods.base import Kind
from stabkit.own.sublayers.columns import RoleWeight, part
from stabkit.own.sublayers.graph import MIXES, NORM, PASS, Node, Users, back, onwards, reduces, users_of
from stabkit.own.sublayers.joins import joins_of, mixtures, nested
from stabkit.own.sublayers.sublayer import TracedSublayer, sublayer
from stabkit.own.sublayers.watch import DispatchTrace

TAIL = 200
"""Operations after the last sum that are looked through for a final norm."""
LONGEST = 4
"""Sub-layers of a layer that is told by its pattern: a Conformer's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """Sub-layers that follow one another, and the norms after the last."""

    sublayers: tuple[TracedSublayer, ...]
    final_norms: int
    final_gain: float = 1.0
    """What the last norm's output is multiplied by."""

    @property
    def layers(self) -> int:
        return self.sublayers[-1].layer


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """How much of what stands inside of stacks was read as attention or feed-forward, adapters and gates with them."""

    read: dict[str, int]
    """{kind of sub-layer: how many}."""
    share: float
    """Of the numbers in matrices."""
    left: tuple[str, ...]
    """Matrices that were not read."""

    @property
    def whole(self) -> bool:
        return self.share >= ENOUGH

    @property
    def sentence(self) -> str:
        """`read: 12 ffn; not read: 34 % of the numbers in matrices inside the layers (h.0.mix.weight and 5 more)`."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.read.items()) or "nothing"
        missed = f"{math.ceil(100 * (1 - self.share))} % of the numbers in matrices inside the layers"
        return f"read: {kinds}; not read: {missed} ({and_more(self.left)})"


ENOUGH = 0.95
"""Share that is to be read where a model is to be judged as a whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Anatomy:
    """Stacks in the order of the forward pass; matrices outside of all sub-layers; what was left out and why."""

    stacks: tuple[Stack, ...]
    encoder_of: dict[int, int]
    """{stack with cross-attention: the stack whose output it reads}."""
    outside: tuple[RoleWeight, ...]
    norms: tuple[tuple[str, torch.Tensor, torch.Tensor | None], ...]
    """(parameter, weight, bias) of every norm."""
    head: str
    """The last matrix outside of all sub-layers, that of the scores; "" for none."""
    notes: tuple[str, ...]
    unknown: tuple[str, ...]
    """Matrices in a branch that were not seen to be of attention or a feed-forward."""
    coverage: Coverage


def dissect(watch: DispatchTrace) -> Anatomy:
    """The sub-layers of a watched pass."""
    nodes = watch.nodes
    users = users_of(nodes)
    joins, around = nested(nodes, joins_of(nodes, users))
    joins = mixtures(nodes, users, joins) or joins
    sums = {join.node.at for join in joins}
    notes = []
    if around:
        notes.append(f"{around} more shortcuts, each around several sub-layers, were left out")
    used: set[int] = set()
    unknown: list[str] = []
    sublayers: dict[int, TracedSublayer] = {}
    made: list[tuple[set[int], torch.Size]] = []
    for join in joins:
        products, shape = {at for at in join.region if nodes[at].op == "product"}, join.node.value.shape
        if not any(products <= earlier and shape != other for earlier, other in made):  # slices of one branch's output
            sublayers[join.node.at] = sublayer(nodes, users, join, sums, used, unknown)
        made.append((products, shape))
    stacks = _joined(nodes, [stack for stack in map(_without_gates, _stacks(nodes, sublayers)) if stack])
    sublayers = {own.at: own for stack in stacks for own in stack}
    for stack in stacks:
        count_layers(stack)
    finals = [_finish(nodes, users, stack, sublayers.keys()) for stack in stacks]
    encoder_of: dict[int, int] = {}
    for at, traced in sublayers.items():
        if traced.memory is not None and (behind := _behind(nodes, sublayers, traced.memory)) is not None:
            encoder_of[_place(stacks, at)] = _place(stacks, behind.at)
    after = onwards(users, stacks[-1][-1].at, lambda at: True) if stacks else range(len(nodes))
    outside = [
        part(nodes, users, "head" if node.at in after else "other", node)
        for node in nodes
        if node.op == "product" and node.at not in used
    ]
    outside += [
        RoleWeight(role="embedding", weight=table, bias=None, name=node.name)
        for node in nodes
        if node.op == "embedding" and (table := node.constants[0]) is not None
    ]
    heads = [traced.name for traced in outside if traced.role == "head" and traced.name]
    for operation in dict.fromkeys(watch.unread.values()):
        names = [name for name, by in watch.unread.items() if by == operation]
        notes.append(f"{and_more(names)}: used by {operation}, which cannot be followed")
    return Anatomy(
        stacks=tuple(
            Stack(sublayers=tuple(s), final_norms=count, final_gain=gain)
            for s, (count, gain) in zip(stacks, finals, strict=True)
        ),
        encoder_of=encoder_of,
        norms=tuple(
            {
                n.name: (n.name, n.constants[0], n.constants[1])
                for n in nodes
                if n.op == "norm" and n.constants[0] is not None
            }.values()
        ),
        outside=tuple({traced.name or traced.weight.shape: traced for traced in outside}.values()),
        head=heads[-1] if heads else "",
        notes=tuple(dict.fromkeys(notes)),
        unknown=tuple(dict.fromkeys(unknown)),
        coverage=_coverage(watch, stacks),
    )


def _coverage(watch: DispatchTrace, stacks: Sequence[Sequence[TracedSublayer]]) -> Coverage:
    """Of the matrices between a stack's first fork and its last sum, of those of attention before it, and of those that
    this pass did not use; an embedding's table is none of them."""
    spans = [(min(own.fork for own in stack), max(own.at for own in stack)) for stack in stacks]
    products = [(node.at, node.matrix) for node in watch.nodes if node.matrix is not None]
    made = {m.name for _, m in products}
    tables = {node.name for node in watch.nodes if node.op == "embedding"}
    reads = [(at, m.name) for at, m in products] + [
        (at, n) for at, own in watch.reads.items() for n in own & {*watch.unread}
    ]
    within = {name for at, name in reads if any(first < at <= last for first, last in spans)}
    regions = {at for stack in stacks for own in stack for at in own.join.region}
    ends, before = max((last for _, last in spans), default=-1), set[str]()
    for node in watch.nodes[:ends]:  # attention that no sum was found around: what a Perceiver's latents read by
        if node.op in ("attention", "softmax") and node.at not in regions:
            behind = back(watch.nodes, node.inputs, lambda n: n.op == "product" or n.at in regions)
            before |= {n.matrix.name for n in behind if n.matrix is not None}
    within |= before
    used = within | made | tables | {name for names in watch.reads.values() for name in names}
    known = {
        **dict(watch.module.named_parameters()),
        **{n: b for n, b in watch.module.named_buffers() if n in made and b.dim() == 2},
    }
    idle = {name for name, p in known.items() if p.dim() > 1 and name not in used}
    sizes = {name: known[name].numel() for name in within | idle if name in known and known[name].dim() > 1}
    every = [own for stack in stacks for own in stack]
    parts = [p for own in every if own.kind for p in own.parts] + [p for own in every for _, p in own.aside]
    read = Counter({own.joins: sizes.get(own.joins, 0) for own in every})
    for own_part in {(p.name, p.weight.data_ptr(), p.weight.shape): p for p in parts}.values():
        stacked = own_part.name in known and known[own_part.name].dim() > 2  # experts in one tensor: the first was read
        read[own_part.name] += sizes.get(own_part.name, 0) if stacked else own_part.weight.numel()
    total = sum(sizes.values())
    left = {name: sizes[name] - read[name] for name in known if name in sizes and read[name] < sizes[name]}
    entry = back(watch.nodes, [fork for fork, _ in spans], lambda n: n.at in {own.at for own in every})
    for name in {n.matrix.name for n in entry if n.matrix is not None} & left.keys() - before:  # not inside
        total -= left.pop(name)
    kinds = [own.word for own in every if own.kind]
    return Coverage(
        read={word: kinds.count(word) for word in dict.fromkeys(kinds)},
        share=1 - sum(left.values()) / total if total else 1.0,
        left=tuple(sorted(left, key=lambda name: -left[name])),
    )


def _without_gates(stack: list[TracedSublayer]) -> list[TracedSublayer]:
    """Without what stands before the first layer or after the last and has a single matrix, where no layer has the
    like: a gate on the embedding or on the output is no layer."""
    kinds = [own.kind is not None for own in stack]
    if not any(kinds):
        return stack
    first, last = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
    if not all(kinds[first : last + 1]):
        return stack
    return [own for i, own in enumerate(stack) if first <= i <= last or not own.gate]


def _stacks(nodes: Sequence[Node], sublayers: dict[int, TracedSublayer]) -> list[list[TracedSublayer]]:
    """Sub-layers that follow one another, in the order of the pass."""
    stacks: list[list[TracedSublayer]] = []
    for traced in sublayers.values():
        before = _link(nodes, sublayers, traced)
        follows = None if before is None else stacks[_place(stacks, before)]
        if follows is None or follows[-1].at != before:  # heads that all read one trunk do not follow one another
            stacks.append([traced])
        else:
            follows.append(traced)
    return stacks


def _joined(nodes: Sequence[Node], stacks: Sequence[list[TracedSublayer]]) -> list[list[TracedSublayer]]:
    """Stacks of one sub-layer that follow one another are one (hyper-connections, whose sums stand on combinations of
    several streams); what cross-attention reads is not."""
    read = {own.memory for stack in stacks for own in stack if own.memory is not None}
    known = {own.at: own for stack in stacks for own in stack}
    memories = {behind.at for at in read if (behind := _behind(nodes, known, at)) is not None}
    joined: list[list[TracedSublayer]] = []
    for members in stacks:
        last = joined[-1][-1] if joined else None
        if (
            last is not None
            and 1 in (len(joined[-1]), len(members))
            and last.at not in memories
            and last.width == members[0].width
            and any(node.at == last.at for node in back(nodes, (members[0].fork,), lambda n: False, low=last.at))
        ):
            joined[-1] += members
        else:
            joined.append(members)
    return joined


def _place(stacks: Sequence[Sequence[TracedSublayer]], at: int) -> int:
    """The stack that the sum belongs to."""
    return next(i for i, stack in enumerate(stacks) if any(own.at == at for own in stack))


def and_more(names: Sequence[str]) -> str:
    """`h.0.a and 3 more`."""
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def most_alike(names: Sequence[str], of: Sequence[str]) -> list[str]:
    """Those whose like in other layers (`h.#.gate`) are mostly among them: in one layer alone a gradient may rightly be
    nothing, as where streams that are still equal are mixed."""
    those, every = (Counter(re.sub(r"\d+", "#", name) for name in own) for own in (names, of))
    return [name for name in names if 2 * those[like := re.sub(r"\d+", "#", name)] > every[like]]


@dataclass(frozen=True, slots=True)
class _Behind:
    """The sum that a value comes from, and what stands between."""

    at: int
    norms: int
    scale: float
    """Of the value, after any norm."""
    history: bool = False
    joins: str = ""
    """The matrix through which the stream goes on."""


def _behind(nodes: Sequence[Node], sums: dict[int, TracedSublayer], start: int) -> _Behind | None:
    norms, scale, at = 0, 1.0, start
    while at not in sums and (node := nodes[at]).op in PASS | NORM and node.inputs:
        if node.op == "norm":
            norms += 1
        elif node.factors and not norms:
            scale *= node.factors[0]
        at = node.inputs[0]
    if at in sums:
        return _Behind(at, norms, scale)
    met = list(back(nodes, (at,), lambda n: n.op in MIXES or n.at in sums))
    reached = [n.at for n in met if n.at in sums]
    if not reached:  # a matrix on two sums side by side, as where a U-Net's halves meet: the stream goes on
        for product in (n for n in met if n.op == "product"):
            joined = [
                n.at for n in back(nodes, product.inputs, lambda n: n.op in MIXES or n.at in sums) if n.at in sums
            ]
            if len(joined) > 1:
                return _Behind(max(joined), 0, 1.0, joins=product.matrix.name if product.matrix else "")
        return None
    normed = [n for n in met if n.op == "norm" and (own := _behind(nodes, sums, n.inputs[0])) and own.at == reached[0]]
    return _Behind(reached[0], norms + len(normed), 1.0, history=len(reached) > 1)


def _link(nodes: Sequence[Node], sums: dict[int, TracedSublayer], traced: TracedSublayer) -> int | None:
    """The sum before this sub-layer, whose norm and scale after the sum are thereby known."""
    behind = _behind(nodes, sums, traced.fork)
    if behind is None:
        return None
    before, traced.history, traced.joins = sums[behind.at], behind.history, behind.joins
    if behind.norms:
        before.norm_out, traced.stream = True, behind.scale
    else:
        before.omega, before.gamma = before.omega * behind.scale, before.gamma * behind.scale
    return behind.at


def _finish(nodes: Sequence[Node], users: Users, stack: list[TracedSublayer], sums: Set[int]) -> tuple[int, float]:
    """(how many norms stand after a stack, less the last sub-layer's own where others of its kind have one; what
    parameters multiply the last one's output by: a number is the scores'). A term of an older layer may be added before
    them."""
    last = stack[-1]
    through = PASS | NORM | ({"other", "add"} if any(own.history for own in stack) else set())
    most = {last.at: 0}
    for at in (walk := [last.at]):
        for user in users.get(at, ()):
            node = nodes[user]
            follows = node.op in through and (node.inputs[0] == at or node.op not in NORM)
            term = node.op == "add" and not most[at] and user not in sums
            if (follows or term or reduces(nodes, user)) and user not in most:
                most[user] = most[at] + (node.op == "norm")
                if len(walk) < TAIL:
                    walk.append(user)
    norms = max(most.values())
    counts = Counter[int]()
    places = [(counts.update([own.layer]), counts[own.layer])[1] for own in stack]  # in its layer
    alike = [own.norm_out for own, place in zip(stack[:-1], places, strict=False) if place == places[-1]]
    others = (
        alike or [own.norm_out for own in stack[:-1] if own.kind == last.kind] or [own.norm_out for own in stack[:-1]]
    )
    last.norm_out = norms > 0 and 2 * sum(others) > len(others)
    behind = [nodes[at] for at, count in most.items() if count == norms and nodes[at].op == "scale" and nodes[at].name]
    return norms - last.norm_out, math.prod(node.factors[0] for node in behind)


def count_layers(stack: Sequence[TracedSublayer]) -> None:
    """A layer is a pattern of kinds with one self-attention that comes again and again, as feed-forward, attention,
    feed-forward. Without one it begins where a kind comes again, and at every self-attention."""
    kinds = [sublayer.kind for sublayer in stack]
    period = next((p for p in range(1, LONGEST + 1) if _repeats(kinds, p)), 0)
    layer, seen = 0, set[Kind | None]()
    for i, traced in enumerate(stack):
        if i % period == 0 if period else not layer or traced.kind in seen or traced.kind == "self":
            layer, seen = layer + 1, set()
        seen.add(traced.kind)
        traced.layer = layer


def _repeats(kinds: Sequence[Kind | None], period: int) -> bool:
    return (
        len(kinds) > period
        and len(kinds) % period == 0
        and "self" in kinds[:period]
        and all(kind == kinds[i % period] for i, kind in enumerate(kinds))
    )
