"""‖ΔF‖/η of one SGD step as η → 0: slopes over seeds and depths, and which two rates agree on them.

Nothing saturates: one step from θ₀ on one batch, small enough that half of it moves half as far. In float64 η = 1e-5;
in float32 two rates must agree within AGREE, for at a smaller one rounding eats the difference and at a larger one the
step is no longer linear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from stabkit.results import update_fit
from stabkit.results.conditions import MOST_IN_COLOUR, PAIR, method_label
from stabkit.results.once import once
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.spec import canonical
from stabkit.words import listed

COLUMNS = (*update_fit.UPDATE_COLUMNS, "rate")
AGREE = 0.05
"""Two rates must give the same slope to within this share of it."""


@once
def frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of a single SGD step; `update` is ‖ΔF‖/η and `predicted` the theorem's sum over η."""
    probes = {run.run_id: run for run in runs if run.spec.single_step}
    if not probes:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = update_fit.updates(list(probes.values()), at=1)
    rates = [probes[run].spec.train.lr for run in frame["run"]]
    return frame.assign(rate=rates, update=frame["update"] / rates, predicted=frame["predicted"] / rates)


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a method, condition and depth: `slope`, the median over seeds, its range, and its rank, 1 the
    least; methods in table order."""
    rows = []
    for (condition, depth), here in frame.groupby(["condition", "depth"], sort=False):
        means = here.groupby("variant", sort=False)["update"].agg(centre)
        ranks = means.rank(method="first", na_option="bottom")
        for variant, group in here.groupby("variant", sort=False):
            rows.append(
                {
                    "label": group["label"].iloc[0],
                    "condition": condition,
                    "depth": depth,
                    "slope": means[variant],
                    "least": group["update"].min(),
                    "greatest": group["update"].max(),
                    "rank": int(ranks[variant]),
                }
            )
    columns = ["label", "condition", "depth", "slope", "least", "greatest", "rank"]
    return pd.DataFrame(rows, columns=columns)


def agreement(runs: Sequence[Run]) -> list[tuple[str, float]]:
    """(a run at two rates, how far its slopes are apart as a share of the least), the widest first."""
    parts = [
        (listed(method_label(one.spec), one.spec.depth, f"seed {one.spec.seed}"), share)
        for one, share in _apart(runs).values()
    ]
    return sorted(parts, key=lambda one: -one[1])


def trusted(runs: Sequence[Run]) -> list[Run]:
    """The runs without those whose two rates do not agree: not linear, or lost in rounding."""
    apart = {key for key, (_, share) in _apart(runs).items() if share > AGREE}
    return [run for run in runs if _but_for_its_rate(run) not in apart]


def _apart(runs: Sequence[Run]) -> dict[str, tuple[Run, float]]:
    """{what is the same: (one of the runs, how far apart)} of runs at several rates."""
    by_id = {run.run_id: run for run in runs}
    held: dict[str, list[tuple[float, Run]]] = {}
    for row in frame(runs).to_dict("records"):
        run = by_id[row["run"]]
        held.setdefault(_but_for_its_rate(run), []).append((row["update"], run))
    spreads = {}
    for key, both in held.items():
        if len(both) > 1:
            low, high = (pick(value for value, _ in both) for pick in (min, max))
            spreads[key] = both[0][1], high / low - 1 if low > 0 else math.inf
    return spreads


def _but_for_its_rate(run: Run) -> str:
    return canonical(replace(run.spec, train=replace(run.spec.train, lr=0.0)).to_json())


def lit(runs: Sequence[Run]) -> tuple[str, ...]:
    """Of more methods than a figure can tell apart the two of the title, and those with the least and the greatest
    median at the deepest depth; () of fewer."""
    slopes = frame(runs)
    if slopes["method"].nunique() <= MOST_IN_COLOUR:
        return ()
    deepest = slopes[slopes["layers"] == slopes["layers"].max()].groupby("method", sort=False)["update"].agg(centre)
    ends = (str(deepest.idxmin()), str(deepest.idxmax())) if deepest.notna().any() else ()
    return tuple(dict.fromkeys((*sorted(PAIR & set(slopes["method"])), *ends)))
