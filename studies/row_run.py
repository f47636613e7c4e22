"""A row as a run: what claims and tables of runs ask for, where the run itself is not stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from stabkit.results.chain import Chain
from stabkit.results.forecast.measured import Measured
from stabkit.results.once import Runs
from stabkit.results.outcome import Outcome, Word
from stabkit.results.profile import Profile
from stabkit.results.records import Table
from stabkit.spec import RunSpec
from studies.study import Study


@dataclass(frozen=True, kw_only=True)
class RowRun:
    """What is left of a run; the same names as `storage.store.Run` has."""

    spec: RunSpec
    outcome: Outcome
    digest: str
    measured: Measured | None
    profile: Profile | None
    records: Mapping[str, Table] = field(default_factory=dict)
    """None is stored: a claim that asks for them finds nothing."""
    parameters: float = math.nan
    """Rows do not say it."""

    @property
    def run_id(self) -> str:
        return self.spec.run_id


UNKNOWN = Chain(**{link.name: math.nan for link in fields(Chain)})  # type: ignore[arg-type]


def ended(word: Word, steps: int = 0, validation: float = math.nan) -> Outcome:
    """An outcome of which a row holds no more than this."""
    return Outcome(
        word=word,
        risks=None,
        steps=steps,
        unigram_loss=math.nan,
        validation_loss=validation,
        perplexity=math.nan,
        token_accuracy=math.nan,
        chain=UNKNOWN,
    )


def runs(study: Study, wanted: Callable[[RunSpec], bool]) -> Runs:
    """The rows of a study, of the specs that are wanted."""
    rows = [
        RowRun(
            spec=study.specs[row.run_id],
            outcome=ended(row.outcome, row.steps, row.validation),
            digest=row.digest,
            measured=row.measured,
            profile=row.profile,
        )
        for row in study.rows
        if wanted(study.specs[row.run_id])
    ]
    return Runs(cast(Any, rows))
