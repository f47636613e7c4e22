"""The ladder's design: written, and committed, before a run was made of it.

Twenty setups: ten schemes, each under AdamW and under Muon with AdamW; depth, warm-up and text of a setup are drawn by
a seed, each value about equally often. Of every setup the highest rate that trains at width 64, its *edge*, is searched
on rungs of a factor 2. Two recipes of a setup have two of the rates edge × 2^OFFSETS, drawn: forty recipes. Each is
trained 300 updates at the widths 64 to 512, on the same batches, and probed there; at width 64 also with its rate times
what the laws LAWS divide a wide model's rate by.

The question: of a recipe at width d with rate η, does the word of the copy of width 64 come true? The copy may have
the rate η (`kept`), η·√(d/64) (`root`) or η·d/64 (`whole`). Beside them stand the words of the probe at 256 and at the
width itself, and that of the width itself without a training (`--quick`).

Amended on 29 November 2026, before any model wider than 64 was trained. The first rule asked that 0.9 of a reading's
firm words come true and that it has one for 0.8 of the recipes; by the rows of width 64 no copy reaches the latter,
whatever the wide models do, so that it could end in one sentence alone. It is still printed. The rule is now:

A word leans to its side (`probably trains` counts as `trains`), `undecided` is not right. A reading is *good* where it
is right of GOOD of all recipes with a clear outcome, and no less often than that everything trains. Of the copy's
readings the one that is right most often is chosen, the earlier one where two are; it is the sentence if it is good and
the width's own `--quick` word is not significantly more often right (a sign test at SIGNIFICANT, both sides). Else the
sentence is `own`, if the width's own whole probe is good, which trains the model for up to as many updates as the
outcome has; else `none`. How far a word can be right at all is shown by each recipe at width 64 with another seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from stabkit.streams import stream
from studies.own.design import LENGTH, Case
from studies.own.models import BASE, Shape
from studies.texts import TEXTS, WORDS

SEED = 71
WIDTHS = (64, 128, 256, 512)
SCHEMES: Mapping[str, tuple[str, str]] = {
    "Pre-LN": ("pre", "normal-0.02"),
    "Pre-LN, GPT-2's scaling": ("pre", "gpt2"),
    "Post-LN": ("post", "xavier"),
    "DeepNorm": ("deepnorm", "xavier"),
    "DeepNorm without β": ("deepnorm-no-beta", "xavier"),
    "Peri-LN": ("peri", "normal-0.02"),
    "ReZero": ("rezero", "xavier"),
    "no norm": ("none-scaled", "xavier"),
    "QK-norm": ("qk-norm", "normal-0.02"),
    "CompleteP": ("completep-width", "xavier"),
}
"""{name: (scheme of studies/own/models.py, initialisation)}. `no norm` draws its branches smaller by 1/√(2N)."""
OPTIMIZERS = ("adamw", "muon")
DEPTHS, WARMUPS = (8, 16, 24), (0, 50)
LOWEST = {"adamw": 5e-5, "muon": 5e-4}
"""The rate of half-rung 0; a half-rung is a factor √2."""
RUNGS = tuple(range(0, 26, 2))
"""Half-rungs of the search for an edge: AdamW to 0.2, Muon to 2."""
OFFSETS = (-6, -4, -2, 0, 2)
"""Half-rungs from the edge: an eighth of its rate to twice it. Between 1 and 1/8 lie the laws' edges at width 512."""
LAWS: Mapping[str, float] = {"kept": 0.0, "root": 0.5, "whole": 1.0}
"""{name: p}: the copy's rate is that of width d times (d/64)^p."""
SENTENCES: Mapping[str, str] = {
    "kept": "probe a copy of width 64 at your rate",
    "root": "probe a copy of width 64 at √(d/64) times your rate",
    "whole": "probe a copy of width 64 at d/64 times your rate",
    "own": "probe your own width",
    "none": "no probe of these is good enough: train your own width for some hundred updates",
}
GOOD, SIGNIFICANT = 0.8, 0.05
FIRM_RIGHT, FIRM_SHARE = 0.9, 0.8
"""Of the first rule."""
SLOTS = 100
"""Half-rungs that a width has numbers for; half-rung 0 stands at MIDDLE."""
MIDDLE = 20
AGAIN = 100_000
"""Numbers from here on are of the same training with another seed."""
T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """All of a recipe but its rate."""

    number: int
    scheme: str
    """One of SCHEMES."""
    optimizer: str
    depth: int
    warmup: int
    text: str

    def case(self, width: int, half: int, *, again: bool = False) -> Case:
        """The training at this width and half-rung; `again`: with another seed."""
        scheme, init = SCHEMES[self.scheme]
        shape = Shape(
            kind="decoder", scheme=scheme, width=width, depth=self.depth, init=init, activation="gelu", norm="layer",
            tied=False, bias=True, words=WORDS, length=LENGTH,
        )  # fmt: skip
        rate = float(f"{LOWEST[self.optimizer] * 2 ** (half / 2):.5g}")
        number = (self.number * len(WIDTHS) + WIDTHS.index(width)) * SLOTS + half + MIDDLE + AGAIN * again
        return Case(
            number=number, shape=shape, task=self.text, optimizer=self.optimizer, rate=rate, warmup=self.warmup,
            seed=self.number % 5 + 5 * again,
        )  # fmt: skip


