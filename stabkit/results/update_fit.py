"""A power of the depth through the points of each method, and what keeps points out of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from stabkit.results import theorem
from stabkit.results.chain import SATURATED
from stabkit.results.conditions import FACTS, ends_in_norm, shown
from stabkit.results.line import log_slope
from stabkit.results.once import once
from stabkit.results.points import drawable_rows, parted
from stabkit.results.readings import centre, reference_step, series
from stabkit.results.run import Run

FIT_RANGE = (6, 50)
"""Layers: deeper, Post-LN's numbers vary several-fold with the seed."""

FIT_DEPTHS = 3
"""Points that a line needs: through two there is always one."""

FIT_COLUMNS = (
    *("method", "variant", "label", "condition", "shape", "exponent", "factor"),
    *("shallowest", "deepest", "least", "greatest", "seeds", "predicted"),
)

UPDATE_COLUMNS = (
    *(*FACTS, "variant", "width", "shape", "layers"),
    *("reference_step", "step", "update", "predicted", "theorem", "bounded"),
)

Stacks = Literal["equal", "decoder", "encoder", "unequal"]
"""Two stacks of equal depth, one alone, or two that differ."""
JOINED: tuple[Stacks, ...] = ("equal", "decoder", "encoder")
"""Stacks whose depths make one curve; unequal ones are single points."""
STACKS: Mapping[str, str] = {
    "equal": "N = M",
    "decoder": "decoder only",
    "encoder": "encoder only",
    "unequal": "N ≠ M",
}
"""How they read."""


def shape_of(encoder: int, decoder: int) -> tuple[Stacks, float]:
    """(its stacks, layers of each): `equal` 18, `decoder` 12, and the mean of both where they differ."""
    if encoder and decoder:
        return ("equal" if encoder == decoder else "unequal"), (encoder + decoder) / 2
    return ("decoder" if decoder else "encoder"), float(encoder + decoder)


def unless_equal(stacks: Any) -> str:
    """`decoder only`, of Stacks or a frame's cell; nothing of two stacks of equal depth, which go without saying."""
    return "" if stacks == "equal" else STACKS[stacks]


@once
def updates(runs: Sequence[Run], at: int | None = None) -> pd.DataFrame:
    """One row a run: ‖ΔF‖ at the reference step, or the last finite one of a run that ended before it (`step`).

    `at`: another step than these runs' own reference step.
    """
    at = reference_step(runs) if at is None else at
    rows = []
    for placed in shown(runs):
        steps, values = series(placed.run, "update", "state")
        usable = np.flatnonzero((steps <= at) & np.isfinite(values))
        if len(steps) == 0:
            continue
        step, value = (int(steps[usable[-1]]), float(values[usable[-1]])) if len(usable) else (0, math.nan)
        facts = placed.facts()
        shape, layers = shape_of(facts["encoder_layers"], facts["decoder_layers"])
        width = placed.run.spec.model.hidden
        rows.append(
            {
                **facts,
                "variant": placed.variant,
                "width": width,
                "shape": shape,
                "layers": layers,
                "reference_step": at,
                "step": step,
                "update": value,
                "predicted": theorem.predicted(placed.run, at) if step == at else math.nan,
                "theorem": theorem.number_of(placed.run.spec),
                "bounded": ends_in_norm(placed.run.spec),
            }
        )
    return pd.DataFrame(rows, columns=list(UPDATE_COLUMNS))


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthLine:
    """One method's power of the depth, seed by seed."""

    method: str
    variant: str
    """The method's key with its options."""
    label: str
    condition: str
    shape: Stacks
    shallowest: float
    deepest: float
    seeds: Mapping[int, float]
    """The exponent of each seed by itself, over the same depths."""
    predicted: Mapping[int, float]
    """That of the theorem's sum for the same runs; without those of which it does not speak."""
    exponent: float
    """The median of the seeds."""
    theorem: float
    """The median of `predicted`; NaN without."""
    factor: float
    """‖ΔF‖ at one layer, of the line with that exponent through the medians."""


