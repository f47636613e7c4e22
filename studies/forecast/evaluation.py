"""The forecast evaluated: every number that is reported of it, from the rows of its study alone.

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

from stabkit.results.forecast.links import Link
from stabkit.results.forecast.logistic import LIKELY, UNLIKELY, Array, Logistic
from stabkit.results.forecast.model import far, read, settings
from studies.forecast.coefficients import document
from studies.forecast.holdouts import HeldOutGroup, fixed, harder, out_of_group
from studies.forecast.regression import Labels, features, labels
from studies.forecast.scores import Bin, ForecastScores, auc, auc_within, reliability, resampled, score
from studies.forecast.widened import out_of_group_widened, widen
from studies.rows import StudyRow

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
    label: Labels
    run: NDArray[np.intp]
    """Which run each is of."""

    @cached_property
    def scores(self) -> ForecastScores:
        """Of probabilities; of a link's own number only the AUC is one."""
        return score(self.p, self.label)

    @property
    def auc(self) -> float:
        return auc(self.p, self.label)


@dataclass(frozen=True)
class Evaluation:
    """A study's rows and what follows from them."""

    rows: tuple[StudyRow, ...]

    @cached_property
    def corpus(self) -> tuple[StudyRow, ...]:
        """What is fitted: labelled runs of the corpus' width and warm-ups, in the order of their ids."""
        return tuple(sorted((row for row in self.designed if row.labelled), key=lambda row: row.run_id))

    @cached_property
    def designed(self) -> tuple[StudyRow, ...]:
        """The corpus with the runs that cannot be fitted: early at their end, or diverged before update 16."""
        rows = (row for row in self.rows if row.hidden == WIDTH and row.warmup <= LONGEST and row.seed != DEFAULT_SEED)
        return tuple(rows)

    @cached_property
    def default_grid(self) -> tuple[tuple[StudyRow, float], ...]:
        """Cells of the default sweep trained to a verdict, and what a fit on the corpus gives each."""
        rows = [row for row in self.rows if row.seed == DEFAULT_SEED and row.measured is not None]
        return tuple(zip(rows, self._fitted(rows), strict=True))

    @cached_property
    def beyond(self) -> tuple[tuple[StudyRow, tuple[str, ...]], ...]:
        """Runs with a longer warm-up than the corpus', and along which axes each is out of its range."""
        if not self.both:
            return ()
        by = read(json.dumps(document(self.corpus)).encode(), "the fit")
        rows = [row for row in self.rows if row.warmup > LONGEST and row.measured is not None]
        axes = (settings(row.depth, row.hidden, row.warmup) for row in rows)
        return tuple((row, far(at, where, by)) for row, at, where in zip(rows, features(rows), axes, strict=True))

    def _fitted(self, rows: Sequence[StudyRow]) -> list[float]:
        """What runs get by a fit on the whole corpus; NaN where there is none."""
        if not rows or not self.both:
            return [math.nan] * len(rows)
        return [float(p) for p in self.whole.probability(features(rows))]

    @cached_property
    def whole(self) -> Logistic:
        """The fit on all of the corpus, widened."""
        return widen(self.corpus, self.label)

    @cached_property
    def widths(self) -> tuple[StudyRow, ...]:
        """Labelled runs of other widths."""
        return tuple(row for row in self.rows if row.labelled and row.hidden != WIDTH and row.seed != DEFAULT_SEED)

    @property
    def fitted_rows(self) -> tuple[StudyRow, ...]:
        """What the coefficients of the package are fitted on: the corpus, and joined to it the other widths, once the
        fit without them has been scored on them."""
        return (*self.corpus, *self.widths)

    @cached_property
    def label(self) -> Labels:
        return labels(self.corpus)

    @property
    def both(self) -> bool:
        """Whether the corpus has runs of both classes: without, there is nothing to fit."""
        return len(set(self.label.tolist())) == 2

    @cached_property
    def groups(self) -> tuple[HeldOutGroup, ...]:
        """Every held-out group with its forecasts, by fits that are widened without it."""
        return out_of_group_widened(self.corpus, self.label) if self.both else ()

    @cached_property
    def plain(self) -> tuple[HeldOutGroup, ...]:
        """The same by fits that are not widened."""
        return out_of_group(self.corpus, self.label) if self.both else ()

    def pooled(self, warmup: int = 0, without: HeldOutGroup | None = None, *, plain: bool = False) -> Pooled:
        """The forecasts of all groups, or of all but one, of runs with this warm-up; `plain`: not widened."""
        groups = [group for group in (self.plain if plain else self.groups) if group is not without]
        run = np.concatenate([np.empty(0, np.intp), *(group.places for group in groups)])
        p = np.concatenate([np.empty(0), *(group.p for group in groups)])
        wanted = np.array([self.corpus[i].warmup == warmup for i in run], dtype=bool)
        return Pooled(p[wanted], self.label[run][wanted], run[wanted])

    def alone(self, link: Link) -> Pooled:
        """One link without any fit: its own number orders the runs without warm-up. A fit of it alone orders a group's
        runs likewise; pooled over groups its intercepts would only add how often the other groups train."""
        cold = np.flatnonzero([row.warmup == 0 for row in self.corpus])
        x = features(self.corpus, [link])[:, 0]
        return Pooled(x[cold], self.label[cold], cold)

    def within(self, pooled: Pooled, of: Callable[[StudyRow], object]) -> float:
        """The AUC over pairs of runs alone that are alike in something: one method, one rate."""
        return auc_within(pooled.p, pooled.label, [of(self.corpus[i]) for i in pooled.run])

    @cached_property
    def harder(self) -> tuple[tuple[HeldOutGroup, ForecastScores], ...]:
        """Hold-outs that were thought of after the first fit, runs without warm-up."""
        return tuple((group, self.of_group(group)) for group in harder(self.corpus, self.label)) if self.both else ()

    @cached_property
    def unseen(self) -> Pooled:
        """The pooled forecasts without warm-up of runs that the choice of links has not seen either."""
        pooled = self.pooled()
        late = np.array([self.corpus[i].seed > CHOSEN_ON for i in pooled.run], dtype=bool)
        return Pooled(pooled.p[late], pooled.label[late], pooled.run[late])

    def of_group(self, group: HeldOutGroup) -> ForecastScores:
        """Of one group, runs without warm-up."""
        cold = self._cold(group)
        return score(group.p[cold], self.label[group.places][cold])

    def of_group_bins(self, group: HeldOutGroup) -> tuple[Bin, ...]:
        """The reliability table of one group, runs without warm-up."""
        cold = self._cold(group)
        return reliability(group.p[cold], self.label[group.places][cold], group.places[cold])

    def _cold(self, group: HeldOutGroup) -> Labels:
        """Which runs of a group have no warm-up."""
        return np.array([self.corpus[i].warmup == 0 for i in group.places], dtype=bool)

    @cached_property
    def worst(self) -> tuple[HeldOutGroup, ForecastScores] | None:
        """The group with the lowest AUC among those with BOTH runs of each class."""
        scored = [(group, self.of_group(group)) for group in self.groups]
        scored = [(group, scores) for group, scores in scored if min(scores.trained, scores.n - scores.trained) >= BOTH]
        return min(scored, key=lambda pair: pair[1].auc) if scored else None

    @cached_property
    def bins(self) -> tuple[Bin, ...]:
        """The reliability table of the pooled forecasts without warm-up."""
        pooled = self.pooled()
        return reliability(pooled.p, pooled.label, pooled.run)

    def calibrated(self, without: HeldOutGroup | None = None) -> int:
        """How many bins are calibrated; without the forecasts of one group."""
        pooled = self.pooled(without=without)
        return sum(bin_.calibrated for bin_ in reliability(pooled.p, pooled.label, pooled.run))

    @cached_property
    def width_scores(self) -> ForecastScores | None:
        """Other widths, by a fit on the corpus as it stands."""
        return score(self.width_p, labels(self.widths)) if self.widths and self.both else None

    @cached_property
    def width_p(self) -> Array:
        """The forecast of each run of another width by a fit on the corpus alone."""
        return np.array(self._fitted(self.widths))

    def auc_interval(self, pooled: Pooled) -> tuple[float, float]:
        """95 % of the AUC over RESAMPLES draws of methods, whose runs depend on one another."""
        method = np.array([row.method for row in self.corpus])[pooled.run]
        forecasts = [np.flatnonzero(method == name) for name in np.unique(method)]

        def area(drawn: NDArray[np.intp]) -> float:
            take = np.concatenate([forecasts[name] for name in drawn])
            return auc(pooled.p[take], pooled.label[take])

        return resampled(len(forecasts), area, RESAMPLES)

    def shuffled(self) -> list[float]:
        """The pooled AUC of as many fixed shuffles of the labels as were fixed: 0.5, or the method looks ahead."""
        areas = []
        for seed in range(fixed()["shuffles"]):
            shuffled = Evaluation(self.rows)
            shuffled.__dict__["label"] = np.random.default_rng(seed).permutation(self.label)
            areas.append(shuffled.pooled(plain=True).scores.auc)
        return areas

    @cached_property
    def misses(self) -> list[tuple[StudyRow, float, str]]:
        """Runs without warm-up whose firm forecast was wrong: (row, p, the axis held out), the surest first, each run
        once."""
        misses: dict[str, tuple[StudyRow, float, str]] = {}
        for group in self.groups:
            for i, p in zip(group.places, group.p, strict=True):
                row = self.corpus[i]
                wrong = (p >= LIKELY and not row.trains) or (p <= UNLIKELY and row.trains)
                before = misses.get(row.run_id, (row, float(row.trains), ""))[1]
                if wrong and not row.warmup and abs(p - row.trains) > abs(before - row.trains):
                    misses[row.run_id] = row, float(p), group.axis
        return sorted(misses.values(), key=lambda miss: -abs(miss[1] - miss[0].trains))

    def counted(self) -> dict[str, Any]:
        """How many runs there are and how they ended."""
        rows = self.designed
        return {
            "runs": len(rows),
            "fitted": len(self.corpus),
            "early": sum(row.outcome == "early" for row in rows),
            "diverged_before": sum(row.measured is None for row in rows),
            **{word: sum(row.outcome == word for row in rows) for word in ("trains", "stuck", "diverged")},
        }
