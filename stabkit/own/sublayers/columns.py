"""Which columns of a matrix arrive at a place: columns are numbered, and the moves of the pass are made once more with
numbers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import torch

from stabkit.methods.base import Role
from stabkit.own.sublayers.graph import MIXES, Node, Users, back


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RoleWeight:
    """What one matrix, or the columns of a fused one, holds for one role: (in, out), its bias, its parameter's name."""

    role: Role | Literal["other"]
    weight: torch.Tensor
    bias: torch.Tensor | None
    name: str
    bias_name: str = ""


def part(
    nodes: Sequence[Node],
    users: Users,
    role: Role | Literal["other"],
    product: Node,
    columns: torch.Tensor | None = None,
) -> RoleWeight:
    """What these columns of a product's matrix hold."""
    assert product.matrix is not None
    weight, bias, name = product.matrix.weight, product.matrix.bias, product.matrix.bias_name
    if bias is None:
        bias, name = _added(nodes, users, product, weight.shape[1])
    side = {"down": 0, "up": 1}.get(role)
    if product.matrix.stacked > 1 and side is not None:  # x·[W_1 … W_E] at once: the first stands for all
        weight = weight.narrow(side, 0, weight.shape[side] // product.matrix.stacked)
        bias = bias[: weight.shape[1]] if bias is not None and side else bias
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
            flat = torch.cat([x[x >= 0] for x in arrived]) if arrived else None
            pairs.append((node, None if flat is None else torch.unique(flat)))
    return pairs


def follow(nodes: Sequence[Node], start: int, labels: torch.Tensor, place: int) -> list[torch.Tensor]:
    """What numbers at `start` become at `place`; −1 for what came from elsewhere. Empty when they do not get there;
    several where a sum has several views of them (rotary embeddings by halves)."""
    known: dict[int, list[torch.Tensor]] = {start: [_like(nodes[start], labels)]}
    for node in sorted(back(nodes, (place,), lambda n: n.at <= start, low=start), key=lambda n: n.at):
        here = {at: known[at] for at in node.inputs if at in known}
        if node.at == start or not here or node.op in ("match", "product"):
            continue
        arrived: list[torch.Tensor] = []
        if node.op != "move":
            arrived = [_like(node, x) for views in here.values() for x in views if _broadcasts(x, node.value)]
        elif node.replay is None:
            arrived = [x for x in next(iter(here.values())) if x.shape == node.value.shape]
        else:
            missing = {at: _like(nodes[at], -1) for at in node.inputs if at not in here}
            for i in range(max(map(len, here.values()))):
                with suppress(RuntimeError, TypeError, ValueError, IndexError):  # a move that numbers cannot make
                    arrived.append(node.replay({**missing, **{at: v[min(i, len(v) - 1)] for at, v in here.items()}}))
        for x in arrived:
            views = known.setdefault(node.at, [])
            if len(views) < MOST_VIEWS and not any(x.shape == own.shape and torch.equal(x, own) for own in views):
                views.append(x)
    return known.get(place, [])


MOST_VIEWS = 4
"""Of one matrix' columns that a sum is followed with."""


def _like(node: Node, numbers: torch.Tensor | int) -> torch.Tensor:
    """Numbers laid out in memory as the node's value is, so that views of it are views of them."""
    return torch.empty_like(node.value, dtype=torch.int64, device="cpu").copy_(torch.as_tensor(numbers))


def _broadcasts(x: torch.Tensor, onto: torch.Tensor) -> bool:
    return (
        x.numel() > 1
        and x.dim() <= onto.dim()
        and all(a in (1, b) for a, b in zip(reversed(x.shape), reversed(onto.shape), strict=False))
    )