def lines(frame: pd.DataFrame, *, ceiling: bool = True) -> list[DepthLine]:
    """Every variant's line, condition by condition and shape by shape.

    Seeds that every depth has are fitted; where no seed is everywhere, a line goes through the medians and stands for
    one seed, the least. Depths whose median lies beyond half of √(2d) are left out of all.
    """
    fitted = []
    usable = frame[reached(frame) & frame["layers"].between(*FIT_RANGE)]
    names = ["method", "label", "seed", "layers", "update", "width", "bounded", "predicted"]
    for rows in parted(usable, ["variant", "condition", "shape"], names):
        if rows["shape"][0] not in JOINED:
            continue
        held: dict[int, dict[float, float]] = {}
        by_seed: dict[int, dict[float, float]] = {}
        for place, (seed, layers) in enumerate(zip(rows["seed"], rows["layers"], strict=True)):
            held.setdefault(seed, {})[layers] = rows["update"][place]
            if rows["predicted"][place] > 0:
                by_seed.setdefault(seed, {})[layers] = rows["predicted"][place]
        depths = sorted(set(rows["layers"]))
        whole = {seed: at for seed, at in sorted(held.items()) if set(at) == set(depths)}
        if not whole:
            means = {n: centre(at[n] for at in held.values() if n in at) for n in depths}
            whole = {min(held): means}
            by_seed = {min(held): {n: centre(at[n] for at in by_seed.values() if n in at) for n in depths}}
        bent = ceiling and all(rows["bounded"])
        most = SATURATED * math.sqrt(2 * int(rows["width"][0])) if bent else math.inf
        medians = [(n, value) for n in depths if (value := centre(at[n] for at in whole.values())) <= most]
        if len(medians) < FIT_DEPTHS:
            continue
        kept = [n for n, _ in medians]
        seeds = {seed: slope for seed, at in whole.items() if math.isfinite(slope := _slope(at, kept))}
        predicted = {seed: slope for seed in seeds if math.isfinite(slope := _slope(by_seed.get(seed, {}), kept))}
        if not seeds:
            continue
        exponent = statistics.median(seeds.values())
        level = sum(math.log(value) - exponent * math.log(n) for n, value in medians) / len(medians)
        fitted.append(
            DepthLine(
                method=rows["method"][0],
                variant=rows["variant"][0],
                label=rows["label"][0],
                condition=rows["condition"][0],
                shape=rows["shape"][0],
                shallowest=kept[0],
                deepest=kept[-1],
                seeds=seeds,
                predicted=predicted,
                exponent=exponent,
                theorem=statistics.median(predicted.values()) if predicted else math.nan,
                factor=math.exp(level),
            )
        )
    return fitted


def fit(frame: pd.DataFrame, *, ceiling: bool = True) -> pd.DataFrame:
    """`lines` as a table for drawing: the exponent, the least and the greatest of a single seed, how many seeds, and
    the exponent that the theorem predicts."""
    rows = [
        {
            "method": line.method,
            "variant": line.variant,
            "label": line.label,
            "condition": line.condition,
            "shape": line.shape,
            "exponent": line.exponent,
            "factor": line.factor,
            "shallowest": line.shallowest,
            "deepest": line.deepest,
            "least": min(line.seeds.values()),
            "greatest": max(line.seeds.values()),
            "seeds": len(line.seeds),
            "predicted": line.theorem,
        }
        for line in lines(frame, ceiling=ceiling)
    ]
    return pd.DataFrame(rows, columns=list(FIT_COLUMNS))


def reached(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows that hold ‖ΔF‖ at the reference step itself: what means and fits are made of."""
    return (frame["step"] == frame["reference_step"]) & drawable_rows(frame["update"], log=True)


def _slope(at: Mapping[float, float], kept: Sequence[float]) -> float:
    """The least-squares slope of log value over log depth, over these depths; NaN where one is missing or is no
    positive number."""
    values = [at.get(n, math.nan) for n in kept]
    if not all(0 < value < math.inf for value in values):
        return math.nan
    return log_slope(kept, values)
