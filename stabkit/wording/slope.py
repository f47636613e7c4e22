"""What single steps of SGD measured, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.results.conditions import PAIR
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.results.slope import AGREE, agreement, frame, trusted
from stabkit.results.update_fit import fit
from stabkit.words import listed, short

PROMISED = ("deepnorm", "sub-ln")
"""Methods whose constants are derived from an update that depth does not change."""


def title(runs: Sequence[Run]) -> str:
    """Post-LN over DeepNorm at the shallowest and the deepest."""
    return clauses(runs)[0]


def clauses(runs: Sequence[Run]) -> list[str]:
    """The title, then of two rates whether they agree."""
    agreed = []
    if apart := agreement(runs):
        beyond = sum(share > AGREE for _, share in apart)
        agreed = [f"two rates agree within {AGREE:.0%} in {len(apart) - beyond} of {len(apart)} runs"]
    return [_ratio(runs), *agreed]


def _ratio(runs: Sequence[Run]) -> str:
    ratios: dict[str, float] = {}
    for (_, depth), here in frame(runs).groupby(["condition", "depth"], sort=False):
        by = {variant: rows.set_index("seed")["update"] for variant, rows in here.groupby("variant", sort=False)}
        if set(by) >= PAIR and (paired := [value for value in by["post-ln"] / by["deepnorm"] if 0 < value < math.inf]):
            ratios.setdefault(str(depth), centre(paired))
    if ratios:
        (depth, ratio), *more = ratios.items()
        deepest = f", {short(more[-1][1])} times at {more[-1][0]}" if more else ""
        return f"Post-LN's update of one SGD step is {short(ratio)} times DeepNorm's at {depth}{deepest}"
    return "How far one SGD step moves the output, for each unit of learning rate"


def promise(runs: Sequence[Run]) -> str:
    """`DeepNorm's one-step update grows as N^0.77 …; it is derived for N^0`, of the first method whose constants are
    derived from an update that depth does not change, as published; "" where these runs do not give an exponent."""
    lines = fit(frame(trusted(runs)), ceiling=False)
    lines = lines[lines["variant"].isin(PROMISED)].sort_values("method", kind="stable")
    if lines.empty:
        return ""
    line = lines.iloc[0]
    layers = f"{line.shallowest:g}–{line.deepest:g} layers"
    seeds = "one seed" if line.seeds == 1 else f"{line.least:.2f} to {line.greatest:.2f} over {line.seeds} seeds"
    grows = f"grows as N^{line.exponent:.2f} ({listed(layers, seeds)}); it is derived for N^0"
    return f"{line.label}'s one-step update {grows}"
