"""The links of the chain, each a number of the first sixteen updates with its sign and its reason.

A link's number is turned so that more of it is better: its weight in a fit is never negative. FITTED are those that the
forecast is made of: on the runs of the first ten slices no other added to them (`judged.CHOSEN_ON`). The others stand
beside them in the figure that asks which link predicts.
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


class Setting(NamedTuple):
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
    of: Callable[[Measured, Setting], float]
    """The number, more is better."""


def _log(value: float) -> float:
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
        "a rate beyond what the loss surface bears keeps F moving: the last update’s step times the way that F went "
        "over how far it came",
        lambda seen, at: -_log(seen.step_last / math.sqrt(at.hidden) * seen.path / max(seen.update_last, TINY)),
    ),
    Link(
        "rate",
        "rate",
        "what 16 updates at a rate bear 250 may not",
        lambda seen, at: -_log(at.rate),
    ),
)
BESIDE: tuple[Link, ...] = (
    Link(
        "recovery",
        "gradient ratio after 16 updates over its lowest",
        "a gradient on its way back is not gone",
        lambda seen, at: min(2.0, _log(seen.gradient_last) - _log(seen.gradient_lowest)),
    ),
    Link(
        "saturation",
        "‖ΔF‖₁₆/‖ΔF‖₁",
        "stuck runs saturate at once: the first update goes as far as sixteen do",
        lambda seen, at: _log(seen.update_last / max(seen.update_first, TINY)),
    ),
    Link(
        "first",
        "smallness of the first update",
        "DeepNet §2: the first update explodes; here it parts runs of one method, and methods hardly",
        lambda seen, at: -_log(seen.update_first / math.sqrt(at.hidden)),
    ),
    Link(
        "loss",
        "loss fallen, of the way to the unigram loss",
        "who learns learns word frequencies first",
        lambda seen, at: (seen.loss_start - seen.loss_last) / (seen.loss_start - seen.unigram),
    ),
    Link(
        "steady",
        "no rises of the loss",
        "a loss that rises between two of the first updates shows a rate at its limit",
        lambda seen, at: -math.log10(0.01 + seen.loss_rises),
    ),
    Link(
        "ln-input",
        "growth of LN inputs",
        "DeepNet §2: a norm divides the gradient by the size of its input",
        lambda seen, at: -_log(seen.ln_growth),
    ),
    Link(
        "explosion",
        "growth of the gradient",
        "without norms a rate that is too large makes gradients grow",
        lambda seen, at: -_log(seen.gradient_total_most),
    ),
    Link(
        "frozen",
        "share of layers that moved",
        "a layer whose weights did not move at all has no gradient above Adam's ε",
        lambda seen, at: -seen.still,
    ),
    Link(
        "tokens",
        "tokens apart",
        "where all tokens have become one direction no attention can tell them apart",
        lambda seen, at: _log(1.0 - min(seen.cosine_last, 1.0) + 1e-4),
    ),
)
LINKS = (*FITTED, *BESIDE)


def numbers(seen: Sequence[tuple[Measured, Setting]], links: Sequence[Link] = FITTED) -> NDArray[np.float64]:
    """(runs × links) of what was measured of runs and their settings."""
    return np.array([[link.of(*one) for link in links] for one in seen], dtype=np.float64).reshape(-1, len(links))
