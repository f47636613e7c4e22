"""Where a claim can be tested: cells of runs that differ in method and seed alone, and the numbers taken there.

Methods stand here by their keys (`post-ln`; with options away from their defaults as `admin:omega=closed`), α and β as
the papers have them; a comparison is made seed by seed, over the seeds that both sides have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stabkit.claims.base import Measurement, Spot, at_depth, power_of_n
from stabkit.methods.blocks import name_of
from stabkit.results import update_fit
from stabkit.results.conditions import (
    Condition,
    Shown,
    depth_rank,
    method_label,
    setting,
    shown,
)
from stabkit.results.once import once
from stabkit.results.outcome import displayed
from stabkit.results.readings import centre, series, value_at
from stabkit.results.run import Run
from stabkit.spec import RunSpec, depth_text
from stabkit.words import short

Number = Callable[[Run], float]
Find = Callable[[Sequence[Run]], Iterable[Measurement]]
MARGIN = 0.05
"""Nats: a difference of validation losses below this, on some hundred tokens and a seed or two, is none."""
JUDGED = ("trains", "stuck", "diverged")
REACH = 8_000 * 4_000
"""Tokens after which the papers begin to compare qualities: DeepNet's Fig. 6 after 8,000 updates of 4,000 tokens."""
LONG = "decided only after 8,000 updates of 4,000 tokens, as in DeepNet's Fig. 6"
SHORT = "--steps 8000 --max-tokens 4000"
NEARLY = 0.25
"""The exponent up to which growth counts as nearly none: over 6 to 50 layers a factor of 1.7."""


def measured(
    runs: Sequence[Run],
    values: Mapping[int, float],
    *where: Spot,
    condition: Condition | None = None,
    steps: int | None = None,
    **more: Any,
) -> Measurement:
    """A number of these runs by seed, taken at `where`; their settings and fewest updates where not given."""
    return Measurement(
        where=where,
        condition=condition or setting(runs[0].spec),
        steps=min(run.spec.train.steps for run in runs) if steps is None else steps,
        values=dict(values),
        **more,
    )


@dataclass(frozen=True, slots=True)
class ClaimCell:
    """One depth under one setting: {method: {seed: run}}."""

    apart: Condition
    """What sets it apart from the other cells of these runs."""
    condition: Condition
    """Its settings, whole."""
    encoder_layers: int
    decoder_layers: int
    warmup: int
    runs: dict[str, dict[int, Run]]

    @property
    def layers(self) -> int:
        """Of the deeper stack."""
        return max(self.encoder_layers, self.decoder_layers)

    @property
    def depth(self) -> tuple[int, int]:
        """(N, M)."""
        return self.encoder_layers, self.decoder_layers

    @property
    def where(self) -> str:
        """`18L-18L`."""
        return depth_text(*self.depth)

    def spot(self, method: str) -> Spot:
        """One of its methods, as a part of a place."""
        return Spot(method, self.label(method))

    def label(self, method: str) -> str:
        """What one of its methods is called."""
        return method_label(self.of(method)[0].spec)

    def of(self, method: str) -> list[Run]:
        """All seeds of one method."""
        return [run for _, run in sorted(self.runs.get(method, {}).items())]

    def seeds(self, *methods: str) -> list[int]:
        """The seeds that all of these have."""
        return sorted(set.intersection(*(set(self.runs.get(method, {})) for method in methods)))

    def values(self, method: str, number: Number) -> dict[int, float]:
        """A number of every seed that has one."""
        return known({seed: number(run) for seed, run in self.runs.get(method, {}).items()})

    def ratio(self, name: str, other: str, number: Number) -> dict[int, float]:
        """One method's number over another's, seed by seed."""
        return ratio(self.runs.get(name, {}), self.runs.get(other, {}), number)

    def share(self, so: Callable[..., bool], *methods: str) -> dict[int, float]:
        """1 for every seed in which something is so of the runs of these methods, which all must be judged; else
        nothing."""
        seeds = self.seeds(*methods)
        sides = {seed: [self.runs[method][seed] for method in methods] for seed in seeds}
        if not all(run.outcome.word in JUDGED for side in sides.values() for run in side):
            return {}
        return {seed: float(so(*side)) for seed, side in sides.items()}

    def measured(
        self, values: Mapping[int, float], *methods: str, when: Spot | None = None, **more: Any
    ) -> Measurement:
        """A number of this cell by seed; `methods` whose runs it is made of, `when` at which step of them."""
        runs = [run for method in methods or self.runs for run in self.of(method)]
        return measured(
            runs,
            values,
            at_depth(*self.depth),
            *([when] if when else []),
            apart=self.apart.text,
            condition=self.condition,
            steps=min((run.spec.expected_steps for run in runs), default=0),
            **more,
        )