@dataclass(frozen=True)
class WidthRecipe:
    """A setup at one of its rates."""

    number: int
    setup: Setup
    offset: int
    """Half-rungs from the setup's edge."""

    def half(self, edge: int) -> int:
        """Its half-rung, where the setup's edge is known."""
        return edge + self.offset


@cache
def setups() -> tuple[Setup, ...]:
    """All twenty."""
    found = list[Setup]()
    for optimizer in OPTIMIZERS:
        depths, warmups, texts = _spread(DEPTHS, optimizer), _spread(WARMUPS, optimizer), _spread(TEXTS, optimizer)
        for i, scheme in enumerate(SCHEMES):
            found.append(Setup(len(found), scheme, optimizer, depths[i], warmups[i], texts[i]))
    return tuple(found)


def _spread(values: tuple[T, ...], optimizer: str) -> list[T]:
    """One for each scheme, every value about equally often."""
    many = (values * len(SCHEMES))[: len(SCHEMES)]
    order = stream(SEED, f"{values[0]} {optimizer}").permutation(len(SCHEMES))
    return [many[int(i)] for i in order]


@cache
def recipes() -> tuple[WidthRecipe, ...]:
    """All forty, two of a setup."""
    found = list[WidthRecipe]()
    for setup in setups():
        drawn = stream(SEED, f"rates {setup.number}").choice(OFFSETS, 2, replace=False)
        found += [WidthRecipe(2 * setup.number + i, setup, int(offset)) for i, offset in enumerate(sorted(drawn))]
    return tuple(found)


def case_of(number: int) -> Case:
    """The training of a number; raises IndexError."""
    place, slot = divmod(number % AGAIN, SLOTS)
    setup, width = divmod(place, len(WIDTHS))
    return setups()[setup].case(WIDTHS[width], slot - MIDDLE, again=number >= AGAIN)


def copied(half: int, width: int, law: str) -> int:
    """The half-rung of the copy of width 64, for a model of this width."""
    return half + round(2 * LAWS[law] * math.log2(width / BASE))


def order() -> Iterator[WidthRecipe]:
    """The recipes as they are trained at their widths: at random, AdamW's before Muon's, which are slow on a CPU."""
    for optimizer in OPTIMIZERS:
        own = [recipe for recipe in recipes() if recipe.setup.optimizer == optimizer]
        yield from (own[int(i)] for i in stream(SEED, f"order {optimizer}").permutation(len(own)))
