"""Does the best rate carry over depth, or width? What the valleys of all sizes say together. Pure.

best      ∝ size^p    by least squares in logarithms, seed by seed
regret    = loss at the largest, at the rate that is best at the smallest, less the loss at its own best: seed by
            seed, that best chosen by the other seeds, or chance would choose it
threshold = the standard deviation of the loss over seeds, and no more than SPREAD times the scatter around the
            parabolas: what another seed costs, unless seeds differ by more than rates do (other data, another task)
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NotRequired, TypedDict

from stabkit.results.intervals import Interval, IntervalJson
from stabkit.results.line import Line, beyond, line, slope
from stabkit.results.valley import Axis, Places, SizeJson, Valley, ValleyJson, size_json

Verdict = Literal["carries", "drifts", "cannot tell"]
SPREAD = 5.0
"""Times the scatter around the parabolas that a threshold is at most. The difference of two rates, a seed, scatters by
√2 of it, and Student's interval over three seeds reaches 2.5 times that: what is at rest can be shown to be."""
LEAST_NOISE, MOST_NOISE = 0.001, 0.02
"""Of the loss that a threshold is at least, and at most: seeds that differ by more cannot show that a rate carries."""
ENOUGH = 3
"""Sizes of several with a best rate that make a law."""


class DriftJson(IntervalJson):
    """p of best ∝ size^p."""

    exponent: float | None


class RegretJson(IntervalJson):
    """Nats lost at the largest by the smallest's best rate."""

    diverges: bool


class PredictedJson(SizeJson, IntervalJson):
    """The best rate at a size that was not tried, by the law."""

    lr: float


class UnpredictedJson(SizeJson):
    """A size of which there is no law."""

    lr: None


class ValleysJson(TypedDict):
    """Every size, by the name of its axis."""

    depths: NotRequired[list[ValleyJson]]
    widths: NotRequired[list[ValleyJson]]


class HighestJson(ValleysJson):
    """One case whose highest stable rates alone were searched."""

    model: str
    label: str


