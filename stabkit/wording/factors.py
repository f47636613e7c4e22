"""The answer of `stabkit ablate`: with which factors on α and β a method trains, and which ends lowest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from stabkit.results.outcome import AT_UNIGRAM, NEAR, NOT_JUDGED
from stabkit.results.scales import Cell, cells, groups
from stabkit.words import fitting, listed, short

CLEARLY = 0.05
"""Nats by which a factor's loss must lie below the published one's, in every seed, to be called better: the claims'
threshold of what a factor costs."""
MOST_SETTINGS = 3
"""Depths or conditions that the answer has; the figure has all."""
FAILS = {
    "near": ("ends near the limit", "end near the limit"),
    "stuck": ("is stuck", "are stuck"),
    "diverged": ("diverges", "diverge"),
    "some": ("trains in some seeds only", "train in some seeds only"),
    NOT_JUDGED: ("is not judged", "are not judged"),
}
"""Of one factor and of several."""


class FactorSentence(NamedTuple):
    """`DeepNorm trains with α × 0.5 to × 4`, `, best with × 4 (4.89 against 5.60)`, `; α × 0.25 is stuck`."""

    first: str
    best: str = ""
    lost: str = ""

    @property
    def whole(self) -> str:
        return f"{self.first}{self.best}{self.lost}."


def sentences(every: pd.DataFrame) -> list[FactorSentence]:
    """A sentence a judged setting, losses medians over seeds; none where no run is judged."""
    judged = [rows for _, rows in groups(every) if any(_word(cell) != NOT_JUDGED for cell in cells(rows))]
    said = []
    for rows in judged[:MOST_SETTINGS]:
        label, depth, condition = (str(rows[name].iloc[0]) for name in ("label", "depth", "condition"))
        where = f" at {listed(depth, condition)}" if len(judged) > 1 else ""
        axes = {axis: [cell for cell in cells(rows) if _other(cell, axis) == 1] for axis in ("α", "β")}
        said += _axes(f"{label}{where}", {axis: along for axis, along in axes.items() if len(along) > 1})
    more = len(judged) - MOST_SETTINGS
    return said + [FactorSentence(f"{more} more settings are in the figure")] * (more > 0)


def in_short(said: Sequence[FactorSentence]) -> str:
    """The first of these sentences for a headline."""
    first, best, lost = said[0]
    return fitting(said[0].whole, f"{first}{best}.", f"{first}{lost}.", f"{first}.")


def _axes(who: str, axes: Mapping[str, Sequence[Cell]]) -> list[FactorSentence]:
    """What trains along every axis together, its cells in rising order of the factor; an axis along which nothing
    trains has a sentence of its own."""
    trained = {axis: along for axis, along in axes.items() if any(_word(cell) == "trains" for cell in along)}
    said = []
    if trained:
        named = " and ".join(_named(axis, _spans(axis, along, "trains")) for axis, along in trained.items())
        lost = "".join(f"; {one}" for axis, along in trained.items() for one in _lost(axis, along))
        said.append(FactorSentence(f"{who} trains with {named}", _best(trained), lost))
    for axis, along in axes.items():
        if axis not in trained:
            near = "clearly " * any(_word(cell) == "near" for cell in along)
            none = f"{who} {near}trains with none of {len(along)} factors on {axis}"
            said.append(FactorSentence(f"{none}: {'; '.join(_lost(axis, along))}"))
    return said


def _lost(axis: str, along: Sequence[Cell]) -> list[str]:
    """`α × 0.25 is stuck`, of every word but `trains`."""
    counts = Counter(_word(cell) for cell in along)
    lost = [word for word in FAILS if counts[word]]
    return [f"{_named(axis, _spans(axis, along, word))} {FAILS[word][counts[word] > 1]}" for word in lost]


def _best(axes: Mapping[str, Sequence[Cell]]) -> str:
    """`, best with × 4 (4.89 against 5.60)` where a factor's loss is clearly lower than as published."""
    better, published = [], ""
    for axis, along in axes.items():
        losses = {_own(cell, axis): cell.runs["validation_loss"] for cell in along if cell.word == "trains"}
        if len(losses) < 2:
            continue
        best = min(losses, key=lambda factor: float(losses[factor].median()))
        name, lowest = f"{axis} × " if len(axes) > 1 else "× ", short(float(losses[best].median()), 3)
        if 1.0 not in losses:
            better.append(f"{name}{best:.3g} ({lowest})")
            continue
        published = short(float(losses[1.0].median()), 3)
        if float(losses[best].max()) + CLEARLY <= float(losses[1.0].min()):
            better.append(f"{name}{best:.3g} ({lowest} against {published})")
    if better:
        return f", best with {' and '.join(better)}"
    return f", none clearly better than × 1 ({published})" if published else ""


def _spans(axis: str, along: Sequence[Cell], word: str) -> list[str]:
    """`× 0.5 to × 2`, `× 8`: the factors with this word, neighbours together."""
    spans = []
    for is_word, cells_ in groupby(along, lambda cell: _word(cell) == word):
        factors = [f"× {_own(cell, axis):.3g}" for cell in cells_]
        if is_word:
            spans += [f"{factors[0]} to {factors[-1]}"] if len(factors) > 2 else factors
    return spans


def _named(axis: str, spans: Sequence[str]) -> str:
    return f"{axis} {', '.join(spans[:-1])} and {spans[-1]}" if len(spans) > 1 else f"{axis} {spans[0]}"


def _word(cell: Cell) -> str:
    """What became of its runs; `near` of those that train where one may still come out the other way."""
    apart = cell.runs["validation_loss"] - AT_UNIGRAM * cell.runs["unigram_loss"]
    return "near" if cell.word == "trains" and bool((apart.abs() < NEAR).any()) else cell.word


def _own(cell: Cell, axis: str) -> float:
    return cell.a if axis == "α" else cell.b


def _other(cell: Cell, axis: str) -> float:
    return cell.b if axis == "α" else cell.a
