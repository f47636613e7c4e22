"""What a copy's word is worth for the wide model: right, missed, false, by the rows that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

from stabkit.results.forecast.logistic import Word
from stabkit.results.own.forecast import ours
from studies.ladder.cells import Rows, censored, edge
from studies.ladder.design import FIRM_RIGHT, FIRM_SHARE, GOOD, SIGNIFICANT, WidthRecipe, copied, recipes
from studies.own import lookup
from studies.own.corpus import CorpusRow
from studies.own.fit import probability
from studies.own.judge import decision
from studies.own.models import BASE
from studies.own.training import Word as Ending
from studies.own.training import label

Reading = Literal["kept", "root", "whole", "at 256", "quick", "own", "settings", "all"]
READINGS: tuple[Reading, ...] = ("kept", "root", "whole", "at 256", "quick", "own", "settings", "all")
"""A copy of width 64 by a law of the rate, a copy of width 256, the model itself without a training and with one, a
table of settings, and that everything trains."""
KEY = "forecast"
"""What the command knows of a text of the user's own: the level of its loss, no reference."""
GOOD_WORDS, BAD_WORDS = ("trains", "probably trains"), ("fails", "probably fails")


@dataclass(frozen=True)
class JudgedRecipe:
    """One recipe at one width: what became of it, and what was said of it."""

    recipe: WidthRecipe
    width: int
    row: CorpusRow
    words: dict[Reading, Word]
    """Of the readings that have rows."""

    @property
    def trains(self) -> bool:
        return self.row.ends == "trains"

    def came_true(self, reading: Reading) -> bool | None:
        """Whether the side that the word leans to did; None of `undecided`."""
        word = self.words.get(reading)
        if word is None or word not in (*GOOD_WORDS, *BAD_WORDS):
            return None
        return (word in GOOD_WORDS) is self.trains

    def right(self, reading: Reading) -> bool:
        return self.came_true(reading) is True


def word(row: CorpusRow, *, quick: bool = False) -> Word:
    """What the command says of this model, by its own function."""
    by = ours()
    p = probability(row, by.logistic, by)
    return decision(row, p, by.looks, trained=not quick, key=KEY).word


def judged(rows: Rows, width: int, corpus: Sequence[CorpusRow]) -> list[JudgedRecipe]:
    """The recipes that have an outcome at this width, a clear one. `corpus`: what a table of settings is fitted on."""
    found = list[JudgedRecipe]()
    for recipe in recipes():
        known = edge(rows, recipe.setup)
        if known is None:
            continue
        half = recipe.half(known)
        row = rows.get(recipe.setup.case(width, half).number)
        if row is None or not row.clear:
            continue
        places: dict[Reading, tuple[int, int]] = {
            "kept": (BASE, half),
            "root": (BASE, copied(half, width, "root")),
            "whole": (BASE, copied(half, width, "whole")),
            "quick": (width, half),
            "own": (width, half),
        }
        if width > 256:
            places["at 256"] = (256, half)
        words: dict[Reading, Word] = {"all": "trains"}
        for name, at in places.items():
            if (copy := rows.get(recipe.setup.case(*at).number)) is not None:
                words[name] = word(copy, quick=name == "quick")
        found.append(JudgedRecipe(recipe, width, row, words))
    if found and corpus:
        clear = [row for row in corpus if row.clear]
        for one, p in zip(found, lookup.predicted(clear, [one.row for one in found]), strict=True):
            one.words["settings"] = "trains" if p >= 0.5 else "fails"
    return found


@dataclass(frozen=True)
class Counts:
    """Of one reading."""

    reading: Reading
    right: int
    missed: int
    """Told to train, and it fails."""
    false: int
    """Told to fail, and it trains."""
    open: int
    """`undecided`."""

    @property
    def of(self) -> int:
        return self.right + self.missed + self.false + self.open

    @property
    def share(self) -> float:
        """Of all that have the reading."""
        return self.right / self.of if self.of else 0.0


def counts(some: Sequence[JudgedRecipe], reading: Reading) -> Counts:
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


def sign_test(some: Sequence[JudgedRecipe], one: Reading, other: Reading) -> tuple[int, int, float]:
    """(recipes that only `one` is right of, only `other`, both sides' probability of a difference as large)."""
    both = [j for j in some if one in j.words and other in j.words]
    first = sum(j.right(one) and not j.right(other) for j in both)
    second = sum(j.right(other) and not j.right(one) for j in both)
    return first, second, both_sides(first, second)


def both_sides(first: int, second: int) -> float:
    """Of a sign test: the probability of a difference as large, either way."""
    n, less = first + second, min(first, second)
    return min(1.0, 2 * sum(comb(n, k) for k in range(less + 1)) / 2**n) if n else 1.0


def good(some: Sequence[JudgedRecipe], reading: Reading) -> bool:
    """By the design's limit, and better than that everything trains."""
    return counts(some, reading).share >= max(GOOD, counts(some, "all").share)