def depth_of(run: Run) -> Spot:
    """`18L-18L`: where this run stands."""
    return at_depth(run.spec.model.encoder_layers, run.spec.model.decoder_layers)


def known(values: Mapping[int, float]) -> dict[int, float]:
    """Those that are numbers; infinity is one."""
    return {seed: value for seed, value in sorted(values.items()) if not math.isnan(value)}


def ratio(first: Mapping[int, Run], other: Mapping[int, Run], number: Number) -> dict[int, float]:
    """A number of some runs over that of others, by each seed that both have."""
    return known({seed: over(number(first[seed]), number(other[seed])) for seed in sorted(set(first) & set(other))})


def over(numerator: float, other: float) -> float:
    """numerator / other; NaN where that says nothing."""
    return numerator / other if math.isfinite(numerator) and math.isfinite(other) and other > 0 else math.nan


@once
def cells(runs: Sequence[Run]) -> list[ClaimCell]:
    """Every cell, shallow before deep."""
    found = []
    held: dict[tuple[tuple[int, int], Condition], list[Shown]] = {}
    for entry in as_published(runs):
        held.setdefault((depth_rank(entry.run.spec), entry.condition), []).append(entry)
    for (_, apart), members in sorted(held.items(), key=lambda item: item[0][0]):
        by: dict[str, dict[int, Run]] = {}
        for entry in members:
            by.setdefault(entry.variant, {})[entry.run.spec.seed] = entry.run
        spec = members[0].run.spec
        found.append(ClaimCell(apart, setting(spec), *members[0].shape, spec.train.warmup, by))
    return found


def numbers(number: Number, method: str, other: str | None = None, **more: Any) -> Find:
    """Of every cell a method's number of each seed, over another method's where one is named. `more`: `over_cells`."""
    if other is None:
        return over_cells(lambda cell: cell.values(method, number), method, **more)
    return over_cells(lambda cell: cell.ratio(method, other, number), method, other, **more)


COLD = "without warm-up, the harder case; the paper warms up for 4,000 updates and more"


def cold(cell: ClaimCell, method: str) -> str:
    """Why a failure of this method without warm-up decides nothing of a sentence on trainings with one; "" else."""
    return COLD if cell.warmup == 0 and any(cell.share(fails, method).values()) else ""


def shares(so: Callable[..., bool], *methods: str, **more: Any) -> Find:
    """Of every cell whether something is so of each seed's runs of these methods; the outcomes are told with it.
    `more`: `over_cells`."""
    how = {"beside": lambda cell: fates(cell, *methods), **more}
    return over_cells(lambda cell: cell.share(so, *methods), *methods, **how)


def over_cells(
    values: Callable[[ClaimCell], Mapping[int, float]],
    *methods: str,
    where: Callable[[ClaimCell], bool] = lambda cell: True,
    **more: Callable[[ClaimCell], Any],
) -> Find:
    """The measurements of every cell that has all of these methods and fits `where`. `more`: what else a measurement
    holds (`beside`, `beyond`, `part`), of its cell."""

    def find(runs: Sequence[Run]) -> Iterator[Measurement]:
        for cell in cells(runs):
            if set(methods) <= set(cell.runs) and where(cell):
                told = {name: of(cell) for name, of in more.items()}
                yield cell.measured(values(cell), *methods, **told)

    return find


def as_published(runs: Sequence[Run]) -> list[Shown]:
    """The runs whose α and β are the papers', all trained by one recipe, for own recipes compare more than the method,
    and in the papers' block: of another the papers do not speak."""
    shared = (each for each in shown(runs) if each.run.spec.recipe == "shared")
    scaled = (each for each in shared if each.run.spec.alpha_scale == 1 == each.run.spec.beta_scale)
    return [each for each in scaled if name_of(each.run.spec.model) == "classic"]


def groups(runs: Sequence[Run]) -> Iterator[tuple[Condition, list[Run]]]:
    """Runs that differ in method, depth and seed alone: what an exponent is fitted over; (condition, runs)."""
    held: dict[Condition, list[Run]] = {}
    for entry in as_published(runs):
        held.setdefault(entry.condition, []).append(entry.run)
    yield from held.items()


def at(probe: str, site: str, step: int) -> Number:
    """A probe's value at a step."""

    return lambda run: value_at(run, probe, site, step)


