"""The links that a forecast reads, each a number of the first sixteen updates with its sign and its reason.

A link's number is turned so that more of it is better: its weight in the fit is never negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.measured import Measured

FLOOR = 1e-12
"""What is smaller counts as this: 10⁻¹⁴ of a gradient is as lost as 10⁻¹⁹."""


@dataclass(frozen=True, slots=True)
class Link:
    """One number of the chain."""

    key: str
    label: str
    reason: str
    of: Callable[[Measured, float], float]
    """(what was measured, the peak rate) → the number, more is better."""


def _log(value: float) -> float:
    return math.log10(max(value, FLOOR))


LINKS: tuple[Link, ...] = (
    Link(
        "gradient",
        "gradient that reaches the lowest layer",
        "DeepNet §2: where it vanishes the lower layers learn nothing; a ratio above 1 is no better than 1",
        lambda seen, rate: min(0.0, _log(seen.gradient_lowest)),
    ),
    Link(
        "recovery",
        "gradient ratio after 16 updates over its lowest",
        "a gradient on its way back is not gone",
        lambda seen, rate: min(2.0, _log(seen.gradient_last) - _log(seen.gradient_lowest)),
    ),
    Link(
        "saturation",
        "‖ΔF‖₁₆/‖ΔF‖₁",
        "stuck runs saturate at once: the first update goes as far as sixteen do",
        lambda seen, rate: _log(seen.update_last / max(seen.update_first, FLOOR)),
    ),
    Link(
        "wandering",
        "‖ΔF‖₁₆ over the way that F went",
        "a rate beyond what the loss surface bears sends F back and forth",
        lambda seen, rate: _log(seen.update_last / max(seen.path, FLOOR)),
    ),
    Link(
        "loss",
        "loss fallen, as a share of the way to the unigram loss",
        "who learns learns word frequencies first",
        lambda seen, rate: (seen.loss_start - seen.loss_last) / (seen.loss_start - seen.unigram),
    ),
    Link(
        "steady",
        "no rises of the loss",
        "a loss that rises between two of the first updates shows a rate at its limit",
        lambda seen, rate: -math.log10(0.01 + seen.loss_rises),
    ),
    Link(
        "ln-input",
        "growth of LN inputs",
        "DeepNet §2: a norm divides the gradient by the size of its input",
        lambda seen, rate: -_log(seen.ln_growth),
    ),
    Link(
        "explosion",
        "growth of the gradient",
        "without norms a rate that is too large makes gradients grow",
        lambda seen, rate: -_log(seen.gradient_total_most),
    ),
    Link(
        "frozen",
        "share of layers that moved",
        "a layer whose weights did not move at all has no gradient above Adam's ε",
        lambda seen, rate: -seen.still,
    ),
    Link(
        "tokens",
        "tokens apart",
        "where all tokens have become one direction no attention can tell them apart",
        lambda seen, rate: _log(1.0 - min(seen.cosine_last, 1.0) + 1e-4),
    ),
    Link(
        "rate",
        "rate",
        "what 16 updates at a rate bear 250 may not",
        lambda seen, rate: -_log(rate),
    ),
)


def numbers(seen: Sequence[tuple[Measured, float]], links: Sequence[Link] = LINKS) -> NDArray[np.float64]:
    """(runs × links) of (measured, peak rate) pairs."""
    return np.array([[link.of(*one) for link in links] for one in seen], dtype=np.float64).reshape(-1, len(links))
