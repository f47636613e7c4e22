"""Every group held out in turn: how well runs are told of which the fit has seen no like."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from stabkit import methods
from stabkit.figures.drawing import style
from stabkit.figures.shared.words import short
from stabkit.results.forecast.holdouts import Group
from stabkit.results.forecast.judged import BOTH, Judged

NAME = "forecast_groups"
SHORT = "Held-out groups"
INDEX: str | None = None
VALUE = "auc"
CAPTION = "Each method, depth, task, architecture and the two highest rates held out in turn; runs without warm-up."
READ = (
    f"A group's own runs, forecast by a fit on all the others. Bars: 95 % (Hanley and McNeil). Drawn are groups with "
    f"{BOTH} runs or more that train and as many that do not; the table has all. Beside each: its Brier skill, 1 where "
    "every forecast is right and sure, 0 where the group's base rate does as well."
)
COLUMNS = ("run", "axis", "group", "n", "trained", "auc", "low", "high", "brier", "skill", "decided", "right")


def select(judged: Judged) -> pd.DataFrame:
    """One row a group."""
    rows = []
    for group in judged.groups:
        own = judged.of_group(group)
        rows.append(
            {
                "run": f"{group.axis} {group.value}",
                "axis": group.axis,
                "group": name(group.axis, group.value),
                "n": own.n,
                "trained": own.trained,
                "auc": own.auc,
                "low": own.auc_interval[0],
                "high": own.auc_interval[1],
                "brier": own.brier,
                "skill": own.skill,
                "decided": own.decided,
                "right": own.right,
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


def title(judged: Judged) -> str:
    """The worst group."""
    if judged.worst is None:
        return "How well a group is told that the fit has not seen"
    group, own = judged.worst
    return sentence(group, own.auc, own.skill)


def sentence(group: Group, auc: float, skill: float) -> str:
    """The worst group in words."""
    which = name(group.axis, group.value)
    return f"Told worst, where the fit has not seen it: {which}, AUC {short(auc)}, Brier skill {short(skill)}"


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
        for place, row in enumerate(some.to_dict("records")):
            low, high = (row[key] if math.isfinite(row[key]) else row["auc"] for key in ("low", "high"))
            axes.plot([low, high], [place, place], color=style.INK, linewidth=1.2)
            axes.plot([row["auc"]], [place], "o", color=style.INK, markersize=4.5)
            told = f"{short(row['auc'])}   skill {short(row['skill'])}   {row['trained']} of {row['n']} train"
            axes.text(1.02, place, told, va="center", fontsize=8, transform=axes.get_yaxis_transform())
        axes.set_yticks(range(len(some)), list(some["group"]))
        axes.set_ylim(len(some) - 0.5, -0.5)
        axes.axvline(0.5, linestyle=":", color=style.INK, linewidth=0.8, alpha=0.6)
        axes.set_xlim(min(0.4, float(some["low"].min())), 1.0)
        axes.set_xlabel("AUC, the group held out (0.5: a guess)")
        return figure
