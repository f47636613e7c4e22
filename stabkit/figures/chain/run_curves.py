"""The pictures that draw a curve a run against the step, the layer or the depth: DeepNet Fig. 2 and 3, one row each.

A row holds its texts, what a run contributes to the frame, and how the frame is drawn; its title, a finding, is in
`run_findings.py`. Norms are means over tokens of ‖ω·x + γ·G(x)‖₂ (probe `ln_input`), gradients ‖∂L/∂θ_layer‖₂ over all
parameters of a layer in the training step (probe `grad_norm`), ratios ‖γ·G(x)‖/‖ω·x‖ (probe `branch_ratio`). The rows
stand in one file, above 400 lines, because they are read side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.chain import run_findings, run_spans, update
from stabkit.figures.chain.run_findings import LATER, ORIGINS, START, WHENS, WINDOW
from stabkit.figures.drawing import curves, style
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import points, share
from stabkit.results.conditions import FACTS, Shown, norm_after_sum, output_layers, output_stack, shown
from stabkit.results.once import once
from stabkit.results.run import Run

Rows = Iterable[dict[str, Any]]


def _row(
    *,
    name: str,
    short: str,
    caption: str,
    see: str,
    here: Callable[[pd.DataFrame], str],
    read: tuple[Note, ...],
    index: str | None = None,
    value: str,
    at_start: bool = False,
    columns: tuple[str, ...],
    rows: Callable[[Shown], Rows],
    title: Callable[[Sequence[Run], pd.DataFrame], str],
    alt: Callable[[pd.DataFrame], str],
    none: str,
    what: Callable[[pd.DataFrame], Curves],
    of: Callable[[Sequence[Run]], Sequence[Run]] = lambda runs: runs,
    ordered: Callable[[pd.DataFrame], pd.DataFrame] = curves.by_depth,
    arranged: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    too_short: Callable[[pd.DataFrame], str] = lambda frame: "",
) -> RunPicture:
    """A picture of curves. Its frame has FACTS and `columns`, filled by the `rows` of each run `of` those there are,
    and is `ordered`; it is drawn as `arranged`, unless it is `too_short` for a curve."""

    @once
    def select(runs: Sequence[Run]) -> pd.DataFrame:
        table = [{**placed.facts(), **row} for placed in shown(of(runs)) for row in rows(placed)]
        return ordered(pd.DataFrame(table, columns=[*FACTS, *columns]))

    def draw(frame: pd.DataFrame) -> Figure | None:
        if reason := too_short(frame):
            return style.empty(reason)
        return curves.draw(arranged(frame), what(frame))

    return Picture(
        name=name,
        short=short,
        room="chain",
        caption=caption,
        see=see,
        here=here,
        read=read,
        columns=(*FACTS, *columns),
        index=index,
        value=value,
        select=select,
        draw=draw,
        title=lambda runs: title(runs, select(runs)),
        alt=alt,
        none=none,
        at_start=at_start,
    )


def _ends(frame: pd.DataFrame, x: str, y: str) -> str:
    return "; ".join(curves.ends(frame, x, y))


NO_UPDATE = "No run has recorded a model update."
NO_NORMS = "No run has recorded the inputs of its norms."
NO_GRADIENTS = "No run has recorded the gradients of its layers."
by_step = partial(Curves, x="step", x_name="step", x_note=" (updates done)", middle=points.median)


UPDATE_METHOD = _row(
    name="update_method",
    short="‖ΔF‖ by method",
    caption="DeepNet Fig. 3(a) (journal version).",
    see="climbs step by step",
    here=run_spans.update,
    read=(
        Note(
            "The accumulated update against the output's own size. At √(2d) an output that ends in a norm has nothing "
            "in common with that of step 0 (without norms there is no such bound). In the paper's chain, Post-LN "
            "without warm-up jumps at once and then stays there; warm-up or a better "
            "initialisation makes it climb step by step."
        ),
        Note("Several seeds: the median in a band from the lowest to the highest.", ("band",)),
    ),
    index="step",
    value="update",
    columns=update.READINGS,
    rows=update.readings,
    title=run_findings.first_update,
    alt=lambda frame: (
        f"Line chart of ‖ΔF‖ against the step, one panel per depth. At the end: {_ends(frame, 'step', 'update')}."
    ),
    none=NO_UPDATE,
    what=lambda frame: by_step(
        across="decades",
        y="update",
        y_label="‖ΔF‖, output units",
        reference=lambda group: curves.lines(group, "width", "√(2d): uncorrelated", lambda d: math.sqrt(2 * d)),
    ),
)


def norm_inputs(quantity: str, column: str) -> Callable[[Shown], Rows]:
    """A row an origin and recorded step: the mean, as `column`, over the sites of both stacks whose names end in
    `quantity`, and over those of each. "": the norms; "@omega": those over ω√d. Attention: self and cross, as in the
    paper."""

    def rows(placed: Shown) -> Rows:
        table = placed.run.records.get("ln_input")
        for origin, kinds in ORIGINS.items() if table is not None else ():
            ends = tuple(f".{kind}{quantity}" for kind in kinds)
            sites = [site for site in table.sites if site.endswith(ends)] if table is not None else []
            if table is None or not sites:
                continue
            values = table.select(sites)
            stacks = {}
            for stack in ("encoder", "decoder"):
                of_stack = [site for site in sites if site.startswith(stack)]
                stacks[stack] = table.select(of_stack).mean(axis=1) if of_stack else None
            for i, step in enumerate(table.steps.tolist()):
                means = {stack: math.nan if mean is None else float(mean[i]) for stack, mean in stacks.items()}
                width = placed.run.spec.model.hidden
                yield {"width": width, "origin": origin, "step": step, column: float(values[i].mean()), **means}

    return rows


def _of_origins(frame: pd.DataFrame) -> pd.DataFrame:
    """Two rows of panels: after the feed-forward and after attention."""
    placed = pd.concat([curves.by_depth(rows) for _, rows in run_findings.by_origin(frame)])
    return placed.assign(panel=placed["depth"] + ", after " + placed["origin"])


def _columns_of_depths(frame: pd.DataFrame) -> int:
    depths = frame["depth"].nunique()
    return min(4, depths) if depths > 1 else 2


LN_INPUT = _row(
    name="ln_input",
    short="LN input",
    caption="DeepNet Fig. 3(b) and 3(c) (journal version).",
    see="level lines, the inputs of the norms keep their initial size",
    here=run_spans.ln_input,
    read=(
        Note(
            "First the inputs of norms after a feed-forward, then after attention. √d is the length of a normalised "
            "state. When a branch adds nothing, the value is ω√d by construction: DeepNorm and ADMIN lie higher "
            "than Post-LN without being in danger; the next figure divides by ω√d. For methods with the norm "
            "elsewhere, or without: the residual stream after the sub-layer, which grows with every added "
            "branch."
        ),
    ),
    value="ln_input",
    columns=("width", "origin", "step", "ln_input", "encoder", "decoder"),
    rows=norm_inputs("", "ln_input"),
    ordered=lambda frame: frame,
    arranged=_of_origins,
    title=run_findings.grown_inputs,
    alt=lambda frame: (
        "Line charts of the norm of LN inputs against the step, one panel per depth. At the end, "
        + ". ".join(
            f"after {origin}: {_ends(rows, 'step', 'ln_input')}" for origin, rows in run_findings.by_origin(frame)
        )
        + "."
    ),
    none=NO_NORMS,
    what=lambda frame: by_step(
        across="decades",
        y="ln_input",
        y_label="‖LN input‖, mean over tokens",
        reference=lambda group: curves.lines(group, "width", "√d", math.sqrt),
        columns=_columns_of_depths(frame),
    ),
)


LN_INPUT_OMEGA = _row(  # 1: the branch adds nothing; √2: branch and shortcut are equally long and uncorrelated
    name="ln_input_omega",
    short="LN input over ω√d",
    caption="DeepNet Fig. 3(b) and 3(c) (journal version), each sub-layer's input divided by ω√d.",
    see="level lines near 1, the branch adds little to its own shortcut",
    here=run_spans.lengthened,
    read=(Note("The gradient through a norm shrinks as its input grows."),),
    value="relative",
    columns=("width", "origin", "step", "relative", "encoder", "decoder"),
    of=lambda runs: [run for run in runs if norm_after_sum(run.spec)],  # else the shortcut is a stream that has grown
    rows=norm_inputs("@omega", "relative"),
    ordered=lambda frame: frame,
    arranged=_of_origins,
    title=run_findings.lengthened_inputs,
    alt=lambda frame: (
        "Line charts of LN inputs over ω√d against the step, one panel per depth. "
        f"At the end: {_ends(frame, 'step', 'relative')}."
    ),
    none=NO_NORMS,
    what=lambda frame: by_step(
        across="decades",
        y="relative",
        y_label="‖LN input‖ / ω√d",
        reference=lambda group: [(math.sqrt(2), "√2: branch as long as shortcut")],
        log_y=False,
        columns=_columns_of_depths(frame),
    ),
)


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


GRAD_NORM = _row(
    name="grad_norm",
    short="Gradient by layer",
    caption="DeepNet Fig. 3(d) (journal version).",
    see="level, every layer learns; if it falls by decades to the left, the lower layers do not",
    here=run_spans.gradient,
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
    title=run_findings.least_gradient,
    alt=lambda frame: (
        f"Gradient norm by {output_stack(frame['decoder_layers'])} layer, logarithmic. "
        f"Lowest over top layer: {run_findings.gradient_ratios(frame)}."
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


GRAD_START = _row(
    name="grad_start",
    short="Gradient before training",
    caption="DeepNet Fig. 2(a) (journal version), all decoder layers.",
    see="level before any update; a fall to the left comes from wiring and initialisation alone",
    here=run_spans.gradient,
    read=(Note("One training batch per seed; several seeds: median in a band.", ("band",)),),
    index="layer",
    value="grad_norm",
    at_start=True,
    columns=("layer", "grad_norm"),
    rows=_first_gradients,
    arranged=lambda frame: frame.assign(
        grad_norm=frame["grad_norm"].where(np.isfinite(frame["grad_norm"].astype(float)))
    ),
    title=run_findings.least_first_gradient,
    alt=lambda frame: (
        f"Gradient norm by {output_stack(frame['decoder_layers'])} layer at step 0, logarithmic. "
        f"Lowest over top layer: {run_findings.gradient_ratios(frame)}."
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


def _by_window(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel for step 0 and one for the window of steps."""
    return _in_turn(frame.sort_values("layers", kind="stable")).assign(panel=lambda rows: rows["when"])


