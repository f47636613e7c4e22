"""Which link of the chain predicts? ROC curves of each link alone and of the forecast, out of group.

A point of a curve: at a limit from which on a run is called training, the share of training runs so called against that
of the others. A link alone needs no fit: its own number orders the runs, its direction said beforehand. Every forecast
comes from a fit that has not seen the run's group (`results/forecast`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.shared.words import short
from stabkit.results.forecast.judged import Judged, Pooled
from stabkit.results.forecast.links import FITTED, LINKS

NAME = "which_link"
SHORT = "Which link predicts"
INDEX: str | None = None
VALUE = "auc"
CAPTION = "Not in the papers: DeepNet §2 names the chain; which link tells first, neither paper asks."
READ = (
    "Left: the further a curve bends to the upper left, the better its number parts runs that train from the others; "
    "the diagonal is a guess, a curve below it says that the link points the other way on these runs. Right: the area "
    "under it (AUC), with the 95 % interval over runs. A link alone is its own number, without a fit. The forecast of "
    "a run is made by a fit that has not seen its method, or its depth, task, architecture or rate: one at a time. "
    "Diamonds: the same over pairs of runs of one method alone, where depth, task and rate differ; the rate itself is "
    "strong there. Runs without warm-up."
)
ALL = "the forecast: gradient, rest and rate"
COLUMNS = ("run", "link", "auc", "low", "high", "method", "rate", "false", "true")
HUES, GREY = ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), "#9A9A9A"
"""Of the links that the forecast is made of, and of the best; all others are grey."""
POINTS = 60
"""Of a curve: more would not be seen."""


def select(judged: Judged) -> pd.DataFrame:
    """One row a point of a curve: `false` and `true` are shares; the AUC and its interval stand at each, and that over
    pairs of runs of one `method`, or at one `rate`."""
    rows = [
        {
            "run": key,
            "link": name,
            "auc": own.scores.auc,
            "low": low,
            "high": high,
            "method": judged.within(own, lambda row: row.method),
            "rate": judged.within(own, lambda row: row.rate),
            "false": x,
            "true": y,
        }
        for key, name, own in _forecasts(judged)
        for low, high in [judged.auc_interval(own)]
        for x, y in zip(*roc(own), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _forecasts(judged: Judged) -> Iterator[tuple[str, str, Pooled]]:
    if not judged.both:
        return
    yield "all", ALL, judged.pooled()
    for link in LINKS:
        yield link.key, link.label, judged.alone(link)


def roc(own: Pooled) -> tuple[list[float], list[float]]:
    """(share of the others, share of training runs) called training, from the strictest limit to the laxest."""
    limits = np.unique(own.p)[::-1]
    if len(limits) > POINTS:
        limits = limits[np.unique(np.linspace(0, len(limits) - 1, POINTS).round().astype(int))]
    good, bad = own.p[own.label], own.p[~own.label]
    true = [float((good >= limit).mean()) for limit in limits]
    false = [float((bad >= limit).mean()) for limit in limits]
    return [0.0, *false], [0.0, *true]


def title(judged: Judged) -> str:
    """The best link alone against all together."""
    frame = select(judged).drop_duplicates("run")
    if frame.empty:
        return "Which link of the chain predicts who trains?"
    whole, links = frame[frame["run"] == "all"].iloc[0], frame[~frame["run"].isin(["all", "rate"])]
    alone, own = links.sort_values("auc").iloc[-1], links.sort_values("method").iloc[-1]
    also = (
        f"; between runs of one method the {own['link']} does ({short(own['method'])})"
        if own["run"] != alone["run"] and math.isfinite(own["method"])
        else ""
    )
    return (
        f"The {alone['link']} alone parts who trains with an AUC of {short(alone['auc'])}, the forecast with "
        f"{short(whole['auc'])} ({short(whole['low'])} to {short(whole['high'])}){also}"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "There are no forecasts of both outcomes."
    parts = [
        f"{row['link']} {short(row['auc'])} ({short(row['low'])} to {short(row['high'])}; of one method "
        f"{short(row['method'])})"
        for row in frame.drop_duplicates("run").sort_values("auc", ascending=False).to_dict("records")
    ]
    return f"ROC curves, and the area under each: {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """Curves left, areas right in their order."""
    with style.look():
        if frame.empty:
            return style.empty("There are no forecasts of both outcomes.")
        order = list(frame.drop_duplicates("run").sort_values("auc", ascending=False)["run"])
        figure = Figure(figsize=(style.WIDTH, 3.9))
        curves = figure.add_axes((0.07, 0.13, 0.34, 0.82))
        areas = figure.add_axes((0.74, 0.13, 0.24, 0.82))
        curves.plot([0, 1], [0, 1], ":", color=style.INK, linewidth=0.8, alpha=0.6)
        alone = [run for run in order if run != "all"]
        named = [run for run in alone if run in {link.key for link in FITTED} or run == alone[0]]
        hues = {run: GREY for run in alone} | dict(zip(named, HUES, strict=False))
        for place, run in enumerate(order):
            own = frame[frame["run"] == run]
            whole = run == "all"
            hue = style.INK if whole else hues[run]
            (curve,) = curves.plot(
                own["false"], own["true"], color=hue, linewidth=2.2 if whole else 1.3 if run in named else 0.7
            )
            style.mark(curve, "", str(own["link"].iloc[0]))
            first = own.iloc[0]
            areas.plot([first["low"], first["high"]], [place, place], color=hue, linewidth=2.2 if whole else 1.2)
            areas.plot([first["auc"]], [place], "o", color=hue, markersize=6 if whole else 4.5)
            areas.plot([first["method"]], [place], "D", color=hue, markersize=4, markerfacecolor="none")
        names = {row.run: row for row in frame.drop_duplicates("run").itertuples()}
        areas.set_yticks(range(len(order)), [f"{names[run].link}  {names[run].auc:.2f}" for run in order])
        areas.set_ylim(len(order) - 0.5, -0.5)
        areas.axvline(0.5, linestyle=":", color=style.INK, linewidth=0.8, alpha=0.6)
        areas.set_xlim(min(0.3, float(frame["low"].min())), 1.0)
        areas.set_xlabel("area under the curve (0.5: a guess);\ndiamonds: runs of one method")
        curves.set_xlim(0, 1)
        curves.set_ylim(0, 1.005)
        curves.set_xlabel("of the runs that do not train, called training")
        curves.set_ylabel("of the runs that train, called training")
        return figure
