"""The curves of runs against the layer or the depth, one row each: DeepNet Fig. 2(a), 2(b) and 3(d).

Gradients are ‖∂L/∂θ_layer‖₂ over all parameters of a layer in the training step (probe `grad_norm`). A row's title, a
finding, and what its curves come to are in `findings.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from stabkit.figures.chain import findings
from stabkit.figures.curve_picture import Rows, curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, always
from stabkit.results.chain import LATER, START, WHENS, WINDOW
from stabkit.results.conditions import Shown, output_layers, output_stack

NO_GRADIENTS = "No run has recorded the gradients of its layers."


def _last_gradients(placed: Shown) -> Rows:
    """A row a layer of the output's stack, at the last recorded step with finite gradients, for the paper shows the
    vanishing *after* the explosion; beside it the mean over all such steps from 1 on. None of a run without one."""
    table, sites = placed.run.records.get("grad_norm"), output_layers(placed.run.spec)
    if table is None or not set(sites) <= set(table.sites):
        return
    values = table.select(sites)
    finite = np.isfinite(values).all(axis=1)
    if not finite.any():
        return
    last = int(np.flatnonzero(finite)[-1])
    window = finite & (table.steps >= 1)
    means = values[window].mean(axis=0) if window.any() else values[last]
    for layer, (norm, mean) in enumerate(zip(values[last], means, strict=True), 1):
        yield {"step": int(table.steps[last]), "layer": layer, "grad_norm": float(norm), "window_mean": float(mean)}


def _over_layers(frame: pd.DataFrame, beside: str = "") -> Curves:
    return Curves(
        x="layer",
        y="grad_norm",
        x_name=f"{output_stack(frame['decoder_layers'])} layer",
        y_label="‖∂L/∂θ‖ of the layer",
        ticks=curves.layer_ticks,
        beside=beside,
    )


def _at_their_steps(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel a depth, which names the steps of its curves."""
    when = {}
    for depth, steps in frame.groupby("depth", sort=False)["step"]:
        first, last = steps.min(), steps.max()
        when[depth] = f"step {first}" if first == last else f"steps {first}–{last}"
    placed = curves.by_depth(frame)
    return placed.assign(panel=placed["depth"] + ", " + placed["depth"].map(when).astype(str))


GRAD_NORM = curves_of(
    name="grad_norm",
    short="Gradient by layer",
    room="chain",
    caption="DeepNet Fig. 3(d) (journal version).",
    see="level, every layer learns; if it falls by decades to the left, the lower layers do not",
    here=findings.gradient,
    read=(
        Note("Layer 1 is the lowest."),
        Note(
            "Several seeds: median in a band from the lowest to the highest; thin dotted line: the mean over all "
            "recorded steps.",
            ("band",),
        ),
        Note("A layer whose gradient is exactly 0 has no point."),
        Note("✕: diverged, at the last step with finite gradients.", ("diverged",)),
    ),
    index="layer",
    value="grad_norm",
    columns=("step", "layer", "grad_norm", "window_mean"),
    rows=_last_gradients,
    ordered=lambda frame: frame,
    arranged=_at_their_steps,
    title=findings.least_gradient,
    alt=lambda frame: (
        f"Gradient norm by {output_stack(frame['decoder_layers'])} layer, logarithmic. "
        f"Lowest over top layer: {findings.gradient_ratios(frame)}."
    ),
    none=NO_GRADIENTS,
    what=lambda frame: _over_layers(frame, beside="window_mean"),
)


def _first_gradients(placed: Shown) -> Rows:
    """A row a layer of the output's stack at step 0, on the first training batch of its seed."""
    table, sites = placed.run.records.get("grad_norm"), output_layers(placed.run.spec)
    if table is not None and set(sites) <= set(table.sites) and len(table.steps):
        for layer, norm in enumerate(table.select(sites)[0].tolist(), 1):
            yield {"layer": layer, "grad_norm": norm}


GRAD_START = curves_of(
    name="grad_start",
    short="Gradient before training",
    room="chain",
    caption="DeepNet Fig. 2(a) (journal version), all decoder layers.",
    see="level before any update; a fall to the left comes from wiring and initialisation alone",
    here=findings.gradient,
    read=(Note("One training batch per seed; several seeds: median in a band.", ("band",)),),
    index="layer",
    value="grad_norm",
    at_start=True,
    columns=("layer", "grad_norm"),
    rows=_first_gradients,
    arranged=lambda frame: frame.assign(
        grad_norm=frame["grad_norm"].where(np.isfinite(frame["grad_norm"].astype(float)))
    ),
    title=findings.least_first_gradient,
    alt=lambda frame: (
        f"Gradient norm by {output_stack(frame['decoder_layers'])} layer at step 0, logarithmic. "
        f"Lowest over top layer: {findings.gradient_ratios(frame)}."
    ),
    none=NO_GRADIENTS,
    what=_over_layers,
)


def _top_gradients(placed: Shown) -> Rows:
    """Two rows: the top layer's at step 0, and its mean over the window of a run without warm-up that reaches its end,
    where the paper's order of Post-LN and Post-LN-init shows (at the first updates it is the reverse)."""
    table, sites = placed.run.records.get("grad_norm"), output_layers(placed.run.spec)
    if table is None or sites[-1] not in table.sites or not len(table.steps):
        return
    if placed.run.spec.model.encoder_layers not in (0, len(sites)):
        return  # unequal stacks of one decoder depth are not one curve
    norms = table.at(sites[-1])
    yield {"layers": len(sites), "when": START, "grad_norm": float(norms[0])}
    inside = (table.steps >= WINDOW[0]) & (table.steps <= WINDOW[1])
    if placed.run.spec.train.warmup == 0 and table.steps[-1] >= WINDOW[1]:
        mean = float(norms[inside].mean()) if np.isfinite(norms[inside]).all() else math.nan
        yield {"layers": len(sites), "when": LATER, "grad_norm": mean}


def _in_turn(frame: pd.DataFrame) -> pd.DataFrame:
    """Step 0 first."""
    return frame.sort_values("when", key=lambda column: column.map(WHENS.index), kind="stable")


GRAD_LAST = curves_of(
    name="grad_last",
    short="Gradient of the last layer",
    room="chain",
    caption="DeepNet Fig. 2(b) (journal version).",
    see="the same at every depth",
    here=findings.top,
    read=always(
        "If exploding gradients caused the instability, the unstable method's gradient would be large; the "
        "paper finds Post-LN-init's larger. Stacks of equal depth, or one stack."
    ),
    value="grad_norm",
    columns=("layers", "when", "grad_norm"),
    rows=_top_gradients,
    ordered=_in_turn,
    arranged=lambda frame: _in_turn(frame.sort_values("layers", kind="stable")).assign(panel=lambda rows: rows["when"]),
    title=findings.top_gradients,
    alt=lambda frame: (
        "Gradient norm of the last layer against depth, logarithmic. "
        + ". ".join(
            f"{when}: {curves.ends(rows, 'layers', 'grad_norm')}"
            for when in reversed(WHENS)
            if len(rows := frame[frame["when"] == when])
        )
        + "."
    ),
    none=NO_GRADIENTS,
    what=lambda frame: Curves(
        x="layers",
        y="grad_norm",
        x_name="layers of the stack",
        y_label="‖∂L/∂θ‖ of the last layer",
        ticks=lambda group: sorted(group["layers"].unique()),
        columns=2,
        height=3.0,
    ),
)
