"""Perplexity of the training batches and of the validation text, update by update: Very Deep Transformers Fig. 2.

exp(−log p of the right token), without label smoothing: of each training batch as it is learned from (dropout on), and
of the fixed validation batches in eval mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves, Strokes
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results.conditions import FACTS, shown
from stabkit.results.once import once
from stabkit.results.readings import centre, series
from stabkit.results.run import Run
from stabkit.spec import SHORTEST_JUDGED
from stabkit.words import listed, several, short

PAIRS = 4
"""Depths that have two panels each; of more only the validation is drawn, all depths of a method in one panel."""
TRAINING, VALIDATION = "training batches", "validation"
SOURCES = ((TRAINING, "loss", "train@nll"), (VALIDATION, "validation", "nll"))
COLUMNS = (*FACTS, "panel", "step", "perplexity")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run, panel and reading."""
    rows = []
    for placed in shown(runs):
        if placed.run.spec.train.steps < SHORTEST_JUDGED:
            continue
        for panel, probe, site in SOURCES:
            steps, nll = series(placed.run, probe, site)
            with np.errstate(over="ignore"):
                values = np.exp(nll)
            facts = {**placed.facts(), "panel": panel}
            for step, value in zip(steps.tolist(), values.tolist(), strict=True):
                rows.append({**facts, "step": step, "perplexity": value})
    return curves.by_depth(pd.DataFrame(rows, columns=list(COLUMNS)))


def last(frame: pd.DataFrame) -> pd.DataFrame:
    """The validation rows with which every run ends."""
    rows = frame[frame["panel"] == VALIDATION]
    return rows[rows["step"] == rows.groupby("run")["step"].transform("max")]


def title(runs: Sequence[Run]) -> str:
    """The highest and the lowest end at the deepest place where methods can be compared, or the only method's."""
    ends = last(select(runs))
    return _of_methods(ends) or _of_shapes(ends) or _of_one(ends) or "Perplexity, update by update"


def _kept(ends: pd.DataFrame) -> pd.DataFrame:
    """Those that came to a finite end."""
    kept: pd.DataFrame = ends[(ends["outcome"] != "diverged") & np.isfinite(ends["perplexity"])]
    return kept


def _of_methods(ends: pd.DataFrame) -> str:
    """`At 18L-18L DeepNorm's validation perplexity ends at 210, Post-LN's at 390`, where two methods part."""
    for (depth, condition), rows in reversed(list(ends.groupby(["depth", "condition"], sort=False))):
        by = _kept(rows).groupby("label", sort=False)["perplexity"].agg(centre)
        lost = [str(label) for label in rows["label"].unique() if label not in by.index]
        if by.empty or rows["label"].nunique() < 2:
            continue
        best, worst = str(by.idxmin()), str(by.idxmax())
        other = (
            f"{several(lost, len(by) + len(lost))} diverged" if lost else f"{worst}'s at {short(float(by.max()), 3)}"
        )
        if lost or best != worst:
            where = listed(depth, condition)
            return f"At {where} {best}'s validation perplexity ends at {short(float(by.min()), 3)}, {other}"
    return ""


def _of_shapes(ends: pd.DataFrame) -> str:
    """`ADMIN: validation perplexity ends lowest at 6L-6L (210), highest at 12L-60L (390)`: of the condition that has
    the most shapes. Shapes that diverged are named instead of the highest."""
    if ends["label"].nunique() != 1:
        return ""
    groups = list(ends.groupby("condition", sort=False))
    condition, group = max(groups, key=lambda one: one[1]["depth"].nunique())
    by = _kept(group).groupby("depth", sort=False)["perplexity"].agg(centre)
    lost = list(dict.fromkeys(group.loc[group["outcome"] == "diverged", "depth"].astype(str)))
    if by.empty or (len(by) < 2 and not lost) or group["depth"].nunique() < 2:
        return ""
    least, most = str(by.idxmin()), str(by.idxmax())
    name = listed(ends["label"].iloc[0], str(condition))
    other = f"highest at {most} ({short(by[most], 3)})"
    if lost:
        some = " in a run" if set(lost) & set(by.index) else ""
        other = f"{several(lost, group['depth'].nunique(), 'depths')} diverged{some}"
    return f"{name}: validation perplexity ends lowest at {least} ({short(by[least], 3)}), {other}"


def _of_one(ends: pd.DataFrame) -> str:
    """`DeepNorm's validation perplexity ends at 210 (18L-18L)`, of the last place."""
    if ends.empty:
        return ""
    (depth, condition), group = list(ends.groupby(["depth", "condition"], sort=False))[-1]
    if len(_kept(group)) < len(group):
        return ""
    value = short(centre(group["perplexity"]), 3)
    return f"{group['label'].iloc[0]}'s validation perplexity ends at {value} ({listed(depth, condition)})"


def alt(frame: pd.DataFrame) -> str:
    ends = "; ".join(curves.ends(last(frame), "step", "perplexity"))
    return (
        "Perplexity against the step, logarithmic: training batches and validation, two panels per depth; with more "
        f"than {PAIRS} depths only validation, one panel per method. Validation at the end: {ends}."
    )


def draw(frame: pd.DataFrame) -> Figure | None:
    """Two panels a depth; a panel a method, of validation, where there are many depths."""
    if frame["depth"].nunique() > PAIRS:
        rows = frame[frame["panel"] == VALIDATION]
        panels = [listed(label, condition) for label, condition in zip(rows["label"], rows["condition"], strict=True)]
        return _curves(rows.assign(panel=panels), "validation perplexity", 2, 4.2, strokes=curves.depths)
    kinds = [name for name, _, _ in SOURCES]
    of_depths = [rows for _, rows in frame.groupby("depth", sort=False)]
    placed = pd.concat([rows[rows["panel"] == kind] for rows in of_depths for kind in kinds])
    many = frame["depth"].nunique() > 1
    names = placed["depth"] + ", " + placed["panel"] if many else placed["panel"]
    return _curves(placed.assign(panel=names), "perplexity", 4 if many else 2, 2.7 if many else 3.2)


def _curves(
    frame: pd.DataFrame,
    y_label: str,
    columns: int,
    height: float,
    strokes: Callable[[pd.DataFrame], Strokes] = curves.conditions,
) -> Figure | None:
    return curves.draw(
        frame,
        Curves(
            x="step",
            y="perplexity",
            x_name="step",
            x_note=" (updates done)",
            y_label=y_label,
            strokes=strokes,
            columns=columns,
            height=height,
        ),
    )


PICTURE: RunPicture = Picture(
    name="perplexity",
    short="Perplexity",
    room="methods",
    caption="Very Deep Transformers Fig. 2(a), training perplexity, and Fig. 2(b), validation perplexity.",
    see=("The effective number of words the model chooses among; without label smoothing, curve not smoothed."),
    read=(
        Note(
            "Several seeds: a median with a band from lowest to highest. A run that diverged ends in a ✕ at its "
            "last finite value.",
            ("diverged", "band"),
        ),
    ),
    columns=COLUMNS,
    value="perplexity",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run is long enough for a perplexity curve.",
    optional=True,
)
