"""‖ΔF‖ against the step, a panel a depth and a curve a method and condition: DeepNet Fig. 3(a).

The same numbers as `update`, arranged as the paper's §2 argues: does warm-up, does a better initialisation keep the
first updates small?
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.chain import update
from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import points
from stabkit.figures.shared.comparison import Condition, shown
from stabkit.figures.shared.numbers import centre, update_at
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import short
from stabkit.storage.store import Run

COLUMNS = update.COLUMNS


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """Every recorded ‖ΔF‖, shallow models first."""
    return curves.by_depth(update.select(runs))


def title(runs: Sequence[Run]) -> str:
    """Who moves farthest in the first update, and how much farther than the least: under one condition at one depth."""
    cells: dict[tuple[str, Condition], dict[str, dict[int, float]]] = {}
    for each in shown(runs):
        if each.run.spec.recipe == "paper":
            continue  # of different rates: no comparison
        by = cells.setdefault((each.run.spec.depth, each.condition), {})
        by.setdefault(each.label, {})[each.run.spec.seed] = update_at(each.run, 1)
    depths = list(dict.fromkeys(depth for depth, _ in cells))
    for depth, condition in sorted(cells, key=lambda cell: -depths.index(cell[0])):  # deep first, no warm-up first
        by = cells[depth, condition]
        means = {label: mean for label, values in by.items() if (mean := centre(values.values())) > 0}
        if len(means) > 1:
            most, least = max(means, key=lambda label: means[label]), min(means, key=lambda label: means[label])
            pairs = [(value, by[least].get(seed, 0.0)) for seed, value in by[most].items()]
            ratio = centre(ours / theirs for ours, theirs in pairs if theirs > 0)
            where = f"{depth} ({condition})" if condition else depth
            if ratio >= 1.2:
                return f"At {where} {most}'s first update moves the output {short(ratio)} times as far as {least}'s"
    return "How far the output moves, method by method"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded a model update."
    ends = "; ".join(curves.ends(frame, "step", "update"))
    return f"Line chart of ‖ΔF‖ against the step, one panel a depth. At the end: {ends}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""
    return curves.draw(
        frame,
        Curves(
            x="step",
            across="decades",
            y="update",
            x_name="step",
            x_note=" (updates done)",
            y_label="‖ΔF‖, output units",
            none="No run has recorded a model update.",
            middle=points.median,
            reference=lambda group: curves.lines(group, "width", "√(2d): uncorrelated", lambda d: math.sqrt(2 * d)),
        ),
    )


PICTURE: RunPicture = Picture(
    name="update_method",
    short="‖ΔF‖ by method",
    room="chain",
    caption="DeepNet Fig. 3(a) (journal version).",
    see=(
        "The accumulated update against the output's own size: at √(2d) an output that ends in a norm has nothing in "
        "common with that of step 0 (without norms there is no such bound)."
    ),
    read=(
        Note(
            "In the paper's chain Post-LN without warm-up jumps at once and then stands still; warm-up or a better "
            "initialisation make it climb step by step."
        ),
        Note("Several seeds: the median in a band from the least to the greatest.", ("band",)),
    ),
    columns=COLUMNS,
    index="step",
    value="update",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