class TransferJson(HighestJson):
    """One case over its sizes."""

    verdict: Verdict
    drift: DriftJson | None
    regret: RegretJson | None
    gain: float | None
    """Nats that the largest loses less than the smallest, each at its best rate."""
    threshold: float | None
    """Nats below which a regret is no more than noise."""
    predicted: list[PredictedJson | UnpredictedJson]


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One case over its sizes."""

    key: str
    label: str
    method: str
    """By which it has its colour."""
    axis: Axis
    valleys: tuple[Valley, ...]
    """By size, ascending."""
    predict: tuple[int, ...] = ()
    """Sizes whose best rate is asked for."""
    lost: frozenset[int] = frozenset()
    """Sizes with a run that has no result: they are not searched further."""

    def next_trials(self, start: int) -> dict[int, Places]:
        """{size: what to try next}; where all are found, the smallest's best rate at the largest."""
        open_ = [valley for valley in self.valleys if valley.size not in self.lost]
        wanted = {valley.size: more for valley in open_ if (more := valley.next_trials(start))}
        last = self.valleys[-1]
        if wanted or not self.valleys[0].found or last.size in self.lost:
            return wanted
        kept = [(self.valleys[0].middle, seed) for seed in last.seeds]
        missing = [place for place in kept if place not in last.trials]
        return {last.size: missing} if missing else {}

    @property
    def found(self) -> list[Valley]:
        """Those with a best rate."""
        return [valley for valley in self.valleys if valley.best]

    @cached_property
    def _lines(self) -> dict[int, Line]:
        """{seed: the line through its best rates, in log2 of both}; none where a size lacks one and fewer than ENOUGH
        have one."""
        if len(self.found) < min(len(self.valleys), ENOUGH):
            return {}
        return {seed: line(*zip(*points, strict=True)) for seed, points in self._points.items()}

    @property
    def _points(self) -> dict[int, list[tuple[float, float]]]:
        """{seed: (log2 of the size, log2 of its best rate)}."""
        seeds = self.valleys[0].seeds
        return {seed: [(math.log2(valley.size), valley.by_seed[seed]) for valley in self.found] for seed in seeds}

    @property
    def drift(self) -> Interval | None:
        """p of best ∝ size^p, over seeds; None where too few sizes have a best rate."""
        return slope(self._points) if self._lines else None

    def predicted(self, size: int) -> Interval | None:
        """The best rate at a size, by the law."""
        if not self._lines:
            return None
        at = [fit.slope * math.log2(size) + fit.level for fit in self._lines.values()]
        return Interval.of(at, beyond(self._points, math.log2(size))).turned(lambda log: 2 ** min(log, 64.0))

    @cached_property
    def regret(self) -> Interval | None:
        """Nats lost at the largest by the smallest's best rung; infinite where that does not train; None before it was
        tried, where one of both has no best rung, and where it diverges in some seeds."""
        first, last = self.valleys[0], self.valleys[-1]
        if not (first.found and last.found) or first.size == last.size:
            return None
        kept = first.middle
        return None if any((kept, seed) not in last.trials for seed in last.seeds) else last.lost(kept)

    @property
    def gain(self) -> float:
        """Nats that the largest loses less than the smallest, each at its best rung."""
        return self.valleys[0].loss - self.valleys[-1].loss

    @property
    def threshold(self) -> float:
        """Nats below which a regret is no more than noise; NaN of one seed, or of seeds that are one."""
        squares, degrees = 0.0, 0
        searched = [valley for valley in self.valleys if valley.found and len(valley.seeds) > 1]
        for valley in searched:
            losses = [valley.trials[valley.middle, seed].loss for seed in valley.seeds]
            squares += statistics.variance(losses) * (len(losses) - 1)
            degrees += len(losses) - 1
        scatters = [valley.scatter for valley in searched if not math.isnan(valley.scatter)]
        if not scatters or any(valley.alike for valley in searched):
            return math.nan
        noise = min(math.sqrt(squares / degrees), SPREAD * math.sqrt(statistics.fmean(s**2 for s in scatters)))
        loss = abs(self.valleys[-1].loss)
        return min(max(noise, LEAST_NOISE * loss), MOST_NOISE * loss)

    @property
    def verdict(self) -> Verdict:
        """`carries`: the whole interval of the regret lies below the threshold. `drifts`: all of it lies above; or the
        regret does, is shown to be above 0, and the best rate is shown to move; or the smallest's does not train at the
        largest."""
        regret, drift = self.regret, self.drift
        if regret is None or math.isnan(self.threshold) or self.valleys[0].best is None:
            return "cannot tell"
        if math.isinf(regret.value):
            return "drifts"
        if self.valleys[-1].best is None or math.isnan(regret.high):
            return "cannot tell"
        if regret.high <= self.threshold:
            return "carries"
        if regret.low > self.threshold:
            return "drifts"
        moves = drift is not None and (drift.low > 0 or drift.high < 0)
        return "drifts" if regret.low > 0 and regret.value > self.threshold and moves else "cannot tell"

    def rates_json(self) -> HighestJson:
        """What was tried at every size."""
        rows = [valley.to_json(self.axis) for valley in self.valleys]
        sizes: ValleysJson = {"depths": rows} if self.axis == "depth" else {"widths": rows}
        return {"model": self.key, "label": self.label, **sizes}

    def to_json(self) -> TransferJson:
        """Plain JSON values."""
        drift = self.drift
        return {
            **self.rates_json(),
            "verdict": self.verdict,
            "drift": {"exponent": drift.to_json()["value"], **drift.to_json()} if drift else None,
            "regret": {**self.regret.to_json(), "diverges": math.isinf(self.regret.value)} if self.regret else None,
            "gain": self.gain if self.valleys[0].found and self.valleys[-1].found else None,
            "threshold": self.threshold if math.isfinite(self.threshold) else None,
            "predicted": [self._predicted_json(size) for size in self.predict],
        }

    def _predicted_json(self, size: int) -> PredictedJson | UnpredictedJson:
        rate = self.predicted(size)
        at = size_json(self.axis, size)
        return {**at, "lr": rate.value, **rate.to_json()} if rate else {**at, "lr": None}
