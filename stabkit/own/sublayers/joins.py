"""Residual sums in a graph: c·x + g·f whose first operand reaches, by scales and shifts alone, a value that the other
operand reaches through matrices (the fork); and sub-layers that read a mixture of all values before instead of a sum:
attention over depth (Attention Residuals, 2603.15031), weighted or concatenated histories.

    v_0, v_1 = f_1(h_1), …,   h_l a mixture of v_0 … v_{l−1}

Those values stand in a list that is stacked or concatenated again for each sub-layer, one longer each time: that is how
they are found. x_i is the mixture that the next sub-layer reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stabkit.own.sublayers.graph import MIXES, MOST_STREAMS, PASS, Node, Users, back, between, onwards


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


def joins_of(nodes: Sequence[Node], users: Users) -> list[Join]:
    """Every sum that is a sub-layer's. Two sums that make one sub-layer are one join, that of the latter:

    x + λ·(h − x), whose h − x alone would be a sum with the shortcut's sign turned (nGPT; Loshchilov et al. 2024);
    (x + f(x)) + g(x), branches side by side that are added one after the other (GPT-J).
    """
    joins: dict[int, Join] = {}
    for node in nodes:
        if node.op != "add" or _weighs(nodes, users, node.at) or (join := _join_at(nodes, node, joins)) is None:
            continue
        factor, at = 1.0, join.branch
        while nodes[at].op in PASS and at not in joins:
            factor, at = factor * (nodes[at].factors[0] if nodes[at].factors else 1.0), nodes[at].inputs[0]
        turned = joins.get(at)
        if turned is not None and turned.fork == join.fork and turned.omega < 0:
            factor *= join.gamma
            join = replace(
                join,
                branch=turned.branch,
                omega=join.omega + factor * turned.omega,
                gamma=factor * turned.gamma,
                added=tuple((part, factor * own) for part, own in turned.added),
            )
            del joins[at]
        joins[node.at] = join
    return list(joins.values())


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
        while (below := _below(nodes, nodes[chain[-1][0]])) is not None:
            factors = nodes[chain[-1][0]].factors
            chain.append((below, chain[-1][1] * (factors[0] if factors else 1.0)))
        beside = before.get(chain[-1][0])
        ends = [*chain, (beside.fork, chain[-1][1] * beside.omega)] if beside else chain
        met = {n.at for n in back(nodes, (node.inputs[branch],), lambda n: False, low=ends[-1][0])}
        fork = next((link for link in ends if link[0] in met), None)
        if fork is None or not _streams(nodes, fork[0], node.inputs[shortcut], node):
            continue
        region = between(nodes, fork[0], node.inputs[branch])
        alone = fork in chain
        if not _makes(nodes, region, node) or not (alone or region.isdisjoint(before)):
            continue
        added: tuple[tuple[int, float], ...] = ((node.inputs[branch], node.factors[branch]),)
        along = frozenset(at for at, _ in chain if at > fork[0])
        position, gamma = node.inputs[branch], node.factors[branch]
        if beside and not alone:
            position, gamma = beside.branch, chain[-1][1] * beside.gamma
            region |= beside.region
            along |= beside.shortcut
            added += tuple((part, chain[-1][1] * factor) for part, factor in beside.added)
            del before[beside.node.at]
        return Join(
            node=node,
            branch=position,
            fork=fork[0],
            omega=fork[1],
            gamma=gamma,
            region=frozenset(region),
            shortcut=along,
            added=added,
        )
    return None


def _streams(nodes: Sequence[Node], fork: int, shortcut: int, total: Node) -> bool:
    """Whether a shortcut and its fork have the features of their sum: what is broadcast over tokens, or a slice of a
    wider vector, shifts a normed value (adaLN) and is no stream."""
    whole, forked = nodes[shortcut].value, nodes[fork].value
    return whole.numel() == total.value.numel() and (
        forked.numel() == whole.numel() or forked.shape[-1] == total.value.shape[-1]
    )


def _below(nodes: Sequence[Node], node: Node) -> int | None:
    """What a shortcut's value is made of by scales, moves, or a mixing of few streams (hyper-connections); None for
    anything else."""
    if node.op in PASS and len(node.inputs) == 1:
        return node.inputs[0]
    if node.op == "product" and node.matrix is not None and node.matrix.flipped:
        rows, columns = node.matrix.weight.shape
        return node.inputs[0] if rows == columns <= MOST_STREAMS else None
    if node.op == "match":
        for mixed, mixing in (node.inputs, node.inputs[::-1]):
            square = nodes[mixing].value.shape[-2:]
            if nodes[mixed].value.shape == node.value.shape and square[0] == square[-1] <= MOST_STREAMS:
                return mixed
    return None


def _makes(nodes: Sequence[Node], region: set[int], total: Node) -> bool:
    """Whether a branch makes features: a matrix in it is as wide as what it is added to, or is used in a way that is
    not followed (experts). A gate that weighs tokens or streams makes none."""
    wide = int(total.value.shape[-1])
    products = [nodes[at] for at in region if nodes[at].op == "product"]
    unread = any(nodes[at].op == "other" and nodes[at].name for at in region)
    return bool(products) and (unread or any(width_of(product) >= wide for product in products))


def width_of(product: Node) -> int:
    """Features that it makes."""
    assert product.matrix is not None
    return int(product.matrix.weight.shape[1])


def nested(nodes: Sequence[Node], joins: Sequence[Join]) -> tuple[list[Join], int]:
    """(the sums that are sub-layers', how many shortcuts around several of them were left out).

    Of a sum with others between its fork and itself it is the sub-layer where those lie inside its branch: where such
    sums follow one another along the stream, or where one other lies there alone, behind a matrix or a norm (a
    state-space layer's D·u, a feed-forward with a shortcut of its own). Else it is a long shortcut: a term from the
    embedding or from an older layer, whose sub-layers follow one another along the stream.
    """
    within = {join.node.at: [own for own in joins if own.node.at in join.region] for join in joins}
    outer = [join for join in sorted(joins, key=lambda own: own.node.at) if within[join.node.at]]

    def reached(start: int, at: int, norms: bool = False) -> bool:
        def stop(node: Node) -> bool:
            return node.op in MIXES or (node.op == "norm" and not norms)

        return any(node.at == at for node in back(nodes, (start,), stop, low=at))

    chained = {
        own.node.at
        for a in outer
        for b in outer
        if a.node.at < b.node.at and a.node.at not in b.region and reached(b.fork, a.node.at, norms=True)
        for own in (a, b)
    }
    inside: set[int] = set()
    around: set[int] = set()
    for join in outer:
        inner = [own for own in within[join.node.at] if own.node.at not in inside | around]
        if not inner or join.node.at in inside:
            continue
        stream = any(reached(own.fork, join.fork) for own in inner)
        follow = any(reached(b.fork, a.node.at, norms=True) for a in inner for b in inner if a.node.at < b.node.at)
        if stream or (follow and join.node.at not in chained):
            around.add(join.node.at)
        else:
            inside |= {own.node.at for own in inner}
    return [join for join in joins if join.node.at not in inside | around], len(around)


@dataclass(frozen=True, slots=True)
class _History:
    """One stacking of all values so far."""

    at: int
    values: tuple[int, ...]


def mixtures(nodes: Sequence[Node], users: Users, sums: Sequence[Join]) -> list[Join]:
    """A join for each value; none where no list grows by one at least twice, or where sums stand between its values.
    Of those inside of a mixing (a query that is corrected) none is a sub-layer's."""
    histories = _longest(nodes)
    if len(histories) < 2:
        return []
    values = histories[-1].values
    reads = {}
    for history in histories:
        count = len(history.values)
        target = values[count] if count < len(values) else len(nodes) - 1
        reads[count] = _mixture(nodes, users, history, target)
    mixing = [(history.at, reads[len(history.values)]) for history in histories]
    inside = [join.node.at for join in sums if join.node.at > values[1] and join.node.at not in values]
    if sum(not any(begin < at < end for begin, end in mixing) for at in inside) > 1:
        return []
    joins = []
    for i, value in enumerate(values[1:], 1):
        fork, after = reads.get(i, values[i - 1]), reads.get(i + 1)
        region = between(nodes, fork, value)
        if after is None or value not in region or not any(nodes[at].op == "product" for at in region):
            return []
        share = 1.0 / (i + 1)
        joins.append(
            Join(
                node=nodes[after],
                branch=value,
                fork=fork,
                omega=1.0,
                gamma=1.0,
                region=frozenset(region),
                shortcut=frozenset(),
                added=((value, share),),
            )
        )
    return joins


def _longest(nodes: Sequence[Node]) -> list[_History]:
    """The longest run of stackings each of which has one value more than the one before."""
    runs: list[list[_History]] = []
    for node in nodes:
        if node.op != "move" or len(node.inputs) < 2:
            continue
        given = tuple(_origin(nodes, at) for at in node.inputs)
        for run in runs:
            last = run[-1]
            if given[:-1] == last.values or (given[0] == last.at and len(given) == 2):
                run.append(_History(node.at, (*last.values, given[-1])))
                break
        else:
            runs.append([_History(node.at, given)])
    return max(runs, key=len, default=[])


def _origin(nodes: Sequence[Node], at: int) -> int:
    """What an axis was added to: the value itself."""

    def plain(at: int) -> list[int]:
        return [size for size in nodes[at].value.shape if size != 1]

    while nodes[at].op == "move" and len(nodes[at].inputs) == 1 and plain(at) == plain(nodes[at].inputs[0]):
        at = nodes[at].inputs[0]
    return at


def _mixture(nodes: Sequence[Node], users: Users, history: _History, target: int) -> int:
    """What is made of all values: the first that is of one value's shape and that everything on the way to `target`
    goes through; without any their stacking itself."""
    shape = nodes[history.values[-1]].value.shape
    seen = onwards(users, history.at, lambda user: user <= target and nodes[user].op != "product")
    alike = [at for at in sorted(seen - {history.at}) if nodes[at].value.shape == shape]
    return next((at for at in alike if _dominates(nodes, at, history.at, target)), history.at)


def _dominates(nodes: Sequence[Node], at: int, start: int, end: int) -> bool:
    """Whether nothing of `start` reaches `end` but through this."""
    return all(node.at != start for node in back(nodes, (end,), lambda node: node.at == at, low=start))
