"""A finished run as a value: what it was asked for, what it recorded, what is judged of it whenever it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from stabkit.results import outcome as outcomes
from stabkit.results import sites
from stabkit.results.forecast import model as forecasts
from stabkit.results.forecast.measured import Measured, measure
from stabkit.results.forecast.model import Forecast
from stabkit.results.outcome import Outcome
from stabkit.results.profile import Profile, profile
from stabkit.results.records import Table
from stabkit.spec import RunSpec


@dataclass(frozen=True)
class Run:
    """One finished run, read back."""

    path: Path
    spec: RunSpec
    kept: outcomes.StoredOutcome
    records: Mapping[str, Table]
    """Every table that today's probes can be compared with; others are left out (`lacks`)."""
    environment: Mapping[str, Any]
    digest: str
    texts: Mapping[str, str] = field(default_factory=dict)
    """{sha256: text} of its method's and probes' files, where they are the user's own: to be shown, never run."""

    @property
    def run_id(self) -> str:
        return self.path.name

    @cached_property
    def outcome(self) -> Outcome:
        """How it ended, by today's rule: judged from its records whenever it is read."""
        unigram = float(self.kept["unigram_loss"])
        return outcomes.judge(self.records, unigram=unigram, warmup=self.spec.train.warmup)

    @property
    def parameters(self) -> int:
        """How many its model holds."""
        return self.kept["parameters"]

    @cached_property
    def forecast(self) -> Forecast | None:
        """What its updates 0 to 16 say of how it ends; None where it has fewer or had diverged by then."""
        return forecasts.forecast(self.records, self.spec, float(self.kept["unigram_loss"]))

    @cached_property
    def measured(self) -> Measured | None:
        """The numbers of its updates 0 to 16; None where it has fewer or had diverged by then."""
        return measure(self.records, float(self.kept["unigram_loss"]))

    @cached_property
    def profile(self) -> Profile | None:
        """How it lies over its depth where it is judged; None where it ended before."""
        return profile(self.records, self.spec.expected_steps)

    @cached_property
    def lacks(self) -> tuple[str, ...]:
        """The probes that it was stored without, or with in a version that is not today's."""
        return tuple(row.name for row in sites.PROBES if row.of_all and row.name not in self.records)

    @property
    def weights_path(self) -> Path:
        return self.path / "weights.safetensors"
