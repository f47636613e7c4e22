"""How a number goes with depth, in words."""

from __future__ import annotations

from stabkit.results.depth_fit import DepthFit


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
