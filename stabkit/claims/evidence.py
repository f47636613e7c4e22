"""Where a claim can be tested: cells of runs that differ in method and seed alone, and the numbers taken there.

Methods stand here by their labels without options (`Post-LN`, `ADMIN`), α and β as the papers have them; a number over
several seeds is a geometric mean over the seeds that both sides have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stabkit.claims.base import Evidence
from stabkit.figures.shared.comparison import (
    OWN_AXES,
    Shown,
    conditions,
    depth_rank,
    flat,
    geometric_mean,
    outcome_word,
    series,
    shown,
)
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

Number = Callable[[Run], float]
MARGIN = 0.05
"""Nats: a difference of validation losses below this, on some hundred tokens and a seed or two, is none."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One depth under one setting: {label: {seed: run}}, and how to name the place."""

    where: str
    depth: str
    """`18L-18L`."""
    layers: int
    """Of the deeper stack."""
    decoder_layers: int
    warmup: int
    runs: dict[str, dict[int, Run]]

    def of(self, label: str) -> list[Run]:
        """All seeds of one method."""
        return [run for _, run in sorted(self.runs.get(label, {}).items())]

    def seeds(self, *labels: str) -> list[int]:
        """The seeds that all of these have."""
        return sorted(set.intersection(*(set(self.runs.get(label, {})) for label in labels)))

    def mean(self, label: str, number: Number, seeds: Sequence[int] | None = None) -> float:
        """The geometric mean of a number over (these) seeds; NaN where a seed has none."""
        own = self.runs.get(label, {})
        return mean([own[seed] for seed in (sorted(own) if seeds is None else seeds)], number)

    def ratio(self, one: str, other: str, number: Number) -> float:
        """`one`'s number over `other`'s, over the seeds that both have; NaN where there are none."""
        return ratio(self.runs.get(one, {}), self.runs.get(other, {}), number)

    def outcomes(self, label: str) -> list[str]:
        """The word of every seed."""
        return [outcome_word(run) for run in self.of(label)]


def mean(runs: Sequence[Run], number: Number) -> float:
    """The geometric mean over runs; NaN for none, and where one of them has no such number."""
    values = [number(run) for run in runs]
    return geometric_mean(values) if values and all(v > 0 and math.isfinite(v) for v in values) else math.nan


def ratio(one: Mapping[int, Run], other: Mapping[int, Run], number: Number) -> float:
    """A number of some runs by seed over that of others: geometric means over the seeds that both have."""
    seeds = sorted(set(one) & set(other))
    return mean([one[seed] for seed in seeds], number) / mean([other[seed] for seed in seeds], number)


def by_seed(one: Mapping[int, Run], other: Mapping[int, Run], number: Number) -> str:
    """` (1.6 to 2.6 by seed)`: the least and the greatest ratio of a single seed; nothing for one seed."""
    each = [ratio({seed: one[seed]}, {seed: other[seed]}, number) for seed in sorted(set(one) & set(other))]
    return f" ({short(min(each))} to {short(max(each))} by seed)" if len(each) > 1 else ""


def cells(runs: Sequence[Run]) -> Iterator[Cell]:
    """Every cell, shallow before deep."""
    held: dict[tuple[tuple[int, int], str], list[Shown]] = {}
    for each in _as_published(runs):
        held.setdefault((depth_rank(each.run.spec), each.condition), []).append(each)
    for (_, condition), members in sorted(held.items(), key=lambda item: item[0][0]):
        by: dict[str, dict[int, Run]] = {}
        for each in members:
            by.setdefault(each.label, {})[each.run.spec.seed] = each.run
        spec = members[0].run.spec
        n, m = spec.model.encoder_layers, spec.model.decoder_layers
        yield Cell(listed(spec.depth, condition), spec.depth, max(n, m), m, spec.train.warmup, by)


@dataclass(frozen=True, slots=True)
class Warmups:
    """One method at one depth without warm-up and with it (the longest there is), nothing else different."""

    where: str
    layers: int
    without: dict[int, Run]
    with_it: dict[int, Run]


