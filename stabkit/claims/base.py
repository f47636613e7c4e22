"""What a claim is: a sentence of a paper, its weight, the number that tests it, and the threshold that decides.

A claim looks for every place in the runs where it can be tested (a depth, a condition) and measures there one number a
seed. `verdict.py` decides each place by the threshold, and the claim by its places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from stabkit.results.conditions import Condition
from stabkit.spec import depth_text
from stabkit.words import listed, short

Verdict = Literal["holds", "fails", "mixed", "undecided", "out of reach", "untested"]
ORDER: tuple[Verdict, ...] = ("holds", "mixed", "fails", "undecided", "out of reach", "untested")
"""On the page: what holds is named before what does not."""
Weight = Literal["central", "side", "background"]
WEIGHTS: tuple[Weight, ...] = ("central", "side", "background")
"""A sentence on which its paper's argument rests; one beside it; one that the paper reports of others.
Headlines count central ones alone."""
Scale = Literal["ratio", "difference", "share"]
"""How a claim's number is compared: by its logarithm; as it is; as the share of the seeds in which something is so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Threshold:
    """From where on a number supports a sentence, and why from there."""

    sense: Literal[">=", "<="]
    value: float
    reason: str
    """`stabkit's choice: …`, or what the paper says."""

    @property
    def words(self) -> str:
        """`at least` or `at most`."""
        return "at least" if self.sense == ">=" else "at most"

    def met(self, number: float) -> bool:
        """Whether a number lies on the side that supports the sentence."""
        return number >= self.value if self.sense == ">=" else number <= self.value


def at_least(value: float, reason: str) -> Threshold:
    """Met by this value and all above."""
    return Threshold(sense=">=", value=value, reason=reason)


def at_most(value: float, reason: str) -> Threshold:
    """Met by this value and all below."""
    return Threshold(sense="<=", value=value, reason=reason)


MUCH = at_least(2.0, "stabkit's choice: “much” is two-fold")
"""Of a ratio, wherever a paper says much larger or much smaller."""
MOST_RUNS = at_least(0.5, "stabkit's choice: in every seed of up to four seeds, in more than half of five or more")
"""Of a share: what happens in most runs."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A part of where a claim is tested (a depth, a method, an update), or one of the things that its sentence says,
    each tested by itself. Two are the same by their keys, whatever the words are."""

    key: str
    """`18x18`, `post-ln`, `update-16`; `50-to-60`."""
    text: str = field(compare=False)
    """`18L-18L`, `Post-LN`, `update 16`; `50 to 60 layers`."""


def at_depth(encoder_layers: int, decoder_layers: int) -> Spot:
    """`18L-18L`."""
    return Spot(f"{encoder_layers}x{decoder_layers}", depth_text(encoder_layers, decoder_layers))


