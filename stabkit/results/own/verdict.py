"""The chain of a user's model, link by link: does it hold with depth?

    stream    rms(x_L)/rms(x_0) before any update, judged by what growth costs. Where a norm stands at the end it is
              divided out (nanochat's shortcuts multiply by 1.05 to 1.15 a layer, and it trains): a failure is an upper
              branch that weighs less than 10⁻³ of what a lower one does, ‖γ·f‖ over what it is added to (two hundred
              branches in line leave the last 5·10⁻³), or an entry within a factor of ten of the largest number of the
              type that the model runs in. Without a norm at the end growth is the scores': independent branches add up
              as N^½, aligned ones as N at most; a warning above N^0.75; above N^1.1, or by more than 5 % a layer
              exponentially, a failure. A stream that shrinks as fast fails in both cases
    update    ‖ΔF‖/‖F‖ after four updates. A model that saturates may still train (Pre-LN does): a warning; ten times
              its size, or a loss that has tripled, is a failure. A warning above N^0.25, or where that is left open
    gradient  lowest layer's gradient over the top layer's, at the step at which it is worst. Below 10⁻⁴ nothing trained
              in stabkit's own runs, above 10⁻² nearly all did; a fall by more than ten from the shallowest to below a
              tenth at the deepest is a failure; likewise a rise to 10⁴, or by more than ten to over 10²
    finite    the first number that is not

Of several stacks each is judged by itself, and the worst stands for the link. `cannot tell` is a verdict and no pass:
too few depths, a stream's exponent whose interval contains the limit, a gradient that cannot be compared.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stabkit.results.depth_fit import depth_fit, geometric
from stabkit.results.line import too_few
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.link import ORDER, Evidence, LinkVerdict, Word, worst
from stabkit.results.words import grows, law, power_law, rounded, share, times, updates

UPDATE_STEP = 4
MOST_UNREACHED = 0.5
"""Of the sub-layers: more with a matrix that no gradient ever arrives at, and the model does not train as it stands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Where a link stops holding."""

    stream: float = 1.1
    """Exponent: fails above, and below its negative."""
    aligned: float = 0.75
    """Exponent: warns above."""
    a_layer: float = 1.05
    """Factor a layer: fails above, and below its inverse, where the exponential fits clearly better …"""
    far: float = 3.0
    """… and the deepest is so many times larger or smaller."""
    room: float = 10.0
    """The largest number of the type over the largest entry of the stream: fails below."""
    share: float = 1e-3
    """‖γ·f‖/‖x_i‖ of an upper branch over that of a lower one, in a stream that has grown `far`: fails below."""
    update: float = 0.25
    """Exponent: warns above."""
    saturated: float = 0.9
    """‖ΔF‖/‖F‖ at the deepest: warns above. Two outputs that have nothing to do with one another are √2 apart."""
    gone: float = 10.0
    """‖ΔF‖/‖F‖ at the deepest: fails above."""
    risen: float = 3.0
    """The last loss over the first: fails above."""
    gradient: float = 1e-4
    """Fails below, and above its inverse."""
    weak: float = 1e-2
    """Warns below, and above its inverse."""
    fall: float = 10.0
    """Fails above: the ratio at the shallowest over that at the deepest, where the deepest is below a tenth; and the
    inverse, where the deepest is above a hundred."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """All four, at one rate."""

    lr: float
    stream: LinkVerdict
    update: LinkVerdict
    gradient: LinkVerdict
    finite: LinkVerdict

    @property
    def links(self) -> dict[str, LinkVerdict]:
        return {own.name: getattr(self, own.name) for own in fields(self) if own.name != "lr"}

    @property
    def word(self) -> Word:
        return max((link.verdict for link in self.links.values()), key=ORDER.index)

    def to_json(self) -> dict[str, Any]:
        return {
            "lr": self.lr or None,
            "verdict": self.word,
            "links": {name: link.to_json() for name, link in self.links.items()},
        }


def verdict(cells: Sequence[ModelCell], limits: Limits = Limits()) -> Verdict:
    """Of all cells at one rate."""
    (lr,) = {cell.facts.lr for cell in cells}
    return Verdict(
        lr=lr,
        stream=_stream(cells, limits),
        update=_update(cells, limits),
        gradient=_gradient(cells, limits),
        finite=_finite(cells),
    )


def _stream(cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    return worst([_stream_of(stack, cells, limits) for stack in _stacks(cells)])


def _stream_of(stack: str, cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    having = [cell for cell in cells if stack in cell.stacks]
    values = _by_seed(having, lambda cell: cell.growth(stack))
    evidence, fit = _evidence(values), depth_fit(values)
    level = evidence[-1].value
    said = f"the {_whose(stack, cells)}residual stream {grows(level)} from the first layer's input to the last's output"
    word: Word = "pass"
    limit = limits.stream
    deepest = max(cell.facts.depth or 0 for cell in having)
    last = [cell for cell in having if (cell.facts.depth or 0) == deepest]
    room = min((cell.room(stack) for cell in last), default=math.nan)
    normed = all(stack in cell.facts.normed for cell in last)
    shrinks = fit is not None and fit.exponential and fit.factor_high < 1 / limits.a_layer and level < 1 / limits.far
    falls = shrinks or (fit is not None and fit.high < -limits.stream)
    if room < limits.room:
        word, limit, kind = "fail", limits.room, last[0].facts.dtype
        why = f"{said}; its largest entry is within a factor of {room:.2g} of what {kind} holds"
        if not room:
            why = f"the {_whose(stack, cells)}residual stream is beyond what {kind} holds{_at(deepest)}"
    elif normed and not falls:
        share = min(cell.dilution(stack) for cell in last)
        how = f"; with depth it goes as {law(fit)}" if fit is not None else ""
        least = f", and upper branches weigh {share:.2g} of what lower ones do" if share > 0 else ""
        why = f"{said}{how}; the norm at the end divides that out{least}"
        if 0 < share < limits.share and level > limits.far:
            word, limit = "fail", limits.share
            why = f"{said}{how}: upper branches weigh {share:.2g} of what lower ones do, too little to count"
    elif fit is None:
        word, why = "cannot tell", f"{said}; how with depth is open: {_no_fit(values)}"
    elif (
        fit.exponential
        and (fit.factor_low > limits.a_layer or fit.factor_high < 1 / limits.a_layer)
        and not 1 / limits.far <= level <= limits.far
    ):
        word, limit = "fail", limits.a_layer
        why = f"{said}, exponentially with depth: by {100 * (fit.factor - 1):+.0f} % a layer"
    else:
        why = f"{said}; with depth it goes as {power_law(fit)}{f', or nearer {law(fit)}' * fit.exponential}"
        if fit.low > limits.stream or fit.high < -limits.stream:
            word, why = "fail", f"{why}: more than branches that add up, however aligned"
        elif fit.high > limits.stream or fit.low < -limits.stream:
            word, why = "cannot tell", f"{why}, which contains {limits.stream:g}: more seeds or depths would tell"
        elif fit.low > limits.aligned:
            word, why, limit = "warn", f"{why}: branches add up in line, not by chance", limits.aligned
    return LinkVerdict(verdict=word, why=why, level=level, limit=limit, step=0, fit=fit, evidence=evidence)


def _update(cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    step = min(UPDATE_STEP, *(int(cell.records["update"].steps[-1]) for cell in cells))
    values = _by_seed(cells, lambda cell: float(cell.update()[step]))
    evidence, fit = _evidence(values), depth_fit(values)
    level = evidence[-1].value
    deepest = max(cell.facts.depth or 0 for cell in cells)
    losses = [cell.records["loss"].at("train") for cell in cells if (cell.facts.depth or 0) == deepest]
    first, last = (statistics.median(float(series[at]) for series in losses) for at in (0, -1))
    saturated, shallowest = level > limits.saturated, evidence[0]
    said = f"after {updates(step)} the output has moved {share(level)}"
    word: Word = "pass"
    limit = limits.saturated if saturated else limits.update
    if not step or not math.isfinite(level):
        word, why = "cannot tell", f"after {updates(step)} the output's movement is no number"
    elif level > limits.gone:
        word, why, limit = "fail", f"{said}: nothing of the start is left", limits.gone
    elif last > limits.risen * first > 0:
        word, why, limit = (
            "fail",
            f"the loss rises from {first:.3g} to {last:.3g} in {len(losses[0]) - 1} updates",
            limits.risen,
        )
    elif saturated:
        began = f", {share(shallowest.value)}{_at(shallowest.depth)}" * (shallowest.value <= limits.saturated)
        word, why = "warn", f"{said}{began}: saturated, little of the start is left"
    elif fit is None:
        word, why = "cannot tell", f"{said}; how with depth is open: {_no_fit(values)}"
    else:
        why = f"{said}, as {law(fit)}"
        if fit.low > limits.update:
            at = deepest * (limits.saturated / level) ** (1 / fit.exponent)
            word, why = "warn", f"{why}; it would be saturated at about {rounded(at)} layers"
        elif fit.high > limits.update:
            word, why = "warn", f"{why}, which contains {limits.update:g}: it may grow with depth"
    return LinkVerdict(
        verdict=word, why=why, level=level, limit=limit, step=step, fit=None if saturated else fit, saturated=saturated,
        evidence=evidence,
    )  # fmt: skip


def _gradient(cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    deepest = max(cells, key=lambda cell: cell.facts.depth or 0)
    facts = deepest.facts
    why = facts.unregistered
    if not why and facts.unreached_share > MOST_UNREACHED:
        why = f"no gradient but 0 reaches {facts.unreached} in {updates(int(deepest.records['gradient'].steps[-1]))}"
    if why:
        return LinkVerdict(verdict="fail", why=why, level=0.0, limit=limits.gradient, step=0)
    links = [_gradient_of(stack, cells, limits) for stack in _stacks(cells)]
    comparable = [link for link in links if link is not None]
    if comparable:
        return worst(comparable)
    where = _at(max(cell.facts.depth or 0 for cell in cells))
    why = f"no two layers{where} have a gradient to compare: weights are shared, frozen or cut off"
    return LinkVerdict(verdict="cannot tell", why=why, level=math.nan, limit=limits.gradient, step=0)


def _gradient_of(stack: str, cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict | None:
    """None where the deepest has no two layers whose gradients can be compared; a shallower one without is left out."""
    ratios = {id(cell): cell.gradient_ratio(stack) for cell in cells if stack in cell.stacks}
    having = [cell for cell in cells if np.isfinite(ratios.get(id(cell), np.nan)).any()]
    if max(cell.facts.depth or 0 for cell in cells) not in {cell.facts.depth or 0 for cell in having}:
        return None

    def values(t: int) -> Mapping[int, Mapping[int, float]]:
        return _by_seed(having, lambda cell: float(ratios[id(cell)][t]))

    at_step = {t: _evidence(values(t)) for t in range(min(len(ratios[id(cell)]) for cell in having))}
    steps = {t: layers for t, layers in at_step.items() if all(0 <= one.value < math.inf for one in layers)}
    if not steps:
        return None

    def away(t: int) -> float:
        return abs(math.log(max(steps[t][-1].value, 1e-300)))

    def beyond(limit: float) -> list[int]:
        return [t for t, layers in steps.items() if not limit <= layers[-1].value <= 1 / limit]

    def moved() -> list[int]:
        pairs = {t: (layers[0].value, layers[-1].value) for t, layers in steps.items()}
        fallen = [t for t, (first, last) in pairs.items() if first > limits.fall * last and last < 0.1]
        risen = [t for t, (first, last) in pairs.items() if last > limits.fall * first and last > 1 / limits.weak]
        return fallen + risen

    word: Word = "fail"
    changes = False
    if layers := beyond(limits.gradient):
        limit = limits.gradient
    elif layers := moved():
        changes, limit = True, limits.fall
    else:
        layers, limit = beyond(limits.weak), limits.weak
        word = "warn" if layers else "pass"
    step = max(layers or steps, key=away)
    evidence = steps[step]
    first, last = evidence[0], evidence[-1]
    said = f"after {updates(step)}" if step else "before any update"
    lowest = f"the {_whose(stack, cells)}lowest layer"
    why = f"{lowest} receives {times(last.value)} the top layer's gradient {said}"
    if changes:
        way = "falls" if last.value < first.value else "rises"
        why = (
            f"{lowest}'s gradient over the top layer's {way} from {first.value:.2g}{_at(first.depth)} to "
            f"{last.value:.2g}{_at(last.depth)}, {said}"
        )
    return LinkVerdict(
        verdict=word, why=why, level=last.value, limit=limit, step=step, fit=depth_fit(values(step)), evidence=evidence
    )  # fmt: skip


def _finite(cells: Sequence[ModelCell]) -> LinkVerdict:
    broken = [(c.facts.depth or 0, c.facts.seed, c.facts.broke) for c in cells if c.facts.broke]
    if not broken:
        return LinkVerdict(verdict="pass", why="every number recorded is finite", level=0.0, limit=0.0, step=0)
    depth, _, broke = min(broken, key=lambda one: one[:2])
    why = f"{len(broken)} of {len(cells)} runs met a number that is not finite, first{_at(depth)}: {broke}"
    return LinkVerdict(verdict="fail", why=why, level=float(len(broken)), limit=0.0, step=broke.step)


def _stacks(cells: Sequence[ModelCell]) -> list[str]:
    """Of the deepest."""
    return list(max(cells, key=lambda cell: cell.facts.depth or 0).stacks)


def _whose(stack: str, cells: Sequence[ModelCell]) -> str:
    """`encoder's ` where there are several."""
    return f"{stack}'s " if len(_stacks(cells)) > 1 else ""


def _at(depth: int | None) -> str:
    return f" at {depth} layers" if depth else ""


def _by_seed(cells: Sequence[ModelCell], value: Callable[[ModelCell], float]) -> Mapping[int, Mapping[int, float]]:
    """{seed: {depth: value}}; of a factory without a depth, depth 0."""
    by_seed: dict[int, dict[int, float]] = {}
    for cell in cells:
        by_seed.setdefault(cell.facts.seed, {})[cell.facts.depth or 0] = value(cell)
    return by_seed


def _evidence(values: Mapping[int, Mapping[int, float]]) -> tuple[Evidence, ...]:
    depths = sorted({depth for own in values.values() for depth in own})
    rows = [tuple(own[depth] for own in values.values() if depth in own) for depth in depths]
    return tuple(
        Evidence(depth=depth or None, value=geometric(row), seeds=row) for depth, row in zip(depths, rows, strict=True)
    )


def _no_fit(values: Mapping[int, Mapping[int, float]]) -> str:
    depths = sorted({depth for own in values.values() for depth in own})
    if depths == [0]:
        return "the factory takes no depth"
    return too_few(depths) or "not every depth has a number above 0"
