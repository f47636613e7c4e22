"""Residual sub-layers in a graph: their scales, norms and matrices.

Of a sum c·x + g·f and its fork (`joins.py`):

    ω   everything that x is multiplied by between the fork and the sum
    γ   everything that f is multiplied by after its last matrix, or after the norm that stands there

A branch with attention reads query, key and value by the columns of a fused matrix that arrive there (`columns.py`). It
is cross-attention when the keys, or the queries, do not come from the fork. Any other branch with two matrices or more
is a feed-forward.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

import torch

from stabkit.methods.base import Kind, Role
from stabkit.own.sublayers.columns import RoleWeight, follow, part, sources
from stabkit.own.sublayers.graph import MIXES, NORM, PASS, Node, Users, back, onwards
from stabkit.own.sublayers.joins import Join, width_of

ATTENDS: tuple[Role, ...] = ("query", "key", "value")
Beside = Literal["adapter", "router", "latent", "condition"]
"""What is no part of f(x) as recipes have it: low-rank adapters, gates that weigh experts or heads, what a query or key
is made of by two matrices (MLA), and what makes the scales of adaLN."""
Taken = dict[int, list[tuple[Role, torch.Tensor | None]]]
"""{product: the roles of its columns, None for all}."""


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
    conditional: bool = False
    """Whether what the branch reads or gives is scaled or shifted by something else that the model computes (adaLN)."""
    parts: list[RoleWeight] = field(default_factory=list)
    aside: list[tuple[Beside, RoleWeight]] = field(default_factory=list)
    entered: bool = True
    """Whether the way from the fork to its first matrices was followed, so that it is known which norms stand there."""
    memory: int | None = None
    """Where cross-attention's keys are read from."""
    history: bool = False
    """Whether it reads a combination of earlier sums."""
    joins: str = ""
    """The matrix through which the stream comes to it, of itself and of an older layer (a U-Net's); "" for none."""
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
    at, conditions = join.branch, set[int]()
    while at in region and (below := _below(nodes, at, region)) is not None:
        node = nodes[at]
        traced.norm_branch |= node.op == "norm"
        conditions |= {*node.inputs} - {below} if node.op not in PASS | NORM else set()
        if node.op in PASS and node.factors and not traced.norm_branch:
            traced.gamma *= node.factors[0]
        at = below
    starts = (at, *(node for node, _ in join.added if node != join.branch))
    products = [nodes[at] for at in sorted(region) if nodes[at].op == "product"]
    adapters, beside = _adapters(nodes, region)
    behind = back(nodes, starts, lambda n: n.op in MIXES, low=join.fork)
    last_made = [n for n in behind if n.op == "product" and n.at in region and n.at not in adapters]
    cores = {at: core for at in sorted(region) if (core := _core(nodes, nodes[at])) is not None}
    attended = {at for core in cores for at in onwards(users, core, region.__contains__)}
    routers = {n.at for n in last_made if len(products) > 1 and width_of(n) < traced.width}
    deep = {n.at for n in last_made if n.at in attended or _before(nodes, n, join)} - routers
    routers |= {n.at for n in last_made if deep and n.at not in deep}  # gates on what others make
    ends = [n for n in last_made if n.at not in routers]
    traced.gate = len(products) == 1 and not any(nodes[at].op == "other" and nodes[at].name for at in region)
    if cores:
        readers, taken = _attending(nodes, list(cores.values()), sums, traced, adapters, beside)
        last: Role = "out"
    else:
        matched = any(nodes[at].op == "match" for at in region)  # some attention, but not softmax(Q·Kᵀ)·V
        unread = any(nodes[at].op == "other" and nodes[at].name for at in region)  # a convolution over positions
        apart = not routers and any(n.matrix is not None and n.matrix.first for n in products)  # no experts: one a head
        traced.kind = "ffn" if len(products) > 1 and not (matched or unread or apart) else None
        readers = [n for n in products if n not in ends and n.at not in adapters | routers]
        taken = {product.at: [("up", None)] for product in readers}
        last = "down"
    for product in ends:
        if product.at not in taken:
            of_core = not cores or product.at in attended
            taken[product.at] = [(last if of_core else "down", None)]
            if not of_core:
                before = back(nodes, product.inputs, lambda n: n.op in MIXES, low=join.fork + 1)
                taken.update({n.at: [("up", None)] for n in before if n.op == "product" and n.at not in taken})
    wide = [n for n in ends if width_of(n) >= traced.width]
    traced.beside = bool(cores) and len(wide) > 1
    pairs = [nodes[at].inputs for at in sorted(attended) if nodes[at].op == "other" and len(nodes[at].inputs) == 2]
    beyond = [at for pair in pairs for at in pair if at not in attended]  # what multiplies the heads
    gates = back(nodes, beyond, lambda n: n.op in MIXES, low=join.fork + 1)
    weighing = {n.at for n in gates if n.op == "product" and n.at in region} - adapters - attended - set(taken)
    routers |= weighing
    ahead = {product.at for reader in readers for product in _before(nodes, reader, join)} - set(taken)
    latent = ahead - routers
    words: dict[Beside, set[int]] = {"adapter": adapters, "router": routers, "latent": latent}
    for word, places in words.items():
        used |= places
        traced.aside += [(word, part(nodes, users, "other", nodes[place])) for place in sorted(places)]
    aside = adapters | routers | latent
    left = [n for n in products if n.at not in aside and (n.at not in taken or not traced.kind)]
    unknown += [n.matrix.name or "a matrix" for n in left if n.matrix]
    for product_at, roles in taken.items():
        matrix = nodes[product_at].matrix
        assert matrix is not None
        if (cores and matrix.first) or (len(roles) > 1 and any(columns is None for _, columns in roles)):
            unknown.append(matrix.name or "a matrix")  # one a head, or columns that were not followed
            continue
        used.add(product_at)
        traced.parts += [part(nodes, users, role, nodes[product_at], columns) for role, columns in roles]
    first = [
        way
        for at in (*(reader.at for reader in readers), *sorted(ahead))
        if (way := _way(nodes, nodes[at].inputs[0], join))
    ]
    traced.entered = bool(first)
    traced.norm_in = bool(first) and all(way.norms for way in first)
    traced.norms_in = min((way.norms for way in first), default=0)
    traced.kappa = first[0].scale if first else 1.0
    conditions.update(*(way.conditions for way in first))
    traced.conditional = bool(conditions)
    for place in {product.at for at in conditions for product, _ in sources(nodes, at, sums)} - set(taken) - used:
        used.add(place)
        traced.aside.append(("condition", part(nodes, users, "other", nodes[place])))
    traced.fork_normed = _stands_on_norm(nodes, join.fork)
    if traced.kind == "self":
        ways = {role: _way(nodes, n.inputs[0], join) for n, role in _plain(nodes, taken)}
        plain = tuple(role for role, way in ways.items() if way is not None and not way.norms)
        if any(way is not None and way.norms for way in ways.values()):
            traced.norm_in, traced.raw = True, plain
    inside = back(nodes, [n.inputs[0] for n in ends if n not in readers], lambda n: n.op in MIXES, low=join.fork + 1)
    traced.norm_inner = any(n.op == "norm" for n in inside)
    return traced


