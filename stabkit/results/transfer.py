"""Does the best rate carry over depth, or width? What to try next, and what the runs tried so far say. Pure.

Of one case (a method, or a factory) every size has a valley: loss after equal updates against the rate, over rates a
factor √2 apart, its rungs. Its search spends runs where the minimum is: outward by a factor 2 with the first seed until
a rate lies between two of a higher loss, then every seed at it and at two rungs on either side, moved until the lowest
mean is in the middle; and upward with the first seed until a rate does not train.

    loss_s(x) = a_s + b_s·x + c·x²,  x = log2 rate,  within the window of the minimum, one c for all seeds
    best_s    = −b_s/2c,  and the best rate is the mean over seeds, with Student's interval (95 %)
    best      ∝ size^p    by least squares in logarithms, seed by seed
    regret    = loss at the largest, at the rate that is best at the smallest, less the loss at its own best: seed by
                seed, that best chosen by the other seeds, or chance would choose it
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
from stabkit.results.line import Line, line, scatter, slope

Axis = Literal["depth", "width"]
Verdict = Literal["carries", "drifts", "cannot tell"]
OCTAVE = 2
"""Rungs of a factor 2."""
REACH = 2
"""Rungs of the window on either side of its middle."""


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
        mine = {i: trial.loss for (i, seed), trial in self.trials.items() if seed == first}
        if further := self._outward(mine, start):
            return [(i, first) for i in further]
        if not any(map(math.isfinite, mine.values())):
            return []
        window = [(i, seed) for i in self.window for seed in self.seeds]
        if missing := [place for place in window if place not in self.trials]:
            return missing
        return [(i, first) for i in self._upward()]

    def _outward(self, mine: Mapping[int, float], start: int) -> list[int]:
        """Rungs of the first seed, until the lowest of those a factor 2 apart has both neighbours."""
        coarse = {i: loss for i, loss in mine.items() if (i - start) % OCTAVE == 0}
        if not coarse:
            return [start]
        finite = {i: loss for i, loss in coarse.items() if math.isfinite(loss)}
        if not finite:
            below = min(coarse) - OCTAVE
            return [below] if below >= 0 else []
        best = min(finite, key=finite.__getitem__)
        return [i for i in (best - OCTAVE, best + OCTAVE) if 0 <= i < len(self.rungs) and i not in coarse]

    def _upward(self) -> list[int]:
        """The next rung above all that train, by the first seed."""
        mine = {i: trial.trains for (i, seed), trial in self.trials.items() if seed == self.seeds[0]}
        above = max((i for i, well in mine.items() if well), default=-1) + OCTAVE
        known = any(i > above - OCTAVE for i, well in mine.items() if not well)
        return [above] if not known and above < len(self.rungs) else []

    @cached_property
    def means(self) -> dict[int, float]:
        """{rung: mean loss}, of those that every seed has tried."""
        held = {i for i, _ in self.trials}
        full = [i for i in held if all((i, seed) in self.trials for seed in self.seeds)]
        return {i: statistics.fmean(self.trials[i, seed].loss for seed in self.seeds) for i in sorted(full)}

    @property
    def middle(self) -> int:
        """The rung of the lowest mean; before all seeds have one, that of the first seed's lowest."""
        held = self.means or {i: trial.loss for (i, seed), trial in self.trials.items() if seed == self.seeds[0]}
        return min(held, key=held.__getitem__)

    @property
    def window(self) -> list[int]:
        """The rungs around the middle that the minimum is fitted on."""
        return [i for i in range(self.middle - REACH, self.middle + REACH + 1) if 0 <= i < len(self.rungs)]

    @property
    def found(self) -> bool:
        """Whether every seed has tried the window, and some rate in it has a loss."""
        whole = bool(self.trials) and all((i, seed) in self.trials for i in self.window for seed in self.seeds)
        return whole and math.isfinite(self.means[self.middle])

    @property
    def rim(self) -> Literal["", "lowest", "highest"]:
        """Whether the lowest mean is at an end of the rates: then the best may lie beyond."""
        if not self.found:
            return ""
        return "lowest" if self.middle == 0 else "highest" if self.middle == len(self.rungs) - 1 else ""

    @property
    def loss(self) -> float:
        """Of the rung of the lowest mean."""
        return self.means[self.middle]

    @cached_property
    def _fit(self) -> tuple[dict[int, float], float] | None:
        """({seed: its best, in log2 of the rate}, half the interval of what they share by c); None where the losses do
        not bend upward."""
        rows = [(i, seed) for seed in self.seeds for i in self.window if math.isfinite(self.trials[i, seed].loss)]
        centre = math.log2(self.rungs[self.middle])
        x = np.array([math.log2(self.rungs[i]) - centre for i, _ in rows])
        of = np.array([[seed == one for one in self.seeds] for _, seed in rows], dtype=float)
        design = np.column_stack([of, of * x[:, None], x**2])
        degrees = len(rows) - design.shape[1]
        if degrees < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
            return None
        loss = np.array([self.trials[place].loss for place in rows])
        solved, *_ = np.linalg.lstsq(design, loss, rcond=None)
        c = float(solved[-1])
        residual = float(((loss - design @ solved) ** 2).sum())
        error = math.sqrt(residual / degrees * float(np.linalg.inv(design.T @ design)[-1, -1]))
        if c <= intervals.quantile(degrees) * error:
            return None
        slopes = solved[len(self.seeds) : -1]
        best = {seed: centre - float(b) / (2 * c) for seed, b in zip(self.seeds, slopes, strict=True)}
        shared = abs(statistics.fmean(best.values()) - centre) * intervals.quantile(degrees) * error / c
        return best, shared

    @property
    def by_seed(self) -> dict[int, float]:
        """{seed: its best rate in log2}; none where the valley has no bottom that can be told."""
        return self._fit[0] if self.found and not self.rim and self._fit else {}

    @property
    def best(self) -> Interval | None:
        """The best rate; None where it cannot be told."""
        if not self.by_seed or self._fit is None:
            return None
        return Interval.of(list(self.by_seed.values()), self._fit[1]).turned(lambda x: 2**x)

    def lost(self, rung: int) -> Interval:
        """Nats that a rung which every seed has tried loses to the best, seed by seed, that best chosen by the others;
        infinite where it diverges."""
        lost = [self.trials[rung, seed].loss - self.trials[self._chosen(seed), seed].loss for seed in self.seeds]
        return Interval.of(lost) if all(map(math.isfinite, lost)) else Interval(math.inf, math.inf, math.inf)

    def _chosen(self, seed: int) -> int:
        """The best rung by the other seeds; of one seed alone by itself."""
        others = [one for one in self.seeds if one != seed] or [seed]
        means = {i: statistics.fmean(self.trials[i, one].loss for one in others) for i in self.means}
        return min(means, key=means.__getitem__)

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
        told = self.best.to_json() if self.best else {"value": None, "low": None, "high": None}
        return {
            axis: self.size,
            "best": told["value"],
            "low": told["low"],
            "high": told["high"],
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
    axis: Axis
    valleys: tuple[Valley, ...]
    """By size, ascending."""
    predict: tuple[int, ...] = ()
    """Sizes whose best rate is asked for."""

    def wanted(self, start: int) -> dict[int, Wanted]:
        """{size: what to try next}; where all are found, the smallest's best rate at the largest."""
        wanted = {valley.size: more for valley in self.valleys if (more := valley.wanted(start))}
        if wanted or not self.valleys[0].found:
            return wanted
        last = self.valleys[-1]
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
        return {seed: [(math.log2(one.size), one.by_seed[seed]) for one in self.found] for seed in seeds}

    @property
    def drift(self) -> Interval | None:
        """p of best ∝ size^p, over seeds; None of fewer than two sizes with a best rate."""
        return slope(self._points) if self._lines else None

    def predicted(self, size: int) -> Interval | None:
        """The best rate at a size, by the law."""
        if not self._lines:
            return None
        at = [fit.slope * math.log2(size) + fit.level for fit in self._lines.values()]
        return Interval.of(at, scatter(self._points)[1]).turned(lambda log: 2**log)

    @cached_property
    def regret(self) -> Interval | None:
        """Nats lost at the largest by the smallest's best rate; infinite where that diverges; None before it was tried,
        or where one of both has no best rung."""
        first, last = self.valleys[0], self.valleys[-1]
        if not (first.found and last.found) or first.size == last.size:
            return None
        kept = first.middle
        if any((kept, seed) not in last.trials for seed in last.seeds):
            return None
        return last.lost(kept)

    @property
    def gain(self) -> float:
        """Nats that the largest loses less than the smallest, each at its best rung."""
        return self.valleys[0].loss - self.valleys[-1].loss

    @property
    def noise(self) -> float:
        """The standard deviation over seeds of the loss at the best rung, over all sizes: what another seed costs. NaN
        of one seed."""
        squares, degrees = 0.0, 0
        for valley in self.valleys:
            if valley.found and len(valley.seeds) > 1:
                losses = [valley.trials[valley.middle, seed].loss for seed in valley.seeds]
                squares += statistics.variance(losses) * (len(losses) - 1)
                degrees += len(losses) - 1
        return math.sqrt(squares / degrees) if degrees else math.nan

    @property
    def verdict(self) -> Verdict:
        """`carries`: the regret's whole interval lies below the noise: keeping the rate costs less than another seed.
        `drifts`: it costs more than that, shown to be above 0, and the best rate is shown to move."""
        regret, drift = self.regret, self.drift
        if (
            self.valleys[0].rim
            or self.valleys[-1].rim
            or regret is None
            or math.isnan(regret.high)
            or math.isnan(self.noise)
        ):
            return "cannot tell"
        if regret.high <= self.noise:
            return "carries"
        moved = math.isinf(regret.value) or (drift is not None and (drift.low > 0 or drift.high < 0))
        return "drifts" if regret.low > 0 and regret.value > self.noise and moved else "cannot tell"

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
            "regret": self.regret.to_json() if self.regret else None,
            "gain": self.gain if self.valleys[0].found and self.valleys[-1].found else None,
            "noise": self.noise if math.isfinite(self.noise) else None,
            "predicted": [
                {self.axis: size, **({"lr": one.value, **one.to_json()} if one else {"lr": None})}
                for size, one in predicted.items()
            ],
        }
