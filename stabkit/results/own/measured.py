"""What sixteen updates of a user's model and the ramp after them left, as numbers: what a forecast, a link or a study
can be made of.

Of several stacks that whose gradient falls lowest counts for gradients, the last for all else. A number that is not
there (one layer, an update that was not reached) is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stabkit.results.own.cell import ModelCell

UPDATES = 16
"""So many updates are looked at."""
RAMP, TOP, EVERY = 16, 16.0, 2
"""Updates of the ramp that follows, how many times the highest rate its last one is made at, and every which of them
the scores are read at: RAMP // EVERY + 1 readings."""
SILENT = 1e-9
"""Nats: scores that tell less, or are lost, count as telling this."""
GONE = 1e-30
"""A gradient ratio of 0 counts as this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnMeasured:
    """Numbers of the chain at updates 0 to 16, and of the ramp."""

    finite: bool
    """Every number recorded is finite."""
    gradient_start: float
    """Lowest over top layer's gradient norm before any update."""
    gradient_lowest: float
    """The lowest of these at updates 0 to 16."""
    gradient_highest: float
    update_last: float
    """‖ΔF‖/‖F(θ_0)‖ after update 16."""
    cosine_last: float
    """Mean cosine between different tokens of F then."""
    growth: float
    """rms(x_L)/rms(x_0) before any update."""
    room: float
    """The least head-room."""
    dilution: float
    loss_last: float
    """Mean of the last four."""
    loss_fall: float
    """Mean of the first three less the mean of the last three, nats."""
    loss_bend: float
    """Mean of updates 5 to 8 less the mean of the last four: whether it still falls."""
    ramp_information: float
    """Nats that the scores tell of their input, the geometric mean over the readings of the ramp; NaN without."""
    ramp_information_least: float


def measured(cell: ModelCell) -> OwnMeasured | None:
    """The numbers; None of a cell that ended before its second update was read."""
    records = cell.records
    if len(records["loss"].steps) < 2 or 1 not in records["update"].steps:
        return None
    loss, told, top = records["loss"].at("train"), ramp_information(cell), cell.stacks[-1]
    ratio = _positive(cell.gradient_ratio(_weakest(cell)))
    with np.errstate(all="ignore"):
        return OwnMeasured(
            finite=cell.facts.broke is None,
            gradient_start=float(ratio[0]),
            gradient_lowest=_least(ratio),
            gradient_highest=_most(ratio),
            update_last=float(cell.update()[-1]),
            cosine_last=float(records["token_cosine"].at("state")[-1]),
            growth=cell.growth(top),
            room=cell.room(top),
            dilution=cell.dilution(top),
            loss_last=float(loss[-4:].mean()),
            loss_fall=loss_fall(cell),
            loss_bend=float(loss[5:9].mean() - loss[-4:].mean()) if len(loss) > 9 else math.nan,
            ramp_information=_geometric(told),
            ramp_information_least=float(told.min()),
        )


def loss_fall(cell: ModelCell) -> float:
    """Mean of the first three losses less the mean of the last three, nats."""
    loss = cell.records["loss"].at("train")
    return float(loss[:3].mean() - loss[-3:].mean())


def _weakest(cell: ModelCell) -> str:
    """The stack whose lowest layer receives least."""

    def lowest(stack: str) -> float:
        value = _least(_positive(cell.gradient_ratio(stack)))
        return math.inf if math.isnan(value) else value

    return min(cell.stacks, key=lowest)


def ramp_information(cell: ModelCell) -> NDArray[np.float64]:
    """(readings,) nats that the scores tell of their input on the ramp, at rates that rise geometrically from the
    highest of the schedule to TOP times it; SILENT where they tell less or a number was lost. NaN without a ramp."""
    table, count = cell.records.get("ramp_scores"), RAMP // EVERY + 1
    if "scores" not in cell.records or "ramp_loss" not in cell.records:
        return np.full(count, math.nan)
    told = np.zeros(count)
    if table is not None:
        told[: len(table.steps)] = np.nan_to_num(table.at("information"), nan=0.0)
    return np.maximum(told, SILENT)


def _positive(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 as GONE, so that it has a logarithm."""
    return np.where(values == 0, GONE, values)


def _geometric(values: NDArray[np.float64]) -> float:
    with np.errstate(all="ignore"):
        logs = np.log(values)
        logs = logs[np.isfinite(logs)]
    return float(np.exp(logs.mean())) if logs.size else math.nan


def _least(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if finite.size else math.nan


def _most(values: NDArray[np.float64]) -> float:
    finite = values[~np.isnan(values)]
    return float(finite.max()) if finite.size else math.nan
