"""How an outcome looks: its mark among points, its colour as a cell."""

from __future__ import annotations

from typing import Any

MARKS: dict[str, dict[str, Any]] = {
    "trains": {"marker": "o", "markersize": 5},
    "stuck": {"marker": "s", "markersize": 5.5, "markerfacecolor": "none", "mew": 1.4},
    "diverged": {"marker": "x", "markersize": 6.5, "mew": 2},
    "early": {"marker": ".", "markersize": 6},
}

OUTCOME_COLOURS = {
    "trains": "#bfe5d0",
    "some": "#f3e3a3",
    "stuck": "#eda96a",
    "diverged": "#d9736b",
    "early": "#d5d9df",
}
"""`some`: not all of a cell's runs train."""
