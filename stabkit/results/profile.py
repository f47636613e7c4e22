"""What a run looks like over its depth when it is judged: how gradients and states lie along the layers, in numbers.

Layers are the decoder's (the encoder's where there is no decoder), lowest first. All is read at one step, the run's own
verdict where it has one, so that runs that went on are compared where all were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stabkit.results.chain import gradient_ratio
from stabkit.results.records import Records
from stabkit.results.sites import whole_layers

NEEDED = ("validation", "grad_norm", "cosine", "stream")
"""Records that all of it comes from."""
LOST = 1e-12
"""A gradient that is this share of another is as good as none; ratios are cut there, and at its inverse. Where there is
no gradient at all, it counts as lost."""
SETTLED = 50
"""Updates after which a gradient that jumps is a spike and no beginning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Numbers of a run at one step."""

    loss: float
    """Validation loss, nats a token."""
    gradient: float
    """First over last layer's gradient norm."""
    gradient_lowest: float
    """The lowest of these up to here."""
    gradient_spread: float
    """The largest over the smallest layer's gradient norm."""
    spikes: float
    """The largest norm of the layers' gradients from update SETTLED on, over its median there."""
    cosine: float
    """cos(x_{l−1}, x_l), mean over the layers."""
    cosine_deep: float
    """The same over the upper half of them."""
    stream_start: float
    """rms of the state that leaves the layers over that of what enters them, at step 0."""
    stream_half: float
    """rms of the state after half of the layers over that of what enters them."""
    stream: float
    """The same of what leaves the last."""
    mixing: float = 1.0
    """The largest gain of the product of the mixings of streams up to here, forward or backward; 1 where none mix."""


def profile(records: Records, at: int) -> Profile | None:
    """The numbers at a step; None of a run that ended before it, or was stored without one of the probes, and where one
    of them is no number."""
    tables = [records.get(name) for name in NEEDED]
    if any(table is None or at not in table.steps for table in tables):
        return None
    validation, gradient, cosine, stream = (table.until(at) for table in tables if table is not None)
    layers = gradient.select(whole_layers(gradient.sites))
    cosines, sizes = (table.select(whole_layers(table.sites)) for table in (cosine, stream))
    total = np.sqrt((layers**2).sum(axis=1))[gradient.steps >= min(SETTLED, at)]
    ratio = np.where((layers == 0).all(axis=1), LOST, gradient_ratio(gradient))
    with np.errstate(all="ignore"):
        whole = Profile(
            loss=float(validation.at("validation")[-1]),
            gradient=_cut(ratio[-1]),
            gradient_lowest=_cut(ratio.min()),
            gradient_spread=_cut(layers[-1].max() / layers[-1].min()) if layers[-1].any() else 1 / LOST,
            spikes=_cut(total.max() / np.median(total)) if total.any() else 1.0,
            cosine=float(cosines[-1].mean()),
            cosine_deep=float(cosines[-1, cosines.shape[1] // 2 :].mean()),
            stream_start=float(sizes[0, -1] / sizes[0, 0]),
            stream_half=float(sizes[-1, sizes.shape[1] // 2] / sizes[-1, 0]),
            stream=float(sizes[-1, -1] / sizes[-1, 0]),
            mixing=float(records["mixing"].until(at).values.max()) if "mixing" in records else 1.0,
        )
    return whole if all(math.isfinite(getattr(whole, name)) for name in whole.__dataclass_fields__) else None


def _cut(ratio: float) -> float:
    """NaN where both are nothing."""
    return float(np.clip(ratio, LOST, 1 / LOST))
