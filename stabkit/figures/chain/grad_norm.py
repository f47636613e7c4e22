"""The gradient of every layer of the output's stack at the end of the early window: DeepNet Fig. 3(d).

‖∂L/∂θ_layer‖₂ over all parameters of a decoder layer, in the training step (probe `grad_norm`, sites `decoder.1` …
`decoder.M`). The paper shows the vanishing *after* the explosion, so the step is the last recorded one at which every
layer's gradient is finite; beside it the mean over all recorded steps from 1 on at which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS, Shown, output_layers, output_stack, shown
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

NONE = "No run has recorded the gradients of its layers."
COLUMNS = (*FACTS, "step", "layer", "grad_norm", "window_mean")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and layer of its output's stack. Runs never with finite gradients have none."""
    rows = []
    for each in shown(runs):
        rows += _layers(each)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _layers(each: Shown) -> list[dict[str, object]]:
    table = each.run.records.get("grad_norm")
    sites = output_layers(each.run.spec)
    if table is None or not set(sites) <= set(table.sites):
        return []
    values = table.select(sites)
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        return []
    last = int(np.flatnonzero(finite)[-1])
    window = finite & (table.steps >= 1)
    means = values[window].mean(axis=0) if window.any() else values[last]
    facts, step = each.facts(), int(table.steps[last])
    return [
        {**facts, "step": step, "layer": layer, "grad_norm": float(norm), "window_mean": float(mean)}
        for layer, (norm, mean) in enumerate(zip(values[last], means, strict=True), 1)
    ]


CURVE = ["label", "condition", "depth", "decoder_layers", "layers"]
"""The columns that tell curves apart."""


def ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """The first layer's gradient over the last's: median over the seeds of each curve.

    0 where a seed's first layer receives exactly nothing (float32 ends at 1e-45). Runs that diverged have no say: their
    last finite gradients are of another step.
    """
    ends = (
        frame[frame["outcome"] != "diverged"]
        .assign(layers=frame.groupby("run")["layer"].transform("max"))
        .groupby([*CURVE, "run"], sort=False)["grad_norm"]
        .agg(["first", "last"])
    )
    ratio = (ends["first"] / ends["last"].where(ends["last"] > 0)).rename("ratio").reset_index()
    return ratio.groupby(CURVE, sort=False)["ratio"].agg(_mean).reset_index()


def _mean(ratios: pd.Series[float]) -> float:
    return 0.0 if (ratios == 0).any() else centre(ratios)


def title(runs: Sequence[Run]) -> str:
    """The smallest share of the top layer's gradient that arrives at the lowest, when it is a tenth or less."""
    frame = select(runs)
    share = ratios(frame)
    share = share[(share["layers"] > 1) & (share["ratio"] <= 0.1)]
    if share.empty:
        return f"How much gradient each {output_stack(frame['decoder_layers'])} layer receives"
    steps = sorted(set(frame["step"]))
    when = f"At step {steps[0]}: " if len(steps) == 1 else ""
    return when + receives(share.sort_values("ratio", kind="stable").iloc[0])


def receives(least: Any) -> str:
    """One row of `ratios` in words."""
    amount = f"{short(least.ratio, 1)} of" if least.ratio > 0 else "nothing of"
    where = f"{least.depth} ({least.condition})" if least.condition else least.depth
    stack = output_stack([least.decoder_layers])
    return f"{least.label}'s lowest {stack} layer receives {amount} the top layer's gradient at {where}"


def listing(frame: pd.DataFrame) -> str:
    """`Post-LN 18L-18L 4·10⁻⁴; …`: the ratio of every curve, sixteen at most."""
    parts = [
        f"{listed(label, condition, depth)} {short(ratio, 1)}"
        for label, condition, depth, _, _, ratio in ratios(frame).itertuples(index=False)
    ]
    return "; ".join(parts[:16]) + (f" and {len(parts) - 16} more" if len(parts) > 16 else "")


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return NONE
    return (
        f"Gradient norm by {output_stack(frame['decoder_layers'])} layer, logarithmic. "
        f"Lowest over top layer: {listing(frame)}."
    )


def what(frame: pd.DataFrame) -> Curves:
    """Curves over the layers."""
    return Curves(
        x="layer",
        y="grad_norm",
        x_name=f"{output_stack(frame['decoder_layers'])} layer",
        y_label="‖∂L/∂θ‖ of the layer",
        none=NONE,
        ticks=curves.layer_ticks,
    )


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth, methods by colour, one y scale."""
    when = {}
    for depth, steps in frame.groupby("depth", sort=False)["step"]:
        first, last = steps.min(), steps.max()
        when[depth] = f"step {first}" if first == last else f"steps {first}–{last}"
    ordered = curves.by_depth(frame)
    return curves.draw(
        ordered.assign(panel=ordered["depth"] + ", " + ordered["depth"].map(when).astype(str)),
        replace(what(frame), beside="window_mean"),
    )


PICTURE: RunPicture = Picture(
    name="grad_norm",
    short="Gradient by layer",
    room="chain",
    caption="DeepNet Fig. 3(d) (journal version).",
    see=(
        "A curve that falls to the left by decades is a decoder whose lower layers receive almost no gradient: they do "
        "not learn."
    ),
    read=(
        Note("Layer 1 is the lowest."),
        Note(
            "Several seeds: median in a band from the least to the greatest; thin dotted line: the mean over all "
            "recorded steps.",
            ("band",),
        ),
        Note("A layer whose gradient is exactly 0 has no point."),
        Note("✕: diverged, at the last step with finite gradients.", ("diverged",)),
    ),
    columns=COLUMNS,
    index="layer",
    value="grad_norm",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
