"""The curves of runs against the step: DeepNet Fig. 3(a) to 3(c), 4 and 2(c), one row each.

‖ΔF‖ = mean over tokens of ‖F(x, θ_t) − F(x, θ_0)‖₂, F the final state on the probe batch (probe `update`, `state`): two
uncorrelated outputs of a final LayerNorm are √(2d) apart. Norms are means over tokens of ‖ω·x + γ·G(x)‖₂ (probe
`ln_input`). A row's title, a finding, and what its curves come to are in `findings.py`.
"""

from __future__ import annotations

import math

import pandas as pd

from stabkit.figures.chain import findings
from stabkit.figures.chain.findings import ORIGINS
from stabkit.figures.curve_picture import Rows, by_step, curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.picture import Note, always
from stabkit.results.conditions import Shown
from stabkit.results.readings import series
from stabkit.words import listed

NO_UPDATE = "No run has recorded a model update."
NO_NORMS = "No run has recorded the inputs of its norms."


def _updates(placed: Shown) -> Rows:
    """A row a recorded step of a run."""
    steps, values = series(placed.run, "update", "state")
    width = placed.run.spec.model.hidden
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        yield {"width": width, "step": step, "update": value}


def _ceiling(group: pd.DataFrame) -> list[tuple[float, str]]:
    return curves.lines(group, "width", "√(2d): uncorrelated", lambda d: math.sqrt(2 * d))


def _of_methods(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel a method and condition."""
    panels = [listed(label, condition) for label, condition in zip(frame["label"], frame["condition"], strict=True)]
    return frame.assign(panel=panels)


UPDATE = curves_of(
    name="update",
    short="‖ΔF‖ by step",
    room="chain",
    caption="DeepNet Fig. 3(a) and Fig. 4 (journal version), against the step.",
    see="small after the first update, at every depth; curves that meet at √(2d) say nothing more",
    here=findings.update,
    read=(
        Note(
            "Each panel is one method, on a common scale; the heavier the line, the deeper the model. "
            "At √(2d) an output that ends in a norm has nothing left in common with that of step 0. Without norms "
            "there is no such bound. Without warm-up every curve gets there; what differs is how soon."
        ),
        Note("Several seeds: the median, in a band from the lowest to the highest.", ("band",)),
        Note("✕: diverged, at its last finite value.", ("diverged",)),
        Note("Step 0 is 0 by definition, so a logarithmic axis cannot show it."),
    ),
    index="step",
    value="update",
    columns=("width", "step", "update"),
    rows=_updates,
    ordered=lambda frame: frame,
    arranged=_of_methods,
    title=findings.farthest,
    alt=lambda frame: (
        "Line chart of ‖ΔF‖ against the step, one panel per method. "
        f"At the end: {curves.ends(frame, 'step', 'update')}."
    ),
    none=NO_UPDATE,
    what=lambda frame: by_step(
        across="decades",
        y="update",
        y_label="‖ΔF‖, output units",
        reference=_ceiling,
        one_x=True,
        strokes=curves.depths,
        columns=3,
    ),
)


def norm_inputs(placed: Shown) -> Rows:
    """A row an origin and recorded step: the mean norm over the sites of both stacks, and over those of each.
    Attention: self and cross, as in the paper."""
    table = placed.run.records.get("ln_input")
    for origin, kinds in ORIGINS.items() if table is not None else ():
        ends = tuple(f".{kind}" for kind in kinds)
        sites = [site for site in table.sites if site.endswith(ends)] if table is not None else []
        if table is None or not sites:
            continue
        values = table.select(sites).mean(axis=1)
        stacks = {}
        for stack in ("encoder", "decoder"):
            of_stack = [site for site in sites if site.startswith(stack)]
            stacks[stack] = table.select(of_stack).mean(axis=1) if of_stack else None
        for i, step in enumerate(table.steps.tolist()):
            means = {stack: math.nan if mean is None else float(mean[i]) for stack, mean in stacks.items()}
            width = placed.run.spec.model.hidden
            yield {"width": width, "origin": origin, "step": step, "ln_input": float(values[i]), **means}


def _of_origins(frame: pd.DataFrame) -> pd.DataFrame:
    """Two rows of panels: after the feed-forward and after attention."""
    placed = pd.concat([curves.by_depth(rows) for _, rows in findings.by_origin(frame)])
    return placed.assign(panel=placed["depth"] + ", after " + placed["origin"])


def _columns_of_depths(frame: pd.DataFrame) -> int:
    depths = frame["depth"].nunique()
    return min(4, depths) if depths > 1 else 2


LN_INPUT = curves_of(
    name="ln_input",
    short="LN input",
    room="chain",
    caption="DeepNet Fig. 3(b) and 3(c) (journal version).",
    see="level lines, the inputs of the norms keep their initial size",
    here=findings.ln_input,
    read=always(
        "First the inputs of norms after a feed-forward, then after attention. √d is the length of a normalised "
        "state. When a branch adds nothing, the value is ω√d by construction: DeepNorm and ADMIN lie higher "
        "than Post-LN without being in danger. For methods with the norm "
        "elsewhere, or without: the residual stream after the sub-layer, which grows with every added "
        "branch."
    ),
    value="ln_input",
    columns=("width", "origin", "step", "ln_input", "encoder", "decoder"),
    rows=norm_inputs,
    ordered=lambda frame: frame,
    arranged=_of_origins,
    title=findings.grown_inputs,
    alt=lambda frame: (
        "Line charts of the norm of LN inputs against the step, one panel per depth. At the end, "
        + ". ".join(
            f"after {origin}: {curves.ends(rows, 'step', 'ln_input')}" for origin, rows in findings.by_origin(frame)
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


VALIDATION_LOSS = curves_of(
    name="validation_loss",
    short="Validation loss",
    room="chain",
    caption="DeepNet Fig. 2(c) (journal version); Very Deep Transformers (ADMIN) Fig. 2.",
    see="falls below the dotted line, the loss of knowing only the word frequencies",
    here=findings.validation,
    read=always(
        "Label smoothing is part of both the loss and the dotted line. A run of fewer than 40 steps is read only "
        "at its end and cannot be judged."
    ),
    index="step",
    value="validation_loss",
    columns=("unigram_loss", "step", "validation_loss"),
    of=lambda runs: (
        [run for run in runs if run.spec.train.steps] or runs
    ),  # without an update only if there is no other
    rows=_validation,
    too_short=_read_once,
    title=findings.validation_ends,
    alt=findings.validation_alt,
    none="No run has recorded its validation loss.",
    what=lambda frame: by_step(
        y="validation_loss",
        y_label="validation loss, nats a token",
        log_y=False,
        reference=lambda group: curves.lines(group, "unigram_loss", "unigram loss", float),
    ),
)
