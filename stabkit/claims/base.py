"""What a claim is: a sentence of a paper, the number that tests it, and the verdict that these runs give.

A claim looks for every place in the runs where it can be tested (a depth, a condition, the seeds that are there) and
gives one piece of evidence for each. It holds when all of them agree, fails when one does not, and is untested when
there is none; then it names the command that would test it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stabkit.figures.shared.surfaces import Landscape
from stabkit.storage.store import Run

Verdict = Literal["holds", "fails", "untested"]
ORDER: tuple[Verdict, ...] = ("fails", "holds", "untested")
"""On the page: those that fail are the interesting ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The number at one place."""

    where: str
    """`18L-18L (no warm-up)`."""
    value: float
    """Orders the places; the greatest and the least are told."""
    text: str
    """The number in words: `27 times`."""
    holds: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One sentence and its test."""

    key: str
    sentence: str
    source: str
    test: str
    """What is measured, at which steps, and when it holds."""
    find: Callable[[Any], Sequence[Evidence]]
    """From runs, or from a Landscape."""
    needs: str
    """What runs it takes."""
    command: str
    """A command whose runs test it."""
    methods: tuple[str, ...]
    """The keys of the methods that it is about."""
    ours: bool = False
    """Our own reading, not a sentence of a paper: shown beside those, and not counted in a command's summary."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A claim and what became of it."""

    claim: Claim
    verdict: Verdict
    measured: str
    evidence: tuple[Evidence, ...]


def judge(claim: Claim, measured: Sequence[Run] | Landscape) -> Finding:
    """The verdict of these runs, or of these surfaces, on one claim."""
    with np.errstate(all="ignore"):  # diverged runs hold infinities; what comes of them is NaN, and is no evidence
        evidence = tuple(claim.find(measured))
    if not evidence:
        return Finding(claim=claim, verdict="untested", measured=f"needs {claim.needs}", evidence=())
    against = [one for one in evidence if not one.holds]
    told = _told(against or list(evidence))
    if against and len(against) < len(evidence):
        held = list(dict.fromkeys(one.where for one in evidence if one.holds))
        where = "; ".join(held[:3]) + (f" and {len(held) - 3} more" if len(held) > 3 else "")
        told = f"{told}: fails at {len(against)} of {len(evidence)} places, holds at {where}"
    return Finding(claim=claim, verdict="fails" if against else "holds", measured=told, evidence=evidence)


def _told(evidence: list[Evidence]) -> str:
    """`1.6 times (18L-18L)`, or the least and the greatest of several places."""
    ordered = sorted(evidence, key=lambda one: one.value)
    low, high = ordered[0], ordered[-1]
    if low is high or low.text == high.text:
        places = [one.where for one in evidence]
        shown = "; ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        return f"{low.text} ({shown})"
    return f"{low.text} ({low.where}) to {high.text} ({high.where})"
