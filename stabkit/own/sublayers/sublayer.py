"""Residual sub-layers in a graph: their scales, norms and matrices.

A sub-layer is a sum c·x + g·f whose first operand reaches, by scales and shifts alone, a value that the other operand
reaches through matrices (the fork):

    ω   everything that x is multiplied by between the fork and the sum
    γ   everything that f is multiplied by after its last matrix, or after the norm that stands there

A branch with attention reads query, key and value by the columns that arrive there (`columns.py`); it is
cross-attention when the keys do not come from the fork. Any other branch with two matrices or more is a feed-forward.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from stabkit.methods.base import Kind, Role
from stabkit.own.sublayers.columns import follow, sources
from stabkit.own.sublayers.graph import MIXES, Node, Op, back

PASS: frozenset[Op] = frozenset({"move", "scale", "shift"})
NORM: frozenset[Op] = frozenset({"norm", "centre"})

Users = dict[int, list[int]]
"""{node: those that read it}."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Part:
    """What one matrix, or the columns of a fused one, holds for one role: (in, out), its bias, its parameter's name."""

    role: Role
    weight: torch.Tensor
    bias: torch.Tensor | None
    name: str
    bias_name: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Join:
    """A sum that is a sub-layer's, and where its two operands part."""

    node: Node
    branch: int
    fork: int
    omega: float
    gamma: float
    region: frozenset[int]
    """What lies between fork and sum, the shortcut left out."""
    shortcut: frozenset[int]
    """What lies on the shortcut."""
    added: tuple[tuple[int, float], ...]
    """(node, factor): what is added to the shortcut; two where branches stand side by side."""


@dataclass(kw_only=True, slots=True, eq=False)
class Sublayer:
    """One residual sub-layer as it was found."""

    kind: Kind | None
    """None for a branch that is neither attention nor a feed-forward."""
    join: Join
    omega: float
    gamma: float
    width: int
    norm_in: bool = False
    norm_inner: bool = False
    norm_branch: bool = False
    norm_out: bool = False
    stream: float = 1.0
    """What the result of the norm before is multiplied by before shortcut and branch read it."""
    parts: list[Part] = field(default_factory=list)
    memory: int | None = None
    """Where cross-attention's keys are read from."""
    history: bool = False
    """Whether it reads a combination of earlier sums."""
    layer: int = 0
    beside: bool = False
    """Whether more than attention stands in its one sum: a feed-forward side by side with it (GPT-NeoX)."""

    @property
    def at(self) -> int:
        return self.join.node.at

    @property
    def fork(self) -> int:
        return self.join.fork


def joins_of(nodes: Sequence[Node], users: Users) -> list[Join]:
    """Every sum that is a sub-layer's. Two sums that make one sub-layer are one join, that of the latter:

    x + λ·(h − x), whose h − x alone would be a sum with the shortcut's sign turned (nGPT; Loshchilov et al. 2024);
    (x + f(x)) + g(x), branches side by side that are added one after the other (GPT-J).
    """
    found: dict[int, Join] = {}
    for node in nodes:
        if node.op != "add" or _weighs(nodes, users, node.at) or (join := _join_at(nodes, node, found)) is None:
            continue
        factor, at = 1.0, join.branch
        while nodes[at].op in PASS and at not in found:
            factor, at = factor * (nodes[at].factors[0] if nodes[at].factors else 1.0), nodes[at].inputs[0]
        turned = found.get(at)
        if turned is not None and turned.fork == join.fork and turned.omega < 0:
            factor *= join.gamma
            join = replace(
                join,
                branch=turned.branch,
                omega=join.omega + factor * turned.omega,
                gamma=factor * turned.gamma,
                added=tuple((part, factor * own) for part, own in turned.added),
            )
            del found[at]
        found[node.at] = join
    return list(found.values())


def _weighs(nodes: Sequence[Node], users: Users, at: int) -> bool:
    """Whether a sum goes into a softmax: scores of an attention and a mask that all layers share."""
    walk = [at]
    for here in walk:
        for user in users.get(here, ()):
            if nodes[user].op == "softmax":
                return True
            if nodes[user].op in PASS and len(walk) < 12:
                walk.append(user)
    return False


