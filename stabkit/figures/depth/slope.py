"""‖ΔF‖/η of one SGD step as η → 0, against depth: the linear regime that DeepNet's theorems speak of.

GOAL of DeepNet §3.3 asks for ‖ΔF‖ = Θ(η), whatever the depth. No training and nothing saturates: one step from θ₀ on
one batch, small enough that half of it moves half as far. In float64 η = 1e-5; in float32 two rates must agree within
AGREE, for at a smaller one rounding eats the difference and at a larger one the step is no longer linear. Dotted: what
the theorem of each group of methods predicts, scaled to meet the shallowest depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.depth import update_depth
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results.conditions import MOST_IN_COLOUR, PAIR, method_label
from stabkit.results.once import once
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.results.update_fit import fit
from stabkit.spec import canonical
from stabkit.words import listed, short

COLUMNS = (*update_depth.COLUMNS, "rate")
PROMISED = ("deepnorm", "sub-ln")
"""Methods whose constants are derived from an update that depth does not change."""
AGREE = 0.05
"""Two rates must give the same slope to within this share of it."""


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of a single SGD step; `update` is ‖ΔF‖/η and `predicted` the theorem's sum over η."""
    probes = {run.run_id: run for run in runs if run.spec.single_step}
    if not probes:
        return pd.DataFrame(columns=list(COLUMNS))
    frame = update_depth.select(list(probes.values()), at=1)
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
    for row in select(runs).to_dict("records"):
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
    frame = select(runs)
    if frame["method"].nunique() <= MOST_IN_COLOUR:
        return ()
    deepest = frame[frame["layers"] == frame["layers"].max()].groupby("method", sort=False)["update"].agg(centre)
    ends = (str(deepest.idxmin()), str(deepest.idxmax())) if deepest.notna().any() else ()
    return tuple(dict.fromkeys((*sorted(PAIR & set(frame["method"])), *ends)))


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
    frame = select(runs)
    ratios: dict[str, float] = {}
    for (_, depth), here in frame.groupby(["condition", "depth"], sort=False):
        by = {variant: rows.set_index("seed")["update"] for variant, rows in here.groupby("variant", sort=False)}
        if set(by) >= PAIR and (paired := [value for value in by["post-ln"] / by["deepnorm"] if 0 < value < math.inf]):
            ratios.setdefault(str(depth), centre(paired))
    if ratios:
        (depth, ratio), *more = ratios.items()
        deepest = f", {short(more[-1][1])} times at {more[-1][0]}" if more else ""
        return f"Post-LN's update of one SGD step is {short(ratio)} times DeepNorm's at {depth}{deepest}"
    return "How far one SGD step moves the output, for each unit of learning rate"


def promise(runs: Sequence[Run]) -> str:
    """`DeepNorm's one-step update grows as N^0.77 …; GOAL asks for N^0`, of the first method whose constants are
    derived from an update that depth does not change, as published; "" where these runs do not give an exponent."""
    lines = fit(select(trusted(runs)), ceiling=False)
    lines = lines[lines["variant"].isin(PROMISED)].sort_values("method", kind="stable")
    if lines.empty:
        return ""
    line = lines.iloc[0]
    layers = f"{line.shallowest:g}–{line.deepest:g} layers"
    seeds = "one seed" if line.seeds == 1 else f"{line.least:.2f} to {line.greatest:.2f} over {line.seeds} seeds"
    return f"{line.label}'s one-step update grows as N^{line.exponent:.2f} ({listed(layers, seeds)}); GOAL asks for N^0"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, condition), rows in table(frame).groupby(["label", "condition"], sort=False):
        values = (f"{depth} {short(slope)}" for depth, slope in zip(rows["depth"], rows["slope"], strict=True))
        parts.append(f"{listed(label, condition)}: {', '.join(values)}")
    return f"Chart of ‖ΔF‖/η of one SGD step against depth, both logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """One panel a condition."""
    return update_depth.against_depth(frame, "‖ΔF‖ / η of one SGD step, output units", ceiling=False)


PICTURE: RunPicture = Picture(
    name="slope",
    short="Slope of one SGD step",
    room="depth",
    caption="DeepNet §3.3, GOAL, and Theorems 2, 3 and 4 (journal version): not drawn in the paper.",
    see="a horizontal line, one step moves the output equally far at every depth",
    here=lambda frame: update_depth.exponents(frame, ceiling=False),
    read=(
        Note(
            "Drawn: how far the output moves per unit of learning rate, before any training. A horizontal line is "
            "the papers' GOAL. The order of the methods is the finding; Post-LN's exponent "
            "changes with the seed, because its tokens collapse to one direction at initialisation. Where there are at "
            "most six methods, dotted: Theorem 3 (one stack: 2) from the measured ‖Δθ‖; of Sub-LN in one stack "
            "Theorem 4. Other methods have no theorem."
        ),
    ),
    columns=COLUMNS,
    value="update",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run is a single step of SGD.",
    optional=True,
    at_start=True,
    single_steps=True,
)
