"""Residual sub-layers in a graph: their scales, norms and matrices.

Of a sum c·x + g·f and its fork (`joins.py`):

    ω   everything that x is multiplied by between the fork and the sum
    γ   everything that f is multiplied by after its last matrix, or after the norm that stands there

A branch with attention reads query, key and value by the columns of a fused matrix that arrive there: columns are
numbered, and the moves of the pass are made once more with numbers. It is cross-attention when the keys do not come
from the fork. Any other branch with two matrices or more is a feed-forward.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from stabkit.methods.base import Kind, Role
from stabkit.own.sublayers.graph import MIXES, NORM, PASS, Node, Users, back, onwards
from stabkit.own.sublayers.joins import Join

ATTENDS: tuple[Role, ...] = ("query", "key", "value")
Taken = dict[int, list[tuple[Role, torch.Tensor | None]]]
"""{product: the roles of its columns, None for all}."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RoleWeight:
    """What one matrix, or the columns of a fused one, holds for one role: (in, out), its bias, its parameter's name."""

    role: Role
    weight: torch.Tensor
    bias: torch.Tensor | None
    name: str
    bias_name: str = ""


@dataclass(kw_only=True, slots=True, eq=False)
class TracedSublayer:
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
    gate: bool = False
    """Whether its branch has a single matrix, and none that is used in a way not followed."""
    norms_in: int = 0
    """How many norms stand between the fork and the branch's first matrices."""
    kappa: float = 1.0
    """What the branch reads is multiplied by, after its norm."""
    raw: tuple[Role, ...] = ()
    """Of queries, keys and values those that read the stream as it is, where another reads it normed."""
    fork_normed: bool = False
    """Whether shortcut and branch both read a norm's output."""
    logit: float | None = None
    """What queries times keys is multiplied by; None where a norm stands on them, or it was not seen."""
    head: int = 0
    """Width of a query."""
    stream: float = 1.0
    """What the result of the norm before is multiplied by before shortcut and branch read it."""
    parts: list[RoleWeight] = field(default_factory=list)
    memory: int | None = None
    """Where cross-attention's keys are read from."""
    history: bool = False
    """Whether it reads a combination of earlier sums."""
    layer: int = 0
    beside: bool = False
    """Whether more than attention stands in its one sum: a feed-forward side by side with it (GPT-NeoX)."""

    @property
    def word(self) -> str:
        """Its kind: `self`, `cross`, `ffn`, `self+ffn` for branches side by side in one sum, `other`."""
        return (self.kind or "other") + "+ffn" * self.beside

    @property
    def at(self) -> int:
        return self.join.node.at

    @property
    def fork(self) -> int:
        return self.join.fork


def sublayer(
    nodes: Sequence[Node], users: Users, join: Join, sums: Set[int], used: set[int], unknown: list[str]
) -> TracedSublayer:
    """What a join, one of `sums`, is a sum of. Products read go to `used`, matrices not understood to `unknown`."""
    region = join.region
    traced = TracedSublayer(
        kind=None,
        join=join,
        omega=join.omega,
        gamma=join.gamma,
        width=int(join.node.value.shape[-1]),
    )
    at = join.branch
    while at in region and (node := nodes[at]).op in PASS | NORM:
        if node.op == "norm":
            traced.norm_branch = True
        elif node.factors and not traced.norm_branch:
            traced.gamma *= node.factors[0]
        at = node.inputs[0]
    starts = (at, *(node for node, _ in join.added if node != join.branch))
    ends = [n for n in back(nodes, starts, lambda n: n.op in MIXES, low=join.fork) if n.op == "product"]
    cores = {at: core for at in sorted(region) if (core := _core(nodes, nodes[at])) is not None}
    products = [nodes[at] for at in sorted(region) if nodes[at].op == "product"]
    traced.gate = len(products) == 1 and not any(nodes[at].op == "other" and nodes[at].name for at in region)
    if cores:
        readers, taken = _attending(nodes, list(cores.values()), sums, traced)
        last: Role = "out"
    else:
        matched = any(nodes[at].op == "match" for at in region)  # some attention, but not softmax(Q·Kᵀ)·V
        traced.kind = "ffn" if len(products) > 1 and not matched else None
        readers = [n for n in products if n not in ends]
        taken = {product.at: [("up", None)] for product in readers}
        last = "down"
    attended = {at for core in cores for at in onwards(users, core, region.__contains__)}
    for product in ends:
        if product.at in region and product.at not in taken:
            of_core = not cores or product.at in attended
            taken[product.at] = [(last if of_core else "down", None)]
            if not of_core:
                before = back(nodes, product.inputs, lambda n: n.op in MIXES, low=join.fork + 1)
                taken.update({n.at: [("up", None)] for n in before if n.op == "product" and n.at not in taken})
    wide = [n for n in ends if n.at in region and n.matrix and n.matrix.weight.shape[1] >= traced.width]
    traced.beside = bool(cores) and len(wide) > 1
    unknown += [n.matrix.name or "a matrix" for n in products if n.matrix and (n.at not in taken or not traced.kind)]
    for product_at, roles in taken.items():
        if len(roles) > 1 and any(columns is None for _, columns in roles):
            unknown.append(nodes[product_at].matrix.name or "a matrix")  # type: ignore[union-attr]  # a product has one
            continue
        used.add(product_at)
        traced.parts += [part(nodes, users, role, nodes[product_at], columns) for role, columns in roles]
    first = [way for reader in readers if (way := _way(nodes, reader.inputs[0], join.fork)) is not None]
    traced.norm_in = bool(first) and all(way.norms for way in first)
    traced.norms_in = min((way.norms for way in first), default=0)
    traced.kappa = first[0].scale if first else 1.0
    traced.fork_normed = _stands_on_norm(nodes, join.fork)
    if traced.kind == "self":
        ways = {role: _way(nodes, n.inputs[0], join.fork) for n, role in _plain(nodes, taken)}
        plain = tuple(role for role, way in ways.items() if way is not None and not way.norms)
        if any(way is not None and way.norms for way in ways.values()):
            traced.norm_in, traced.raw = True, plain
    inside = back(nodes, [n.inputs[0] for n in ends if n not in readers], lambda n: n.op in MIXES, low=join.fork + 1)
    traced.norm_inner = any(n.op == "norm" for n in inside)
    return traced


