"""The links of the chain, each a number of the first sixteen updates with its sign and its reason.

A link's number is turned so that more of it is better: its weight in a fit is never negative. FITTED are those that the
forecast is made of; on the runs that they were chosen on no other link added to them (`studies/forecast/which_link.py`
shows the others).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.measured import Measured

GONE = 1e-4
"""A gradient ratio below it counts as this: 10⁻¹⁴ of a gradient is as lost as 10⁻⁴ of it."""
TINY = 1e-12


class RunSetting(NamedTuple):
    """What of a run's setting a link reads."""

    rate: float
    """The peak."""
    hidden: int
    """The width d: a normed state's length is √d, and ‖ΔF‖ is in units of it."""


@dataclass(frozen=True, slots=True)
class Link:
    """One number of the chain."""

    key: str
    label: str
    reason: str
    of: Callable[[Measured, RunSetting], float]
    """The number, more is better."""


def log(value: float) -> float:
    """log₁₀, of at least TINY."""
    return math.log10(max(value, TINY))


FITTED: tuple[Link, ...] = (
    Link(
        "gradient",
        "gradient that reaches the lowest layer",
        "DeepNet §2: where it vanishes the lower layers learn nothing; a ratio above 1 is no better than 1",
        lambda seen, at: min(0.0, math.log10(max(seen.gradient_lowest, GONE))),
    ),
    Link(
        "rest",
        "rest: how little F still moves, back and forth",
        "a rate that the loss surface does not tolerate keeps F moving: the last update’s step times the way that F "
        "went over how far it came",
        lambda seen, at: -log(seen.step_last / math.sqrt(at.hidden) * seen.path / max(seen.update_last, TINY)),
    ),
    Link(
        "rate",
        "rate",
        "what 16 updates at a rate survive, 250 may not",
        lambda seen, at: -log(at.rate),
    ),
)


def numbers(seen: Sequence[tuple[Measured, RunSetting]], links: Sequence[Link] = FITTED) -> NDArray[np.float64]:
    """(runs × links) of what was measured of runs and their settings."""
    return np.array([[link.of(*run) for link in links] for run in seen], dtype=np.float64).reshape(-1, len(links))
