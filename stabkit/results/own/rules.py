"""Where a link of the chain stops holding, and the word that follows: the one place of these rules. The command calls
them with what it probed (`verdict.py`), the study that counts how often its words came true with the rows of its
corpus (`studies/own/judge.py`).

    stream    rms(x_L)/rms(x_0) before any update, judged by what growth costs. Where a norm stands at the end it is
              divided out (nanochat's shortcuts multiply by 1.05 to 1.15 a layer, and it trains): a failure is an upper
              branch that weighs less than 10⁻³ of what a lower one does, ‖γ·f‖ over what it is added to (two hundred
              branches in line leave the last 5·10⁻³), or an entry within a factor of ten of the largest number of the
              type that the model runs in. Without a norm at the end growth is the scores': independent branches add up
              as N^½, aligned ones as N at most; above N^1.1, or by more than 5 % a layer exponentially, a failure. A
              stream that shrinks as fast fails in both cases. With too few depths for a law it is `cannot tell`
    gradient  lowest layer's gradient over the top layer's, at the step at which it is worst; fails below 10⁻⁴ and above
              10⁴, behind a norm at the end above 10⁴ times what the stream has grown by: ∂L/∂θ_i goes as 1/‖x_i‖ there.
              (Two models that train show it: one of the corpus at 1.4·10⁴, and four streams that grow 10¹³-fold.)
              Likewise matrices that no gradient ever arrives at, or that no optimiser can step
    finite    a number that is not

Of several stacks each is judged by itself, and the worst stands for the link. A link that fails ends in `fails`,
whatever the forecast, but upper branches that weigh nothing: what is left is a shallower model, which may train, and
a forecast of it is `undecided` at best.

A link as judged is a word, the ground that it stands on and the numbers behind it: `wording/chain.py` makes its
sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from stabkit.results.depth_fit import DepthFit, depth_fit, geometric
from stabkit.results.own.cell import Broke, ModelCell
from stabkit.results.own.forecast import Healthy, ours
from stabkit.results.own.measured import UPDATES

LinkWord = Literal["pass", "cannot tell", "fail"]
ORDER: tuple[LinkWord, ...] = ("pass", "cannot tell", "fail")
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

    verdict: LinkWord
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
    """Whether a model does not train for certain where this fails; else its forecast is `undecided` at best."""
    evidence: tuple[Evidence, ...] = ()
    healthy: Healthy | None = None
    """The level among models that train; None where that is not known."""


BySeed = Mapping[int, Mapping[int, float]]
"""{seed: {depth: value}}; of a factory without a depth, depth 0."""
C = TypeVar("C", "CellNumbers", ModelCell)


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


MOST_UNREACHED = 0.5
"""Of the sub-layers: more with a matrix that no gradient ever arrives at, and the model does not train as it stands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Where a link stops holding."""

    stream: float = 1.1
    """Exponent: fails above, and below its negative."""
    a_layer: float = 1.05
    """Factor a layer: fails above, and below its inverse, where the exponential fits clearly better …"""
    far: float = 3.0
    """… and the deepest is so many times larger or smaller."""
    room: float = 10.0
    """The largest number of the type over the largest entry of the stream: fails below."""
    share: float = 1e-3
    """‖γ·f‖/‖x_i‖ of an upper branch over that of a lower one, in a stream that has grown `far`: fails below."""
    gradient: float = 1e-4
    """Fails below, and above its inverse."""


LIMITS = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class StackNumbers:
    """What the rules read of one stack of a model."""

    growth: float
    """rms(x_L)/rms(x_0) before any update."""
    room: float
    """Largest number of the type over the largest entry of the stream, at its least; NaN where none was read."""
    dilution: float
    """‖γ·f‖/‖x_i‖ of an upper branch over that of a lower one; NaN where none was read."""
    normed: bool
    """Whether it ends in a norm."""
    gradient: Sequence[float]
    """Lowest layer's gradient over the top layer's, at every step that was read; NaN where they cannot be compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellNumbers:
    """What the rules read of a model at one depth and seed."""

    depth: int
    """0 of a factory without one."""
    seed: int
    stacks: Mapping[str, StackNumbers]
    updates: int
    """Gradients were read in so many."""
    broke: Broke | None = None
    """The first number that is not finite."""
    dtype: str = ""
    unreached: str = ""
    """Matrices that no gradient but 0 ever arrived at …"""
    unreached_share: float = 0.0
    """… and in what share of the sub-layers that have matrices to be trained."""
    unregistered: str = ""
    """Which sub-layers' weights are not among the model's parameters."""


