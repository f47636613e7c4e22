"""What is joined to the corpus, from the files beside it: by a fit without it first, which decides for what of it a
forecast is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stabkit.results.forecast.logistic import Logistic
from studies.forecast import later
from studies.forecast.regression import labels
from studies.forecast.unseen import HeldOutRuns, held_out
from studies.forecast.widened import widen
from studies.rows import StudyRow, from_csv

LATER, RECENT = "later.csv", "2026.csv"
"""Adam, newer methods, two blocks (`later.py`); AdamW and Muon, all methods of 2026 (`studies/recent/design.py`)."""


def rows_beside(folder: Path) -> tuple[StudyRow, ...]:
    """The rows to be joined; of a file that is not there none."""
    first, second = (from_csv(path) if (path := folder / name).exists() else () for name in (LATER, RECENT))
    return (*later.joined(first), *second)


@dataclass(frozen=True)
class Joined:
    """A corpus and the runs that are joined to it."""

    corpus: tuple[StudyRow, ...]
    """Labelled, by run_id; of both classes."""
    rows: tuple[StudyRow, ...]

    @classmethod
    def of(cls, corpus: Iterable[StudyRow], rows: Iterable[StudyRow]) -> Joined:
        """Of rows in any order, labelled or not."""
        return cls(_ordered(corpus), _ordered(rows))

    @cached_property
    def before(self) -> Logistic:
        """The fit on the corpus alone, widened."""
        return widen(self.corpus, labels(self.corpus))

    @cached_property
    def runs(self) -> HeldOutRuns:
        """All that are joined, by that fit."""
        return held_out(self.rows, self.before, max(row.rate for row in self.corpus))

    @cached_property
    def optimizers(self) -> set[str]:
        """For which a forecast is given."""
        return {row.optimizer for row in self.corpus} | set(self.runs.trusted("optimizer"))

    @cached_property
    def known(self) -> HeldOutRuns:
        """Those under these optimisers: by them blocks and methods are judged."""
        return self.runs.part(lambda row: row.optimizer in self.optimizers)

    @cached_property
    def blocks(self) -> set[str]:
        """In which one is given."""
        return {row.block for row in self.corpus} | set(self.known.trusted("block"))

    @cached_property
    def abstains(self) -> set[str]:
        """Methods for which none is."""
        theirs = {row.method for row in self.corpus}
        return set(self.known.of("method")) - theirs - set(self.known.trusted("method"))

    @cached_property
    def where(self) -> dict[str, tuple[list[str], bool, int]]:
        """{optimiser that the corpus lacks: (blocks, whether some have an encoder, the longest warm-up) of its fitted
        runs}."""
        theirs = {row.optimizer for row in self.corpus}
        new: dict[str, list[StudyRow]] = {}
        for row in self.fitted:
            if row.optimizer not in theirs:
                new.setdefault(row.optimizer, []).append(row)
        return {
            name: (
                sorted({row.block for row in rows}),
                any(row.encoder_layers for row in rows),
                max(row.warmup for row in rows),
            )
            for name, rows in sorted(new.items())
        }

    @cached_property
    def fitted(self) -> tuple[StudyRow, ...]:
        """The corpus and all for which one is given."""
        given = (row for row in self.known.rows if row.block in self.blocks and row.method not in self.abstains)
        return _ordered((*self.corpus, *given))


def _ordered(rows: Iterable[StudyRow]) -> tuple[StudyRow, ...]:
    return tuple(sorted((row for row in rows if row.labelled), key=lambda row: row.run_id))
