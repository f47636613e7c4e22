"""What the papers say, tested on what a page shows: one paper (or a part of one) a file, one row a claim.

To add a claim: write a function `runs → list of Evidence` (of surfaces: `Landscape → …`) and a `Claim` that names it,
in its paper's file.
"""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.claims import (
    admin,
    deepnet_ablation,
    deepnet_chain,
    deepnet_slope,
    deepnet_surfaces,
    deepnet_table1,
    deepnet_update,
    quality,
    reasons,
)
from stabkit.claims.base import ORDER, Claim, Finding, judge
from stabkit.figures.quick.once import Runs
from stabkit.figures.shared.surfaces import Landscape
from stabkit.storage.store import Run
from stabkit.storage.surfaces import Surface

__all__ = ["CLAIMS", "OF_SURFACES", "Finding", "findings"]

CLAIMS: tuple[Claim, ...] = (
    *(
        *deepnet_update.CLAIMS,
        *deepnet_chain.CLAIMS,
        *deepnet_table1.CLAIMS,
        *deepnet_ablation.CLAIMS,
        *admin.CLAIMS,
        *quality.CLAIMS,
    ),
    *reasons.CLAIMS,
)
OF_STEPS: tuple[Claim, ...] = deepnet_slope.CLAIMS
"""Judged on single steps of SGD."""
OF_SURFACES: tuple[Claim, ...] = deepnet_surfaces.CLAIMS
"""Judged on surfaces and their runs."""


def findings(runs: Sequence[Run], surfaces: Sequence[Surface] = ()) -> list[Finding]:
    """Every claim judged: those that fail first, then those that hold, then the untested."""
    later, steps = (Runs(run for run in runs if run.spec.single_step is single) for single in (False, True))
    found = [judge(claim, later) for claim in CLAIMS]
    found += [judge(claim, steps) for claim in OF_STEPS]
    found += [judge(claim, Landscape(runs, surfaces)) for claim in OF_SURFACES]
    return sorted(found, key=lambda one: ORDER.index(one.verdict))
