"""What a claim is: a sentence of a paper, its weight, the number that tests it, and the threshold that decides.

A claim looks for every place in the runs where it can be tested (a depth, a condition) and measures there one number a
seed. `verdict.py` decides each place by the threshold, and the claim by its places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stabkit.figures.shared.words import short

Verdict = Literal["holds", "fails", "mixed", "undecided", "out of reach", "untested"]
ORDER: tuple[Verdict, ...] = ("holds", "mixed", "fails", "undecided", "out of reach", "untested")
"""On the page: what holds is named before what does not."""
Weight = Literal["central", "side", "background", "ours"]
WEIGHTS: tuple[Weight, ...] = ("central", "side", "background", "ours")
"""A sentence on which its paper's argument rests; one beside it; one that the paper reports of others; our own reading.
Headlines count central ones alone."""
Scale = Literal["ratio", "difference", "share"]
"""How a claim's number is compared: by its logarithm; as it is; as the share of the seeds in which something is so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """From where on a number bears a sentence out, and why from there."""

    sense: Literal[">=", "<="]
    value: float
    reason: str
    """`ours: …`, or what the paper says."""

    @property
    def words(self) -> str:
        """`at least` or `at most`."""
        return "at least" if self.sense == ">=" else "at most"

    def met(self, number: float) -> bool:
        """Whether a number lies on the side that bears the sentence out."""
        return number >= self.value if self.sense == ">=" else number <= self.value


def at_least(value: float, reason: str) -> Threshold:
    """Met by this value and all above."""
    return Threshold(sense=">=", value=value, reason=reason)


def at_most(value: float, reason: str) -> Threshold:
    """Met by this value and all below."""
    return Threshold(sense="<=", value=value, reason=reason)


MUCH = at_least(2.0, "ours: “much” is two-fold")
"""Of a ratio, wherever a paper says much larger or much smaller."""
MOST = at_least(0.5, "ours: in every seed of up to four, in more than half of five and more")
"""Of a share: what happens in most runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The number at one place, seed by seed."""

    where: str
    """`18L-18L`, `6–50 layers`."""
    apart: str = ""
    """What else tells this place from the others of these runs: `no warm-up`."""
    condition: str
    """The settings that these runs share, whole: `no warm-up, lr 0.0005, 512 tokens a batch, synthetic`."""
    steps: int
    """Updates of the runs, the fewest."""
    values: Mapping[int, float]
    """By seed; of a share 1 where it is so and 0 where not. Several seeds' one number stands under each."""
    beside: str = ""
    """What is told with the number: both sides of a ratio."""
    threshold: Threshold | None = None
    """Where it is not the claim's own."""
    interval: tuple[float, float] | None = None
    """Of a number that all seeds make together (a spread over seeds, a fitted line): its own 95 % interval."""
    beyond: str = ""
    """Why this scale, length or optimiser cannot decide here what the paper says."""
    part: str = ""
    """Which of the claim's parts it tests."""

    @property
    def spot(self) -> str:
        """`18L-18L, no warm-up`."""
        return ", ".join(part for part in (self.where, self.apart) if part)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What became of a claim at one place."""

    measured: Measured
    value: float
    """The median over seeds; of a share the mean."""
    low: float | None
    high: float | None
    """The least and the greatest of two to four seeds, a 95 % interval from five on; None of one."""
    threshold: Threshold
    verdict: Verdict
    """Never mixed, never untested."""
    reason: str
    """Why it is not decided; nothing where it is."""
    text: str
    """The number in words: `27 times (16 to 34)`."""
    alone: str = ""
    """Of one seed that decides, how far five lie apart: `one seed; five lie within 1.4 times`."""


def times(value: float) -> str:
    """`27 times`."""
    return f"{short(value)} times"


def closely(value: float) -> str:
    """`1.25 times`: where two digits would hide on which side of a threshold it lies."""
    return f"{short(value, 3)} times"


def power(value: float) -> str:
    """`N^1.05`."""
    return f"N^{value:.2f}".replace("-", "−")


def signed(value: float) -> str:
    """`+0.13`."""
    return f"{value:+.2f}".replace("-", "−")


def points(value: float) -> str:
    """Of a difference of shares: `+13 points`, of a hundred."""
    return f"{100 * value:+.0f} points".replace("-", "−")


def nats(value: float) -> str:
    """`+0.13 nats`."""
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{short(abs(value))} nats"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One sentence and its test."""

    key: str
    sentence: str
    source: str
    weight: Weight
    test: str
    """What is measured, and at which steps."""
    threshold: Threshold
    scale: Scale
    tell: Callable[[float], str] = short
    """The number in words."""
    find: Callable[[Any], Sequence[Measured]]
    """From runs, or from a Landscape."""
    needs: str
    """What runs it takes."""
    command: str
    """A command whose runs test it."""
    methods: tuple[str, ...]
    """The keys of the methods that it is about."""
    at_start: bool = False
    """Reads step 0 alone: where nothing was trained, single steps of SGD show it too."""
    parts: tuple[str, ...] = ()
    """Of a sentence that says several things: until each was tested it does not hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A claim and what became of it."""

    claim: Claim
    verdict: Verdict
    measured: str
    """What was measured, in words, with the places that decide it."""
    reason: str
    """Why it is undecided, out of reach or untested; nothing where it is decided."""
    places: tuple[Place, ...]

    @property
    def under(self) -> str:
        """What runs it was tested on: `runs of 16 to 250 updates, no warm-up, lr 0.0005 or warm-up 4000, lr 0.0005`."""
        steps = sorted({one.measured.steps for one in self.places})
        warmups = dict.fromkeys(", ".join(one.measured.condition.split(", ")[:2]) for one in self.places)
        count = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else f"{steps[0]}" if steps else ""
        return f"runs of {count} update{'s' * (steps != [1])}, {' or '.join(warmups)}" if steps else ""
