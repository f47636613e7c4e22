"""Sub-layers that read a mixture of all values before instead of a sum: attention over depth (Attention Residuals,
2603.15031), weighted or concatenated histories.

    v_0, v_1 = f_1(h_1), …,   h_l a mixture of v_0 … v_{l−1}

The values stand in a list that is stacked or concatenated again for each sub-layer, one longer each time: that is how
they are found. x_i is the mixture that the next sub-layer reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.own.sublayers.graph import Node, Users, back
from stabkit.own.sublayers.joins import Join


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
    between = [join.node.at for join in sums if join.node.at > values[1] and join.node.at not in values]
    if sum(not any(begin < at < end for begin, end in mixing) for at in between) > 1:
        return []
    joins = []
    for i, value in enumerate(values[1:], 1):
        fork, after = reads.get(i, values[i - 1]), reads.get(i + 1)
        met = {n.at for n in back(nodes, (value,), lambda n: False, low=fork)}
        region: set[int] = {fork}
        for at in sorted(met):
            if at > fork and any(source in region for source in nodes[at].inputs):
                region.add(at)
        region.discard(fork)
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
    walk, seen = [history.at], {history.at}
    for at in walk:
        for user in users.get(at, ()):
            if user not in seen and user <= target and nodes[user].op != "product":
                seen.add(user)
                walk.append(user)
    alike = [at for at in sorted(seen - {history.at}) if nodes[at].value.shape == shape]
    return next((at for at in alike if _dominates(nodes, at, history.at, target)), history.at)


def _dominates(nodes: Sequence[Node], at: int, start: int, end: int) -> bool:
    """Whether nothing of `start` reaches `end` but through this."""
    return all(node.at != start for node in back(nodes, (end,), lambda node: node.at == at, low=start))
