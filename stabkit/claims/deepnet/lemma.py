"""Lemma 1 of DeepNet (§3.1): the query and key projections do not change the size of what attention returns.

The lemma is a bound: a softmax mixes values and is never larger than they are. How far below them it lies is the
mixture's affair, which W_Q and W_K decide: even weights average the values, sharp ones pick one. So the sentence built
on it, that the size "only depends on the value and output projection", is measured at θ₀: both projections times 0.25
and times 4, by which the logits go 256-fold apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.claims.base import Claim, Measurement, Spot, at_most, times
from stabkit.claims.evidence import cells
from stabkit.storage.store import Run

BASE = "post-ln"
FACTORS = ("0.25", "4")


def attention(run: Run) -> float:
    """Mean ‖attention(x)‖/‖x‖ over the attention sub-layers at step 0; NaN without the probe."""
    table = run.records.get("branch_ratio")
    if table is None or table.steps[0] != 0:
        return math.nan
    is_attention = [site.endswith((".self", ".cross")) for site in table.sites]
    return float(table.values[0, is_attention].mean()) if any(is_attention) else math.nan


def sizes(runs: Sequence[Run]) -> list[Measurement]:
    """By how much the size changes, up or down, with each of the factors."""
    measurements = []
    for cell in cells(runs):
        for factor in FACTORS:
            scaled = f"{BASE}:query_key={factor}"
            ratios = {seed: max(r, 1 / r) for seed, r in cell.ratio(scaled, BASE, attention).items() if r > 0}
            if ratios:
                measurements.append(cell.measured(ratios, scaled, BASE, when=Spot(f"times-{factor}", f"{factor} ×")))
    return measurements


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="attention-size",
        sentence="W_Q and W_K do not change the size of attention's output: it depends on value and output projection.",
        source="DeepNet §3.1, Lemma 1",
        weight="side",
        test="Post-LN with both projections times 0.25 and times 4: ‖attention(x)‖/‖x‖ at step 0 against that of the "
        "base initialisation, as a factor up or down",
        threshold=at_most(2.0, "ours: two-fold; W_V and W_O times 4 would make it sixteen-fold"),
        scale="ratio",
        tell=times,
        find=sizes,
        needs="Post-LN at the base initialisation and with query_key=0.25 or 4",
        command="stabkit sweep --models post-ln,post-ln:query_key=0.25,post-ln:query_key=4 --depths 6 --steps 1 "
        "--seeds 0..4",
        methods=("post-ln",),
        at_start=True,
    ),
)
