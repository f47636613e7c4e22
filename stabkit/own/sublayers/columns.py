"""Which columns of a fused matrix end where: query, key and value of one W_QKV, however its output is cut into heads.

Columns are numbered, the numbers take the place of the product's output, and the moves between there and the place of
interest are made once more, now with numbers: what arrives are the columns that end there.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import suppress

import torch

from stabkit.own.sublayers.graph import MIXES, Node, back


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
