"""A study judged: every number that is said of the forecast, from its rows alone.

A forecast of a run counts where the fit has not seen the run's group (`holdouts.py`). Each run has one for each axis
that it has a held-out group on; pooled, all of them stand side by side. They are not independent: intervals come from
resampling runs, and a bin's from how many runs it has, each of which weighs the same in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.fit import Array, Logistic, fit
from stabkit.results.forecast.holdouts import Group, fixed, harder, labels, out_of_group, seen
from stabkit.results.forecast.links import Link, numbers
from stabkit.results.forecast.model import far, fitted, read, settings
from stabkit.results.forecast.rows import Row
from stabkit.results.forecast.scores import LIKELY, UNLIKELY, Bin, Scores, auc, auc_within, reliability, score

LONGEST = 50
"""Warm-up of the corpus at most; what has a longer one is there to be out of range."""
WIDTH = 64
"""Of the corpus; the others are a hold-out of their own."""
DEFAULT_SEED = 0
"""That commands have by default: runs with it are what the default sweep ends with, and none of the corpus."""
CHOSEN_ON = 10
"""Links and ridge were chosen on the first 210 rows, of slices 1 to 10, whose number is their runs' seed: on later ones
the forecast is judged a second time, by runs that the choice has not seen."""
BOTH = 8
"""Runs of both classes that a group needs to have an AUC worth naming."""
RESAMPLES = 200


@dataclass(frozen=True, eq=False)
class Pooled:
    """Out-of-group forecasts side by side."""

    p: Array
    label: NDArray[np.bool_]
    run: NDArray[np.intp]
    """Whose each is."""

    @cached_property
    def scores(self) -> Scores:
        return score(self.p, self.label)


@dataclass(frozen=True)
class Judged:
    """A study's rows and what follows from them."""

    rows: tuple[Row, ...]

    @cached_property
    def corpus(self) -> tuple[Row, ...]:
        """What is fitted: labelled runs of the corpus' width and warm-ups, in the order of their ids."""
        return tuple(sorted((row for row in self.designed if row.labelled), key=lambda row: row.run_id))

    @cached_property
    def designed(self) -> tuple[Row, ...]:
        """The corpus with the runs that cannot be fitted: early at their end, or diverged before update 16."""
        own = (row for row in self.rows if row.hidden == WIDTH and row.warmup <= LONGEST and row.seed != DEFAULT_SEED)
        return tuple(own)

    @cached_property
    def default_grid(self) -> tuple[tuple[Row, float], ...]:
        """Cells of the default sweep trained to a verdict, and what a fit on the corpus gives each."""
        own = [row for row in self.rows if row.seed == DEFAULT_SEED and row.measured is not None]
        return tuple(zip(own, self._given(own), strict=True))

    @cached_property
    def beyond(self) -> tuple[tuple[Row, tuple[str, ...]], ...]:
        """Runs with a longer warm-up than the corpus', and along which axes each is out of its range."""
        if not self.both:
            return ()
        by = read(json.dumps(fitted(self.corpus)).encode(), "the fit")
        own = [row for row in self.rows if row.warmup > LONGEST and row.measured is not None]
        x = numbers(seen(own))
        axes = (settings(row.depth, row.hidden, row.warmup) for row in own)
        return tuple((row, far(at, here, by)) for row, at, here in zip(own, x, axes, strict=True))

    def _given(self, rows: Sequence[Row]) -> list[float]:
        """What runs get by a fit on the whole corpus; NaN where there is none."""
        if not rows or not self.both:
            return [math.nan] * len(rows)
        return [float(p) for p in self.whole.probability(numbers(seen(rows)))]

    @cached_property
    def whole(self) -> Logistic:
        """The fit on all of the corpus."""
        return fit(numbers(seen(self.corpus)), self.label)

    @cached_property
    def widths(self) -> tuple[Row, ...]:
        """Labelled runs of other widths."""
        return tuple(row for row in self.rows if row.labelled and row.hidden != WIDTH and row.seed != DEFAULT_SEED)

    @property
    def fitted_rows(self) -> tuple[Row, ...]:
        """What the coefficients of the package are fitted on: the corpus, and joined to it the other widths, once the
        fit without them has been scored on them."""
        return (*self.corpus, *self.widths)

    @cached_property
    def label(self) -> NDArray[np.bool_]:
        return labels(self.corpus)

    @property
    def both(self) -> bool:
        """Whether the corpus has runs of both classes: without, there is nothing to fit."""
        return len(set(self.label.tolist())) == 2

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every held-out group with its forecasts."""
        return out_of_group(self.corpus, self.label) if self.both else ()

    def pooled(self, warmup: int = 0, without: Group | None = None) -> Pooled:
        """The forecasts of all groups, or of all but one, of runs with this warm-up."""
        groups = [group for group in self.groups if group is not without]
        run = np.concatenate([np.empty(0, np.intp), *(group.places for group in groups)])
        p = np.concatenate([np.empty(0), *(group.p for group in groups)])
        kept = np.array([self.corpus[i].warmup == warmup for i in run], dtype=bool)
        return Pooled(p[kept], self.label[run][kept], run[kept])

    def alone(self, link: Link) -> Pooled:
        """One link without any fit: its own number orders the runs without warm-up. A fit of it alone orders a group's
        runs likewise; pooled over groups its intercepts would only add how often the other groups train."""
        cold = np.flatnonzero([row.warmup == 0 for row in self.corpus])
        x = numbers(seen(self.corpus), [link])[:, 0]
        return Pooled(x[cold], self.label[cold], cold)

    def within(self, own: Pooled, of: Callable[[Row], object]) -> float:
        """The AUC over pairs of runs alone that are alike in something: one method, one rate."""
        return auc_within(own.p, own.label, [of(self.corpus[i]) for i in own.run])

    @cached_property
    def harder(self) -> tuple[tuple[Group, Scores], ...]:
        """Hold-outs that were thought of after the first fit, runs without warm-up."""
        return tuple((group, self.of_group(group)) for group in harder(self.corpus, self.label)) if self.both else ()

    @cached_property
    def unseen(self) -> Pooled:
        """The pooled forecasts without warm-up of runs that the choice of links has not seen either."""
        own = self.pooled()
        late = np.array([self.corpus[i].seed > CHOSEN_ON for i in own.run], dtype=bool)
        return Pooled(own.p[late], own.label[late], own.run[late])

    def of_group(self, group: Group) -> Scores:
        """Of one group, runs without warm-up."""
        kept = np.array([self.corpus[i].warmup == 0 for i in group.places], dtype=bool)
        return score(group.p[kept], self.label[group.places][kept])

    def of_group_bins(self, group: Group) -> tuple[Bin, ...]:
        """The reliability table of one group, runs without warm-up."""
        kept = np.array([self.corpus[i].warmup == 0 for i in group.places], dtype=bool)
        return reliability(group.p[kept], self.label[group.places][kept], group.places[kept])

    @cached_property
    def worst(self) -> tuple[Group, Scores] | None:
        """The group with the lowest AUC among those with BOTH runs of each class."""
        found = [(group, self.of_group(group)) for group in self.groups]
        some = [one for one in found if min(one[1].trained, one[1].n - one[1].trained) >= BOTH]
        return min(some, key=lambda one: one[1].auc) if some else None

    @cached_property
    def bins(self) -> tuple[Bin, ...]:
        """The reliability table of the pooled forecasts without warm-up."""
        own = self.pooled()
        return reliability(own.p, own.label, own.run)

    def calibrated(self, without: Group | None = None) -> int:
        """In how many bins what is said lies in the interval of what was; without the forecasts of one group."""
        own = self.pooled(without=without)
        return sum(one.calibrated for one in reliability(own.p, own.label, own.run))

    @cached_property
    def width_scores(self) -> Scores | None:
        """Other widths, by a fit on the corpus as it stands."""
        return score(self.width_p, labels(self.widths)) if self.widths and self.both else None

    @cached_property
    def width_p(self) -> Array:
        """What each run of another width is given by a fit on the corpus alone."""
        return np.array(self._given(self.widths))

    def auc_interval(self, pooled: Pooled) -> tuple[float, float]:
        """95 % of the AUC over RESAMPLES draws of runs."""
        random = np.random.default_rng(0)
        runs = np.unique(pooled.run)
        where = {run: np.flatnonzero(pooled.run == run) for run in runs}
        drawn = []
        for _ in range(RESAMPLES):
            take = np.concatenate([where[run] for run in random.choice(runs, len(runs))])
            drawn.append(auc(pooled.p[take], pooled.label[take]))
        kept = [value for value in drawn if not math.isnan(value)]
        low, high = np.quantile(kept, [0.025, 0.975]) if kept else (math.nan, math.nan)
        return float(low), float(high)

    def shuffled(self) -> list[float]:
        """The pooled AUC of as many fixed shuffles of the labels as were fixed: 0.5, or the method looks ahead."""
        found = []
        for seed in range(fixed()["shuffles"]):
            label = np.random.default_rng(seed).permutation(self.label)
            own = Judged(self.rows)
            own.__dict__["label"] = label
            found.append(own.pooled().scores.auc)
        return found

    @cached_property
    def misses(self) -> list[tuple[Row, float, str]]:
        """Runs without warm-up that were given a word and did the other: (row, p, the axis held out), the surest first,
        each run once."""
        found: dict[str, tuple[Row, float, str]] = {}
        for group in self.groups:
            for i, p in zip(group.places, group.p, strict=True):
                row = self.corpus[i]
                wrong = (p >= LIKELY and not row.trains) or (p <= UNLIKELY and row.trains)
                before = found.get(row.run_id, (row, float(row.trains), ""))[1]
                if wrong and not row.warmup and abs(p - row.trains) > abs(before - row.trains):
                    found[row.run_id] = row, float(p), group.axis
        return sorted(found.values(), key=lambda one: -abs(one[1] - one[0].trains))

    def counted(self) -> dict[str, Any]:
        """How many runs there are and how they ended."""
        own = self.designed
        return {
            "runs": len(own),
            "fitted": len(self.corpus),
            "early": sum(row.outcome == "early" for row in own),
            "diverged_before": sum(row.measured is None for row in own),
            **{word: sum(row.outcome == word for row in own) for word in ("trains", "stuck", "diverged")},
        }
