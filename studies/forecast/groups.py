"""Every group held out in turn: the scores of runs of whose kind the fit has seen none."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from stabkit import methods
from stabkit.figures.drawing import style
from stabkit.figures.picture import Note, Picture
from stabkit.words import short
from studies.forecast.evaluation import BOTH, Evaluation

COLUMNS = ("run", "axis", "group", "n", "trained", "auc", "low", "high", "brier", "skill", "decided", "right")


def select(evaluation: Evaluation) -> pd.DataFrame:
    """One row a group."""
    rows = []
    for group in evaluation.groups:
        scores = evaluation.of_group(group)
        rows.append(
            {
                "run": f"{group.axis} {group.value}",
                "axis": group.axis,
                "group": name(group.axis, group.value),
                "n": scores.n,
                "trained": scores.trained,
                "auc": scores.auc,
                "low": scores.auc_interval[0],
                "high": scores.auc_interval[1],
                "brier": scores.brier,
                "skill": scores.skill,
                "decided": scores.decided,
                "right": scores.right,
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def name(axis: str, value: Any) -> str:
    """`DeepNorm`, `18 layers`, `a rate of 0.03`, `text`."""
    if axis == "method":
        return methods.label(str(value), {})
    return {"depth": f"{value} layers", "rate": f"a rate of {value:g}" if axis == "rate" else ""}.get(axis, str(value))


def drawn(frame: pd.DataFrame) -> pd.DataFrame:
    """The groups with enough of both outcomes, the worst last."""
    both = frame[["trained", "n"]].apply(lambda row: min(row["trained"], row["n"] - row["trained"]), axis=1)
    return frame[both >= BOTH].sort_values("auc", ascending=False) if len(frame) else frame


def title(evaluation: Evaluation) -> str:
    """The worst group."""
    if evaluation.worst is None:
        return "How well a group is told that the fit has not seen"
    group, scores = evaluation.worst
    which, auc, skill = name(group.axis, group.value), short(scores.auc), short(scores.skill)
    return f"Told worst, where the fit has not seen it: {which}, AUC {auc}, Brier skill {skill}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    parts = [
        f"{row['group']} {short(row['auc'])}, skill {short(row['skill'])}" for row in drawn(frame).to_dict("records")
    ]
    return f"AUC of each group held out: {'; '.join(parts)}." if parts else "No group has enough runs of both outcomes."


def draw(frame: pd.DataFrame) -> Figure:
    """A line a group."""
    with style.look():
        some = drawn(frame)
        if some.empty:
            return style.empty("No group has enough runs of both outcomes yet.")
        figure = Figure(figsize=(style.WIDTH, 0.9 + 0.24 * len(some)))
        tall = 0.9 + 0.24 * len(some)
        axes = figure.add_axes((0.2, 0.55 / tall, 0.5, (tall - 0.7) / tall))
        for height, row in enumerate(some.to_dict("records")):
            low, high = (row[key] if math.isfinite(row[key]) else row["auc"] for key in ("low", "high"))
            axes.plot([low, high], [height, height], color=style.INK, linewidth=1.2)
            axes.plot([row["auc"]], [height], "o", color=style.INK, markersize=4.5)
            text = f"{short(row['auc'])}   skill {short(row['skill'])}   {row['trained']} of {row['n']} train"
            axes.text(1.02, height, text, va="center", fontsize=8, transform=axes.get_yaxis_transform())
        axes.set_yticks(range(len(some)), list(some["group"]))
        axes.set_ylim(len(some) - 0.5, -0.5)
        axes.axvline(0.5, linestyle=":", color=style.INK, linewidth=0.8, alpha=0.6)
        axes.set_xlim(min(0.4, float(some["low"].min())), 1.0)
        axes.set_xlabel("AUC, the group held out (0.5: a guess)")
        return figure


PICTURE: Picture[Evaluation] = Picture(
    name="forecast_groups",
    short="Held-out groups",
    caption="Each method, depth, task, architecture and the two highest rates held out in turn; runs without warm-up.",
    see="A group's own runs, forecast by a fit on all the others.",
    read=(
        Note(
            f"Bars: 95 % (Hanley and McNeil). Drawn are groups with {BOTH} runs or more that train and as many that do "
            "not; the table has all. Beside each: its Brier skill, 1 where every forecast is right and sure, 0 where "
            "the group's base rate does as well."
        ),
    ),
    columns=COLUMNS,
    value="auc",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