def rules(cells: Sequence[CellNumbers], limits: Limits = LIMITS) -> dict[str, LinkVerdict]:
    """{link: its word} of the three that can fail, over all depths and seeds of a model at one rate."""
    return {"gradient": _gradient(cells, limits), "stream": _stream(cells, limits), "finite": _finite(cells)}


def broken(links: Mapping[str, LinkVerdict]) -> bool:
    """Whether a link fails with which a model does not train for certain."""
    return any(link.verdict == "fail" and link.certain for link in links.values())


def doubtful(links: Mapping[str, LinkVerdict]) -> bool:
    """Whether a link fails that may cost depth alone: what is left is a shallower model, which may train."""
    return not broken(links) and any(link.verdict == "fail" for link in links.values())


def healthy(number: str, value: float, updates: int) -> Healthy | None:
    """A number among models that train, whose numbers are of UPDATES updates: None of what was read after more."""
    return ours().healthy(number, value) if updates <= UPDATES else None


def deepest(cells: Sequence[C]) -> list[C]:
    """Those at the greatest depth."""
    depth = max(cell.depth for cell in cells)
    return [cell for cell in cells if cell.depth == depth]


def by_seed(cells: Sequence[C], value: Callable[[C], float]) -> BySeed:
    """{seed: {depth: what this says of the cell}}."""
    found: dict[int, dict[int, float]] = {}
    for cell in cells:
        found.setdefault(cell.seed, {})[cell.depth] = value(cell)
    return found


def _stacks(cells: Sequence[CellNumbers]) -> list[tuple[str, str]]:
    """(name, as a sentence names it: "" where there is one alone) of the deepest's."""
    names = list(deepest(cells)[0].stacks)
    return [(name, name if len(names) > 1 else "") for name in names]


def _stream(cells: Sequence[CellNumbers], limits: Limits) -> LinkVerdict:
    return worst([_stream_of(stack, shown, cells, limits) for stack, shown in _stacks(cells)])


def _stream_of(stack: str, shown: str, cells: Sequence[CellNumbers], limits: Limits) -> LinkVerdict:
    having = [cell for cell in cells if stack in cell.stacks]
    values = by_seed(having, lambda cell: cell.stacks[stack].growth)
    rows, fit = evidence(values), depth_fit(values)
    level = rows[-1].value
    last = [cell.stacks[stack] for cell in deepest(having)]
    wrong = any(cell.broke is not None and cell.broke.parameter for cell in having)
    room = math.nan if wrong else min((own.room for own in last), default=math.nan)
    dilution = min(own.dilution for own in last)

    def found(word: LinkWord, key: StreamGround, limit: float = limits.stream, certain: bool = True) -> LinkVerdict:
        cell = deepest(having)[0]
        ground = Ground(key=key, stack=shown, depth=cell.depth, room=room, dtype=cell.dtype, dilution=dilution)
        return LinkVerdict(
            verdict=word, ground=ground, level=level, limit=limit, step=0, fit=fit, certain=certain, evidence=rows,
            healthy=ours().healthy("growth", level),
        )  # fmt: skip

    shrinks = fit is not None and fit.exponential and fit.factor_high < 1 / limits.a_layer and level < 1 / limits.far
    falls = shrinks or (fit is not None and fit.high < -limits.stream)
    if room < limits.room:
        return found("fail", "room" if room else "overflow", limits.room)
    if all(own.normed for own in last) and not falls:
        if 0 < dilution < limits.share and level > limits.far:
            return found("fail", "diluted", limits.share, certain=False)
        return found("pass", "divided out")
    if fit is None:
        return found("cannot tell", "law unknown")
    by_layer = fit.exponential and (fit.factor_low > limits.a_layer or fit.factor_high < 1 / limits.a_layer)
    if by_layer and not 1 / limits.far <= level <= limits.far:
        return found("fail", "exponential", limits.a_layer)
    if fit.low > limits.stream or fit.high < -limits.stream:
        return found("fail", "steep")
    if fit.high > limits.stream or fit.low < -limits.stream:
        return found("cannot tell", "undecided")
    return found("pass", "law")


