"""A row as a run: what claims and tables of runs ask for, where the run itself is not stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from stabkit.figures.quick.once import Runs
from stabkit.results.forecast.measured import Measured
from stabkit.results.profile import Profile
from stabkit.results.records import Table
from stabkit.spec import RunSpec
from studies.study import Study


@dataclass(frozen=True, kw_only=True)
class RowRun:
    """What is left of a run; the same names as `storage.store.Run` has."""

    spec: RunSpec
    outcome: Mapping[str, Any]
    digest: str
    measured: Measured | None
    profile: Profile | None
    records: Mapping[str, Table] = field(default_factory=dict)
    """None is stored: a claim that asks for them finds nothing."""
    translations: tuple[()] = ()

    @property
    def run_id(self) -> str:
        return self.spec.run_id


def runs(study: Study, wanted: Callable[[RunSpec], bool]) -> Runs:
    """The rows of a study, of the specs that are wanted."""
    rows = [
        RowRun(
            spec=study.specs[row.run_id],
            outcome={"outcome": row.outcome, "steps": row.steps, "validation_loss": row.validation},
            digest=row.digest,
            measured=row.measured,
            profile=row.profile,
        )
        for row in study.rows
        if wanted(study.specs[row.run_id])
    ]
    return Runs(cast(Any, rows))
