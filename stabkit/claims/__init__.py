"""What the papers say, tested on what a page shows: one paper (or a part of one) a file, one row a claim.

To add a claim: a `Claim` in its paper's file, whose `find` says what is measured: `numbers` or `shares` of
`evidence.py` where it is one number a cell, else a function `runs → Measurements`, of surfaces `Landscape → …`.
`base.py` says what each part is, `verdict.py` how it is decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.claims import admin
from stabkit.claims.base import ORDER, WEIGHTS, Claim, Finding
from stabkit.claims.deepnet import ablation, chain, depth, settings, slope, surfaces, table1, update
from stabkit.claims.verdict import judge
from stabkit.results.conditions import trained
from stabkit.results.landscape import Landscape
from stabkit.results.once import Runs
from stabkit.results.run import Run
from stabkit.results.surface import Surface

__all__ = ["CLAIMS", "EVERY", "OF_STEPS", "OF_SURFACES", "Finding", "findings"]

CLAIMS: tuple[Claim, ...] = (
    *update.CLAIMS,
    *chain.CLAIMS,
    *depth.CLAIMS,
    *table1.CLAIMS,
    *ablation.CLAIMS,
    *admin.CLAIMS,
    *settings.CLAIMS,
)
OF_STEPS: tuple[Claim, ...] = slope.CLAIMS
"""Judged on single steps of SGD."""
OF_SURFACES: tuple[Claim, ...] = surfaces.CLAIMS
"""Judged on surfaces and their runs."""
EVERY = (*CLAIMS, *OF_STEPS, *OF_SURFACES)


def findings(runs: Sequence[Run], drawn: Sequence[Surface] = ()) -> list[Finding]:
    """Every claim judged that is asked of these runs: central ones first, of each weight those that hold before those
    that do not."""
    later, steps = trained(runs), Runs(run for run in runs if run.spec.single_step)
    later = Runs() if len(steps) == len(runs) else later
    found = [judge(claim, steps if claim.at_start and not later else later) for claim in CLAIMS]
    found += [judge(claim, steps) for claim in OF_STEPS]
    found += [judge(claim, Landscape(runs, drawn)) for claim in OF_SURFACES]
    return sorted(found, key=lambda one: (WEIGHTS.index(one.claim.weight), ORDER.index(one.verdict)))
