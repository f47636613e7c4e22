"""What happened to the activations of one forward pass, as nodes in the order in which they ran.

    input      what the module was given                  embedding  rows of a table
    move       entries moved or left out, none changed    softmax    over some axis
    scale      c·x, one number or one trained vector,     match      a product of two activations
               or few streams mixed (hyper-connections)
    shift      x + constant (a bias, positions)           attention  softmax(q·kᵀ)·v in one operation: (q, k, v)
    add        c₁·x₁ + c₂·x₂                              product    x·W + b with a matrix of the module
    centre     x − its mean over features                 other      anything else (φ, masks, …)
    norm       LayerNorm, RMSNorm, or x over its own size

Nodes are activations: what no input reaches is a constant, and rests on the node that uses it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

Op = Literal[
    "input",
    "embedding",
    "move",
    "scale",
    "shift",
    "add",
    "centre",
    "norm",
    "softmax",
    "match",
    "attention",
    "product",
    "other",
]
MOVES = frozenset(
    "view _unsafe_view reshape _reshape_alias transpose t permute expand expand_as view_as squeeze unsqueeze slice "
    "select split split_with_sizes unsafe_split chunk unbind narrow clone contiguous copy _to_copy detach alias "
    "as_strided unfold cat stack index index_select gather repeat repeat_interleave constant_pad_nd flip roll "
    "movedim swapaxes swapdims lift_fresh".split()
)
FRESH = frozenset(
    "empty_like zeros_like ones_like full_like rand_like randn_like randint_like new_empty new_empty_strided new_zeros "
    "new_ones new_full scalar_tensor".split()
)
"""Operations that take an activation for its shape alone."""
PAIR = 1 << 31
COMPLEX: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view_as_complex": lambda x: (x[..., 0] + 1) * PAIR + x[..., 1] + 1,
    "view_as_real": lambda x: torch.stack((x // PAIR - 1, x % PAIR - 1), -1),
}
"""Pairs of numbers as one and back, for numbers from −1 on: rotary embeddings by complex numbers."""
ACROSS = frozenset("maximum cumsum cumprod cummax logcumsumexp _fft_r2c _fft_c2c convolution".split())
"""Operations that carry something from one position to others, and are not followed: recurrences, convolutions."""
PASS: frozenset[Op] = frozenset({"move", "scale", "shift"})
"""What leaves features and positions where they are."""
NORM: frozenset[Op] = frozenset({"norm", "centre"})
MIXES: frozenset[Op] = frozenset({"product", "match", "attention"})
"""Operations that mix features or positions: where one way back ends and another begins."""

MOST_STREAMS = 8
"""Of hyper-connections."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightUse:
    """A weight as it is used: x·weight + bias, (in, out) and (out). `flipped`: Wᵀ·x, features not on the last axis.
    `stacked`: how many matrices (experts) it is, side by side; `first`: it is the first of several in one parameter."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    name: str
    bias_name: str = ""
    flipped: bool = False
    stacked: int = 1
    first: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation: where its activations came from, and what it did to them."""

    at: int
    op: Op
    inputs: tuple[int, ...]
    """Activations alone, the one that passes through first."""
    value: torch.Tensor
    factors: tuple[float, ...] = ()
    """Of each input of a scale, shift or add; of an attention that of its logits, of a match its own."""
    matrix: WeightUse | None = None
    constants: tuple[torch.Tensor | None, ...] = ()
    """What a shift adds; a norm's weight and bias; an embedding's table."""
    name: str = ""
    """Of the parameter that it uses; of an operation that is not followed, of a matrix among what it was given."""
    replay: Callable[[dict[int, torch.Tensor]], torch.Tensor] | None = None
    """A move, once more, with other tensors in the place of its inputs (by node)."""


def back(nodes: Sequence[Node], start: Sequence[int], stop: Callable[[Node], bool], low: int = 0) -> Iterator[Node]:
    """Every node on the way back from `start`, the latest first, not past nodes where `stop` nor before `low`."""
    heap = [-at for at in set(start)]
    heapq.heapify(heap)
    seen = set(heap)
    while heap:
        node = nodes[-heapq.heappop(heap)]
        if node.at < low:
            return
        yield node
        if not stop(node):
            for at in node.inputs:
                if -at not in seen:
                    seen.add(-at)
                    heapq.heappush(heap, -at)


Users = dict[int, list[int]]
"""{node: those that read it}."""


def users_of(nodes: Sequence[Node]) -> Users:
    """Of every node that is read."""
    users: Users = {}
    for node in nodes:
        for at in node.inputs:
            users.setdefault(at, []).append(node.at)
    return users


def onwards(users: Users, start: int, through: Callable[[int], bool]) -> set[int]:
    """`start`, and all that is made of it by nodes that are let `through`."""
    walk, seen = [start], {start}
    for at in walk:
        following = [user for user in users.get(at, ()) if user not in seen and through(user)]
        seen.update(following)
        walk += following
    return seen


def between(nodes: Sequence[Node], fork: int, end: int) -> set[int]:
    """What lies between a fork and an end that is made of it, the end with it."""
    region = {fork}
    for node in sorted(back(nodes, (end,), lambda n: False, low=fork), key=lambda n: n.at):
        if node.at > fork and any(source in region for source in node.inputs):
            region.add(node.at)
    return region - {fork}


def reduces(nodes: Sequence[Node], at: int) -> bool:
    """Whether several streams become one: a sum over an axis of few."""
    node = nodes[at]
    if node.op != "other" or len(node.inputs) != 1 or not node.value.numel():
        return False
    return 1 < nodes[node.inputs[0]].value.numel() / node.value.numel() <= MOST_STREAMS


def routes(nodes: Sequence[Node], at: int) -> bool:
    """Whether this is what a router gives experts: a softmax, and not of queries times keys."""
    behind = {node.op for node in back(nodes, (at,), lambda n: n.op in MIXES)}
    return "softmax" in behind and "match" not in behind


def mixes_streams(nodes: Sequence[Node], few: Sequence[int], at: int) -> bool:
    """Whether a product with a matrix of these sizes combines a few streams (hyper-connections): a small one on an axis
    that is not the last of what was moved there, which features are."""
    while (node := nodes[at]).op == "move" and len(node.inputs) == 1:
        if nodes[node.inputs[0]].value.numel() != node.value.numel():
            break
        at = node.inputs[0]
    stacked = node.op == "move" and len(node.inputs) > 1  # a history of values (DLCL)
    return max(few) <= MOST_STREAMS and node.value.dim() > 3 and node.value.shape[-1] not in few and not stacked
