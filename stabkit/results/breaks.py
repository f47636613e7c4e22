"""The first step at which each link of DeepNet §2's chain is beyond its limit, run by run.

The links in the order of the chain: ‖ΔF‖ (eq. 1) beyond half of √(2d); the mean LN input over the sub-layers half as
large again as at step 0; the first layer's gradient over the last's below the one limit for a vanished gradient; and,
no link of the paper's, tokens' output states beyond a mean cosine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from stabkit.results.chain import SATURATED, gradient_ratio, ln_growth
from stabkit.results.conditions import FACTS, shown
from stabkit.results.once import once
from stabkit.results.outcome import GROWN, VANISHED
from stabkit.results.readings import series
from stabkit.results.run import Run

COLLAPSED = 0.9
"""A mean cosine between tokens above this: they are nearly one direction."""
LinkName = Literal["update", "ln_input", "gradient", "token_cosine"]
LINKS: tuple[LinkName, ...] = get_args(LinkName)
COLUMNS = (*FACTS, "link", "step", "last")
NEVER = -1
"""Stands for the step of a link that stayed within its limit."""


def first(run: Run, link: LinkName) -> int | None:
    """The first step at which a link is beyond its limit; NEVER where it never was, None where it was not recorded."""
    if link == "update":
        steps, values = series(run, "update", "state")
        beyond = values > SATURATED * math.sqrt(2 * run.spec.model.hidden)
    elif link == "token_cosine":
        steps, values = series(run, "token_cosine", "state")
        beyond = values > COLLAPSED
    else:
        table = run.records.get("ln_input" if link == "ln_input" else "grad_norm")
        if table is None or not len(table.steps):
            return None
        steps = table.steps
        if link == "gradient":
            beyond = gradient_ratio(table) < VANISHED
        else:
            beyond = ln_growth(table) > GROWN
    if not len(steps):
        return None
    places = np.flatnonzero(beyond)
    return int(steps[places[0]]) if len(places) else NEVER


@once
def frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and link that it recorded."""
    rows = []
    for placed in shown(runs):
        for link in LINKS:
            step = first(placed.run, link)
            if step is not None:
                rows.append({**placed.facts(), "link": link, "step": step, "last": placed.run.spec.train.steps})
    return pd.DataFrame(rows, columns=list(COLUMNS))
