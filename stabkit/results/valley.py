"""The valley of one size: loss after equal updates against the rate, what to try next, and its bottom. Pure.

Rates are a factor √2 apart, its rungs. The search spends runs where the minimum is: outward by a factor 2 with the
first seed until a rate that trains lies between two of a higher loss, then every seed at it and at two rungs on either
side, moved until the lowest mean is in the middle; and upward with the first seed until a rate does not train. For only
the highest stable rate every seed goes by factors of 2, then of √2, to a rate that trains below one that does not.

    loss_s(x) = a_s + b_s·x + c·x²,  x = log2 rate,  within the window of the minimum, one c for all seeds
    best_s    = −b_s/2c,  and the best rate is the mean over seeds, with Student's interval (95 %)

    sensitivity = mean over SWEPT rates of min(ℓ, ℓ₀) − ℓ*,  ℓ₀ before the first update, ℓ* the lowest of them

(LR sensitivity, Wortsman et al. 2309.14322, eq. 1), by the first seed, at rates evenly spread over all in logarithms.

Where the losses do not follow a parabola, but both ends of the window are shown to lie above its middle, a seed's best
is the bottom of the parabola through its lowest rung and that one's neighbours.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NotRequired, TypedDict

import numpy as np

from stabkit.results import intervals
from stabkit.results.intervals import Interval

Axis = Literal["depth", "width"]
OCTAVE = 2
"""Rungs of a factor 2."""
REACH = 2
"""Rungs of the window on either side of its middle."""
SWEPT = 7
"""Rates that the sensitivity is a mean over."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one run at a rate came to."""

    loss: float
    """After equal updates, on what it was not trained on; infinite where it diverged."""
    trains: bool
    start: float = math.nan
    """The same loss before the first update; NaN where that is not known."""


Trials = Mapping[tuple[int, int], Trial]
"""{(rung, seed): its trial}."""
Places = list[tuple[int, int]]


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


class SizeJson(TypedDict):
    """A depth, or a width."""

    depth: NotRequired[int]
    width: NotRequired[int]


def size_json(axis: Axis, size: int) -> SizeJson:
    """By the name of its axis."""
    return {"depth": size} if axis == "depth" else {"width": size}


class TriedJson(TypedDict):
    """One run of a search."""

    lr: float
    seed: int
    loss: float | None
    """null where it diverged."""
    trains: bool


class ValleyJson(SizeJson):
    """The rates of one size."""

    best: float | None
    """The best rate, null where there is none; `low` to `high` is its 95 % interval over seeds."""
    low: float | None
    high: float | None
    rim: Literal["", "lowest", "highest"]
    """Whether the best lies at an end of the rates that are tried."""
    highest_stable: float | None
    """The highest rate that trains, by the first seed; with --highest the highest for every seed."""
    loss: float | None
    sensitivity: float | None
    """LR sensitivity, nats; null of built-in methods and where a rate of it has no run yet."""
    tried: list[TriedJson]


