"""Which link of the chain predicts? ROC curves of each link alone and of the forecast, out of group.

A point of a curve: at a limit from which on a run is called training, the share of training runs so called against that
of the others. A link alone needs no fit: its own number orders the runs, its direction fixed beforehand. Every forecast
comes from a fit that has not seen the run's group. FITTED links make the forecast; those TRIED added nothing to them on
the runs of the first ten slices (`evaluation.CHOSEN_ON`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import roc_curve

from stabkit.figures.drawing import style
from stabkit.figures.picture import Note, Picture
from stabkit.results.forecast.links import FITTED, GONE, Link
from stabkit.results.forecast.logistic import TINY, log
from stabkit.words import short
from studies.forecast.evaluation import Evaluation, Pooled

ALL = "the forecast: gradient, rest and rate"
COLUMNS = ("run", "link", "auc", "low", "high", "method", "rate", "false", "true")
HUES, GREY = ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), "#9A9A9A"
"""Of the links that the forecast is made of, and of the best; all others are grey."""
POINTS = 60
"""Of a curve: more would not be seen."""

TRIED: tuple[Link, ...] = (
    Link(
        "recovery",
        "gradient ratio after 16 updates over its lowest",
        "a gradient on its way back is not gone",
        lambda seen, at: min(2.0, log(seen.gradient_last) - log(seen.gradient_lowest)),
    ),
    Link(
        "saturation",
        "‖ΔF‖₁₆/‖ΔF‖₁",
        "stuck runs saturate at once: the first update goes as far as sixteen do",
        lambda seen, at: log(seen.update_last / max(seen.update_first, TINY)),
    ),
    Link(
        "first",
        "smallness of the first update",
        "DeepNet §2: the first update explodes; here it parts runs of one method, and methods hardly",
        lambda seen, at: -log(seen.update_first / math.sqrt(at.hidden)),
    ),
    Link(
        "gradient-start",
        "gradient ratio before any update",
        "at equal times: the gradient where the first update is read",
        lambda seen, at: min(0.0, math.log10(max(seen.gradient_start, GONE))),
    ),
    Link(
        "sixteenth",
        "smallness of ‖ΔF‖ after 16 updates",
        "at equal times: the update where the gradient is read",
        lambda seen, at: -log(seen.update_last / math.sqrt(at.hidden)),
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
        lambda seen, at: -log(seen.ln_growth),
    ),
    Link(
        "explosion",
        "growth of the gradient",
        "without norms a rate that is too large makes gradients grow",
        lambda seen, at: -log(seen.gradient_total_most),
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
        lambda seen, at: log(1.0 - min(seen.cosine_last, 1.0) + 1e-4),
    ),
)
LINKS = (*FITTED, *TRIED)


def select(evaluation: Evaluation) -> pd.DataFrame:
    """One row a point of a curve: `false` and `true` are shares; the AUC and its interval stand at each, and that over
    pairs of runs of one `method`, or at one `rate`."""
    rows = [
        {
            "run": key,
            "link": name,
            "auc": area,
            "low": low,
            "high": high,
            "method": of_method,
            "rate": of_rate,
            "false": x,
            "true": y,
        }
        for key, name, pooled in _forecasts(evaluation)
        for area, (low, high) in [(pooled.auc, evaluation.auc_interval(pooled))]
        for of_method in [evaluation.within(pooled, lambda row: row.method)]
        for of_rate in [evaluation.within(pooled, lambda row: row.rate)]
        for x, y in zip(*roc(pooled), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _forecasts(evaluation: Evaluation) -> Iterator[tuple[str, str, Pooled]]:
    if not evaluation.both:
        return
    yield "all", ALL, evaluation.pooled()
    for link in LINKS:
        yield link.key, link.label, evaluation.alone(link)


def roc(pooled: Pooled) -> tuple[list[float], list[float]]:
    """(share of the others, share of training runs) called training, from the strictest limit to the laxest."""
    false, true, _ = roc_curve(pooled.label, pooled.p, drop_intermediate=False)  # the first point is (0, 0)
    if len(false) > POINTS + 1:
        points = np.r_[0, 1 + np.unique(np.linspace(0, len(false) - 2, POINTS).round().astype(int))]
        false, true = false[points], true[points]
    return false.tolist(), true.tolist()


def title(evaluation: Evaluation) -> str:
    """The best link alone against all together."""
    frame = select(evaluation).drop_duplicates("run")
    if frame.empty:
        return "Which link of the chain predicts who trains?"
    whole, links = frame[frame["run"] == "all"].iloc[0], frame[~frame["run"].isin(["all", "rate"])]
    alone, within = links.sort_values("auc").iloc[-1], links.sort_values("method").iloc[-1]
    also = (
        f"; between runs of one method the {within['link']} does ({short(within['method'])})"
        if within["run"] != alone["run"] and math.isfinite(within["method"])
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
        figure = Figure(figsize=(style.WIDTH, 4.1))
        curves = figure.add_axes((0.07, 0.16, 0.34, 0.8))
        areas = figure.add_axes((0.74, 0.16, 0.24, 0.8))
        curves.plot([0, 1], [0, 1], ":", color=style.INK, linewidth=0.8, alpha=0.6)
        alone = [run for run in order if run != "all"]
        named = [run for run in alone if run in {link.key for link in FITTED} or run == alone[0]]
        hues = {run: GREY for run in alone} | dict(zip(named, HUES, strict=False))
        for height, run in enumerate(order):
            points = frame[frame["run"] == run]
            whole = run == "all"
            hue = style.INK if whole else hues[run]
            (curve,) = curves.plot(
                points["false"], points["true"], color=hue, linewidth=2.2 if whole else 1.3 if run in named else 0.7
            )
            style.mark(curve, "", str(points["link"].iloc[0]), x="of the runs that do not train")
            first = points.iloc[0]
            areas.plot([first["low"], first["high"]], [height, height], color=hue, linewidth=2.2 if whole else 1.2)
            areas.plot([first["auc"]], [height], "o", color=hue, markersize=6 if whole else 4.5)
            areas.plot([first["method"]], [height], "D", color=hue, markersize=4, markerfacecolor="none")
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


PICTURE: Picture[Evaluation] = Picture(
    name="which_link",
    short="Which link predicts",
    caption="Not in the papers: DeepNet §2 names the chain; which link tells first, neither paper asks.",
    see=(
        "Left: the further a curve bends to the upper left, the better its number parts runs that train from the "
        "others; the diagonal is a guess, a curve below it says that the link points the other way on these runs."
    ),
    read=(
        Note(
            "Right: the area under it (AUC), with the 95 % interval over runs. A link alone is its own number, without "
            "a fit. The forecast of a run is made by a fit that has not seen its method, or its depth, task, "
            "architecture or rate: one at a time. Diamonds: the same over pairs of runs of one method alone, where "
            "depth, task and rate differ; the rate itself is strong there. Runs without warm-up."
        ),
    ),
    columns=COLUMNS,
    value="auc",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