def _adapters(nodes: Sequence[Node], region: Set[int]) -> tuple[set[int], set[int]]:
    """(products of adapters, the addends that they make): W·x + c·B(A·x), A and B of a rank below both widths of W and
    reading what W reads (LoRA; Hu et al. 2106.09685), and h + B·σ(A·h) of h = W·x (Houlsby et al. 1902.00751)."""

    def stem(at: int) -> Node:
        while nodes[at].op in PASS and len(nodes[at].inputs) == 1:
            at = nodes[at].inputs[0]
        return nodes[at]

    products: set[int] = set()
    addends: set[int] = set()
    for total in (nodes[at] for at in sorted(region) if nodes[at].op == "add"):
        for base, low in (total.inputs, total.inputs[::-1]):
            whole, up = stem(base), stem(low)
            while whole.op == "add" and (more := [at for at in whole.inputs if at not in addends]):  # several adapters
                whole = stem(more[0])
            if not whole.op == up.op == "product" or not up.inputs:
                continue
            down = stem(up.inputs[0])
            assert whole.matrix is not None and up.matrix is not None
            if down.op == "product" and width_of(down) < min(whole.matrix.weight.shape):
                if stem(down.inputs[0]).at == stem(whole.inputs[0]).at:
                    products |= {up.at, down.at}
                    addends.add(low)
        for base, low in (total.inputs, total.inputs[::-1]):
            up = stem(low)
            made = [n for n in back(nodes, up.inputs, lambda n: n.op in MIXES) if n.op in MIXES]
            if up.op == "product" and len(made) == 1 and made[0].op == "product" and {up.at, made[0].at} <= region:
                read = made[0].inputs[0]
                while nodes[read].op in PASS | NORM and read != base:
                    read = nodes[read].inputs[0]
                if read == base and width_of(made[0]) < width_of(up):
                    products |= {up.at, made[0].at}
                    addends.add(low)
    return products, addends


