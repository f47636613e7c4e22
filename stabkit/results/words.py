"""Numbers as words, and how long a headline is."""

from __future__ import annotations

import math
import textwrap

from stabkit.results.depth_fit import DepthFit

HEADLINE = 90
"""Characters of a page's first sentence, at most, without its full stop."""


def fitting(*texts: str) -> str:
    """The first of these sentences that is short enough for a headline; where none is, the last, cut."""
    given = [text for text in texts if text] or [""]
    return next(
        (text for text in given if len(text.rstrip(".")) <= HEADLINE),
        textwrap.shorten(given[-1], HEADLINE, placeholder="…"),
    )


def scientific(value: float, digits: int = 2) -> str:
    """`4e-3`, `6.3e-4`: so many digits at most and a bare exponent; `0`."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def power_law(fit: DepthFit) -> str:
    """`N^0.54 (0.50 to 0.58)`."""
    p, low, high = (f"{value:.2f}".replace("-0.00", "0.00") for value in (fit.exponent, fit.low, fit.high))
    return f"N^{p} ({low} to {high})".replace("-", "−")


def law(fit: DepthFit) -> str:
    """How a number goes with depth: `N^0.54 (0.50 to 0.58)`, or `×1.08 a layer (1.07 to 1.09)` where that is nearer."""
    if not fit.exponential:
        return power_law(fit)
    return f"×{fit.factor:.3g} a layer ({fit.factor_low:.3g} to {fit.factor_high:.3g})"


def with_depth(fit: DepthFit) -> str:
    """`it scales with depth as N^0.54 (0.50 to 0.58)`; of an exponent that says nothing, that it does."""
    few = "one seed does" if fit.seeds == 1 else f"{fit.seeds} seeds do"
    return f"{few} not show how it scales with depth" if fit.vague else f"it scales with depth as {law(fit)}"


def grows(level: float) -> str:
    """`grows 5.8-fold`, `keeps its size`."""
    if math.isnan(level):
        return "has no size"
    if 0.9 < level < 1.1:
        return "keeps its size"
    return f"{'grows' if level > 1 else 'shrinks'} {level if level > 1 else 1 / level if level else math.inf:.2g}-fold"


def share(value: float) -> str:
    """`64 % of its size`, `40 times its size`."""
    return f"{100 * value:.0f} % of its size" if value < 9.99 else f"{value:.3g} times its size"


def updates(count: int) -> str:
    """`1 update`, `4 updates`."""
    return f"{count} update{'s' * (count != 1)}"


def times(value: float) -> str:
    """`0.41 of`, `1.4 times`, `39 times`, `nothing of`."""
    if not value:
        return "nothing of"
    return f"{value:.2g} of" if value < 1 else f"{value:.2g} times" if value < 10 else f"{value:,.0f} times"


def rounded(value: float) -> str:
    """Two digits, thousands apart."""
    return f"{float(f'{value:.2g}'):,.0f}" if value < 1e6 else "a million or more"
