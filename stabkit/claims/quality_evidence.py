"""Which of two models is better, seed by seed: BLEU where it says something, else the validation loss; and when these
runs are too short to say it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.claims.base import Measurement, Spot, Tell, at_depth
from stabkit.claims.evidence import ClaimCell, groups
from stabkit.figures.shared import quality as qualities
from stabkit.figures.shared.comparison import setting
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import short
from stabkit.spec import RunSpec
from stabkit.storage.store import Run

REACH = 8_000 * 4_000
"""Tokens after which the papers begin to compare qualities: DeepNet's Fig. 6 after 8,000 updates of 4,000 tokens."""
LONG = "decided from the 8,000 updates of 4,000 tokens on after which DeepNet's Fig. 6 compares"
SHORT = "--steps 8000 --max-tokens 4000 --bleu"


def too_short(specs: Sequence[RunSpec]) -> str:
    """Why these runs cannot decide who is better in the end; nothing where they can."""
    least = min(specs, key=lambda spec: spec.train.steps * spec.train.max_tokens).train
    if least.steps * least.max_tokens >= REACH:
        return ""
    return (
        f"{least.steps:,} updates of {least.max_tokens:,} tokens tell how fast a model begins to learn; the papers "
        "compare after 8,000 updates of 4,000 and more"
    )


def loss(run: Run) -> float:
    """The validation loss at the end."""
    return run.outcome.validation_loss


def gains(ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[dict[int, float], str]:
    """({seed: how much better ours is}, `BLEU 31.2 against 30.1`), over the seeds that both have; by BLEU where every
    run of both sides was translated alike, and translates, else by validation loss."""
    by = [{run.spec.seed: run for run in side} for side in (ours, theirs)]
    seeds = sorted(set(by[0]) & set(by[1]))
    measure = qualities.measured([side[seed] for side in by for seed in seeds])
    values = [[measure.values[side[seed].run_id] for seed in seeds] for side in by]
    by_seed = {
        seed: gain
        for seed, one, other in zip(seeds, *values, strict=True)
        if not math.isnan(gain := measure.gain(_lost(one, measure.name), _lost(other, measure.name)))
    }
    unit = "BLEU {}" if measure.name == qualities.BLEU else "{} nats"
    parts = [unit.format(short(centre(side), 3)) if any(map(math.isfinite, side)) else "diverged" for side in values]
    return by_seed, " against ".join(parts)


def _lost(value: float, name: str) -> float:
    """A quality that is no number is the worst there is."""
    if math.isfinite(value):
        return value
    return 0.0 if name == qualities.BLEU else math.inf


def compared(cell: ClaimCell, base: ClaimCell, method: str) -> Measurement:
    """One method at one shape against itself at another."""
    return against(cell, cell.of(method), base.of(method), beside(cell, base))


def beside(cell: ClaimCell, other: ClaimCell) -> Spot:
    """`18L-18L against 6L-6L`."""
    ends = at_depth(*cell.depth), at_depth(*other.depth)
    return Spot("-against-".join(end.key for end in ends), " against ".join(end.text for end in ends))


def against(cell: ClaimCell, ours: Sequence[Run], theirs: Sequence[Run], where: Spot) -> Measurement:
    """How much better some runs of a cell are than others."""
    values, sides = gains(ours, theirs)
    specs = [run.spec for run in (*ours, *theirs)]
    return Measurement(
        where=(where,),
        apart=cell.apart.text,
        condition=cell.condition,
        steps=min(spec.train.steps for spec in specs),
        values=values,
        beside=sides,
        beyond=too_short(specs),
    )


def published(runs: Sequence[Run]) -> list[Run]:
    """Those whose α and β are the papers', by one recipe for all."""
    return [run for _, own in groups(runs) for run in own]


def train(runs: Sequence[Run]) -> bool:
    """Whether all of them train: against one that does not, whatever is measured is no quality."""
    return bool(runs) and all(run.outcome.word == "trains" for run in runs)


def above_own_unigram(run: Run) -> float:
    """The validation loss less that of the best constant predictor on the same text: sizes of batches cut the
    validation text differently, and this takes out how hard each piece is."""
    return loss(run) - run.outcome.unigram_loss


def of_runs(
    runs: Sequence[Run], where: tuple[Spot, ...], apart: str, values: dict[int, float], **more: object
) -> Measurement:
    """A number of these runs."""
    steps = min(run.spec.train.steps for run in runs)
    return Measurement(where=where, apart=apart, condition=setting(runs[0].spec), steps=steps, values=values, **more)  # type: ignore[arg-type]


gained = Tell(lambda value: f"{'+' if value >= 0 else '−'}{short(abs(value))}")
"""`+0.13`: how much better."""
