"""‖ΔF‖ against the step, a panel a depth and a curve a method and condition: DeepNet Fig. 3(a).

The same numbers as `update`, arranged as the paper's §2 argues: does warm-up, does a better initialisation keep the
first updates small?
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures import curves, update
from stabkit.figures.comparison import geometric_mean, listed, shown, update_at
from stabkit.figures.curves import Curves
from stabkit.store import Run

NAME = "update_method"
SHORT = "‖ΔF‖ by method"
INDEX: str | None = "step"
VALUE = "update"
CAPTION = "DeepNet Fig. 3(a) (journal version)."
READ = (
    "The accumulated update against the output's own size: at √(2d) it has nothing in common with that of step 0. In "
    "the paper's chain Post-LN without warm-up jumps at once and then stands still; warm-up or a better initialisation "
    "make it climb step by step. Several seeds: the median in a band from the least to the greatest."
)
COLUMNS = update.COLUMNS


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """Every recorded ‖ΔF‖, shallow models first."""
    return curves.by_depth(update.select(runs))


def title(runs: Sequence[Run]) -> str:
    """Who moves farthest in the first update, and how much farther than the least."""
    firsts: dict[tuple[str, str, str], list[float]] = {}
    for each in shown(runs):
        firsts.setdefault((each.run.spec.depth, each.condition, each.label), []).append(update_at(each.run, 1))
    means = {key: value for key, values in firsts.items() if (value := geometric_mean(values)) > 0}
    depths = list(dict.fromkeys(depth for depth, _, _ in means))
    for depth in reversed(depths):
        here = {key: value for key, value in means.items() if key[0] == depth}
        if len(here) > 1:
            most, least = max(here, key=lambda key: here[key]), min(here, key=lambda key: here[key])
            ratio = here[most] / here[least]
            if ratio >= 1.2:
                return (
                    f"At {depth} the first update of {listed(most[2], most[1])} moves the output {ratio:.2g} times as "
                    f"far as that of {listed(least[2], least[1])}"
                )
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
            y="update",
            x_label="step (updates done)",
            y_label="‖ΔF‖, output units",
            none="No run has recorded a model update.",
            middle=pd.Series.median,
            reference=lambda group: (math.sqrt(2 * int(group["width"].iloc[0])), "√(2d): uncorrelated"),
        ),
    )