def best(some: Sequence[JudgedRecipe]) -> Reading:
    """Of the copy's readings the one that is right most often."""
    return max(COPIES, key=lambda reading: counts(some, reading).right)


def sentence(some: Sequence[JudgedRecipe]) -> str:
    """The key of SENTENCES that these recipes end in, by the design's rule."""
    chosen = best(some)
    more, fewer, p = sign_test(some, "quick", chosen)
    if good(some, chosen) and not (more > fewer and p < SIGNIFICANT):
        return chosen
    return "own" if good(some, "own") else "none"


def first_rule(some: Sequence[JudgedRecipe]) -> str:
    """The same by the rule before its amendment: firm words alone."""

    def firm(reading: Reading) -> tuple[int, int, int]:
        told = [one for one in some if one.words.get(reading) in ("trains", "fails")]
        return sum(one.right(reading) for one in told), len(told), len(some)

    chosen = max(COPIES, key=lambda reading: firm(reading)[0])
    right, told, of = firm(chosen)
    more, fewer, p = sign_test(some, "own", chosen)
    enough = right >= FIRM_RIGHT * told and told >= FIRM_SHARE * of
    return chosen if enough and not (more > fewer and p < SIGNIFICANT) else "own"


COPIES: tuple[Reading, ...] = ("kept", "root", "whole")
GROUPS: dict[str, Callable[[JudgedRecipe], str]] = {
    "scheme": lambda one: one.recipe.setup.scheme,
    "optimiser": lambda one: {"adamw": "AdamW", "muon": "Muon with AdamW"}[one.recipe.setup.optimizer],
    "depth": lambda one: f"{one.recipe.setup.depth} layers",
    "warm-up": lambda one: f"{one.recipe.setup.warmup} updates",
    "text": lambda one: one.recipe.setup.text,
}


def groups(some: Sequence[JudgedRecipe], axis: str) -> dict[str, list[JudgedRecipe]]:
    """By an axis of GROUPS, in the order of the design."""
    of = GROUPS[axis]
    return {name: [one for one in some if of(one) == name] for name in dict.fromkeys(map(of, some))}


def one_bar(row: CorpusRow, rows: Rows) -> Ending:
    """What became of a training where a text's bar is the same at every width: that of the reference of width 64."""
    reference = next(r.reference for r in rows.values() if (r.case.task, r.case.shape.width) == (row.case.task, BASE))
    return label(row.losses, row.held_out, row.level, reference)


def _ends(rows: Rows, width: int, *, again: bool = False) -> list[tuple[WidthRecipe, CorpusRow]]:
    """The recipes that have a row at this width, of setups whose edge is within the search."""
    found = []
    for recipe in recipes():
        at = edge(rows, recipe.setup)
        if at is not None and not censored(rows, recipe.setup):
            row = rows.get(recipe.setup.case(width, recipe.half(at), again=again).number)
            found += [(recipe, row)] if row is not None else []
    return found


def shift(rows: Rows, wide: int, *, again: bool = False) -> tuple[int, int, float]:
    """(recipes that train at width 64 and not at the wide one, the other way, the sign test's probability), by one bar;
    `again`: at the wide one with another seed, which is what chance and the choice of rates do alone."""
    ends = [
        {recipe.number: one_bar(row, rows) == "trains" for recipe, row in _ends(rows, width, again=other)}
        for width, other in ((BASE, False), (wide, again))
    ]
    both = ends[0].keys() & ends[1].keys()
    lost, won = (sum(ends[a][n] and not ends[b][n] for n in both) for a, b in ((0, 1), (1, 0)))
    return lost, won, both_sides(lost, won)


def floor(rows: Rows) -> Counts:
    """How often the word at width 64 comes true of the same recipe with another seed."""
    some = []
    for recipe, other in _ends(rows, BASE, again=True):
        at = edge(rows, recipe.setup)
        same = None if at is None else rows.get(recipe.setup.case(BASE, recipe.half(at)).number)
        if same is not None and other.clear:
            some.append(JudgedRecipe(recipe, BASE, other, {"kept": word(same)}))
    return counts(some, "kept")


def unclear(rows: Rows, width: int) -> int:
    """Recipes at this width whose outcome is neither."""
    known = [(r, at) for r in recipes() if (at := edge(rows, r.setup)) is not None]
    own = [rows.get(r.setup.case(width, r.half(at)).number) for r, at in known]
    return sum(row is not None and not row.clear for row in own)


def missing(rows: Rows, width: int) -> list[WidthRecipe]:
    """Recipes that were not trained at this width."""
    without = []
    for recipe in recipes():
        at = edge(rows, recipe.setup)
        if at is None or recipe.setup.case(width, recipe.half(at)).number not in rows:
            without.append(recipe)
    return without
