"""Does the best rate carry over depth, or width? What to try next, and what the runs tried so far say. Pure.

Of one case (a method, or a factory) every size has a valley: loss after equal updates against the rate, over rates a
factor √2 apart, its rungs. Its search spends runs where the minimum is: outward by a factor 2 with the first seed until
a rate that trains lies between two of a higher loss, then every seed at it and at two rungs on either side, moved until
the lowest mean is in the middle; and upward with the first seed until a rate does not train.

    loss_s(x) = a_s + b_s·x + c·x²,  x = log2 rate,  within the window of the minimum, one c for all seeds
    best_s    = −b_s/2c,  and the best rate is the mean over seeds, with Student's interval (95 %)
    best      ∝ size^p    by least squares in logarithms, seed by seed
    regret    = loss at the largest, at the rate that is best at the smallest, less the loss at its own best: seed by
                seed, that best chosen by the other seeds, or chance would choose it
    threshold = the standard deviation of the loss over seeds, and no more than SPREAD times the scatter around the
                parabolas: what another seed costs, unless seeds differ by more than rates do (other data, another task)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from stabkit.results import intervals
from stabkit.results.intervals import Interval
from stabkit.results.line import Line, beyond, line, slope

Axis = Literal["depth", "width"]
Verdict = Literal["carries", "drifts", "cannot tell"]
OCTAVE = 2
"""Rungs of a factor 2."""
REACH = 2
"""Rungs of the window on either side of its middle."""
SPREAD = 5.0
"""Times the scatter around the parabolas that a threshold is at most. The difference of two rates, a seed, scatters by
√2 of it, and Student's interval over three seeds reaches 2.5 times that: what is at rest can be shown to be."""
LEAST = 0.001
"""Of the loss that a threshold is at least."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one run at a rate came to."""

    loss: float
    """After equal updates, on what it was not trained on; infinite where it diverged."""
    trains: bool


Trials = Mapping[tuple[int, int], Trial]
"""{(rung, seed): its trial}."""
Wanted = list[tuple[int, int]]


def rungs(low: float, high: float) -> tuple[float, ...]:
    """Rates about a factor √2 apart, from `low` to `high`."""
    count = max(1, round(OCTAVE * math.log2(high / low)))
    return tuple(float(f"{low * (high / low) ** (i / count):.3g}") for i in range(count + 1))


@dataclass(frozen=True, slots=True)
class Parabola:
    """loss = a_s + b_s·x + c·x², x from `centre` on."""

    centre: float
    slopes: Mapping[int, float]
    """{seed: b}."""
    c: float
    half: float
    """Half the interval of c."""
    scatter: float
    """Of the losses around it."""

    @property
    def bends(self) -> bool:
        """Whether it is shown to bend upward."""
        return self.c > self.half

    @property
    def bottoms(self) -> dict[int, float]:
        """{seed: its minimum}."""
        return {seed: self.centre - slope / (2 * self.c) for seed, slope in self.slopes.items()}

    @property
    def shared(self) -> float:
        """Half the interval that all minima share, by that of c."""
        return abs(statistics.fmean(self.bottoms.values()) - self.centre) * self.half / self.c