@dataclass(frozen=True, kw_only=True)
class Valley:
    """The rates tried at one size."""

    size: int
    rungs: tuple[float, ...]
    seeds: tuple[int, ...]
    trials: Trials
    edge_only: bool = False
    """Whether only the highest stable rate is searched, with every seed."""

    def next_trials(self, start: int) -> Places:
        """What to try next; nothing where it is found, or no rate trains. `start`: the rung that is tried first."""
        if self.edge_only:
            return [(rung, seed) for seed in self.seeds if (rung := self._toward_edge(seed, start)) is not None]
        first = self.seeds[0]
        mine = {i: trial for (i, seed), trial in self.trials.items() if seed == first}
        if further := self._outward(mine, start):
            return [(i, first) for i in further]
        if not any(trial.trains for trial in mine.values()):
            return []
        window = [(i, seed) for i in self.window for seed in self.seeds]
        if missing := [place for place in window if place not in self.trials]:
            return missing
        return [(i, first) for i in self._upward() or self._unswept(mine)]

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

    @property
    def swept(self) -> list[int]:
        """The rungs that the sensitivity is a mean over; none where there are not so many."""
        places = {round(i * (len(self.rungs) - 1) / (SWEPT - 1)) for i in range(SWEPT)}
        return sorted(places) if len(places) == SWEPT else []

    def _unswept(self, mine: Mapping[int, Trial]) -> list[int]:
        """Those without a run, where it is known what a run began with."""
        return [i for i in self.swept if i not in mine and all(math.isfinite(one.start) for one in mine.values())]

    @property
    def sensitivity(self) -> float | None:
        """Mean nats over the rates that a run loses to the best of them, at most what it began with."""
        mine = {i: trial for (i, seed), trial in self.trials.items() if seed == self.seeds[0]}
        if not self.swept or any(i not in mine or not math.isfinite(mine[i].start) for i in self.swept):
            return None
        losses = [min(mine[i].loss, mine[i].start) for i in self.swept]
        return statistics.fmean(losses) - min(losses)

    def _toward_edge(self, seed: int, start: int) -> int | None:
        """The next rung between the highest that trains with this seed and the lowest above it that does not."""
        mine = {i: trial.trains for (i, other), trial in self.trials.items() if other == seed}
        if not mine:
            return start
        top = max((i for i, trains in mine.items() if trains), default=None)
        above = min((i for i in mine if top is None or i > top), default=None)
        if top is None:
            return max(0, min(mine) - OCTAVE) if min(mine) else None
        if above is None:
            return min(len(self.rungs) - 1, top + OCTAVE) if top < len(self.rungs) - 1 else None
        return (top + above) // 2 if above - top > 1 else None

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
        return not self.edge_only and self.whole and math.isfinite(self.means[self.middle])

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
        if not self.found or self.rim or self.edge or self._fit is None:
            return {}
        if not self._fit.bends:
            return self._pinned if self._rises else {}
        ends = math.log2(self.rungs[self.window[0]]), math.log2(self.rungs[self.window[-1]])
        bottoms = self._fit.bottoms
        return bottoms if all(ends[0] <= bottom <= ends[1] for bottom in bottoms.values()) else {}

    @property
    def _rises(self) -> bool:
        """Whether both ends of the window are shown to lie above its middle, seed by seed (of one seed: lie)."""
        for end in (self.window[0], self.window[-1]):
            rises = [self.trials[end, s].loss - self.trials[self.middle, s].loss for s in self.seeds]
            finite = all(map(math.isfinite, rises))
            shown = Interval.of(rises).low > 0 if finite and len(rises) > 1 else min(rises) > 0
            if not shown:
                return False
        return True

    @property
    def _pinned(self) -> dict[int, float]:
        """{seed: the bottom through its lowest rung and its neighbours, in log2}; none where one is at an end."""
        found = {}
        for seed in self.seeds:
            lowest = min(self.window, key=lambda i: self.trials[i, seed].loss)
            if lowest in (self.window[0], self.window[-1]):
                return {}
            x = [math.log2(self.rungs[i]) for i in (lowest - 1, lowest, lowest + 1)]
            y = [self.trials[i, seed].loss for i in (lowest - 1, lowest, lowest + 1)]
            if not all(map(math.isfinite, y)):
                return {}
            c, b, _ = np.polyfit(np.array(x) - x[1], y, 2).tolist()
            found[seed] = x[1] - (min(max(b / (2 * c), x[1] - x[2]), x[1] - x[0]) if c > 0 else 0.0)
        return found

    @property
    def best(self) -> Interval | None:
        """The best rate; None where the losses have no bottom that can be known."""
        if not self.by_seed or self._fit is None:
            return None
        shared = self._fit.shared if self._fit.bends else 0.5 / OCTAVE  # of a rung: half of it at least
        return Interval.of(list(self.by_seed.values()), shared).turned(lambda x: 2**x)

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
        """The highest rung that trains, by the first seed, or for every seed; None where none does. Above the lowest
        loss that trains, the first rung that does not ends it."""
        return None if (top := min(map(self._top, self._edge_seeds))) < 0 else self.rungs[top]

    def _top(self, seed: int) -> int:
        """Of one seed; −1 where none trains."""
        mine = {i: trial for (i, other), trial in self.trials.items() if other == seed}
        if not (training := [i for i, trial in mine.items() if trial.trains]):
            return -1
        lowest = max(training) if self.edge_only else min(training, key=lambda i: mine[i].loss)
        end = min((i for i, trial in mine.items() if i > lowest and not trial.trains), default=len(self.rungs))
        return max(i for i in training if i < end)

    @property
    def _edge_seeds(self) -> tuple[int, ...]:
        """Those that go up to a rate that does not train."""
        return self.seeds if self.edge_only else self.seeds[:1]

    @property
    def bounded(self) -> bool:
        """Whether a higher rate is known not to train."""
        highest = self.highest
        return highest is not None and all(
            any(self.rungs[i] > highest for i, other in self.trials if other == seed) for seed in self._edge_seeds
        )

    def to_json(self, axis: Axis) -> ValleyJson:
        """Plain JSON values."""
        best = self.best.to_json() if self.best else None
        return {
            **size_json(axis, self.size),
            "best": best["value"] if best else None,
            "low": best["low"] if best else None,
            "high": best["high"] if best else None,
            "rim": self.rim,
            "highest_stable": self.highest,
            "loss": self.loss if self.found else None,
            "sensitivity": self.sensitivity,
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
