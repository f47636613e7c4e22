"""Which of two systems is better: BLEU where it says something, else the validation loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.claims.evidence import MARGIN, groups
from stabkit.figures.shared import quality as qualities
from stabkit.figures.shared.comparison import outcome_word
from stabkit.figures.shared.words import number, short
from stabkit.quality import bleu
from stabkit.storage.store import Run

LOST = 99.0
"""Nats or BLEU that a run that diverged is behind, where places are ordered."""

AT_UNIGRAM, BELOW_UNIGRAM = 0.98, 0.95
"""Of the unigram loss: a model there knows word frequencies at most; one below has learnt more."""

JUDGED = ("trains", "stuck", "diverged")


@dataclass(frozen=True, slots=True)
class Better:
    """One side's quality against another's, means over runs."""

    gain: float
    """Positive where ours is better."""
    clear: bool
    """Whether it is more than chance: the bootstrap's + or − for BLEU, MARGIN for the loss."""
    ours: str
    theirs: str
    """In words: `BLEU 31.2`, `4.91 nats`, `diverged`."""


def better(ours: Sequence[Run], theirs: Sequence[Run]) -> Better | None:
    """By BLEU where every run of both sides was translated alike, and translates, else by validation loss; None where
    both are lost."""
    found = qualities.measured([*ours, *theirs])
    means = [float(np.mean([found.values[run.run_id] for run in side])) for side in (ours, theirs)]
    if found.name == qualities.BLEU:
        words = [f"BLEU {short(mean, 3)}" for mean in means]
        return Better(found.gain(*means), sign(ours, theirs) != "=", words[0], words[1])
    words = [f"{short(mean, 3)} nats" if math.isfinite(mean) else "diverged" for mean in means]
    if all(map(math.isfinite, means)):
        return Better(found.gain(*means), abs(found.gain(*means)) >= MARGIN, words[0], words[1])
    lost = [not math.isfinite(mean) for mean in means]
    return None if all(lost) else Better(-LOST if lost[0] else LOST, True, words[0], words[1])


def published(runs: Sequence[Run]) -> list[Run]:
    """Those whose α and β are the papers', by one recipe for all."""
    return [run for _, own in groups(runs) for run in own]


def train(runs: Sequence[Run]) -> bool:
    """Whether all of them train: against one that does not, whatever is measured is no quality."""
    return all(outcome_word(run) == "trains" for run in runs)


def all_judged(runs: Sequence[Run]) -> bool:
    """Whether there are any, and every one of them has an outcome that says something."""
    return bool(runs) and all(outcome_word(run) in JUDGED for run in runs)


def above_own_unigram(run: Run) -> float:
    """The validation loss less that of the best constant predictor on the same text: sizes of batches cut the
    validation text differently, and this takes out how hard each piece is."""
    return number(run.outcome.get("validation_loss")) - number(run.outcome.get("unigram_loss"))


def sign(ours: Sequence[Run], theirs: Sequence[Run]) -> str:
    """The bootstrap's verdict over sentences, each with the translations of all seeds."""
    found = qualities.alike([*ours, *theirs])
    counts = [np.sum([bleu.counted(found[run.run_id]) for run in side], axis=0) for side in (ours, theirs)]
    return bleu.compare(*counts).sign


def mean_text(values: Sequence[float]) -> str:
    """The mean of those that are numbers."""
    finite = [value for value in values if math.isfinite(value)]
    return short(float(np.mean(finite)), 3) if finite else "no number"