def at_update(step: int) -> Spot:
    """`update 16`."""
    return Spot(f"update-{step}", f"update {step}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """The number at one place, seed by seed."""

    where: tuple[Spot, ...]
    """`18L-18L`; `18L-18L, update 16`; `6–50 layers`."""
    apart: str = ""
    """What else tells this place from the others of these runs, in words: `no warm-up`."""
    condition: Condition
    """The settings that these runs share, whole: `no warm-up, lr 0.0005, 512 tokens per batch, synthetic`."""
    steps: int
    """Updates of the runs, the fewest."""
    values: Mapping[int, float]
    """By seed; of a share 1 where it is so and 0 where not."""
    beside: str = ""
    """What is told with the number: both sides of a ratio."""
    threshold: Threshold | None = None
    """Where it is not the claim's own."""
    beyond: str = ""
    """Why this scale, length or optimiser cannot decide here what the paper says."""
    part: Spot | None = None
    """Which of the claim's parts it tests; None of a claim that says one thing."""

    @property
    def place(self) -> str:
        """`18L-18L, no warm-up`."""
        return listed(*(spot.text for spot in self.where), self.apart)

    @property
    def key(self) -> tuple[str, str]:
        """(`18x18/update-16`, `train.warmup=0 …`): what the place is called in a file."""
        return "/".join(spot.key for spot in self.where), self.condition.key


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimPlace:
    """What became of a claim at one place."""

    measured: Measurement
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


@dataclass(frozen=True, slots=True)
class Tell:
    """A number in words: its digits, and what they count, which a range says once: `27 times (16 to 34)`."""

    digits: Callable[[float], str] = short
    unit: str = ""

    def __call__(self, value: float) -> str:
        return f"{self.digits(value)} {self.unit}" if self.unit else self.digits(value)


times = Tell(unit="times")
"""`27 times`."""
closely = Tell(lambda value: short(value, 3), "times")
"""`1.25 times`: where two digits would hide on which side of a threshold it lies."""


power_of_n = Tell(lambda value: f"N^{value:.2f}".replace("-", "−"))
"""`N^1.05`."""
signed = Tell(lambda value: f"{value:+.2f}".replace("-", "−"))
"""`+0.13`."""


points = Tell(lambda value: f"{100 * value:+.0f}".replace("-", "−"), "points")
"""Of a difference of shares: `+13 points`, of a hundred."""
nats = Tell(lambda value: f"{'+' if value > 0 else '−' if value < 0 else ''}{short(abs(value))}", "nats")
"""`+0.13 nats`."""


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
    scale: Scale = "difference"
    tell: Tell = Tell()
    find: Callable[[Any], Iterable[Measurement]]
    """From runs, or from a Landscape."""
    needs: str
    """What runs it takes."""
    command: str
    """A command whose runs test it."""
    methods: tuple[str, ...]
    """The keys of the methods that it is about."""
    at_start: bool = False
    """Reads step 0 alone: where nothing was trained, single steps of SGD show it too."""
    parts: tuple[Spot, ...] = ()
    """Of a sentence that says several things: until each was tested it does not hold."""
    spread: Mapping[str, Mapping[str, float]] = field(default_factory=dict, compare=False)
    """{setting: {place: range}} of its number over five seeds, of a ratio that of the natural logarithm, of a share 1
    where the seeds disagree: what one seed must lie off the threshold by to decide."""


_DE_EN = "task.name=de-en task.vocab=2000"
_SIDES = "task.source=de task.target=en"
WARMED = f"train.warmup=4000 train.lr=0.0005 train.max_tokens=512 {_DE_EN} {_SIDES}"
"""The settings in which spreads over seeds were measured, by their `Condition.key`: the default sweep's on Multi30k."""
UNWARMED = WARMED.replace("=4000", "=0")
"""The same without warm-up."""
STEP = f"train.warmup=0 train.lr=1e-05 train.max_tokens=512 {_DE_EN} train.optimizer=sgd {_SIDES} dtype=float64"
"""One small step of SGD."""

share_claim = partial(Claim, scale="share", threshold=MOST_RUNS)
"""Says what happens in most runs."""
ratio_claim = partial(Claim, scale="ratio", tell=times)
"""Compares two sizes; where two digits are too few its `tell` is `closely`."""
nats_claim = partial(Claim, tell=nats)
"""Compares two losses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A claim and what became of it."""

    claim: Claim
    verdict: Verdict
    measured: str
    """What was measured, in words, with the places that decide it."""
    reason: str
    """Why it is undecided, out of reach or untested; nothing where it is decided."""
    places: tuple[ClaimPlace, ...]

    @property
    def under(self) -> str:
        """What runs it was tested on: `runs of 16 to 250 updates, no warm-up, lr 0.0005 or warm-up 4000, lr 0.0005`."""
        steps = sorted({one.measured.steps for one in self.places})
        warmups = dict.fromkeys(one.measured.condition.of("train.warmup", "train.lr").text for one in self.places)
        count = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else f"{steps[0]}" if steps else ""
        return f"runs of {count} update{'s' * (steps != [1])}, {' or '.join(warmups)}" if steps else ""