def _join_at(nodes: Sequence[Node], node: Node, before: dict[int, Join]) -> Join | None:
    """This sum as a sub-layer's, if it is one; a sum of `before` that it completes is taken out of there."""
    for shortcut, branch in ((0, 1), (1, 0)):
        chain = [(node.inputs[shortcut], node.factors[shortcut])]
        while (last := nodes[chain[-1][0]]).op in PASS and len(last.inputs) == 1:
            chain.append((last.inputs[0], chain[-1][1] * (last.factors[0] if last.factors else 1.0)))
        beside = before.get(chain[-1][0])
        ends = [*chain, (beside.fork, chain[-1][1] * beside.omega)] if beside else chain
        met = {n.at for n in back(nodes, (node.inputs[branch],), lambda n: False, low=ends[-1][0])}
        fork = next((link for link in ends if link[0] in met), None)
        if fork is None:
            continue
        region: set[int] = {fork[0]}
        for at in sorted(met):
            if at > fork[0] and any(source in region for source in nodes[at].inputs):
                region.add(at)
        region.discard(fork[0])
        alone = fork in chain
        if not any(nodes[at].op == "product" for at in region) or not (alone or region.isdisjoint(before)):
            continue
        added: tuple[tuple[int, float], ...] = ((node.inputs[branch], node.factors[branch]),)
        along = frozenset(at for at, _ in chain if at > fork[0])
        own, gamma = node.inputs[branch], node.factors[branch]
        if beside and not alone:
            own, gamma = beside.branch, chain[-1][1] * beside.gamma
            region |= beside.region
            along |= beside.shortcut
            added += tuple((part, chain[-1][1] * factor) for part, factor in beside.added)
            del before[beside.node.at]
        return Join(
            node=node,
            branch=own,
            fork=fork[0],
            omega=fork[1],
            gamma=gamma,
            region=frozenset(region),
            shortcut=along,
            added=added,
        )
    return None


def sublayer(
    nodes: Sequence[Node], users: Users, join: Join, sums: Set[int], used: set[int], unknown: list[str]
) -> Sublayer:
    """What a join, one of `sums`, is a sum of. Products read go to `used`, matrices not understood to `unknown`."""
    region = join.region
    found = Sublayer(
        kind=None,
        join=join,
        omega=join.omega,
        gamma=join.gamma,
        width=int(join.node.value.shape[-1]),
    )
    at = join.branch
    while at in region and (node := nodes[at]).op in PASS | NORM:
        if node.op == "norm":
            found.norm_branch = True
        elif node.factors and not found.norm_branch:
            found.gamma *= node.factors[0]
        at = node.inputs[0]
    starts = (at, *(node for node, _ in join.added if node != join.branch))
    ends = [n for n in back(nodes, starts, lambda n: n.op in MIXES, low=join.fork) if n.op == "product"]
    cores = [core for at in sorted(region) if (core := _core(nodes, nodes[at])) is not None]
    products = [nodes[at] for at in sorted(region) if nodes[at].op == "product"]
    taken: dict[int, list[tuple[Role, torch.Tensor | None]]] = {}
    if cores:
        found.kind = "self"
        readers: list[Node] = []
        for core in cores:
            for role, place in zip(("query", "key", "value"), core, strict=True):
                read = sources(nodes, place, sums | {join.fork})
                if role == "query":
                    readers += [product for product, _ in read]
                for product, columns in read:
                    taken.setdefault(product.at, []).append((role, columns))  # type: ignore[arg-type]  # a Role
                if role == "key" and not any(n.at in region for n, _ in read) and place not in region:
                    found.kind = "cross"
                    found.memory = read[0][0].inputs[0] if read else place
        last: Role = "out"
    else:
        matched = any(nodes[at].op == "match" for at in region)  # some attention, but not softmax(Q·Kᵀ)·V
        found.kind = "ffn" if len(products) > 1 and not matched else None
        readers = [n for n in products if n not in ends]
        for product in readers:
            taken[product.at] = [("up", None)]
        last = "down"
    for product in ends:
        if product.at in region and product.at not in taken:
            taken[product.at] = [(last, None)]
    found.beside = bool(cores) and sum(n.at in region for n in ends) > 1
    unknown += [n.matrix.name or "a matrix" for n in products if n.matrix and (n.at not in taken or not found.kind)]
    for product_at, roles in taken.items():
        if len(roles) > 1 and any(columns is None for _, columns in roles):
            unknown.append(nodes[product_at].matrix.name or "a matrix")  # type: ignore[union-attr]  # a product has one
            continue
        used.add(product_at)
        found.parts += [part(nodes, users, role, nodes[product_at], columns) for role, columns in roles]
    first = [reader for reader in readers if _normed(nodes, reader.inputs[0], join.fork) is not None]
    found.norm_in = bool(first) and all(_normed(nodes, reader.inputs[0], join.fork) for reader in first)
    inside = back(nodes, [n.inputs[0] for n in ends if n not in readers], lambda n: n.op in MIXES, low=join.fork + 1)
    found.norm_inner = any(n.op == "norm" for n in inside)
    return found


