"""What sixteen updates of a user's model and the ramp after them left, as numbers: what a forecast, a link or a study
can be made of.

Of several stacks that whose gradient falls lowest counts for gradients, the last for all else. A number that is not
there (one layer, an update that was not reached) is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
    gradient_last: float
    """The geometric mean of the last four."""
    gradient_highest: float
    gradient_least: float
    """The weakest layer's over the strongest's, the lowest at updates 0 to 16."""
    gradient_total: float
    """Norm over all sub-layers: the geometric mean of the last four over that before any update."""
    gradient_total_most: float
    """The largest over that before any update."""
    update_first: float
    """‖ΔF‖/‖F(θ_0)‖ after update 1."""
    update_last: float
    step_last: float
    """‖F(θ_16) − F(θ_15)‖/‖F(θ_0)‖: what the last of these updates alone did."""
    size_last: float
    """‖F(θ_16)‖/‖F(θ_0)‖."""
    cosine_start: float
    """Mean cosine between different tokens of F before any update."""
    cosine_last: float
    information: float
    """H(mean p) − mean H(p) of the scores after update 16, nats; NaN without scores."""
    information_start: float
    growth: float
    """rms(x_L)/rms(x_0) before any update."""
    room: float
    """The least head-room."""
    dilution: float
    branch_last: float
    """‖γ·f‖/‖ω·x‖, geometric mean over sub-layers, after update 16."""
    delta_last: float
    """‖Δθ‖/‖θ‖ of update 16, the median over sub-layers."""
    loss_start: float
    loss_last: float
    """Mean of the last four."""
    loss_fall: float
    """Mean of the first three less the mean of the last three, nats."""
    loss_rises: float
    """What it rose by from one update to the next, summed from update 1 on."""
    bounded: float
    """Share of the sub-layers that a norm stands before, in or after."""
    loss_bend: float
    """Mean of updates 5 to 8 less the mean of the last four: whether it still falls."""
    ramp_information: float
    """Nats that the scores tell of their input, the geometric mean over the readings of the ramp; NaN without."""
    ramp_information_first: float
    """… of its first reading, at the highest rate of the schedule."""
    ramp_information_last: float
    """… of the last, at TOP times that."""
    ramp_information_most: float
    ramp_information_least: float
    ramp_least: float
    """The weakest layer's gradient over the strongest's, the lowest of the ramp; 0 where a number was lost on it."""
    ramp_loss: float
    """Mean of the last four updates; infinite where a number was lost."""


def measured(cell: ModelCell) -> OwnMeasured | None:
    """The numbers; None of a cell that ended before its second update was read."""
    records = cell.records
    if len(records["loss"].steps) < 2 or 1 not in records["update"].steps:
        return None
    loss = records["loss"].at("train")
    stack = _weakest(cell)
    ratio = _positive(cell.gradient_ratio(stack))
    norms = cell.gradients(stack)
    total = np.sqrt(np.nansum(norms**2, axis=1))
    update = records["update"]
    relative, size = update.at("state@relative"), update.at("state@size")
    start = float(size[0]) * math.sqrt(cell.facts.width)
    cosine = records["token_cosine"].at("state")
    top = cell.stacks[-1]
    sublayers = [own.name for own in cell.facts.sublayers]
    branch = records["branch"].select(sublayers) if "branch" in records else np.full((1, 1), math.nan)
    delta = records["delta"]
    moved = delta.select([f"{name}@relative" for name in _trained(cell)])
    told = ramp_information(cell)
    with np.errstate(all="ignore"):
        weakest = _weaker(norms)
        return OwnMeasured(
            finite=cell.facts.broke is None,
            gradient_start=float(ratio[0]),
            gradient_lowest=_least(ratio),
            gradient_last=_geometric(ratio[-4:]),
            gradient_highest=_most(ratio),
            gradient_least=_least(weakest),
            gradient_total=_geometric(total[-4:]) / float(total[0]) if total[0] else math.nan,
            gradient_total_most=_most(total) / float(total[0]) if total[0] else math.nan,
            update_first=update.value("state@relative", 1),
            update_last=float(relative[-1]),
            step_last=float(update.at("state@step")[-1]) / start if start else math.nan,
            size_last=float(size[-1] / size[0]) if size[0] else math.nan,
            cosine_start=float(cosine[0]),
            cosine_last=float(cosine[-1]),
            information=_information(cell, -1),
            information_start=_information(cell, 0),
            growth=cell.growth(top),
            room=cell.room(top),
            dilution=cell.dilution(top),
            branch_last=_geometric(branch[-1]),
            delta_last=float(np.median(moved[-1])),
            loss_start=float(loss[0]),
            loss_last=float(loss[-4:].mean()),
            loss_fall=loss_fall(cell),
            loss_rises=float(np.clip(np.diff(loss[1:]), 0, None).sum()),
            bounded=cell.facts.bounded,
            loss_bend=float(loss[5:9].mean() - loss[-4:].mean()) if len(loss) > 9 else math.nan,
            ramp_information=_geometric(told),
            ramp_information_first=float(told[0]),
            ramp_information_last=float(told[-1]),
            ramp_information_most=float(told.max()),
            ramp_information_least=float(told.min()),
            ramp_least=_ramp_least(cell),
            ramp_loss=_ramp_loss(cell),
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


def _information(cell: ModelCell, at: int) -> float:
    return float(cell.records["scores"].at("information")[at]) if "scores" in cell.records else math.nan


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


def whole_ramp(cell: ModelCell) -> bool:
    """Whether the ramp was climbed to its end, and no loss was lost."""
    loss = cell.records.get("ramp_loss")
    readings = cell.records.get("ramp_scores")
    return (
        loss is not None
        and bool(np.isfinite(loss.at("train")).all())
        and (readings is None or len(readings.steps) == RAMP // EVERY + 1)
    )


def _ramp_least(cell: ModelCell) -> float:
    if "ramp_gradient" not in cell.records:
        return math.nan
    climbed = replace(cell, records={"gradient": cell.records["ramp_gradient"]})
    stack = _weakest(cell)
    return _least(_weaker(climbed.gradients(stack)[-RAMP - 1 :])) if whole_ramp(cell) else 0.0


def _ramp_loss(cell: ModelCell) -> float:
    if "ramp_loss" not in cell.records:
        return math.nan
    return float(cell.records["ramp_loss"].at("train")[-4:].mean()) if whole_ramp(cell) else math.inf


def _weaker(norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """(steps,) the weakest layer's over the strongest's; NaN without layers that can be told apart."""
    if not norms.shape[1]:
        return np.full(len(norms), math.nan)
    there = np.isfinite(norms) & (norms > 0)
    weaker: NDArray[np.float64] = np.where(there, norms, np.inf).min(axis=1) / np.where(there, norms, 0.0).max(axis=1)
    return weaker


def _trained(cell: ModelCell) -> list[str]:
    return [own.name for own in cell.facts.sublayers if own.parameters] or [own.name for own in cell.facts.sublayers]


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
