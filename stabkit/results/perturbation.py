"""How far the output moves when every weight moves by 10⁻⁴, sub-layer by sub-layer, and its law with depth.

Liu et al. 2020 (§4) find that the variance of the output's change grows with the number n of sub-layers of a model as
O(n) under Post-LN and as O(log n) under Pre-LN; ADMIN's closed forms aim at O(log n) or O(1). Here the square of the
relative change after the last sub-layer (probe `perturbation`) is fitted over the depths of a method by a + b·log n
and by a + b·n. A law is named only of four depths or more: O(1) where the square changes by less than half of itself,
else the better of the two fits where it explains LEAST_R2 of the spread and MARGIN more than the other (O(n) only with
an exponent of STEEP or more); else "undecided". The exponent is that of the square, ∝ n^p, whatever the law.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stabkit.results import share
from stabkit.results.line import line, log_slope
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, shape_of

UNDECIDED = "undecided"
LEAST, LEAST_R2, MARGIN, FLAT, STEEP = 4, 0.9, 0.03, 1.5, 0.7
"""Depths from which on laws can be told apart; what a fit must explain, how much more than the other; what is flat; and
the exponent from which on growth is called O(n), for a + b·n with a large a is no such growth over these depths."""


def series(run: Run) -> NDArray[np.float64]:
    """(n,) relative change after each sub-layer of the output stack; empty where it was not recorded."""
    table = run.records.get("perturbation")
    if table is None or not len(table.steps):
        return np.empty(0)
    change: NDArray[np.float64] = table.select(share.output_sites(table.sites))[0]
    return change


def law(change: NDArray[np.float64], n: NDArray[np.float64]) -> tuple[str, float]:
    """(the law of a change over n sub-layers, the exponent of its square); ("", NaN) for too few or unusable values."""
    squares = change**2
    if len(change) < LEAST or not (np.isfinite(squares) & (squares > 0)).all():
        return "", math.nan
    exponent = log_slope(n, squares)
    if squares.max() <= FLAT * squares.min():
        return "O(1)", exponent
    spread = ((squares - squares.mean()) ** 2).sum()
    fits = {}
    for name, x in (("O(log n)", np.log(n)), ("O(n)", n)):
        through = line(x, squares)
        fits[name] = 1 - float(through.residual / spread) if through.slope > 0 else 0.0
    best, other = sorted(fits, key=lambda name: -fits[name])
    decided = fits[best] >= LEAST_R2 and fits[best] - fits[other] >= MARGIN
    decided = decided and (best != "O(n)" or exponent >= STEEP)
    return (best if decided else UNDECIDED), exponent


def laws(frame: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """{method: (law, exponent)} of its output's change over the depths of one shape of model, first condition."""
    by_label = {}
    first = frame[frame["condition"] == frame["condition"].iloc[0]] if len(frame) else frame
    for label, rows in first.groupby("label", sort=False):
        ends = rows.loc[rows.groupby("run")["sublayer"].idxmax()]
        shape = [shape_of(n, m)[0] for n, m in zip(ends["encoder_layers"], ends["decoder_layers"], strict=True)]
        joined = [ends[np.array(shape) == each] for each in JOINED]
        ends = max(joined, key=lambda each: int(each["sublayer"].nunique()))
        by_depth = ends.groupby("sublayer")["perturbation"].agg(centre)
        name, exponent = law(np.array(by_depth, dtype=np.float64), np.array(by_depth.index, dtype=np.float64))
        if name:
            by_label[str(label)] = name, exponent
    return by_label