def _attending(
    nodes: Sequence[Node],
    cores: Sequence[Core],
    sums: Set[int],
    sublayer: TracedSublayer,
    adapters: Set[int],
    beside: Set[int],
) -> tuple[list[Node], Taken]:
    """(products that make queries, the roles of all that make queries, keys and values); says of `found` whether its
    keys come from elsewhere."""
    region, sublayer.kind = sublayer.join.region, "self"
    readers: list[Node] = []
    taken: Taken = {}
    sublayer.logit, sublayer.head = _logit(nodes, cores[0], beside), cores[0].head
    for core in cores:
        for role, place in zip(ATTENDS, (core.query, core.key, core.value), strict=True):
            every = [own for own in sources(nodes, place, sums | {sublayer.join.fork}) if own[0].at not in adapters]
            read = [own for own in every if own[0].at in region] or every  # beside its own an older layer's values
            wide = max((own.matrix.weight.shape[0] for own, _ in read if own.matrix), default=0)
            read = [own for own in read if own[0].matrix is not None and own[0].matrix.weight.shape[0] == wide]
            if role == "value":  # what mixes values by a number a head makes none
                read = [own for own in read if width_of(own[0]) >= nodes[place].value.shape[-1]] or read
            if role == "query":
                readers += [product for product, _ in read]
            for product, columns in read:
                taken.setdefault(product.at, []).append((role, columns))
            if role != "value" and not any(n.at in region for n, _ in read) and place not in region:
                sublayer.kind = "cross"  # keys of another stack, or its queries
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
        if weights:
            axis = -1 if side == 0 else -2
            first_is_key = bool((weights[0] != weights[0].select(axis, 0).unsqueeze(axis)).any())
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
    conditions: frozenset[int]
    """What something else that the model computes scales or shifts it by."""


def _way(nodes: Sequence[Node], at: int, join: Join) -> _Way | None:
    """From the fork to here; None when more than norms, scales and what a condition gives stands there."""
    norms, scale, conditions = 0, 1.0, set[int]()
    while at != join.fork:
        node, below = nodes[at], _below(nodes, at, {join.fork, *join.region})
        if at < join.fork or below is None:
            return None
        norms += node.op == "norm"
        conditions |= {*node.inputs} - {below} if node.op not in PASS | NORM else set()
        if node.op == "scale" and not norms:
            scale *= node.factors[0]
        at = below
    return _Way(norms, scale, frozenset(conditions))


def _before(nodes: Sequence[Node], reader: Node, join: Join) -> list[Node]:
    """The matrices between a fork and a reader that does not read it itself: of a latent vector, perhaps normed."""
    behind = back(nodes, reader.inputs, lambda n: n.op in MIXES, low=join.fork + 1)
    return [n for n in behind if n.op == "product" and n.at in join.region]


def _below(nodes: Sequence[Node], at: int, own: Set[int]) -> int | None:
    """What passes through here: the input of a norm, scale or move; where a value is multiplied or shifted by what is
    not made of the fork (adaLN: n(x)·(1 + s) + t, gate·f) the one operand that is `own`; None for anything else."""
    node = nodes[at]
    if node.op in PASS | NORM:
        return node.inputs[0]
    if node.op not in ("other", "add") or len(node.inputs) != 2:
        return None
    inside = [place for place in node.inputs if place in own]
    return inside[0] if len(inside) == 1 and nodes[inside[0]].value.shape == node.value.shape else None


def _stands_on_norm(nodes: Sequence[Node], at: int) -> bool:
    while nodes[at].op in PASS and nodes[at].inputs:
        at = nodes[at].inputs[0]
    return nodes[at].op in NORM


def _plain(nodes: Sequence[Node], taken: Taken) -> list[tuple[Node, Role]]:
    """(product, role) of queries, keys and values that have a matrix of their own."""
    return [(nodes[at], roles[0][0]) for at, roles in taken.items() if len(roles) == 1 and roles[0][0] in ATTENDS]


def _logit(nodes: Sequence[Node], core: Core, beside: Set[int]) -> float | None:
    """What the product of query and key is multiplied by, wherever that is done; None where a norm stands on the way,
    or two addends are multiplied by different numbers. Adapters, `beside`, count for nothing."""
    factor = core.factor
    for start in (core.query, core.key, *core.scores):
        own = _multiplied(nodes, start, beside, {})
        if own is None:
            return None
        factor *= own
    return factor


def _multiplied(nodes: Sequence[Node], at: int, beside: Set[int], known: dict[int, float | None]) -> float | None:
    if at in known:
        return known[at]
    node = nodes[at]
    factor = 1.0 if node.op != "norm" else None
    below = [before for before in node.inputs if before not in beside] if node.op not in MIXES else []
    if factor is not None and below:
        each = [_multiplied(nodes, before, beside, known) for before in below]
        numbers = [number for number in each if number is not None]
        same = len(numbers) == len(each) and max(numbers) - min(numbers) <= ALIKE * max(numbers)
        factor = numbers[0] * (abs(node.factors[0]) if node.op == "scale" else 1.0) if same else None
    known[at] = factor
    return factor


ALIKE = 1e-6
"""How far factors of two addends may differ, of the greater."""
