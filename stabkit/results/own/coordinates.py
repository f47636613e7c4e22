"""Do a model's coordinates keep their size over width? μP's coordinate check (Yang et al. 2021) of a user's
factory(depth, width): sizes a coordinate, their law in the width, a verdict each.

    size ∝ d^p by a line in logarithms a seed; p = 0 is what lets a rate carry over
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from stabkit.errors import UsageError
from stabkit.results.intervals import Interval, IntervalJson
from stabkit.results.line import slope
from stabkit.results.own.cell import ModelCell
from stabkit.results.transfer import Verdict

LEVEL = 0.25
"""An exponent below it counts as none: twice the width changes a size by less than a fifth."""


class WidthSizeJson(TypedDict):
    """A size at one width."""

    width: int
    size: float
    """Geometric mean over seeds."""


class CoordinateJson(TypedDict):
    """One size over width."""

    coordinate: str
    verdict: Verdict
    exponent: IntervalJson | None
    """p of size ∝ width^p."""
    sizes: list[WidthSizeJson]


@dataclass(frozen=True, kw_only=True, slots=True)
class Coordinate:
    """One size over width."""

    key: str
    name: str
    """`Δ state, 1`."""
    label: str
    sizes: Mapping[int, float]
    """{width: geometric mean over seeds}, where it was found."""
    law: Interval | None
    """p; None of fewer than two widths."""

    @property
    def verdict(self) -> Verdict:
        """`carries`: the whole interval lies within LEVEL of 0; `drifts`: it lies beyond, on one side."""
        if self.law is None or math.isnan(self.law.high):
            return "cannot tell"
        if -LEVEL <= self.law.low and self.law.high <= LEVEL:
            return "carries"
        return "drifts" if self.law.low > LEVEL or self.law.high < -LEVEL else "cannot tell"

    def to_json(self) -> CoordinateJson:
        """Plain JSON values."""
        sizes: list[WidthSizeJson] = [{"width": width, "size": size} for width, size in self.sizes.items()]
        law = self.law.to_json() if self.law else None
        return {"coordinate": self.key, "verdict": self.verdict, "exponent": law, "sizes": sizes}


def _moved(site: str, step: int) -> Callable[[ModelCell], float]:
    """Root mean square a coordinate of what the output, or the scores, have moved by; `step` −1: the last."""

    def size(cell: ModelCell) -> float:
        update = cell.records["update"]
        at = cell.facts.steps if step < 0 else step
        if site not in update.sites or at not in update.steps:  # not there, or not reached
            return math.nan
        across = cell.facts.width if site == "state" else 1  # a fixed number of scores
        return update.value(site, int(at)) / math.sqrt(across)

    return size


def _stream(cell: ModelCell) -> float:
    return float(cell.records["update"].at("state@size")[0])


COORDINATES: tuple[tuple[str, str, str, Callable[[ModelCell], float]], ...] = (
    ("stream", "state", "the last state before any update", _stream),
    ("update_first", "Δ state, 1", "its change by update 1", _moved("state", 1)),
    ("update", "Δ state, all", "its change by all updates", _moved("state", -1)),
    ("scores_first", "Δ scores, 1", "the scores' change by update 1", _moved("logits", 1)),
    ("scores", "Δ scores, all", "the scores' change by all updates", _moved("logits", -1)),
)
"""(key, name, label, its root mean square a coordinate); of scores, whose number does not grow, their length."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """All of them."""

    rows: Sequence[Coordinate]
    broken: Mapping[int, int]
    """{width: the update by which a number was lost with some seed}."""

    @property
    def verdict(self) -> Verdict:
        """`drifts` where one does; `carries` where all do and no number was lost."""
        verdicts = {row.verdict for row in self.rows}
        if "drifts" in verdicts:
            return "drifts"
        return "carries" if verdicts == {"carries"} and not self.broken else "cannot tell"


def coordinates(cells: Sequence[ModelCell], asked: int) -> Coordinates:
    """Those of cells of one depth and rate at so many widths; raises UsageError where the models are not as many."""
    widths = sorted({cell.facts.width for cell in cells})
    if len(widths) < min(asked, 2):
        raise UsageError(
            f"{cells[0].facts.factory}: the model's state is {widths[0]} wide at every width asked for; "
            "the factory must build a model as wide as its second argument says"
        )
    broken: dict[int, int] = {}
    for cell in cells:
        if cell.facts.broke:
            step = cell.facts.broke.step
            broken[cell.facts.width] = min(step, broken.get(cell.facts.width, step))
    rows = [_coordinate(*row, cells) for row in COORDINATES]
    return Coordinates([row for row in rows if row.sizes], dict(sorted(broken.items())))


def _coordinate(
    key: str, name: str, label: str, size: Callable[[ModelCell], float], cells: Sequence[ModelCell]
) -> Coordinate:
    points: dict[int, list[tuple[float, float]]] = {}
    for cell in sorted(cells, key=lambda cell: cell.facts.width):
        value = size(cell)
        if 0 < value < math.inf:
            points.setdefault(cell.facts.seed, []).append((math.log(cell.facts.width), math.log(value)))
    logs: dict[int, list[float]] = {}
    for some in points.values():
        for x, y in some:
            logs.setdefault(round(math.exp(x)), []).append(y)
    whole = {seed: some for seed, some in points.items() if len(some) > 1}
    sizes = {width: math.exp(sum(values) / len(values)) for width, values in sorted(logs.items())}
    return Coordinate(key=key, name=name, label=label, sizes=sizes, law=slope(whole) if whole else None)
