"""Calibration: the forecasts' mean probability against the share that trained, in five bins, out of group."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.picture import Note, Picture
from stabkit.words import percent, short
from studies.forecast.evaluation import Evaluation

COLUMNS = ("run", "low", "high", "said", "share", "from", "to", "forecasts", "runs", "within")


def select(evaluation: Evaluation) -> pd.DataFrame:
    """One row a bin that holds forecasts; `from` and `to` are the interval of the true share."""
    rows = [
        {
            "run": f"{bin_.low:g} to {bin_.high:g}",
            "low": bin_.low,
            "high": bin_.high,
            "said": bin_.probability,
            "share": bin_.share,
            "from": bin_.interval[0],
            "to": bin_.interval[1],
            "forecasts": bin_.n,
            "runs": bin_.runs,
            "within": bin_.calibrated,
        }
        for bin_ in (evaluation.bins if evaluation.both else ())
        if bin_.n
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(evaluation: Evaluation) -> str:
    """How many bins are calibrated, and how often the two firm forecasts are right."""
    frame = select(evaluation)
    if frame.empty:
        return "Does what is said come true?"
    words = [
        f"“{word}” comes true in {percent(share if word == 'trains' else 1 - share)} of {runs} runs"
        for word, low in (("trains", 0.9), ("fails", 0.0))
        for share, runs in frame.loc[frame["low"] == low, ["share", "runs"]].itertuples(index=False)
    ]
    return f"In {int(frame['within'].sum())} of {len(frame)} bins what is said comes true; {', '.join(words)}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    bins = (
        f"said {short(row['said'])}, true {short(row['share'])} of {row['runs']} runs"
        for row in frame.to_dict("records")
    )
    return f"Said probability against the share that trained: {'; '.join(bins)}."


def draw(frame: pd.DataFrame) -> Figure:
    """One square panel."""
    with style.look():
        if frame.empty:
            return style.empty("There are no forecasts.")
        figure = Figure(figsize=(style.WIDTH, 3.6))
        axes = figure.add_axes((0.07, 0.14, 0.36, 0.82))
        axes.plot([0, 1], [0, 1], ":", color=style.INK, linewidth=0.8, alpha=0.6)
        for row in frame.to_dict("records"):
            hue = style.INK if row["within"] else "#D55E00"
            axes.plot([row["said"]] * 2, [row["from"], row["to"]], color=hue, linewidth=1.2)
            axes.plot([row["said"]], [row["share"]], "o", color=hue, markersize=5)
            right = row["said"] < 0.75
            axes.annotate(
                f"{row['runs']} runs",
                (row["said"], row["share"]),
                xytext=(7 if right else -7, -3),
                textcoords="offset points",
                fontsize=7.5,
                ha="left" if right else "right",
            )
        for edge in (0.1, 0.9):
            axes.axvline(edge, color=style.INK, linewidth=0.6, alpha=0.4)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("said: probability that it trains")
        axes.set_ylabel("true: share that trained")
        return figure


PICTURE: Picture[Evaluation] = Picture(
    name="calibration",
    short="Said and true",
    caption="Reliability of the forecasts without warm-up, pooled over all hold-outs.",
    see="On the diagonal a forecast of 0.8 comes true in eight of ten.",
    read=(
        Note(
            "Bars: 95 % of the true share by the number of runs in the bin. The outer bins are the two firm "
            "words, fails and trains."
        ),
    ),
    columns=COLUMNS,
    value="share",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
