"""The chain of a user's model, link by link, and what follows for its training.

Whether it trains is a forecast (`forecast.py`). The links explain it: each has a number, the range that models have
that train, and a verdict of its own, `pass` or, where a number is beyond what any of them had, `fail`:

    stream    rms(x_L)/rms(x_0) before any update, judged by what growth costs. Where a norm stands at the end it is
              divided out (nanochat's shortcuts multiply by 1.05 to 1.15 a layer, and it trains): a failure is an upper
              branch that weighs less than 10⁻³ of what a lower one does, ‖γ·f‖ over what it is added to (two hundred
              branches in line leave the last 5·10⁻³), or an entry within a factor of ten of the largest number of the
              type that the model runs in. Without a norm at the end growth is the scores': independent branches add up
              as N^½, aligned ones as N at most; above N^1.1, or by more than 5 % a layer exponentially, a failure. A
              stream that shrinks as fast fails in both cases
    update    ‖ΔF‖/‖F‖ after the last update: how far the output is from where it began. It never fails: Pre-LN
              saturates as Post-LN does, and trains
    gradient  lowest layer's gradient over the top layer's, at the step at which it is worst; fails below 10⁻⁴ and above
              10⁴, behind a norm at the end above 10⁴ times what the stream has grown by: ∂L/∂θ_i goes as 1/‖x_i‖ there.
              (Two models that train show it: one of the corpus at 1.4·10⁴, and four streams that grow 10¹³-fold.)
              Likewise matrices that no gradient ever arrives at, or that no optimiser can step
    scores    what the scores tell of their input, H(mean p) − mean H(p), while the rate rises to sixteen times its
              highest, the geometric mean over nine readings: near 0 every token is given the same, and the loss is that
              of who knows frequencies alone
    tokens    mean cosine between different tokens of the output after the last update: near 1 it says nothing of them
    loss      what the loss fell by, nats
    finite    the first number that is not

Of several stacks each is judged by itself, and the worst stands for the link. A link is `cannot tell` where too few
depths, or a gradient that cannot be compared, leave it open. A link that fails ends in `likely stuck`, whatever the
forecast, but upper branches that weigh nothing: what is left is a shallower model, which may train, and the word is
`open` at best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypedDict

import numpy as np

from stabkit.results.depth_fit import depth_fit, geometric
from stabkit.results.forecast.logistic import Word as Forecasted
from stabkit.results.line import too_few
from stabkit.results.own.cell import ModelCell, last_of_all
from stabkit.results.own.forecast import RATE, Healthy, OwnForecast, OwnForecastJson, forecast, ours
from stabkit.results.own.link import Evidence, LinkJson, LinkVerdict, Word, worst
from stabkit.results.own.measured import TOP, UPDATES, loss_fall, ramp_information
from stabkit.results.own.outcome import ShortTraining, trained
from stabkit.results.words import grows, law, share, times, updates, with_depth

MOST_UNREACHED = 0.5
"""Of the sub-layers: more with a matrix that no gradient ever arrives at, and the model does not train as it stands."""
SATURATED = 0.9
"""‖ΔF‖/‖F‖ from which on no law in depth is fitted. Two outputs that have nothing to do with one another are √2
apart."""
NOTHING = 1e-6
"""Nats that scores tell of their input: less is nothing."""
Said = Forecasted | Literal["trains", "stuck"]
"""Of a model: a forecast, or what a training of hundreds of updates saw."""
FIRM: tuple[Said, ...] = ("trains", "likely trains", "open", "out of range", "likely stuck", "stuck")
"""From the best to the worst."""
FINE: tuple[Said, ...] = ("trains", "likely trains")
STUCK: tuple[Said, ...] = ("likely stuck", "stuck")


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


class RateJson(TypedDict):
    """The verdict at one rate."""

    lr: float | None
    """null: the optimiser's own."""
    verdict: Said
    forecast: OwnForecastJson
    trained: ShortTraining | None
    """What hundreds of updates saw; null after fewer."""
    links: dict[str, LinkJson]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The forecast and all links, at one rate."""

    lr: float
    forecast: OwnForecast
    trained: ShortTraining | None = None
    """What hundreds of updates saw."""
    gradient: LinkVerdict
    scores: LinkVerdict
    update: LinkVerdict
    stream: LinkVerdict
    tokens: LinkVerdict
    loss: LinkVerdict
    finite: LinkVerdict

    @property
    def links(self) -> dict[str, LinkVerdict]:
        return {own.name: link for own in fields(self) if isinstance(link := getattr(self, own.name), LinkVerdict)}

    @property
    def failing(self) -> list[str]:
        """The links that fail."""
        return [name for name, link in self.links.items() if link.verdict == "fail"]

    @property
    def broken(self) -> bool:
        """Whether one of them fails for certain: none does where a training has shown what becomes of the model."""
        return self.trained is None and any(self.links[name].certain for name in self.failing)

    @property
    def word(self) -> Said:
        """What a training has shown; else the forecast's, or worse where a link fails: `likely stuck` where it does
        for certain, else `open`."""
        if self.trained is not None:
            return self.trained.word
        if self.broken:
            return "likely stuck"
        return max(self.forecast.word, "open", key=FIRM.index) if self.failing else self.forecast.word

    def to_json(self) -> RateJson:
        return {
            "lr": self.lr or None,
            "verdict": self.word,
            "forecast": self.forecast.to_json(),
            "trained": self.trained,
            "links": {name: link.to_json() for name, link in self.links.items()},
        }


def verdict(cells: Sequence[ModelCell], limits: Limits = Limits()) -> Verdict:
    """Of all cells at one rate. Beyond the rates of all tested models no number of an update is held against theirs."""
    (lr,) = {cell.facts.lr for cell in cells}
    whole = Verdict(
        lr=lr,
        forecast=forecast(_deepest(cells)),
        trained=trained(cells),
        gradient=_gradient(cells, limits),
        scores=_scores(cells),
        update=_update(cells),
        stream=_stream(cells, limits),
        tokens=_tokens(cells),
        loss=_loss(cells),
        finite=_finite(cells),
    )
    if RATE not in whole.forecast.axes:
        return whole
    alone = {name: replace(link, healthy=None) for name, link in whole.links.items() if name != "stream"}
    return replace(whole, **alone)  # type: ignore[arg-type]  # its own links


def _deepest(cells: Sequence[ModelCell]) -> list[ModelCell]:
    """Those at the greatest depth."""
    depth = max(cell.facts.depth or 0 for cell in cells)
    return [cell for cell in cells if (cell.facts.depth or 0) == depth]


def _stream(cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    return worst([_stream_of(stack, cells, limits) for stack in _stacks(cells)])


def _stream_of(stack: str, cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    having = [cell for cell in cells if stack in cell.stacks]
    values = _by_seed(having, lambda cell: cell.growth(stack))
    evidence, fit = _evidence(values), depth_fit(values)
    level = evidence[-1].value
    said = f"the {_whose(stack, cells)}residual stream {grows(level)} from the first layer's input to the last's output"
    word: Word = "pass"
    limit, certain = limits.stream, True
    last = _deepest(having)
    deepest = last[0].facts.depth or 0
    room = min((cell.room(stack) for cell in last), default=math.nan)
    normed = all(stack in cell.facts.normed for cell in last)
    shrinks = fit is not None and fit.exponential and fit.factor_high < 1 / limits.a_layer and level < 1 / limits.far
    falls = shrinks or (fit is not None and fit.high < -limits.stream)
    if room < limits.room:
        word, limit, kind = "fail", limits.room, last[0].facts.dtype
        why = f"{said}; its largest entry is within a factor of {room:.2g} of the largest {kind} number"
        if not room:
            why = f"the {_whose(stack, cells)}residual stream overflows {kind}{_at(deepest)}"
    elif normed and not falls:
        share = min(cell.dilution(stack) for cell in last)
        how = f"; {with_depth(fit)}" if fit is not None else ""
        least = f", and upper branches weigh {share:.2g} times as much as lower ones" if share > 0 else ""
        why = f"{said}{how}; the final norm divides this out{least}"
        if 0 < share < limits.share and level > limits.far:
            word, limit, certain = "fail", limits.share, False
            why = f"{said}{how}: upper branches weigh {share:.2g} times as much as lower ones, too little to count"
    elif fit is None:
        word, why = "cannot tell", f"{said}; its law in depth is not known: {_no_fit(values)}"
    elif (
        fit.exponential
        and (fit.factor_low > limits.a_layer or fit.factor_high < 1 / limits.a_layer)
        and not 1 / limits.far <= level <= limits.far
    ):
        word, limit = "fail", limits.a_layer
        why = f"{said}, exponentially with depth: {100 * (fit.factor - 1):+.0f} % per layer"
    else:
        why = f"{said}; {with_depth(fit)}"
        if fit.low > limits.stream or fit.high < -limits.stream:
            word, why = "fail", f"{why}: more than a sum of aligned branches explains"
        elif fit.high > limits.stream or fit.low < -limits.stream:
            within = "" if fit.vague else f", and this interval contains N^{limits.stream:g}"
            word, why = "cannot tell", f"{why}{within}: add seeds or depths to decide"
    return LinkVerdict(
        verdict=word, why=why, brief=said, level=level, limit=limit, step=0, fit=fit, certain=certain,
        evidence=evidence, healthy=ours().healthy("growth", level),
    )  # fmt: skip


def _update(cells: Sequence[ModelCell]) -> LinkVerdict:
    step = last_of_all(cells, "update")
    values = _by_seed(cells, lambda cell: cell.records["update"].value("state@relative", step))
    evidence, fit = _evidence(values), depth_fit(values)
    level = evidence[-1].value
    saturated = level > SATURATED
    why = f"after {updates(step)} the output has changed by {share(level)}"
    if not step or not math.isfinite(level):
        why = f"after {updates(step)} the output's change is not finite"
    elif saturated and evidence[0].value <= SATURATED:
        why = f"{why}, {share(evidence[0].value)}{_at(evidence[0].depth)}"
    elif not saturated and fit is not None and not fit.vague:
        why = f"{why}, as {law(fit)}"
    return LinkVerdict(
        verdict="pass", why=why, level=level, limit=math.nan, step=step, fit=None if saturated else fit,
        saturated=saturated, evidence=evidence, healthy=_healthy("update_last", level, step),
    )  # fmt: skip


def _healthy(number: str, value: float, updates: int) -> Healthy | None:
    """Among models that train, whose numbers are of UPDATES updates: None of what was read after more."""
    return ours().healthy(number, value) if updates <= UPDATES else None


def _shown(why: str, evidence: tuple[Evidence, ...], step: int, healthy: Healthy | None) -> LinkVerdict:
    """A link that explains and never fails, beside models that train."""
    level = evidence[-1].value
    return LinkVerdict(
        verdict="pass", why=why, level=level, limit=math.nan, step=step, evidence=evidence,
        healthy=healthy,
    )  # fmt: skip


def _tokens(cells: Sequence[ModelCell]) -> LinkVerdict:
    if any("token_cosine" not in cell.records for cell in cells):
        why = "no tokens were compared"
        return LinkVerdict(verdict="cannot tell", why=why, level=math.nan, limit=math.nan, step=0)
    step = last_of_all(cells, "token_cosine")
    evidence = _means(_by_seed(cells, lambda cell: cell.records["token_cosine"].value("state", step)))
    level = evidence[-1].value
    why = f"after {updates(step)} the cosine between different tokens of the output is {level:.2f} on average"
    return _shown(why, evidence, step, _healthy("cosine_last", level, step))


def _scores(cells: Sequence[ModelCell]) -> LinkVerdict:
    having = [cell for cell in cells if "ramp_loss" in cell.records and "scores" in cell.records]
    if not having:
        why = "the model has no scores, or the rate was not raised"
        return LinkVerdict(verdict="cannot tell", why=why, level=math.nan, limit=math.nan, step=0)
    evidence = _evidence(_by_seed(having, lambda cell: geometric(list(ramp_information(cell)))))
    level, step = evidence[-1].value, int(having[-1].records["ramp_loss"].steps[-1])
    held = f"{level:.2g} nats of information" if level > NOTHING else "no information"
    why = f"while the rate is raised to {TOP:g} times its peak, the logits hold {held} about their input"
    return _shown(why, evidence, step, ours().healthy("ramp_information", level))


def _loss(cells: Sequence[ModelCell]) -> LinkVerdict:
    step = min(int(cell.records["loss"].steps[-1]) for cell in cells)
    evidence = _means(_by_seed(cells, loss_fall))
    losses = [cell.records["loss"].at("train") for cell in _deepest(cells)]
    first, last = (float(np.mean([loss[some].mean() for loss in losses])) for some in (slice(None, 3), slice(-3, None)))
    why = f"the fall of the loss in {updates(step)} is {first - last:.3g}, from {first:.3g} to {last:.3g}"
    if (frequencies := _deepest(cells)[0].facts.frequencies) is not None:
        why += f" (knowing only the frequencies gives {frequencies:.3g})"
    return _shown(why, evidence, step, _healthy("loss_fall", evidence[-1].value, step))


def _gradient(cells: Sequence[ModelCell], limits: Limits) -> LinkVerdict:
    deepest = max(cells, key=lambda cell: cell.facts.depth or 0)
    facts = deepest.facts
    why = facts.unregistered
    if not why and facts.unreached_share > MOST_UNREACHED:
        count = updates(int(deepest.records["gradient"].steps[-1]))
        why = f"{facts.unreached} received no non-zero gradient in {count}"
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

    growths = [cell.growth(stack) for cell in _deepest(having) if stack in cell.facts.normed]
    most = max([1.0, *filter(math.isfinite, growths)]) / limits.gradient
    beyond = [t for t, layers in steps.items() if not limits.gradient <= layers[-1].value <= most]
    word: Word = "fail" if beyond else "pass"
    step = max(beyond or steps, key=away)
    evidence = steps[step]
    limit = most if evidence[-1].value > 1 else limits.gradient
    said = f"after {updates(step)}" if step else "before any update"
    lowest = f"the {_whose(stack, cells)}lowest layer"
    why = f"{lowest} receives {times(evidence[-1].value)} the top layer's gradient {said}"
    return LinkVerdict(
        verdict=word, why=why, level=evidence[-1].value, limit=limit, step=step, fit=depth_fit(values(step)),
        evidence=evidence, healthy=_healthy(
            "gradient_lowest" if evidence[-1].value < 1 else "gradient_highest", evidence[-1].value, max(at_step)
        ),
    )  # fmt: skip


def _finite(cells: Sequence[ModelCell]) -> LinkVerdict:
    broken = [(c.facts.depth or 0, c.facts.seed, c.facts.broke) for c in cells if c.facts.broke]
    if not broken:
        return LinkVerdict(verdict="pass", why="every number recorded is finite", level=0.0, limit=0.0, step=0)
    depth, _, broke = min(broken, key=lambda one: one[:2])
    why = f"{len(broken)} of {len(cells)} runs had a number that is not finite, first{_at(depth)}: {broke}"
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


def _means(values: Mapping[int, Mapping[int, float]]) -> tuple[Evidence, ...]:
    """As `_evidence`, of numbers that may be below 0: their means."""
    depths = sorted({depth for own in values.values() for depth in own})
    rows = [tuple(own[depth] for own in values.values() if depth in own) for depth in depths]
    return tuple(
        Evidence(depth=depth or None, value=float(np.mean(row)), seeds=row)
        for depth, row in zip(depths, rows, strict=True)
    )


def _no_fit(values: Mapping[int, Mapping[int, float]]) -> str:
    depths = sorted({depth for own in values.values() for depth in own})
    if depths == [0]:
        return "the factory takes no depth"
    return too_few(depths) or "not every depth has a number above 0"