def _in_turn(frame: pd.DataFrame) -> pd.DataFrame:
    """Step 0 first."""
    return frame.sort_values("when", key=lambda column: column.map(WHENS.index), kind="stable")


GRAD_LAST = _row(
    name="grad_last",
    short="Gradient of the last layer",
    caption="DeepNet Fig. 2(b) (journal version).",
    see="the same at every depth",
    here=run_spans.top,
    read=(
        Note(
            "If exploding gradients caused the instability, the unstable method's gradient would be large; the "
            "paper finds Post-LN-init's larger. Stacks of equal depth, or one stack."
        ),
    ),
    value="grad_norm",
    columns=("layers", "when", "grad_norm"),
    rows=_top_gradients,
    ordered=_in_turn,
    arranged=_by_window,
    title=run_findings.top_gradients,
    alt=lambda frame: (
        "Gradient norm of the last layer against depth, logarithmic. "
        + ". ".join(
            f"{when}: {_ends(rows, 'layers', 'grad_norm')}"
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


def _validation(placed: Shown) -> Rows:
    """A row a reading on the fixed validation batches, label smoothing included, in eval mode; beside it what the best
    constant predictor loses on the same tokens."""
    table = placed.run.records.get("validation")
    if table is not None:
        for step, value in zip(table.steps.tolist(), table.at("validation").tolist(), strict=True):
            yield {"unigram_loss": placed.run.outcome.unigram_loss, "step": step, "validation_loss": value}


def _read_once(frame: pd.DataFrame) -> str:
    once_each = frame.groupby("run")["step"].nunique().max() < 2
    text = "These runs are too short: their validation loss was read once, at the end (see the table)."
    return text if once_each else ""


VALIDATION_LOSS = _row(
    name="validation_loss",
    short="Validation loss",
    caption="DeepNet Fig. 2(c) (journal version); Very Deep Transformers (ADMIN) Fig. 2.",
    see="falls below the dotted line, the loss of knowing only the word frequencies",
    here=run_spans.validation,
    read=(
        Note(
            "Label smoothing is part of both the loss and the dotted line. A run of fewer than 40 steps is read only "
            "at its end and cannot be judged."
        ),
    ),
    index="step",
    value="validation_loss",
    columns=("unigram_loss", "step", "validation_loss"),
    of=lambda runs: (
        [run for run in runs if run.spec.train.steps] or runs
    ),  # without an update only if there is no other
    rows=_validation,
    too_short=_read_once,
    title=run_findings.validation_ends,
    alt=run_findings.validation_alt,
    none="No run has recorded its validation loss.",
    what=lambda frame: by_step(
        y="validation_loss",
        y_label="validation loss, nats a token",
        log_y=False,
        reference=lambda group: curves.lines(group, "unigram_loss", "unigram loss", float),
    ),
)


def _ratios(placed: Shown) -> Rows:
    """A row a sub-layer of the decoder (of an encoder without one): at step 0 and at the last recorded step."""
    table = placed.run.records.get("branch_ratio")
    if table is not None and len(table.steps):
        values = table.select(share.output_sites(table.sites))
        for place, (first, last) in enumerate(zip(values[0].tolist(), values[-1].tolist(), strict=True), 1):
            yield {"sublayer": place, "branch_ratio": first, "last": last}


BRANCH_RATIO = _row(
    name="branch_ratio",
    short="Branch over shortcut",
    caption="Very Deep Transformers (ADMIN), §3: the two terms of eq. 2. Decoder, step 0.",
    see="falls like 1/√sub-layer, so that all sub-layers count equally",
    here=run_spans.branches,
    read=(
        Note(
            "At 1 a branch is as long as its shortcut: each sub-layer then halves what came before. Where the ratio "
            "falls like 1/√sub-layer, all sub-layers count equally. Thin dotted: at the last step."
        ),
    ),
    index="sublayer",
    value="branch_ratio",
    at_start=True,
    columns=("sublayer", "branch_ratio", "last"),
    rows=_ratios,
    title=run_findings.sublayers_that_count,
    alt=lambda frame: (
        f"Branch over shortcut by {output_stack(frame['decoder_layers'])} sub-layer at step 0, logarithmic. "
        f"At the last sub-layer: {_ends(frame, 'sublayer', 'branch_ratio')}."
    ),
    none="No run has recorded its branch ratios.",
    what=lambda frame: Curves(
        x="sublayer",
        y="branch_ratio",
        x_name=f"{output_stack(frame['decoder_layers'])} sub-layer",
        y_label="‖γ·G(x)‖ / ‖ω·x‖",
        beside="last",
        reference=lambda group: [(1.0, "1: equally long")],
        grouped=True,
        ticks=lambda group: curves.layer_ticks(group, "sublayer"),
    ),
)
