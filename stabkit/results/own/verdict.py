"""The chain of a user's model, link by link: does it hold with depth?

    stream    rms(x_L)/rms(x_0) before any update. Independent branches add up as N^½ and aligned ones as N at most
              (OLMo 2's, each normed, as N^0.78: it trains): a warning above N^0.75; above N^1.1, or by more than 5 % a
              layer exponentially, a failure, and so is shrinking as fast
    update    ‖ΔF‖/‖F‖ after four updates. A model that saturates may still train (Pre-LN does): a warning; ten times
              its size, or a loss that has tripled, is a failure
    gradient  lowest layer's gradient over the top layer's, where it is farthest from 1. Below 10⁻⁴ nothing trained in
              stabkit's own runs, above 10⁻² nearly all did; a fall by more than ten from the shallowest to the deepest
              is a failure; likewise a rise to 10⁴, or by more than ten to over 10²
    finite    the first number that is not

`cannot tell` is a verdict and no pass: too few depths, or seeds whose interval holds the limit.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from stabkit.results.own.cell import Cell
from stabkit.results.own.depth_fit import DepthFit, depth_fit, geometric, too_few
from stabkit.results.own.words import grows, power, rounded, share, times, updates

Word = Literal["pass", "warn", "cannot tell", "fail"]
ORDER: tuple[Word, ...] = ("pass", "warn", "cannot tell", "fail")
"""The worst is last."""
UPDATE_STEP = 4


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
class Evidence:
    """A link's number at one depth."""

    depth: int | None
    value: float
    """Geometric mean over seeds."""
    seeds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One link of the chain."""

    verdict: Word
    why: str
    """In words, with the numbers."""
    level: float
    """At the deepest."""
    limit: float
    """That which decided, or would."""
    step: int
    """Of the level."""
    fit: DepthFit | None = None
    saturated: bool = False
    evidence: tuple[Evidence, ...] = ()

    def to_json(self) -> dict[str, Any]:
        fit = self.fit
        return {
            "verdict": self.verdict,
            "why": self.why,
            "level": self.level,
            "exponent": fit.exponent if fit else None,
            "interval": [fit.low, fit.high] if fit else None,
            "fit": ("power" if fit.power else "exponential") if fit else None,
            "factor": fit.factor if fit else None,
            "saturated": self.saturated,
            "limit": self.limit,
            "step": self.step,
            "evidence": [asdict(own) for own in self.evidence],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """All four, at one rate."""

    lr: float
    stream: Link
    update: Link
    gradient: Link
    finite: Link

    @property
    def links(self) -> dict[str, Link]:
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


def verdict(cells: Sequence[Cell], limits: Limits = Limits()) -> Verdict:
    """Of all cells at one rate."""
    (lr,) = {cell.facts.lr for cell in cells}
    return Verdict(
        lr=lr,
        stream=_stream(cells, limits),
        update=_update(cells, limits),
        gradient=_gradient(cells, limits),
        finite=_finite(cells),
    )


def _stream(cells: Sequence[Cell], limits: Limits) -> Link:
    values = _by_seed(cells, Cell.growth)
    evidence, fit = _evidence(values), depth_fit(values)
    level = evidence[-1].value
    said = f"the residual stream {grows(level)} from the first layer to the last"
    word: Word = "pass"
    limit = limits.stream
    if fit is None:
        word, why = "cannot tell", f"{said}; how with depth is open: {_no_fit(values)}"
    elif _exponential(fit, limits) and not 1 / limits.far <= level <= limits.far:
        word, why = "fail", f"{said}, exponentially with depth: by {100 * (fit.factor - 1):+.0f} % a layer"
    else:
        why = f"{said}; with depth it goes as {power(fit)}"
        if fit.low > limits.stream or fit.high < -limits.stream:
            word, why = "fail", f"{why}: more than branches that add up, however aligned"
        elif fit.high > limits.stream or fit.low < -limits.stream:
            word, why = "cannot tell", f"{why}, which holds {limits.stream:g}: more seeds or depths would tell"
        elif fit.low > limits.aligned:
            word, why, limit = "warn", f"{why}: branches add up in line, not by chance", limits.aligned
    return Link(verdict=word, why=why, level=level, limit=limit, step=0, fit=fit, evidence=evidence)


def _exponential(fit: DepthFit, limits: Limits) -> bool:
    return fit.clear and (fit.factor_low > limits.a_layer or fit.factor_high < 1 / limits.a_layer)


def _update(cells: Sequence[Cell], limits: Limits) -> Link:
    step = min(UPDATE_STEP, *(int(cell.records["update"].steps[-1]) for cell in cells))
    values = _by_seed(cells, lambda cell: float(cell.update()[step]))
    evidence, fit = _evidence(values), depth_fit(values)
    level = evidence[-1].value
    deepest = max(cell.facts.depth or 0 for cell in cells)
    losses = [cell.records["loss"].at("train") for cell in cells if (cell.facts.depth or 0) == deepest]
    first, last = (statistics.median(float(series[at]) for series in losses) for at in (0, -1))
    saturated = level > limits.saturated
    said = f"after {updates(step)} the output has moved {share(level)}"
    word: Word = "pass"
    limit = limits.saturated if saturated else limits.update
    if not math.isfinite(level):
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
        word, why = "warn", f"{said}: saturated, little of the start is left"
    elif fit is None:
        word, why = "cannot tell", f"{said}; how with depth is open: {_no_fit(values)}"
    else:
        why = f"{said}, as {power(fit)}"
        if fit.low > limits.update:
            at = deepest * (limits.saturated / level) ** (1 / fit.exponent)
            word, why = "warn", f"{why}; it would reach {limits.saturated:g} at about {rounded(at)} layers"
        elif fit.high > limits.update:
            word, why = "cannot tell", f"{why}, which holds {limits.update:g}: more seeds or depths would tell"
    return Link(
        verdict=word, why=why, level=level, limit=limit, step=step, fit=None if saturated else fit, saturated=saturated,
        evidence=evidence,
    )  # fmt: skip


def _gradient(cells: Sequence[Cell], limits: Limits) -> Link:
    series = [cell.gradient_ratio() for cell in cells]
    every = [
        (t, _evidence(_by_seed(cells, lambda cell, t=t: float(cell.gradient_ratio()[t]))))
        for t in range(min(map(len, series)))
    ]
    steps = {t: own for t, own in every if all(0 <= one.value < math.inf for one in own)}
    if not steps:
        why = "no layer of its own has a gradient to compare: weights are shared, frozen or cut off"
        return Link(verdict="cannot tell", why=why, level=math.nan, limit=limits.gradient, step=0)

    def away(t: int) -> float:
        return abs(math.log(max(steps[t][-1].value, 1e-300)))

    def fallen(t: int) -> float:
        first, last = steps[t][0].value, steps[t][-1].value
        return math.inf if not last and first else first / last if last else 1.0

    step, word, limit = max(steps, key=away), "pass", limits.weak
    low, high = min(steps, key=lambda t: steps[t][-1].value), max(steps, key=lambda t: steps[t][-1].value)
    least, most = steps[low][-1].value, steps[high][-1].value
    falls, rises = max(steps, key=fallen), min(steps, key=fallen)
    if least < limits.gradient or most > 1 / limits.gradient:
        step, word, limit = (low if least < limits.gradient else high), "fail", limits.gradient
    elif fallen(falls) > limits.fall and steps[falls][-1].value < 0.1:
        step, word, limit = falls, "fail", limits.fall
    elif fallen(rises) < 1 / limits.fall and steps[rises][-1].value > 1 / limits.weak:
        step, word, limit = rises, "fail", limits.fall
    elif least < limits.weak or most > 1 / limits.weak:
        step, word = (low if least < limits.weak else high), "warn"
    evidence = steps[step]
    first, last = evidence[0], evidence[-1]
    said = f"after {updates(step)}" if step else "before any update"
    why = f"the lowest layer receives {times(last.value)} the top layer's gradient {said}"
    if limit == limits.fall:
        moved = "falls" if last.value < first.value else "rises"
        why = (
            f"the lowest layer's gradient over the top layer's {moved} from {first.value:.2g} at {first.depth} to "
            f"{last.value:.2g} at {last.depth} layers, {said}"
        )
    fit = depth_fit(_by_seed(cells, lambda cell: float(cell.gradient_ratio()[step])))
    return Link(verdict=word, why=why, level=last.value, limit=limit, step=step, fit=fit, evidence=evidence)  # type: ignore[arg-type]


def _finite(cells: Sequence[Cell]) -> Link:
    broken = sorted((c for c in cells if c.facts.broke), key=lambda c: (c.facts.depth or 0, c.facts.seed))
    if not broken:
        return Link(verdict="pass", why="every number recorded is finite", level=0.0, limit=0.0, step=0)
    first = broken[0].facts
    where = f" at depth {first.depth}" if first.depth is not None else ""
    why = f"{len(broken)} of {len(cells)} runs met a number that is not finite, first{where}: {first.broke}"
    step = int(first.broke.removeprefix("step ").partition(",")[0])
    return Link(verdict="fail", why=why, level=float(len(broken)), limit=0.0, step=step)


def _by_seed(cells: Sequence[Cell], value: Any) -> Mapping[int, Mapping[int, float]]:
    """{seed: {depth: value}}; of a factory without a depth, depth 0."""
    found: dict[int, dict[int, float]] = {}
    for cell in cells:
        found.setdefault(cell.facts.seed, {})[cell.facts.depth or 0] = value(cell)
    return found


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
