"""Where in a model's forward pass its residual stream is read, and whose parameters belong to which sub-layer.

    x_0 → sub-layer 1 → x_1 → … → x_L → final norms → F

x_i is what the next sub-layer's shortcut and branch both read: the sum, or its norm where one follows (Post-LN). A
place is the number of a node: the same operations run in the same order at every pass, so that a later pass is read at
the same numbers. Where no sums x + f(x) are found, like blocks stand in for sub-layers (`reading.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stabkit.own.sublayers.anatomy import Anatomy
from stabkit.own.sublayers.graph import NORM, PASS, Node, Users, reduces, users_of
from stabkit.own.sublayers.sublayer import TracedSublayer
from stabkit.own.sublayers.watch import DispatchTrace


@dataclass(frozen=True, kw_only=True, slots=True)
class SublayerPlace:
    """One sub-layer."""

    stack: str
    layer: int
    """From 1 on."""
    kind: str
    """`self`, `cross`, `ffn`, `self+ffn` for branches side by side, `other`; `block` where no sum was found. The second
    of a layer is `ffn2` (macaron)."""
    parameters: tuple[str, ...]
    """What is read between its fork and x_i, and neither by another layer nor before it in its own."""
    out: int = -1
    """The node of x_i; −1 of a block …"""
    at: int = -1
    """… and of the sum."""
    added: tuple[tuple[int, float], ...] = ()
    """(node, factor) of what is added to the shortcut."""
    attends: bool = False
    """Whether one of its branches is attention."""

    @property
    def name(self) -> str:
        """`decoder.3.cross`, as in the records of our own models."""
        return f"{self.stack}.{self.layer}.{self.kind}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """All of a model: its stacks in the order of the pass, the last of them is the one whose output is F."""

    sublayers: tuple[SublayerPlace, ...]
    first: dict[str, int]
    """x_0 of each stack."""
    final: int
    """F: the last stack's output after its final norms."""
    operations: tuple[str, ...]
    """What ran: a pass with others is not read at these places."""
    shared: tuple[str, ...]
    """Parameters that several layers use; they count for none."""
    normed: tuple[str, ...]
    """Stacks whose output goes through a norm before anything else is made of it: what grows is divided out."""
    unregistered: tuple[str, ...]
    """Sub-layers all of whose matrices are the model's own by no name."""

    def nodes_read(self) -> frozenset[int]:
        """Every node whose value is read."""
        positions = {at for own in self.sublayers for at in (own.out, own.at, *(node for node, _ in own.added))}
        return frozenset(positions | set(self.first.values()) | {self.final})


def places(watch: DispatchTrace, anatomy: Anatomy) -> Places | None:
    """Of a watched pass; None where it has no sums."""
    stacks = _named(anatomy)
    if not stacks:
        return None
    users = users_of(watch.nodes)
    owned = {name for name, _ in watch.module.named_parameters()}
    sublayers: list[SublayerPlace] = []
    uses: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    unregistered: list[str] = []
    for name, stack in stacks.items():
        begun = len(sublayers)
        for i, sublayer in enumerate(stack):
            out = stack[i + 1].fork if i + 1 < len(stack) else _own_norm(watch.nodes, users, sublayer)
            between = (
                *sublayer.join.region,
                *sublayer.join.shortcut,
                sublayer.at,
                *_way(watch.nodes, out, sublayer.at),
            )
            read = {known for at in between for known in watch.reads.get(at, ())}
            read |= {known for part in sublayer.parts for known in (part.name, part.bias_name)}  # keys of another stack
            read &= owned
            for known in read:
                uses[known].add((name, sublayer.layer))
            like = sum(
                one.layer == sublayer.layer and one.kind.rstrip("0123456789") == sublayer.word
                for one in sublayers[begun:]
            )
            kind = f"{sublayer.word}{like + 1}" if like else sublayer.word
            sublayers.append(
                SublayerPlace(
                    stack=name,
                    layer=sublayer.layer,
                    kind=kind,
                    parameters=tuple(sorted(read)),
                    out=out,
                    at=sublayer.at,
                    added=sublayer.join.added,
                    attends=sublayer.kind in ("self", "cross"),
                )
            )
            matrices = [node.matrix for at in between if (node := watch.nodes[at]).matrix is not None]
            if matrices and not any(matrix.name for matrix in matrices if matrix is not None):
                unregistered.append(sublayers[-1].name)
    shared = {name for name, sublayer in uses.items() if len(sublayer) > 1}
    taken: set[str] = set(shared)
    for i, place in enumerate(sublayers):
        mine = tuple(name for name in place.parameters if name not in taken)
        sublayers[i] = replace(place, parameters=mine)
        taken |= set(mine)
    return Places(
        sublayers=tuple(sublayers),
        first={name: stack[0].fork for name, stack in stacks.items()},
        final=_finished(watch.nodes, users, sublayers[-1].out),
        operations=tuple(watch.operations),
        shared=tuple(sorted(shared)),
        normed=tuple(
            name
            for name, stack in stacks.items()
            if stack[-1].norm_out or _norms_behind(watch.nodes, users, stack[-1].at)
        ),
        unregistered=tuple(unregistered),
    )


def _named(anatomy: Anatomy) -> dict[str, list[TracedSublayer]]:
    """{name: stack}."""
    stacks = [list(stack.sublayers) for stack in anatomy.stacks]
    if not anatomy.encoder_of:
        return {f"stack{i}" if len(stacks) > 1 else "stack": stack for i, stack in enumerate(stacks, 1)}
    decoder = max(anatomy.encoder_of, key=lambda i: len(stacks[i]))
    named = {anatomy.encoder_of[decoder]: "encoder", decoder: "decoder"}
    return {named.get(i, f"stack{i + 1}"): stack for i, stack in enumerate(stacks)}


def _own_norm(nodes: Sequence[Node], users: Users, sublayer: TracedSublayer) -> int:
    """x_L: the norm behind the last sum, where its kind has one there; else the sum."""
    norms = _norms_behind(nodes, users, sublayer.at)
    return norms[0] if sublayer.norm_out and norms else sublayer.at


def _finished(nodes: Sequence[Node], users: Users, at: int) -> int:
    norms = _norms_behind(nodes, users, at)
    return norms[-1] if norms else at


def _norms_behind(nodes: Sequence[Node], users: Users, start: int) -> list[int]:
    """The norms that a value goes through, one after the other, before anything else is made of it; a term of an older
    layer may be added on the way."""
    reached: list[int] = [start]
    norms: list[int] = []
    for at in reached:
        for user in users.get(at, ()):
            passes = nodes[user].op in PASS | NORM and nodes[user].inputs[0] == at
            joins = not norms and (nodes[user].op == "add" or reduces(nodes, user))
            if (passes or joins) and user not in reached:
                reached.append(user)
                if nodes[user].op == "norm":
                    norms.append(user)
    return norms


def _way(nodes: Sequence[Node], end: int, start: int) -> Iterator[int]:
    """The norms and scales between a sum and what is made of it by them alone."""
    while end > start and nodes[end].op in PASS | NORM and nodes[end].inputs:
        yield end
        end = nodes[end].inputs[0]