@dataclass(frozen=True, kw_only=True)
class Valley:
    """The rates tried at one size."""

    size: int
    rungs: tuple[float, ...]
    seeds: tuple[int, ...]
    trials: Trials

    def wanted(self, start: int) -> Wanted:
        """What to try next; nothing where it is found, or no rate trains. `start`: the rung that is tried first."""
        first = self.seeds[0]
        mine = {i: trial for (i, seed), trial in self.trials.items() if seed == first}
        if further := self._outward(mine, start):
            return [(i, first) for i in further]
        if not any(trial.trains for trial in mine.values()):
            return []
        window = [(i, seed) for i in self.window for seed in self.seeds]
        if missing := [place for place in window if place not in self.trials]:
            return missing
        return [(i, first) for i in self._upward()]

    def _outward(self, mine: Mapping[int, Trial], start: int) -> list[int]:
        """Rungs of the first seed: down until one trains, then until the lowest of those that train, a factor 2 apart,
        has both neighbours."""
        coarse = {i: trial for i, trial in mine.items() if (i - start) % OCTAVE == 0}
        if not coarse:
            return [start]
        training = {i: trial.loss for i, trial in coarse.items() if trial.trains}
        if not training:
            below = min(coarse) - OCTAVE
            return [below] if below >= 0 else []
        best = min(training, key=training.__getitem__)
        return [i for i in (best - OCTAVE, best + OCTAVE) if 0 <= i < len(self.rungs) and i not in coarse]

    def _upward(self) -> list[int]:
        """The next rung above all that train, by the first seed."""
        mine = {i: trial.trains for (i, seed), trial in self.trials.items() if seed == self.seeds[0]}
        above = max((i for i, well in mine.items() if well), default=-1) + OCTAVE
        known = any(i > above - OCTAVE for i, well in mine.items() if not well)
        return [above] if not known and above < len(self.rungs) else []

    @cached_property
    def means(self) -> dict[int, float]:
        """{rung: mean loss}, of those that every seed has tried; infinite where one diverges."""
        tried = {i for i, _ in self.trials}
        full = [i for i in tried if all((i, seed) in self.trials for seed in self.seeds)]
        return {i: statistics.fmean(self.trials[i, seed].loss for seed in self.seeds) for i in sorted(full)}

    @property
    def middle(self) -> int:
        """The rung of the lowest mean; before all seeds have one, that of the first seed's lowest that trains."""
        if any(map(math.isfinite, self.means.values())):
            return min(self.means, key=self.means.__getitem__)
        first = {i: trial.loss for (i, seed), trial in self.trials.items() if seed == self.seeds[0] and trial.trains}
        return min(first, key=first.__getitem__)

    @property
    def window(self) -> list[int]:
        """The rungs around the middle that the minimum is fitted on."""
        return [i for i in range(self.middle - REACH, self.middle + REACH + 1) if 0 <= i < len(self.rungs)]

    @property
    def found(self) -> bool:
        """Whether every seed has tried the window, and some rate in it has a loss for all of them."""
        return self.whole and math.isfinite(self.means[self.middle])

    @property
    def whole(self) -> bool:
        """Whether every seed has tried the window of some rate that trains."""
        first = any(trial.trains for (_, seed), trial in self.trials.items() if seed == self.seeds[0])
        return first and all((i, seed) in self.trials for i in self.window for seed in self.seeds)

    @property
    def rim(self) -> Literal["", "lowest", "highest"]:
        """Whether the lowest mean is at an end of the rates: then the best may lie beyond."""
        if not self.found:
            return ""
        return "lowest" if self.middle == 0 else "highest" if self.middle == len(self.rungs) - 1 else ""

    @property
    def edge(self) -> bool:
        """Whether a seed diverges at the rung above that of the lowest mean: the best rate is where training ends."""
        return self.found and not self.rim and not math.isfinite(self.means.get(self.middle + 1, math.inf))

    @property
    def alike(self) -> bool:
        """Whether two seeds have the same losses to the bit: then they are one."""
        losses = [tuple(self.trials[i, seed].loss for i in self.window) for seed in self.seeds] if self.found else []
        return len(set(losses)) < len(losses)

    @property
    def loss(self) -> float:
        """Of the rung of the lowest mean."""
        return self.means[self.middle]

    @cached_property
    def _fit(self) -> Parabola | None:
        """None where there are too few finite losses."""
        rows = [(i, seed) for seed in self.seeds for i in self.window if math.isfinite(self.trials[i, seed].loss)]
        centre = math.log2(self.rungs[self.middle])
        x = np.array([math.log2(self.rungs[i]) - centre for i, _ in rows])
        of = np.array([[seed == column for column in self.seeds] for _, seed in rows], dtype=float)
        design = np.column_stack([of, of * x[:, None], x**2])
        degrees = len(rows) - design.shape[1]
        if degrees < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
            return None
        loss = np.array([self.trials[place].loss for place in rows])
        solved, *_ = np.linalg.lstsq(design, loss, rcond=None)
        variance = float(((loss - design @ solved) ** 2).sum()) / degrees
        error = math.sqrt(variance * float(np.linalg.inv(design.T @ design)[-1, -1]))
        slopes = dict(zip(self.seeds, solved[len(self.seeds) : -1].tolist(), strict=True))
        return Parabola(centre, slopes, float(solved[-1]), intervals.quantile(degrees) * error, math.sqrt(variance))

    @property
    def scatter(self) -> float:
        """The standard deviation of the losses around the parabolas; NaN without a fit."""
        return self._fit.scatter if self.found and self._fit else math.nan

    @cached_property
    def by_seed(self) -> dict[int, float]:
        """{seed: its best rate in log2}; none where the valley has no bottom within the window."""
        if not self.found or self.rim or self.edge or self._fit is None or not self._fit.bends:
            return {}
        ends = math.log2(self.rungs[self.window[0]]), math.log2(self.rungs[self.window[-1]])
        bottoms = self._fit.bottoms
        return bottoms if all(ends[0] <= bottom <= ends[1] for bottom in bottoms.values()) else {}

    @property
    def best(self) -> Interval | None:
        """The best rate; None where the losses have no bottom that can be known."""
        if not self.by_seed or self._fit is None:
            return None
        return Interval.of(list(self.by_seed.values()), self._fit.shared).turned(lambda x: 2**x)

    def lost(self, rung: int) -> Interval | None:
        """Nats that a rung which every seed has tried loses to the best, seed by seed, that best chosen by the others;
        infinite where it diverges in half of the seeds or more, None where it does in fewer."""
        diverged = sum(not math.isfinite(self.trials[rung, seed].loss) for seed in self.seeds)
        if diverged:
            return Interval(math.inf, math.inf, math.inf) if 2 * diverged >= len(self.seeds) else None
        return Interval.of([self.trials[rung, seed].loss - self._least(seed) for seed in self.seeds])

    def _least(self, seed: int) -> float:
        """The loss of a seed at the rung that the others say is best, of those at which none diverges."""
        others = [other for other in self.seeds if other != seed] or [seed]
        means = {
            i: statistics.fmean(self.trials[i, other].loss for other in others)
            for i, mean in self.means.items()
            if math.isfinite(mean)
        }
        return self.trials[min(means, key=means.__getitem__), seed].loss

    @property
    def highest(self) -> float | None:
        """The highest rung that trains, by the first seed; None where none does."""
        mine = [i for (i, seed), trial in self.trials.items() if seed == self.seeds[0] and trial.trains]
        return self.rungs[max(mine)] if mine else None

    @property
    def bounded(self) -> bool:
        """Whether a higher rate is known not to train."""
        return self.highest is not None and any(
            self.rungs[i] > self.highest for (i, seed), trial in self.trials.items() if seed == self.seeds[0]
        )

    def to_json(self, axis: Axis) -> dict[str, Any]:
        """Plain JSON values."""
        best = self.best.to_json() if self.best else {"value": None, "low": None, "high": None}
        return {
            axis: self.size,
            "best": best["value"],
            "low": best["low"],
            "high": best["high"],
            "rim": self.rim,
            "highest_stable": self.highest,
            "loss": self.loss if self.found else None,
            "tried": [
                {
                    "lr": self.rungs[i],
                    "seed": seed,
                    "loss": trial.loss if math.isfinite(trial.loss) else None,
                    "trains": trial.trains,
                }
                for (i, seed), trial in sorted(self.trials.items())
            ],
        }


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

    def wanted(self, start: int) -> dict[int, Wanted]:
        """{size: what to try next}; where all are found, the smallest's best rate at the largest."""
        open_ = [valley for valley in self.valleys if valley.size not in self.lost]
        wanted = {valley.size: more for valley in open_ if (more := valley.wanted(start))}
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
        """{seed: the line through its best rates, in log2 of both}; none of fewer than two sizes with a best rate."""
        if len(self.found) < 2:
            return {}
        return {seed: line(*zip(*points, strict=True)) for seed, points in self._points.items()}

    @property
    def _points(self) -> dict[int, list[tuple[float, float]]]:
        """{seed: (log2 of the size, log2 of its best rate)}."""
        seeds = self.valleys[0].seeds
        return {seed: [(math.log2(valley.size), valley.by_seed[seed]) for valley in self.found] for seed in seeds}

    @property
    def drift(self) -> Interval | None:
        """p of best ∝ size^p, over seeds; None of fewer than two sizes with a best rate."""
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
        return max(noise, LEAST * abs(self.valleys[-1].loss))

    @property
    def verdict(self) -> Verdict:
        """`carries`: the whole interval of the regret lies below the threshold. `drifts`: the regret lies above it, is
        shown to be above 0, and the best rate is shown to move, or the smallest's does not train at the largest."""
        regret, drift = self.regret, self.drift
        if regret is None or math.isnan(self.threshold) or self.valleys[0].best is None:
            return "cannot tell"
        if math.isinf(regret.value):
            return "drifts"
        if self.valleys[-1].best is None or drift is None or math.isnan(regret.high):
            return "cannot tell"
        if regret.high <= self.threshold:
            return "carries"
        moves = drift.low > 0 or drift.high < 0
        return "drifts" if regret.low > 0 and regret.value > self.threshold and moves else "cannot tell"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        predicted = {size: self.predicted(size) for size in self.predict}
        drift = self.drift
        return {
            "model": self.key,
            "label": self.label,
            "verdict": self.verdict,
            f"{self.axis}s": [valley.to_json(self.axis) for valley in self.valleys],
            "drift": {"exponent": drift.to_json()["value"], **drift.to_json()} if drift else None,
            "regret": {**self.regret.to_json(), "diverges": math.isinf(self.regret.value)} if self.regret else None,
            "gain": self.gain if self.valleys[0].found and self.valleys[-1].found else None,
            "threshold": self.threshold if math.isfinite(self.threshold) else None,
            "predicted": [
                {self.axis: size, **({"lr": rate.value, **rate.to_json()} if rate else {"lr": None})}
                for size, rate in predicted.items()
            ],
        }
