"""What the papers say, tested on the runs of a page: one paper (or a part of one) a file, one row a claim.

To add a claim: write a function `runs → list of Evidence` and a `Claim` that names it, in its paper's file.
"""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.claims import admin, deepnet, deepnet_ablation
from stabkit.claims.base import ORDER, Claim, Finding, judge
from stabkit.store import Run

__all__ = ["CLAIMS", "Finding", "findings"]

CLAIMS: tuple[Claim, ...] = (*deepnet.CLAIMS, *deepnet_ablation.CLAIMS, *admin.CLAIMS)


def findings(runs: Sequence[Run]) -> list[Finding]:
    """Every claim judged: those that fail first, then those that hold, then the untested."""
    return sorted((judge(claim, runs) for claim in CLAIMS), key=lambda found: ORDER.index(found.verdict))
