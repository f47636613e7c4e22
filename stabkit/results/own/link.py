"""One link of the chain as judged: a word, the ground that it stands on, and the numbers behind it. `wording/chain.py`
makes its sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stabkit.results.depth_fit import DepthFit, geometric
from stabkit.results.own.cell import Broke
from stabkit.results.own.forecast import Healthy

Word = Literal["pass", "cannot tell", "fail"]
ORDER: tuple[Word, ...] = ("pass", "cannot tell", "fail")
"""The worst is last."""

NAMES = {
    "gradient": "Gradient",
    "scores": "Logits",
    "update": "Update",
    "stream": "Stream",
    "tokens": "Tokens",
    "loss": "Loss",
    "finite": "Finite",
}
"""What each link is called."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A link's number at one depth."""

    depth: int | None
    value: float
    """Geometric mean over seeds."""
    seeds: tuple[float, ...]


StreamGround = Literal[
    "room", "overflow", "diluted", "divided out", "law unknown", "exponential", "steep", "undecided", "law"
]
GroundKey = Literal[
    StreamGround,
    "unregistered", "unreached", "incomparable", "gradient",
    "finite", "broke",
    "update", "tokens", "no tokens", "scores", "no scores", "loss",
]  # fmt: skip
"""What a link's word rests on: of the stream, the gradient, the numbers lost, and of those that never fail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What a word rests on, with the numbers that its sentence needs beside those of the link."""

    key: GroundKey
    stack: str = ""
    """Whose it is; "" where the model has one alone."""
    depth: int = 0
    """At which it was found, where the link has no evidence of it."""
    room: float = math.nan
    """Largest number of the type over the largest entry of the stream."""
    dtype: str = ""
    dilution: float = math.nan
    """‖γ·f‖/‖x_i‖ of an upper branch over that of a lower one."""
    cause: str = ""
    """What the reading of the model found: `all 16 sub-layers are not among the model's parameters`."""
    updates: int = 0
    """That it was looked for in."""
    cells: int = 0
    """In how many of `of_cells` a number was lost …"""
    of_cells: int = 0
    broke: Broke | None = None
    """… and the first of them."""
    loss_first: float = math.nan
    loss_last: float = math.nan
    frequencies: float | None = None
    """Unigram entropy, nats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkVerdict:
    """One link of the chain."""

    verdict: Word
    ground: Ground
    level: float
    """At the deepest."""
    limit: float
    """That which decided, or would."""
    step: int
    """Of the level."""
    fit: DepthFit | None = None
    saturated: bool = False
    certain: bool = True
    """Whether a model does not train for certain where this fails; else it is never more than `open`."""
    evidence: tuple[Evidence, ...] = ()
    healthy: Healthy | None = None
    """The level among models that train; None where that is not known."""


BySeed = Mapping[int, Mapping[int, float]]
"""{seed: {depth: value}}; of a factory without a depth, depth 0."""


def evidence(values: BySeed) -> tuple[Evidence, ...]:
    """A row a depth, with the geometric mean over seeds."""
    return _rows(values, geometric)


def means(values: BySeed) -> tuple[Evidence, ...]:
    """As `evidence`, of numbers that may be below 0: their means."""
    return _rows(values, lambda row: float(np.mean(row)))


def _rows(values: BySeed, centre: Callable[[Sequence[float]], float]) -> tuple[Evidence, ...]:
    depths = sorted({depth for own in values.values() for depth in own})
    rows = [tuple(own[depth] for own in values.values() if depth in own) for depth in depths]
    return tuple(
        Evidence(depth=depth or None, value=centre(row), seeds=row) for depth, row in zip(depths, rows, strict=True)
    )


def worst(links: Sequence[LinkVerdict]) -> LinkVerdict:
    """The worst word; of equal ones what is certain, then the number farthest from 1."""

    def away(link: LinkVerdict) -> float:
        return abs(math.log(link.level)) if 0 < link.level < math.inf else math.inf

    return max(links, key=lambda link: (ORDER.index(link.verdict), link.certain, away(link)))