def warmups(runs: Sequence[Run], label: str) -> Iterator[Warmups]:
    """Every such pair."""
    held: dict[tuple[Any, ...], dict[int, dict[int, Run]]] = {}
    apart = conditions([replace(run.spec, train=replace(run.spec.train, warmup=0)) for run in runs])
    beside = {run.run_id: condition for run, condition in zip(runs, apart, strict=True)}
    for each in _as_published(runs):
        if each.label == label:
            spec = each.run.spec
            settings = (
                (key, repr(value)) for key, value in flat(spec).items() if key not in (*OWN_AXES, "train.warmup")
            )
            key = (depth_rank(spec), spec.depth, spec.model.decoder_layers, tuple(settings), beside[each.run.run_id])
            held.setdefault(key, {}).setdefault(spec.train.warmup, {})[spec.seed] = each.run
    for (_, depth, layers, _, beside), by in sorted(held.items()):
        if 0 in by and len(by) > 1 and set(by[0]) & set(by[max(by)]):
            yield Warmups(listed(depth, f"warm-up {max(by)} or none", beside), layers, by[0], by[max(by)])


def _as_published(runs: Sequence[Run]) -> list[Shown]:
    """The runs whose α and β are the papers', all trained by one recipe: own recipes compare more than the method."""
    return [
        each
        for each in shown(runs)
        if each.run.spec.alpha_scale == 1 == each.run.spec.beta_scale and each.run.spec.recipe == "shared"
    ]


def groups(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """Runs that differ in method, depth and seed alone: what an exponent is fitted over; (condition, runs)."""
    held: dict[str, list[Run]] = {}
    for each in _as_published(runs):
        held.setdefault(each.condition, []).append(each.run)
    yield from held.items()


def at(probe: str, site: str, step: int) -> Number:
    """A probe's value at a step."""

    def number(run: Run) -> float:
        steps, values = series(run, probe, site)
        where = np.flatnonzero(steps == step)
        return float(values[where[0]]) if len(where) else math.nan

    return number


def mean_over(probe: str, site: Callable[[Run], str], first: int, last: int) -> Number:
    """A probe's mean over the recorded steps from `first` to `last`; NaN for a run that ends before."""

    def number(run: Run) -> float:
        steps, values = series(run, probe, site(run))
        if not len(steps) or steps[-1] < last:
            return math.nan
        inside = values[(steps >= first) & (steps <= last)]
        return float(inside.mean()) if len(inside) and np.isfinite(inside).all() else math.nan

    return number


def judged(cell: Cell, *labels: str) -> bool:
    """Whether every seed that all of these methods have ran long enough for a verdict."""
    seeds = cell.seeds(*labels)
    words = [outcome_word(cell.runs[label][seed]) for label in labels for seed in seeds]
    return bool(words) and all(word in ("trains", "stuck", "diverged") for word in words)


def fails(word: str) -> bool:
    """A run that was judged and does not train."""
    return word in ("stuck", "diverged")


def fates(cell: Cell, failing: str, training: str) -> Evidence:
    """Whether one method fails and another trains, in every seed that both have."""
    seeds = cell.seeds(failing, training)
    lost = [fails(outcome_word(cell.runs[failing][seed])) for seed in seeds]
    kept = [outcome_word(cell.runs[training][seed]) == "trains" for seed in seeds]
    text = f"{failing} fails in {sum(lost)} of {len(lost)}, {training} trains in {sum(kept)} of {len(kept)}"
    return Evidence(where=cell.where, value=sum(lost) + sum(kept), text=text, holds=all(lost) and all(kept))


def ends(cell: Cell, label: str, wanted: Callable[[str], bool], verb: str) -> Evidence:
    """Whether every seed of a method ends so."""
    met = [wanted(word) for word in cell.outcomes(label)]
    text = f"{sum(met)} of {len(met)} runs {verb}"
    return Evidence(where=cell.where, value=sum(met) / len(met), text=text, holds=all(met))


def place(cell: Cell, *labels: str) -> str:
    """`18L-18L, 3 seeds`."""
    seeds = len(cell.seeds(*labels))
    return listed(cell.where, f"{seeds} seeds" if seeds > 1 else "one seed")
