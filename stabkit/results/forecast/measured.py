"""What updates 0 to 16 of a run leave, as a few numbers: all that a forecast may look at.

A run of 16 updates and one of 800 with the same spec give the same numbers to the bit: probes are read at every step up
to 100 and the batches are a function of (seed, step). Validation is not among them: when it is read depends on the
length of the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stabkit.results.chain import gradient_ratio, ln_growth, still
from stabkit.results.records import Records, Table
from stabkit.results.sites import of_output, parse

UPDATES = 16
"""So many updates are looked at."""
NEEDED = ("loss", "update", "ln_input", "grad_norm", "parameter_update", "token_cosine", "branch_ratio")
"""Probes that all of it comes from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """Numbers of the chain at updates 0 to UPDATES, in the units of their probes."""

    gradient_start: float
    """First over last decoder layer's gradient norm (of the encoder where there is no decoder) at update 0."""
    gradient_lowest: float
    """The lowest of these at updates 0 to 16."""
    gradient_last: float
    """The same after update 16."""
    gradient_total: float
    """Gradient norm over all layers after update 16, over its own at update 0."""
    gradient_total_most: float
    """The largest of these at updates 0 to 16."""
    update_first: float
    """‖ΔF‖ after update 1."""
    update_last: float
    """‖ΔF‖ after update 16."""
    step_last: float
    """‖F(θ₁₆) − F(θ₁₅)‖: what the last of these updates alone did."""
    path: float
    """Σ ‖F(θ_t) − F(θ_{t−1})‖ over the 16 updates: how far the output went, back and forth counted twice."""
    logits_last: float
    """Mean change of the logits after update 16, as `update` has it."""
    ln_growth: float
    """LN input over its own at update 0, mean over sub-layers, the largest over updates 0 to 16."""
    ln_growth_last: float
    """The same after update 16."""
    branch_ratio: float
    """‖G(x)‖/‖ω·x‖ at update 0, mean over sub-layers."""
    cosine_start: float
    """Mean cosine between different tokens of the output at update 0."""
    cosine_last: float
    """The same after update 16."""
    still: float
    """Share of the decoder's layers whose weights have not moved at all."""
    moved: float
    """‖Δθ‖ after update 16 of the first decoder layer over the last one's: 1 under Adam while gradients are above its
    ε."""
    loss_start: float
    """The probe batch's loss at update 0."""
    loss_least: float
    """The lowest of the probe batch's loss at updates 1 to 16."""
    loss_last: float
    """The same after update 16."""
    loss_rises: float
    """What the probe batch's loss rose by from one update to the next, summed over updates 2 to 16; nats."""
    unigram: float
    """What the best constant predictor loses."""


def measure(records: Records, unigram: float) -> Measured | None:
    """The numbers of a run's first UPDATES updates; None of a run that is shorter, has diverged by then or was stored
    without one of the probes."""
    if not set(NEEDED) <= set(records) or records["loss"].steps[-1] < UPDATES:
        return None
    seen = {name: table.until(UPDATES) for name, table in records.items() if name in NEEDED}
    loss, update, ratio = seen["loss"].at("probe"), seen["update"], gradient_ratio(seen["grad_norm"])
    total = _total(seen["grad_norm"])
    cosine = seen["token_cosine"].at("state")
    branch, growth = seen["branch_ratio"], ln_growth(seen["ln_input"])
    measured = Measured(
        gradient_start=float(ratio[0]),
        gradient_lowest=float(ratio.min()),
        gradient_last=float(ratio[-1]),
        gradient_total=float(total[-1] / total[0]),
        gradient_total_most=float((total / total[0]).max()),
        update_first=float(update.at("state")[1]),
        update_last=float(update.at("state")[-1]),
        step_last=float(update.at("state@step")[-1]),
        path=float(update.at("state@step").sum()),
        logits_last=float(update.at("logits")[-1]),
        ln_growth=float(growth.max()),
        ln_growth_last=float(growth[-1]),
        branch_ratio=float(branch.main()[0].mean()),
        cosine_start=float(cosine[0]),
        cosine_last=float(cosine[-1]),
        still=float(np.mean(still(seen))),
        moved=_moved(seen["parameter_update"]),
        loss_start=float(loss[0]),
        loss_least=float(loss[1:].min()),
        loss_last=float(loss[-1]),
        loss_rises=float(np.clip(np.diff(loss[1:]), 0, None).sum()),
        unigram=unigram,
    )
    return measured if all(math.isfinite(getattr(measured, name)) for name in measured.__dataclass_fields__) else None


def _layers(table: Table) -> list[str]:
    """Layers of the decoder, of the encoder where there is none, lowest first."""
    return of_output(list(dict.fromkeys(parse(site).layer for site in table.sites if parse(site).kind)))


def _of_layer(table: Table, layer: str) -> np.ndarray:
    columns = [parse(site).layer == layer and parse(site).sublayer for site in table.sites]
    total: np.ndarray = np.sqrt((table.values[:, columns] ** 2).sum(axis=1))
    return total


def _total(grad_norm: Table) -> np.ndarray:
    total: np.ndarray = np.sqrt(sum(_of_layer(grad_norm, layer) ** 2 for layer in _layers(grad_norm)))
    return total


def _moved(table: Table) -> float:
    layers = _layers(table)
    return float(_of_layer(table, layers[0])[-1] / _of_layer(table, layers[-1])[-1])
