"""How many sub-layers make up a stack's output, from its branch ratios: what "balanced" can mean, as a number.

With x ← LN(ω·x + γ·G(x)), r = ‖γ·G(x)‖/‖ω·x‖, and branch and shortcut uncorrelated, the branch has the share
r²/(1 + r²) of what comes out and leaves 1/(1 + r²) of what was there. Sub-layer j's share of the output is therefore
s_j = r_j²/(1 + r_j²) · Π_{k>j} 1/(1 + r_k²), that of the stack's input Π_k 1/(1 + r_k²). The effective number is
(Σ s)²/Σ s² over the sub-layers: n when all have the same share, 1 when one has it all. Without a norm after the sum the
same holds of the stream itself. Where a layer reads a combination of all before it (DLCL), nothing of this holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stabkit import methods
from stabkit.results.run import Run
from stabkit.results.sites import main_sites, of_output
from stabkit.spec import RunSpec


def output_sites(sites: Sequence[str]) -> list[str]:
    """The sites of the stack that the output comes from: the decoder, or the encoder where there is none."""
    return main_sites(of_output(sites))


def chained(spec: RunSpec) -> bool:
    """Whether every layer reads the one before it; of methods that this version does not know, yes."""
    if spec.own is not None:
        return spec.own.chained
    method = methods.of(spec)
    return method is None or method.wiring == "chain"


def shares(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) share of each sub-layer in the output; with the input's share they sum to 1."""
    left = 1.0 / (1.0 + ratios**2)
    after = np.append(np.cumprod(left[::-1])[::-1][1:], 1.0)  # what the sub-layers above leave
    part: NDArray[np.float64] = (1.0 - left) * after
    return part


def effective(run: Run, step: int = 0) -> float:
    """The effective number of sub-layers of the decoder at the recorded step number `step`; NaN where unknown."""
    table = run.records.get("branch_ratio")
    if table is None or not len(table.steps) or not chained(run.spec):
        return math.nan
    parts = shares(table.select(output_sites(table.sites))[step])
    if not np.isfinite(parts).all() or not parts.sum() > 0:
        return math.nan
    return float(parts.sum() ** 2 / (parts**2).sum())
