"""The numbers of a run's chain, from its records: update, LN inputs, gradients (DeepNet §2). Knows no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.records import Records, Table
from stabkit.results.sites import of_output, parse, whole_layers

REFERENCE_STEP = 16
"""Where ‖ΔF‖ is compared between runs: late enough to be past the first step's noise, early enough that nothing is
saturated under warm-up."""
SATURATED = 0.5
"""Of √(2d), how far two unrelated states of length √d lie apart: a ‖ΔF‖ beyond it can hardly grow, so that it neither
orders methods nor shows how it goes with depth."""
WINDOW = (100, 250)
"""The steps of early training: by then the runs without warm-up have parted."""
START, LATER = WHENS = "step 0", f"mean of steps {WINDOW[0]}–{WINDOW[1]}"
"""When the last layer's gradient is read, in the order of the panels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """DeepNet §2 link by link: update explodes → LN inputs grow → gradients vanish → training is stuck."""

    update_first: float
    """‖ΔF‖ of the decoder state after update 1."""
    update_reference: float
    """‖ΔF‖ at the reference step."""
    reference_step: int
    """REFERENCE_STEP, or the last step of a shorter run."""
    ln_input_growth: float
    """Largest over the run: mean over sub-layers of LN input over its own value at step 0."""
    branch_ratio: float
    """‖G(x)‖/‖ω·x‖ at step 0, mean over sub-layers."""
    gradient_ratio_start: float
    """At step 0, before any update: gradient norm of the first decoder layer over the last one's."""
    gradient_ratio_lowest: float
    """The lowest of these over the run."""
    frozen_layers: float
    """Layers of the decoder (of the encoder where there is none) whose ‖Δθ‖ is exactly 0 at the last reading: their
    gradients underflow, or lie so far below Adam's ε that no weight moves. NaN before the first update."""


def links(records: Records) -> Chain:
    """The chain's numbers; NaN where a run was stored without the probe."""
    update, ln_input, branch = records.get("update"), records.get("ln_input"), records.get("branch_ratio")
    reference = min(REFERENCE_STEP, int(records["loss"].steps[-1]))
    ratio = gradient_ratio(records["grad_norm"]) if "grad_norm" in records else np.full(1, np.nan)
    return Chain(
        update_first=update.value("state", 1) if update else math.nan,
        update_reference=update.value("state", reference) if update else math.nan,
        reference_step=reference,
        ln_input_growth=_extreme(np.max, ln_growth(ln_input)) if ln_input else math.nan,
        branch_ratio=float(branch.main()[0].mean()) if branch else math.nan,
        gradient_ratio_start=float(ratio[0]),
        gradient_ratio_lowest=_extreme(np.min, ratio),
        frozen_layers=float(sum(still(records))) if still(records) else math.nan,
    )


def still(records: Records) -> list[bool]:
    """Of each layer of the decoder (of the encoder where there is none), lowest first: whether none of its weights has
    moved since step 0. Empty before the first update and of a run that was stored without ‖Δθ‖."""
    table = records.get("parameter_update")
    if table is None or table.steps[-1] == 0:
        return []
    layers: dict[str, bool] = {}
    sites = [site for site in of_output(table.sites) if parse(site).sublayer]
    for site, value in zip(sites, table.select(sites)[-1], strict=True):
        layer = parse(site).layer
        layers[layer] = layers.get(layer, True) and bool(value == 0)  # NaN, of a run that diverged, is no 0
    return list(layers.values())


def ln_growth(ln_input: Table) -> NDArray[np.float64]:
    """(steps,) LN input over its own value at step 0, mean over sub-layers."""
    raw = ln_input.main()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of a model that blew up
        grown: NDArray[np.float64] = (raw / raw[0]).mean(axis=1)
    return grown


def gradient_ratio(grad_norm: Table) -> NDArray[np.float64]:
    """(steps,) ‖∂L/∂θ‖ of the first decoder layer over the last one's; of the encoder where there is no decoder."""
    top = whole_layers(grad_norm.sites)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = grad_norm.at(top[0]) / grad_norm.at(top[-1])
    return ratio


def _extreme(pick: Any, series: NDArray[np.float64]) -> float:
    finite = series[np.isfinite(series)]
    return float(pick(finite)) if len(finite) else math.nan