def _attending(
    nodes: Sequence[Node], cores: Sequence[Core], sums: Set[int], sublayer: TracedSublayer
) -> tuple[list[Node], Taken]:
    """(products that make queries, the roles of all that make queries, keys and values); says of `found` whether its
    keys come from elsewhere."""
    region, sublayer.kind = sublayer.join.region, "self"
    readers: list[Node] = []
    taken: Taken = {}
    sublayer.logit, sublayer.head = _logit(nodes, cores[0]), cores[0].head
    for core in cores:
        for role, place in zip(ATTENDS, (core.query, core.key, core.value), strict=True):
            read = sources(nodes, place, sums | {sublayer.join.fork})
            if role == "query":
                readers += [product for product, _ in read]
            for product, columns in read:
                taken.setdefault(product.at, []).append((role, columns))
            if role == "key" and not any(n.at in region for n, _ in read) and place not in region:
                sublayer.kind = "cross"
                sublayer.memory = read[0][0].inputs[0] if read else place
    return readers, taken


@dataclass(frozen=True, slots=True)
class Core:
    """softmax(c·Q·Kᵀ)·V: the places that are multiplied."""

    query: int
    key: int
    value: int
    factor: float
    """That the operation itself puts on the logits."""
    scores: tuple[int, ...]
    """What goes into the softmax, where it is an operation of its own."""
    head: int
    """The width that query and key are multiplied over."""


def _core(nodes: Sequence[Node], node: Node) -> Core | None:
    """Of an operation that sums values by a softmax; None for any other."""
    if node.op == "attention":
        head = int(nodes[node.inputs[0]].value.shape[-1])
        return Core(node.inputs[0], node.inputs[1], node.inputs[2], node.factors[0], (), head)
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
        head = int(nodes[scores.inputs[0]].value.shape[-1])
        return Core(query, key, node.inputs[1 - side], scores.factors[0], weighing.inputs, head)
    return None


@dataclass(frozen=True, slots=True)
class _Way:
    """What stands between a fork and a matrix."""

    norms: int
    scale: float
    """After the last norm."""


def _way(nodes: Sequence[Node], at: int, fork: int) -> _Way | None:
    """From the fork to here; None when more than norms and scales stands there."""
    norms, scale = 0, 1.0
    while at != fork:
        node = nodes[at]
        if at < fork or node.op not in PASS | NORM:
            return None
        norms += node.op == "norm"
        if node.op == "scale" and not norms:
            scale *= node.factors[0]
        at = node.inputs[0]
    return _Way(norms, scale)


def _stands_on_norm(nodes: Sequence[Node], at: int) -> bool:
    while nodes[at].op in PASS and nodes[at].inputs:
        at = nodes[at].inputs[0]
    return nodes[at].op in NORM


