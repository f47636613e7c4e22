"""What a copy's word is worth for the wide model: right, missed, false, by the rows that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

from stabkit.results.forecast.logistic import Word
from stabkit.results.own.forecast import ours
from studies.ladder.cells import Rows, edge
from studies.ladder.design import ENOUGH, GOOD, LAWS, SIGNIFICANT, Recipe, copied, recipes
from studies.own import lookup
from studies.own.corpus import CorpusRow
from studies.own.fit import probability
from studies.own.judge import decision
from studies.own.models import BASE

Reading = Literal["kept", "root", "whole", "at 256", "own", "settings"]
READINGS: tuple[Reading, ...] = ("kept", "root", "whole", "at 256", "own", "settings")
"""A copy of width 64 by a law of the rate, a copy of width 256, the model itself, a table of settings."""
KEY = "forecast"
"""What the command knows of a text of the user's own: the level of its loss, no reference."""


@dataclass(frozen=True)
class Judged:
    """One recipe at one width: what became of it, and what was said of it."""

    recipe: Recipe
    width: int
    row: CorpusRow
    words: dict[Reading, Word]
    """Of the readings that have rows."""

    @property
    def trains(self) -> bool:
        return self.row.ends == "trains"

    def came_true(self, reading: Reading) -> bool | None:
        """Whether the word did; None of one that decides nothing."""
        word = self.words.get(reading)
        return None if word not in ("trains", "fails") else (word == "trains") is self.trains


def word(row: CorpusRow, *, quick: bool = False) -> Word:
    """What the command says of this model, by its own function."""
    by = ours()
    p = probability(row, by.logistic, by)
    return decision(row, p, by.looks, trained=not quick, key=KEY).word


def judged(rows: Rows, width: int, corpus: Sequence[CorpusRow], *, quick: bool = False) -> list[Judged]:
    """The recipes that have an outcome at this width, a clear one. `corpus`: what a table of settings is fitted on."""
    found = list[Judged]()
    for recipe in recipes():
        known = edge(rows, recipe.setup)
        if known is None:
            continue
        half = recipe.half(known)
        row = rows.get(recipe.setup.case(width, half).number)
        if row is None or not row.clear:
            continue
        places = {law: (BASE, copied(half, width, law)) for law in LAWS}
        if width > 256:
            places["at 256"] = (256, half)
        places["own"] = (width, half)
        words: dict[Reading, Word] = {}
        for name in READINGS:
            at = places.get(name)
            if at is not None and (copy := rows.get(recipe.setup.case(*at).number)) is not None:
                words[name] = word(copy, quick=quick)
        found.append(Judged(recipe, width, row, words))
    if found and corpus:
        known_rows = [row for row in corpus if row.clear]
        for one, p in zip(found, lookup.predicted(known_rows, [one.row for one in found]), strict=True):
            one.words["settings"] = "trains" if p >= 0.5 else "fails"
    return found


@dataclass(frozen=True)
class Counts:
    """Of one reading."""

    reading: Reading
    right: int
    missed: int
    """`trains`, and it fails."""
    false: int
    """`fails`, and it trains."""
    open: int
    """Neither word."""

    @property
    def decided(self) -> int:
        return self.right + self.missed + self.false

    @property
    def of(self) -> int:
        return self.decided + self.open

    @property
    def good(self) -> bool:
        """By the design's limits."""
        return self.of > 0 and self.right >= GOOD * self.decided and self.decided >= ENOUGH * self.of


def counts(some: Sequence[Judged], reading: Reading) -> Counts:
    """Of those that have the reading."""
    own = [one for one in some if reading in one.words]
    true = [one.came_true(reading) for one in own]
    wrong = [one for one, right in zip(own, true, strict=True) if right is False]
    return Counts(
        reading,
        right=true.count(True),
        missed=sum(not one.trains for one in wrong),
        false=sum(one.trains for one in wrong),
        open=true.count(None),
    )


def sign_test(some: Sequence[Judged], one: Reading, other: Reading) -> tuple[int, int, float]:
    """(recipes that only `one` is right of, only `other`, both sides' probability of a difference as large)."""
    both = [j for j in some if one in j.words and other in j.words]
    first = sum(j.came_true(one) is True and j.came_true(other) is not True for j in both)
    second = sum(j.came_true(other) is True and j.came_true(one) is not True for j in both)
    n, less = first + second, min(first, second)
    p = min(1.0, 2 * sum(comb(n, k) for k in range(less + 1)) / 2**n) if n else 1.0
    return first, second, p


def sentence(some: Sequence[Judged]) -> str:
    """The key of SENTENCES that these recipes end in, by the design's rule."""
    best = max((counts(some, law) for law in LAWS), key=lambda one: one.right)  # type: ignore[arg-type]
    more, fewer, p = sign_test(some, "own", best.reading)
    return best.reading if best.good and not (more > fewer and p < SIGNIFICANT) else "own"


GROUPS: dict[str, Callable[[Judged], str]] = {
    "scheme": lambda one: one.recipe.setup.scheme,
    "optimiser": lambda one: {"adamw": "AdamW", "muon": "Muon with AdamW"}[one.recipe.setup.optimizer],
    "depth": lambda one: f"{one.recipe.setup.depth} layers",
    "warm-up": lambda one: f"{one.recipe.setup.warmup} updates",
    "text": lambda one: one.recipe.setup.text,
}


def groups(some: Sequence[Judged], axis: str) -> dict[str, list[Judged]]:
    """By an axis of GROUPS, in the order of the design."""
    of = GROUPS[axis]
    return {name: [one for one in some if of(one) == name] for name in dict.fromkeys(map(of, some))}


def offsets(rows: Rows, width: int) -> dict[int, tuple[int, int]]:
    """{half-rungs from the edge at width 64: (recipes that train at this width, of so many)}, clear ones."""
    found = dict[int, tuple[int, int]]()
    for one in judged(rows, width, ()):
        trains, of = found.get(one.recipe.offset, (0, 0))
        found[one.recipe.offset] = trains + one.trains, of + 1
    return dict(sorted(found.items()))


def unclear(rows: Rows, width: int) -> int:
    """Recipes at this width whose outcome is neither."""
    known = [(r, at) for r in recipes() if (at := edge(rows, r.setup)) is not None]
    own = [rows.get(r.setup.case(width, r.half(at)).number) for r, at in known]
    return sum(row is not None and not row.clear for row in own)


def missing(rows: Rows, width: int) -> list[Recipe]:
    """Recipes that were not trained at this width."""
    without = []
    for recipe in recipes():
        at = edge(rows, recipe.setup)
        if at is None or recipe.setup.case(width, recipe.half(at)).number not in rows:
            without.append(recipe)
    return without


def shift(rows: Rows, narrow: int, wide: int) -> tuple[int, int, float]:
    """(recipes that train at the narrow width and not at the wide one, the other way, the sign test's probability):
    does the edge fall with the width?"""
    ends = [{one.recipe.number: one.trains for one in judged(rows, width, ())} for width in (narrow, wide)]
    both = ends[0].keys() & ends[1].keys()
    lost = sum(ends[0][n] and not ends[1][n] for n in both)
    won = sum(ends[1][n] and not ends[0][n] for n in both)
    n, less = lost + won, min(lost, won)
    return lost, won, min(1.0, 2 * sum(comb(n, k) for k in range(less + 1)) / 2**n) if n else 1.0
