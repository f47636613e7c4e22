"""The highest rate that trains over a model's width: a bracket a width, and the law through them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.picture import Picture, always
from stabkit.results.own.widths import Widths
from stabkit.words import scientific

COLUMNS = ("run", "width", "own", "trains", "fails", "low", "high")


def select(found: Widths) -> pd.DataFrame:
    """One row a width: the factory's rate, the highest that trains, the lowest above it that fails, and between
    which rates the law has the highest."""
    rows = []
    for row in found.rows:
        trains, fails = (math.nan if k is None else k * row.rate for k in (row.trains, row.fails))
        law = found.expected(row.width)
        low, high = (math.nan, math.nan) if law is None else (law.highest.low, law.highest.high)
        rows.append((str(row.width), row.width, row.rate, trains, fails, low, high))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def alt(frame: pd.DataFrame) -> str:
    parts = [f"{r['width']}: {_span(r['trains'], r['fails'])}" for r in frame.to_dict("records")]
    return f"Chart of the highest rate that trains against the width, both logarithmic. {'; '.join(parts)}."


def _span(trains: float, fails: float) -> str:
    low, high = (scientific(rate) if rate == rate else "none tried" for rate in (trains, fails))
    return f"trains up to {low}, not at {high}"


def draw(frame: pd.DataFrame) -> Figure:
    """A bar a width from the rate that trains to the one that does not; the law as a band."""
    with style.look():
        figure, (axes,) = style.panels(1, 1, 3.2, right=0.4, legend=1)
        widths = sorted(frame["width"])
        rates = frame[["own", "trains", "fails"]].to_numpy().ravel()
        rates = rates[np.isfinite(rates)]
        style.log_axis(axes, "x", widths[0] / 1.3, widths[-1] * 1.3, ticks=widths)
        style.log_axis(axes, "y", rates.min() / 2, rates.max() * 2)
        if frame["low"].notna().all():
            axes.fill_between(frame["width"], frame["low"], frame["high"], color=style.INK, alpha=0.12, linewidth=0)
        for row in frame.to_dict("records"):
            axes.plot([row["width"]] * 2, [row["trains"], row["fails"]], "-", color=style.INK, linewidth=1.2)
        looks: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("trains", "the highest rate tried that trains", {"marker": "o", "markersize": 6}),
            ("fails", "the lowest above it that fails", {"marker": "o", "markersize": 6, "markerfacecolor": "none"}),
            ("own", "its own rate", {"marker": "_", "markersize": 14, "markeredgewidth": 1.6}),
        )
        for name, label, look in looks:
            axes.plot(frame["width"], frame[name], linestyle="none", color=style.INK, label=label, **look)
        axes.set_xlabel("width d")
        axes.set_ylabel("rate")
        style.legend(figure, axes.get_legend_handles_labels()[0], ncols=3)
        return figure


PICTURE: Picture[Widths] = Picture(
    name="highest_rates",
    short="Rates over width",
    room="depth",
    caption="The highest rate that trains at each width, in brackets of a factor 2.",
    see="A bracket that falls with the width says how far the rate must fall in a wider model.",
    read=always("One seed. The band: least-squares lines through any place in each bracket."),
    columns=COLUMNS,
    value="trains",
    select=select,
    draw=draw,
    title=lambda found: (
        "The highest rate that trains, by width" if found.law else "Rates that train and that do not, by width"
    ),
    alt=alt,
    none="No rate was tried.",
)