def _plain(nodes: Sequence[Node], taken: Taken) -> list[tuple[Node, Role]]:
    """(product, role) of queries, keys and values that have a matrix of their own."""
    return [(nodes[at], roles[0][0]) for at, roles in taken.items() if len(roles) == 1 and roles[0][0] in ATTENDS]


def _logit(nodes: Sequence[Node], core: Core) -> float | None:
    """What the product of query and key is multiplied by, wherever that is done."""
    behind = [core.query, core.key]
    factor = core.factor
    for start in (*behind, *core.scores):
        for node in back(nodes, (start,), lambda n: n.op in MIXES):
            if node.op == "norm":
                return None
            if node.op == "scale":
                factor *= abs(node.factors[0])
    return factor


def part(
    nodes: Sequence[Node], users: Users, role: Role, product: Node, columns: torch.Tensor | None = None
) -> RoleWeight:
    """What these columns of a product's matrix hold."""
    assert product.matrix is not None
    weight, bias, name = product.matrix.weight, product.matrix.bias, product.matrix.bias_name
    if bias is None:
        bias, name = _added(nodes, users, product, weight.shape[1])
    if columns is not None and 0 < len(columns) < weight.shape[1]:
        value: Any = columns
        if int(columns[-1]) - int(columns[0]) == len(columns) - 1:  # in one piece: a view, not a copy
            value = slice(int(columns[0]), int(columns[-1]) + 1)
        weight, bias = weight[:, value], None if bias is None else bias[value]
    return RoleWeight(role=role, weight=weight, bias=bias, name=product.matrix.name, bias_name=name)


def _added(nodes: Sequence[Node], users: Users, product: Node, width: int) -> tuple[torch.Tensor | None, str]:
    """A bias that is added after the product, as a sum of its own."""
    at = product.at
    while len(readers := users.get(at, [])) == 1 and (node := nodes[readers[0]]).op in ("move", "shift"):
        constant = node.constants[0] if node.constants else None
        if constant is not None and constant.numel() == width:
            return constant.reshape(-1), node.name
        at = node.at
    return None, ""


def sources(nodes: Sequence[Node], place: int, until: Set[int]) -> list[tuple[Node, torch.Tensor | None]]:
    """(product, its columns) for every matrix whose output reaches this place without another product, or one of the
    nodes `until`, between. None where the columns could not be followed."""
    pairs: list[tuple[Node, torch.Tensor | None]] = []
    for node in back(nodes, (place,), lambda n: n.op in MIXES or n.at in until):
        if node.op == "product" and node.matrix is not None:
            width = node.matrix.weight.shape[1]
            numbers = torch.arange(width)[:, None] if node.matrix.flipped else torch.arange(width)
            arrived = follow(nodes, node.at, numbers, place)
            pairs.append((node, None if arrived is None else torch.unique(arrived[arrived >= 0])))
    return pairs


def follow(nodes: Sequence[Node], start: int, labels: torch.Tensor, place: int) -> torch.Tensor | None:
    """What numbers at `start` become at `place`; −1 for what came from elsewhere, None when they do not get there."""
    known: dict[int, torch.Tensor] = {start: _like(nodes[start], labels)}
    for node in sorted(back(nodes, (place,), lambda n: n.at <= start, low=start), key=lambda n: n.at):
        here = {at: known[at] for at in node.inputs if at in known}
        if node.at == start or not here:
            continue
        if node.op == "move":
            if node.replay is not None:
                missing = {at: _like(nodes[at], -1) for at in node.inputs if at not in here}
                with suppress(RuntimeError, TypeError, ValueError, IndexError):  # a move that numbers cannot make
                    known[node.at] = node.replay({**missing, **here})
            elif next(iter(here.values())).shape == node.value.shape:
                known[node.at] = next(iter(here.values()))
        elif node.op != "match" and node.op != "product":
            fitting = [x for x in here.values() if _broadcasts(x, node.value)]
            if fitting:
                known[node.at] = _like(node, fitting[0])
    return known.get(place)


def _like(node: Node, numbers: torch.Tensor | int) -> torch.Tensor:
    """Numbers laid out in memory as the node's value is, so that views of it are views of them."""
    return torch.empty_like(node.value, dtype=torch.int64, device="cpu").copy_(torch.as_tensor(numbers))


def _broadcasts(x: torch.Tensor, onto: torch.Tensor) -> bool:
    return (
        x.numel() > 1
        and x.dim() <= onto.dim()
        and all(a in (1, b) for a, b in zip(reversed(x.shape), reversed(onto.shape), strict=False))
    )
