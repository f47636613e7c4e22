"""The links of the chain, each a number of the first sixteen updates with its sign and its reason.

A link's number is turned so that more of it is better: its weight in a fit is never negative. FITTED are those that the
forecast is made of; on the runs that they were chosen on no other link added to them (`studies/forecast/which_link.py`
shows the others).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from stabkit.results.forecast import logistic
from stabkit.results.forecast.logistic import TINY, log
from stabkit.results.forecast.measured import Measured

GONE = 1e-4
"""A gradient ratio below it counts as this: 10⁻¹⁴ of a gradient is as lost as 10⁻⁴ of it."""


class RunSetting(NamedTuple):
    """What of a run's setting a link reads."""

    rate: float
    """The peak."""
    hidden: int
    """The width d: a normed state's length is √d, and ‖ΔF‖ is in units of it."""


Link = logistic.Link[Measured, RunSetting]


FITTED: tuple[Link, ...] = (
    Link(
        "gradient",
        "gradient that reaches the lowest layer",
        "DeepNet §2: where it vanishes the lower layers learn nothing; a ratio above 1 is no better than 1",
        lambda seen, at: min(0.0, math.log10(max(seen.gradient_lowest, GONE))),
    ),
    Link(
        "rest",
        "rest: how little F still moves back and forth",
        "a rate that the loss surface does not tolerate keeps F moving: the last update’s step times F’s path "
        "length over its distance from the start",
        lambda seen, at: -log(seen.step_last / math.sqrt(at.hidden) * seen.path / max(seen.update_last, TINY)),
    ),
    Link(
        "rate",
        "rate",
        "a model that survives 16 updates at a rate may not survive 250",
        lambda seen, at: -log(at.rate),
    ),
)
