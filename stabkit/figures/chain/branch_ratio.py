"""‖γ·G(x)‖/‖ω·x‖ of every decoder sub-layer before training, a panel a depth: what ADMIN sets out to balance.

Mean over the probe batch's tokens (probe `branch_ratio`) at step 0; the frame holds the last recorded step too.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import share
from stabkit.figures.shared.comparison import FACTS, output_stack, shown
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import short
from stabkit.spec import depth_text
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "sublayer", "branch_ratio", "last")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and sub-layer of its decoder (of its encoder where it has no decoder)."""
    rows = []
    for each in shown(runs):
        table = each.run.records.get("branch_ratio")
        if table is None or not len(table.steps):
            continue
        values = table.select(share.output_sites(table.sites))
        facts = each.facts()
        for place, (first, last) in enumerate(zip(values[0].tolist(), values[-1].tolist(), strict=True), 1):
            rows.append({**facts, "sublayer": place, "branch_ratio": first, "last": last})
    return curves.by_depth(pd.DataFrame(rows, columns=list(COLUMNS)))


def title(runs: Sequence[Run]) -> str:
    """How many sub-layers make up the output under the method with most of them and under that with fewest."""
    counts: dict[tuple[tuple[int, int], str], list[float]] = {}
    for each in shown(runs):
        counts.setdefault((each.shape, each.label), []).append(share.effective(each.run))
    means = {key: value for key, values in counts.items() if (value := centre(values)) > 0}
    shapes = list(dict.fromkeys(shape for shape, _ in means))
    here = {label: value for (shape, label), value in means.items() if shapes and shape == shapes[-1]}
    if len(here) < 2:
        return "How long a branch is beside its shortcut"
    most, least = max(here, key=lambda key: here[key]), min(here, key=lambda key: here[key])
    whose = output_stack([shapes[-1][1]])
    return (
        f"At {depth_text(*shapes[-1])}, before training, {short(here[most])} {whose} sub-layers share the branches' "
        f"part of the output under {most}, {short(here[least])} under {least}"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded its branch ratios."
    ends = "; ".join(curves.ends(frame, "sublayer", "branch_ratio"))
    where = f"by {output_stack(frame['decoder_layers'])} sub-layer"
    return f"Branch over shortcut {where} at step 0, logarithmic. At the last sub-layer: {ends}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""
    return curves.draw(
        frame,
        Curves(
            x="sublayer",
            y="branch_ratio",
            x_name=f"{output_stack(frame['decoder_layers'])} sub-layer",
            y_label="‖γ·G(x)‖ / ‖ω·x‖",
            none="No run has recorded its branch ratios.",
            beside="last",
            reference=lambda group: [(1.0, "1: equally long")],
            grouped=True,
            ticks=lambda group: curves.layer_ticks(group, "sublayer"),
        ),
    )


PICTURE: RunPicture = Picture(
    name="branch_ratio",
    short="Branch over shortcut",
    room="chain",
    caption="Very Deep Transformers (ADMIN), §3: the two terms of eq. 2. Decoder, step 0.",
    see=(
        "At 1 a branch is as long as its shortcut: each sub-layer then halves what came before, and only the last few "
        "make up the output."
    ),
    read=(Note("Where the ratio falls like 1/√sub-layer, all have the same say. Thin dotted: at the last step."),),
    columns=COLUMNS,
    index="sublayer",
    value="branch_ratio",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    at_start=True,
)
