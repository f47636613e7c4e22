"""The answer of `stabkit ablate`: with which factors on α and β a method trains, and which ends lowest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import pandas as pd

from stabkit.results.scales import Cell, cells, groups
from stabkit.words import fitting, listed, short

CLEARLY = 0.05
"""Nats by which a factor's loss must lie below the published one's, in every seed, to be called better: the claims'
threshold of what a factor costs."""
MOST_SETTINGS = 3
"""Depths or conditions that the answer has; the figure has all."""
FAILS = {
    "stuck": ("is stuck", "are stuck"),
    "diverged": ("diverges", "diverge"),
    "some": ("trains in some seeds only", "train in some seeds only"),
    "undecided": ("is undecided", "are undecided"),
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
    """A sentence an axis of every judged setting, losses medians over seeds; none where no run is judged."""
    judged = [rows for _, rows in groups(every) if any(cell.word != "undecided" for cell in cells(rows))]
    said = []
    for rows in judged[:MOST_SETTINGS]:
        label, depth, condition = (str(rows[name].iloc[0]) for name in ("label", "depth", "condition"))
        where = f" at {listed(depth, condition)}" if len(judged) > 1 else ""
        for axis in ("α", "β"):
            along = [cell for cell in cells(rows) if _other(cell, axis) == 1]
            if len(along) > 1:
                said.append(_axis(f"{label}{where}", axis, along))
        if pairs := [cell for cell in cells(rows) if cell.a != 1 != cell.b]:
            count = sum(cell.word == "trains" for cell in pairs)
            first = f"Of {len(pairs)} pairs with both factors off, {count} train{'s' * (count == 1)}"
            said.append(FactorSentence(first))
    if len(judged) > MOST_SETTINGS:
        said.append(FactorSentence(f"{len(judged) - MOST_SETTINGS} more settings are in the figure"))
    return said


def in_short(said: Sequence[FactorSentence]) -> str:
    """The first of these sentences for a headline."""
    first, best, lost = said[0]
    return fitting(said[0].whole, f"{first}{best}.", f"{first}{lost}.", f"{first}.")


def _axis(who: str, axis: str, along: Sequence[Cell]) -> FactorSentence:
    """One axis, its cells in rising order of the factor."""
    spans = {word: _spans(axis, along, word) for word in ("trains", *FAILS)}
    counts = {word: sum(cell.word == word for cell in along) for word in spans}
    lost = [f"{_named(axis, spans[word])} {FAILS[word][counts[word] > 1]}" for word in FAILS if counts[word]]
    if not counts["trains"]:
        return FactorSentence(f"{who} trains with none of {len(along)} factors on {axis}: {'; '.join(lost)}")
    first = f"{who} trains with {_named(axis, spans['trains'])}"
    return FactorSentence(first, _best(axis, along), "".join(f"; {one}" for one in lost))


def _best(axis: str, along: Sequence[Cell]) -> str:
    """`, best with × 4 (4.89 against 5.60)` where it is clearly lower than as published."""
    losses = {_own(cell, axis): cell.runs["validation_loss"] for cell in along if cell.word == "trains"}
    if len(losses) < 2:
        return ""
    best = min(losses, key=lambda factor: float(losses[factor].median()))
    lowest = short(float(losses[best].median()), 3)
    if 1.0 not in losses:
        return f", best with × {best:.3g} ({lowest})"
    published = short(float(losses[1.0].median()), 3)
    if float(losses[best].max()) + CLEARLY <= float(losses[1.0].min()):
        return f", best with × {best:.3g} ({lowest} against {published})"
    return f", none clearly better than × 1 ({published})"


def _spans(axis: str, along: Sequence[Cell], word: str) -> list[str]:
    """`× 0.5 to × 2`, `× 8`: the factors with this word, neighbours together."""
    spans = []
    for is_word, cells_ in groupby(along, lambda cell: cell.word == word):
        factors = [f"× {_own(cell, axis):.3g}" for cell in cells_]
        if is_word:
            spans += [f"{factors[0]} to {factors[-1]}"] if len(factors) > 2 else factors
    return spans


def _named(axis: str, spans: Sequence[str]) -> str:
    return f"{axis} {', '.join(spans[:-1])} and {spans[-1]}" if len(spans) > 1 else f"{axis} {spans[0]}"


def _own(cell: Cell, axis: str) -> float:
    return cell.a if axis == "α" else cell.b


def _other(cell: Cell, axis: str) -> float:
    return cell.b if axis == "α" else cell.a