def _gradient(cells: Sequence[CellNumbers], limits: Limits) -> LinkVerdict:
    last = deepest(cells)[0]
    if last.unregistered:
        ground = Ground(key="unregistered", cause=last.unregistered)
        return LinkVerdict(verdict="fail", ground=ground, level=0.0, limit=limits.gradient, step=0)
    if last.unreached_share > MOST_UNREACHED:
        ground = Ground(key="unreached", cause=last.unreached, updates=last.updates)
        return LinkVerdict(verdict="fail", ground=ground, level=0.0, limit=limits.gradient, step=0)
    links = [_gradient_of(stack, shown, cells, limits) for stack, shown in _stacks(cells)]
    comparable = [link for link in links if link is not None]
    if comparable:
        return worst(comparable)
    ground = Ground(key="incomparable", depth=last.depth)
    return LinkVerdict(verdict="cannot tell", ground=ground, level=math.nan, limit=limits.gradient, step=0)


def _gradient_of(stack: str, shown: str, cells: Sequence[CellNumbers], limits: Limits) -> LinkVerdict | None:
    """None where the deepest has no two layers whose gradients can be compared; a shallower one without is left out."""
    having = [cell for cell in cells if stack in cell.stacks and any(map(math.isfinite, cell.stacks[stack].gradient))]
    if max(cell.depth for cell in cells) not in {cell.depth for cell in having}:
        return None
    read = min(len(cell.stacks[stack].gradient) for cell in having)
    values = {t: by_seed(having, lambda cell: float(cell.stacks[stack].gradient[t])) for t in range(read)}  # noqa: B023
    at_step = {t: evidence(own) for t, own in values.items()}
    steps = {t: rows for t, rows in at_step.items() if all(0 <= row.value < math.inf for row in rows)}
    if not steps:
        return None

    def away(t: int) -> float:
        return abs(math.log(max(steps[t][-1].value, 1e-300)))

    growths = [own.growth for cell in deepest(having) if (own := cell.stacks[stack]).normed]
    most = max([1.0, *filter(math.isfinite, growths)]) / limits.gradient
    beyond = [t for t, rows in steps.items() if not limits.gradient <= rows[-1].value <= most]
    step = max(beyond or steps, key=away)
    level = steps[step][-1].value
    return LinkVerdict(
        verdict="fail" if beyond else "pass",
        ground=Ground(key="gradient", stack=shown),
        level=level,
        limit=most if level > 1 else limits.gradient,
        step=step,
        fit=depth_fit(values[step]),
        evidence=steps[step],
        healthy=healthy("gradient_lowest" if level < 1 else "gradient_highest", level, read - 1),
    )


def _finite(cells: Sequence[CellNumbers]) -> LinkVerdict:
    lost = [(cell.depth, cell.seed, cell.broke) for cell in cells if cell.broke]
    if not lost:
        return LinkVerdict(verdict="pass", ground=Ground(key="finite"), level=0.0, limit=0.0, step=0)
    depth, _, broke = min(lost, key=lambda row: row[:2])
    ground = Ground(key="broke", depth=depth, cells=len(lost), of_cells=len(cells), broke=broke)
    return LinkVerdict(verdict="fail", ground=ground, level=float(len(lost)), limit=0.0, step=broke.step)
