"""One number of a run, and the one that several seeds make together: all pages and claims take them from here."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from stabkit.results.chain import REFERENCE_STEP
from stabkit.results.once import once
from stabkit.results.points import LOWEST
from stabkit.results.run import Run


def series(run: Run, probe: str, site: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(steps, values) of one site; empty when the run did not record it."""
    table = run.records.get(probe)
    if table is None or site not in table.sites:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return table.steps, table.at(site)


@once
def reference_step(runs: Iterable[Run]) -> int:
    """The step at which runs are compared: 16, or the last that all share when some are shorter.

    Runs that diverged are left out of this choice: they are marked, and do not move the others' step.
    """
    ends = [int(steps[-1]) for run in runs if run.outcome.word != "diverged" and len(steps := _steps(run))]
    return min([REFERENCE_STEP, *ends])


def value_at(run: Run, probe: str, site: str, step: int) -> float:
    """A probe's reading of one site at a step; NaN where the run holds none."""
    table = run.records.get(probe)
    return table.value(site, step) if table is not None else math.nan


def update_at(run: Run, step: int) -> float:
    """‖ΔF‖ of the final state at a step; NaN where the run holds none."""
    return value_at(run, "update", "state", step)


def chain(run: Run, name: str) -> float:
    """One number of the outcome's chain."""
    return float(getattr(run.outcome.chain, name))


def lowest_ratio(run: Run) -> float:
    """A run's lowest first/last gradient ratio, no less than float32 holds (0 has no logarithm); NaN
    where it has none."""
    return max(chain(run, "gradient_ratio_lowest"), LOWEST)


def centre(values: Iterable[float]) -> float:
    """What several seeds make together, one function for all pages: the median of the finite positive values, between
    two of them their geometric mean; NaN when there is none."""
    usable = [value for value in values if math.isfinite(value) and value > 0]
    if not usable:
        return math.nan
    low, high = statistics.median_low(usable), statistics.median_high(usable)
    return low if low == high else math.sqrt(low) * math.sqrt(high)


def _steps(run: Run) -> NDArray[np.int64]:
    return series(run, "update", "state")[0]
