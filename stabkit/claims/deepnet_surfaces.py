"""What DeepNet says of the loss around the weights (Fig. 1 and Fig. 5), measured on surfaces of `stabkit landscape`.

Each sentence is tested under every ruler there is (`figures/shared/surfaces.py`): one that holds only under the papers'
own, which moves a method with small weights less, is one about the ruler.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stabkit.claims.base import Claim, Evidence
from stabkit.figures.shared.comparison import geometric_mean, outcome_word
from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.shared.words import listed, number, short
from stabkit.figures.surfaces import cuts
from stabkit.storage.store import Run

P, D = "Post-LN", "DeepNorm"
MUCH, DIFFERENT = 2.0, 1.5
"""Ratios of roughness: "much" smoother, and more than what another direction or seed makes of it."""
DEPTHS = "stabkit landscape --depths 6,18,50"


def _papers(drawn: Landscape) -> Landscape:
    """The surfaces that the papers speak of: filter-normalised, around the weights at the end of training."""
    ends = {run.run_id: run.outcome.get("steps") for run in drawn.runs}
    kept = [
        surface
        for surface in drawn.surfaces
        if surface.spec.plane.normalise == "filter" and ends.get(surface.spec.origin.run) == surface.spec.origin.step
    ]
    return Landscape(drawn.runs, kept)


def smoother(drawn: Landscape) -> list[Evidence]:
    found = []
    for _, row in cuts.ratios(cuts.select(_papers(drawn))).iterrows():
        if (row["higher"], row["lower"]) == (P, D):
            ratio = float(row["ratio"])
            spread = (
                f"{short(float(row['least']))} to {short(float(row['greatest']))} over {row['directions']} directions"
            )
            where = listed(row["depth"], f"seed {row['seed']}", row["ruler"])
            found.append(
                Evidence(where=where, value=ratio, text=f"{short(ratio)} times ({spread})", holds=ratio >= MUCH)
            )
    return found


def _over_depths(label: str, holds: Callable[[list[float]], bool]) -> Callable[[Landscape], list[Evidence]]:
    """How one method's roughness goes with depth, ruler by ruler, at least two depths."""

    def find(drawn: Landscape) -> list[Evidence]:
        table = cuts.rough(cuts.select(_papers(drawn)))
        found = []
        for (seed, ruler), own in table[table["label"] == label].groupby(["seed", "ruler"], sort=False):
            by = {str(d): geometric_mean(rows["roughness"]) for d, rows in own.groupby("depth", sort=False)}
            values = list(by.values())
            if len(values) > 1 and all(value > 0 for value in values):
                text = ", ".join(f"{depth} {short(value)}" for depth, value in by.items())
                where = listed(f"seed {seed}", str(ruler))
                found.append(Evidence(where=where, value=values[-1] / values[0], text=text, holds=holds(values)))
        return found

    return find


def local_optimum(drawn: Landscape) -> list[Evidence]:
    """Is Post-LN stuck by the rule of all pages where DeepNorm trains, at the runs whose surfaces are drawn?"""
    held: dict[tuple[str, int], dict[str, Run]] = {}
    for seen in drawn.seen("surface"):
        spec = seen.shown.run.spec
        held.setdefault((spec.depth, spec.seed), {})[seen.shown.label] = seen.shown.run
    found = []
    for (depth, seed), by in held.items():
        words = {label: outcome_word(by[label]) for label in (P, D) if label in by}
        if len(words) == 2 and "early" not in words.values():
            losses = {label: number(by[label].outcome.get("validation_loss")) for label in words}
            text = ", ".join(f"{label} {word} at {short(losses[label], 3)}" for label, word in words.items())
            holds = words == {P: "stuck", D: "trains"}
            value = losses[P] - losses[D] if all(map(math.isfinite, losses.values())) else 0.0
            found.append(Evidence(where=listed(depth, f"seed {seed}"), value=value, text=text, holds=holds))
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="surface-smoother",
        sentence="The loss surface of DeepNet is much smoother than Post-LN's.",
        source="DeepNet §1, Fig. 1",
        test="mean absolute second difference of cuts, Post-LN over DeepNorm, paired by direction; much: 2 times, by "
        "every ruler",
        find=smoother,
        needs="surfaces of Post-LN and DeepNorm at one depth and seed",
        command="stabkit landscape --model deepnorm",
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="surface-depth",
        sentence="Post-LN's loss landscape is less smooth with increasing depth.",
        source="DeepNet §3.3, Fig. 5",
        test="Post-LN's roughness of cuts at the deepest model over that at the shallowest; above 1.5, by every ruler",
        find=_over_depths(P, lambda values: values[-1] >= DIFFERENT * values[0]),
        needs="surfaces of Post-LN at two depths",
        command=DEPTHS,
        methods=("post-ln",),
    ),
    Claim(
        key="surface-consistent",
        sentence="DeepNet's loss landscape tends to be equally smooth across depths.",
        source="DeepNet §3.3, Fig. 5",
        test="DeepNorm's roughness of cuts, the greatest depth's over the least's; at most 1.5, by every ruler",
        find=_over_depths(D, lambda values: max(values) <= DIFFERENT * min(values)),
        needs="surfaces of DeepNorm at two depths",
        command=DEPTHS,
        methods=("deepnorm",),
    ),
    Claim(
        key="spurious-optimum",
        sentence="Post-LN is easier to be stuck in a spurious local optimum.",
        source="DeepNet §3.3, Fig. 5",
        test="outcomes of the runs drawn: Post-LN stuck (at the unigram loss, and flat), DeepNorm training",
        find=local_optimum,
        needs="surfaces of Post-LN and DeepNorm at one depth and seed, after runs long enough to judge",
        command="stabkit landscape --model deepnorm --steps 250",
        methods=("post-ln", "deepnorm"),
    ),
)