def _core(nodes: Sequence[Node], node: Node) -> tuple[int, int, int] | None:
    """(query, key, value) of softmax(Q·Kᵀ)·V: the places that are multiplied. None for any other operation."""
    if node.op == "attention":
        return node.inputs[0], node.inputs[1], node.inputs[2]
    if node.op != "match":
        return None
    for side in (0, 1):
        behind = list(back(nodes, (node.inputs[side],), lambda n: n.op in MIXES or n.op == "softmax"))
        weighing = next((n for n in behind if n.op == "softmax"), None)
        if weighing is None:
            continue
        scores = next((n for n in back(nodes, weighing.inputs, lambda n: n.op in MIXES) if n.op == "match"), None)
        if scores is None:
            continue
        # the axis that is summed over with the values counts keys
        rows = torch.arange(scores.value.shape[-2])[:, None]
        weights = follow(nodes, scores.at, rows, node.inputs[side])
        first_is_key = False
        if weights is not None:
            axis = -1 if side == 0 else -2
            first_is_key = bool((weights != weights.select(axis, 0).unsqueeze(axis)).any())
        query, key = scores.inputs[::-1] if first_is_key else scores.inputs
        return query, key, node.inputs[1 - side]
    return None


def _normed(nodes: Sequence[Node], at: int, fork: int) -> bool | None:
    """Whether a norm stands between the fork and here; None when more than norms and scales does."""
    normed = False
    while at != fork:
        node = nodes[at]
        if at < fork or node.op not in PASS | NORM:
            return None
        normed = normed or node.op == "norm"
        at = node.inputs[0]
    return normed


def part(nodes: Sequence[Node], users: Users, role: Role, product: Node, columns: torch.Tensor | None = None) -> Part:
    """What these columns of a product's matrix hold."""
    assert product.matrix is not None
    weight, bias, name = product.matrix.weight, product.matrix.bias, product.matrix.bias_name
    if bias is None:
        bias, name = _added(nodes, users, product, weight.shape[1])
    if columns is not None and 0 < len(columns) < weight.shape[1]:
        own: Any = columns
        if int(columns[-1]) - int(columns[0]) == len(columns) - 1:  # in one piece: a view, not a copy
            own = slice(int(columns[0]), int(columns[-1]) + 1)
        weight, bias = weight[:, own], None if bias is None else bias[own]
    return Part(role=role, weight=weight, bias=bias, name=product.matrix.name, bias_name=name)


def _added(nodes: Sequence[Node], users: Users, product: Node, width: int) -> tuple[torch.Tensor | None, str]:
    """A bias that is added after the product, as a sum of its own."""
    at = product.at
    while len(readers := users.get(at, [])) == 1 and (node := nodes[readers[0]]).op in ("move", "shift"):
        constant = node.constants[0] if node.constants else None
        if constant is not None and constant.numel() == width:
            return constant.reshape(-1), node.name
        at = node.at
    return None, ""