def mean_over(probe: str, site: Callable[[Run], str], first: int, last: int) -> Number:
    """A probe's mean over the recorded steps from `first` to `last`; NaN for a run that ends before."""

    def number(run: Run) -> float:
        steps, values = series(run, probe, site(run))
        if not len(steps) or steps[-1] < last:
            return math.nan
        inside = values[(steps >= first) & (steps <= last)]
        return float(inside.mean()) if len(inside) and np.isfinite(inside).all() else math.nan

    return number


def trains(run: Run) -> bool:
    return run.outcome.word == "trains"


def fails(run: Run) -> bool:
    """A run that was judged and does not train."""
    return run.outcome.word in ("stuck", "diverged")


def fails_but_other_trains(run: Run, other: Run) -> bool:
    return fails(run) and trains(other)


def too_short(specs: Sequence[RunSpec]) -> str:
    """Why these runs cannot decide who is better in the end; nothing where they can."""
    least = min(specs, key=lambda spec: spec.train.steps * spec.train.max_tokens).train
    if least.steps * least.max_tokens >= REACH:
        return ""
    return (
        f"{least.steps:,} updates of {least.max_tokens:,} tokens show how fast a model begins to learn; the papers "
        "compare after 8,000 updates of 4,000 and more"
    )


def loss(run: Run) -> float:
    """The validation loss at the end."""
    return run.outcome.validation_loss


def deeper_than(cell: ClaimCell, base: ClaimCell, method: str) -> Measurement:
    """How much lower a method's validation loss is at one shape than at another, over the seeds that both have."""
    sides = [{run.spec.seed: loss(run) for run in side.of(method)} for side in (cell, base)]
    seeds = sorted(set(sides[0]) & set(sides[1]))
    values = [[side[seed] for seed in seeds] for side in sides]
    ours, theirs = ([value if math.isfinite(value) else math.inf for value in side] for side in values)
    parts = [f"{short(centre(side), 3)} nats" if any(map(math.isfinite, side)) else "diverged" for side in values]
    ends = at_depth(*cell.depth), at_depth(*base.depth)
    runs = [*cell.of(method), *base.of(method)]
    return measured(
        runs,
        known({seed: other - one for seed, one, other in zip(seeds, ours, theirs, strict=True)}),
        Spot("-against-".join(end.key for end in ends), " against ".join(end.text for end in ends)),
        apart=cell.apart.text,
        condition=cell.condition,
        beside=" against ".join(parts),
        beyond=too_short([run.spec for run in runs]),
    )


def from_layers(least: int) -> Callable[[ClaimCell], bool]:
    """Cells whose deeper stack has this many layers or more."""
    return lambda cell: cell.layers >= least


def fates(cell: ClaimCell, *methods: str) -> str:
    """`Post-LN: 2 of 3 stuck, 1 of 3 trains; ADMIN: trains`."""
    parts = []
    for method in methods:
        words = [displayed(cell.runs[method][seed].outcome.word) for seed in cell.seeds(*methods)]
        counts = Counter(words).items()
        ends = ", ".join(f"{n} of {len(words)} {word}" if len(words) > 1 else word for word, n in counts)
        parts.append(f"{cell.label(method) if cell.of(method) else method}: {ends}")
    return "; ".join(parts)


def of_line(
    runs: Sequence[Run], line: update_fit.DepthLine, values: Mapping[int, float], *of: Spot, **more: Any
) -> Measurement:
    """A number made of exponents fitted over depths, by seed; `of` whose, where a claim has a place a method."""
    return measured(runs, values, *of, span(f"{line.shallowest:g}", f"{line.deepest:g}"), **more)


def span(*ends: object) -> Spot:
    """`6–50 layers`."""
    return Spot("-".join(map(str, ends)), f"{'–'.join(map(str, ends))} layers")


def sizes(line: update_fit.DepthLine) -> dict[int, float]:
    """How far each seed's exponent lies from 0, up or down."""
    return {seed: abs(exponent) for seed, exponent in line.seeds.items()}


def falling(line: update_fit.DepthLine) -> str:
    """Says so where an exponent of which the size is told falls."""
    return f"falling: {power_of_n(line.exponent)}" if line.exponent < 0 else ""


def above_theorem(line: update_fit.DepthLine) -> dict[int, float]:
    """How far each seed's exponent lies above that of the theorem's sum."""
    return {seed: line.seeds[seed] - told for seed, told in line.predicted.items() if seed in line.seeds}
