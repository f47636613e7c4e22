"""What the curves of runs show, as sentences: of a title, a finding where the data support one, else what is drawn; of
what stands under a picture after what a healthy one shows, from the least to the greatest curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from stabkit.figures.drawing import curves
from stabkit.results import points
from stabkit.results.chain import LATER, START
from stabkit.results.conditions import norm_after_sum, output_stack, shown
from stabkit.results.outcome import AT_UNIGRAM, NOT_JUDGED
from stabkit.results.readings import centre, reference_step
from stabkit.results.run import Run
from stabkit.words import listed, percent, several, short, some, updates

ORIGINS: Mapping[str, tuple[str, ...]] = {"feed-forward": ("ffn",), "attention": ("self", "cross")}
"""{what stands before a norm: kinds of sub-layers}."""


def farthest(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """How far the output of the nearest and of the farthest method is at the deepest depth that two of them share: at
    the reference step, or at the first, where they differ more."""
    last = reference_step(runs)
    frame = frame[points.drawable_rows(frame["update"], log=True)]
    steps = [last, *frame["step"].head(1).astype(int)]
    at = {step: _moved(frame[frame["step"] == step]) for step in steps}
    told = {step: moved for step, moved in at.items() if moved}
    if not told:
        return "How far the output moves from its start, step by step"
    step = last if last in told and _times(told[last]) >= ALIKE else max(told, key=lambda one: _times(told[one]))
    where, *ends = told[step]
    moved = " to ".join(f"{short(value)} ({name})" for value, name in reversed(ends))
    return f"At {where} the output moves by {moved} in {updates(step)}"


ALIKE = 1.5
"""Times by which distances differ less where they are saturated."""


def _moved(frame: pd.DataFrame) -> tuple[str, tuple[float, str], tuple[float, str]] | None:
    """Where, and the farthest and the nearest method there."""
    order = ["encoder_layers", "decoder_layers"]
    frame = frame.assign(total=frame[order].sum(axis=1)).sort_values(["total", *order], kind="stable", ascending=False)
    for (depth, condition), rows in frame.groupby(["depth", "condition"], sort=False):
        moved = sorted((centre(own), str(label)) for label, own in rows.groupby("label", sort=False)["update"])
        if len(moved) > 1:
            return f"{depth} ({condition})" if condition else str(depth), moved[-1], moved[0]
    return None


def _times(moved: tuple[str, tuple[float, str], tuple[float, str]]) -> float:
    return moved[1][0] / moved[2][0]


def by_origin(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows after the feed-forward, and those after attention."""
    return [(origin, rows) for origin in ORIGINS if len(rows := frame[frame["origin"] == origin])]


def growth(frame: pd.DataFrame) -> pd.DataFrame:
    """By method, condition and depth: the greatest norm of a run over its own at step 0, median over seeds."""
    norms = frame.groupby(["label", "condition", "depth", "run", "step"], sort=False)["ln_input"].mean()
    by_run = norms.groupby(level=["label", "condition", "depth", "run"], sort=False).agg(["first", "max"])
    ratio = (by_run["max"] / by_run["first"]).rename("growth")
    return ratio.groupby(level=["label", "condition", "depth"], sort=False).agg(centre).reset_index()


def grown_inputs(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """Whose LN inputs grew most, when they grew by a tenth."""
    norms = {placed.run.run_id: norm_after_sum(placed.run.spec) for placed in shown(runs)}
    grown = growth(frame) if len(frame) else frame
    grown = grown[grown["growth"] > 1.1] if len(grown) else grown
    if grown.empty:
        return "The inputs of the layer norms" + (" keep their initial size" if len(frame) else "")
    most = grown.sort_values("growth", kind="stable").iloc[-1]
    where = f"{most.depth}, {most.condition}" if most.condition else most.depth
    factor = short(float(most.growth))
    its = frame[(frame[["label", "condition", "depth"]] == most[["label", "condition", "depth"]]).all(axis=1)]
    if not norms[its["run"].iloc[0]]:
        return f"{most.label}'s residual stream grows most: to {factor} times its start ({where})"
    return f"{most.label}'s LN inputs grow most: to {factor} times their start ({where})"


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


def least_gradient(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """The smallest share of the top layer's gradient that arrives at the lowest, when it is a tenth or less."""
    share = ratios(frame)
    share = share[(share["layers"] > 1) & (share["ratio"] <= 0.1)]
    if share.empty:
        return f"How much gradient each {output_stack(frame['decoder_layers'])} layer receives"
    steps = sorted(set(frame["step"]))
    when = f"At step {steps[0]}: " if len(steps) == 1 else ""
    return when + receives(share.sort_values("ratio", kind="stable").iloc[0])


def receives(least: Any) -> str:
    """One row of `ratios` in words."""
    amount = f"{short(least.ratio)} of" if least.ratio > 0 else "nothing of"
    where = f"{least.depth} ({least.condition})" if least.condition else least.depth
    stack = output_stack([least.decoder_layers])
    return f"{least.label}'s lowest {stack} layer receives {amount} the top layer's gradient at {where}"


def gradient_ratios(frame: pd.DataFrame) -> str:
    """`Post-LN 18L-18L 4e-4; …`: the ratio of every curve, sixteen at most."""
    parts = [
        f"{listed(label, condition, depth)} {short(ratio, 1)}"
        for label, condition, depth, _, _, ratio in ratios(frame).itertuples(index=False)
    ]
    return some(parts, 16, " and {} more")


def least_first_gradient(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """How little arrives at the lowest layer, before training has begun."""
    share = ratios(frame) if len(frame) else frame
    share = share[(share["layers"] > 1) & (share["ratio"] <= 0.1)] if len(share) else share
    if share.empty:
        return f"The gradient of each {output_stack(frame['decoder_layers'])} layer before the first update"
    least = share.sort_values("ratio", kind="stable").iloc[0]
    return f"Before any update: {receives(least)}"


def top_gradients(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """Post-LN-init's over Post-LN's where both are there in the window, else at step 0."""
    for when in (LATER, START):
        here = frame[(frame["when"] == when) & frame["method"].isin(["post-ln", "post-ln-init"])]
        here = here[here["encoder_layers"] == here["decoder_layers"]]
        pairs = here.groupby(["layers", "condition", "seed", "method"])["grad_norm"].agg(centre).unstack()
        if {"post-ln", "post-ln-init"} <= set(pairs.columns) and len(pairs := pairs.dropna()):
            ratio = (pairs["post-ln-init"] / pairs["post-ln"]).groupby(["layers", "condition"], sort=False).agg(centre)
            depth, condition = ratio.index[-1]
            place = listed(f"{depth}L-{depth}L", condition)
            times = f"{short(float(ratio.iloc[-1]))} times Post-LN's"
            return f"The last layer's gradient under Post-LN-init is {times} ({place}, {when})"
    return "The gradient of the last layer"


def validation_ends(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """Of the runs that were judged, who is at the unigram loss in the end and who well below it, at the depth where
    most stay there; else the least and the greatest end."""
    if frame.empty:
        return "Validation loss"
    last = frame[frame["step"] == frame.groupby("run")["step"].transform("max")]
    share = last[last["outcome"] != NOT_JUDGED].assign(share=last["validation_loss"] / last["unigram_loss"])
    sentence, most = "", 0
    for (depth, condition), rows in share.groupby(["depth", "condition"], sort=False):
        by = rows.groupby("label", sort=False)["share"].agg(["min", "max"])
        stuck, trained = list(by.index[by["min"] >= AT_UNIGRAM]), list(by.index[by["max"] < AT_UNIGRAM])
        if len(stuck) > most and trained:
            most = len(stuck)
            sentence = (
                f"At {listed(depth, condition)} {several(stuck, len(by))} end{'s' if len(stuck) == 1 else ''} no "
                f"better than a constant predictor, {several(trained, len(by))} below it"
            )
    if sentence:
        return sentence
    finite = last[np.isfinite(last["validation_loss"])]
    means = finite.groupby(["label", "depth", "condition"], sort=False)["validation_loss"].agg(centre)
    if means.empty:
        return "Validation loss"
    (least, low), (greatest, high) = ((listed(*at), short(means[at], 3)) for at in (means.idxmin(), means.idxmax()))
    if least == greatest:
        return f"The validation loss ends at {low} ({least})"
    return f"The validation loss ends between {low} ({least}) and {high} ({greatest})"


def validation_alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    unigram = short(float(frame["unigram_loss"].median()), 3)
    ends = curves.ends(frame, "step", "validation_loss")
    return f"Validation loss against the step, one panel per depth; unigram loss {unigram}. At the end: {ends}."


PLACE = ["label", "condition", "depth"]


def span(of: pd.Series[float], unit: str = "") -> str:
    """`0.31 (Post-LN, 18L-18L) to 1.2 (DeepNorm, 6L-6L)` of {(label, condition, depth): number}; of equal ones one."""
    ranked: list[tuple[float, Any]] = sorted(
        ((float(value), key) for key, value in of.items() if not math.isnan(value)), key=lambda pair: pair[0]
    )
    told = [f"{short(value)}{unit} ({listed(*key)})" for value, key in dict.fromkeys((*ranked[:1], *ranked[-1:]))]
    return " to ".join(told)


def ends(frame: pd.DataFrame, value: str, unit: str = "") -> str:
    """Of the last readings: the median over the seeds of each curve."""
    last = frame.loc[frame.groupby("run")["step"].transform("max") == frame["step"]]
    return span(last.groupby(PLACE, sort=False)[value].agg(centre), unit)


def update(frame: pd.DataFrame) -> str:
    told = ends(frame[frame["outcome"] != "diverged"], "update")
    return f"‖ΔF‖ ends at {told}" if told else ""


def ln_input(frame: pd.DataFrame) -> str:
    grown = growth(frame).set_index(PLACE)["growth"]
    told = span(grown.groupby(level=PLACE, sort=False).max(), " times")
    return f"at most {told} their initial length" if told else ""


def gradient(frame: pd.DataFrame) -> str:
    share = ratios(frame)
    share = share[share["layers"] > 1]
    told = span(share.set_index(PLACE)["ratio"].groupby(level=PLACE, sort=False).min()) if len(share) else ""
    return f"the lowest layer's over the top layer's is {told}" if told else ""


def validation(frame: pd.DataFrame) -> str:
    """How many runs end below the line between training and not."""
    last = frame.loc[frame.groupby("run")["step"].transform("max") == frame["step"]]
    known = last[(last["unigram_loss"] > 0) & (last["outcome"] != "diverged")]
    below = int((known["validation_loss"] < AT_UNIGRAM * known["unigram_loss"]).sum())
    diverged = int((last["outcome"] == "diverged").sum())
    told = f"{below} of {len(last)} runs end below {percent(AT_UNIGRAM)} of it" if len(known) else ""
    return listed(told, f"{diverged} diverged" if diverged else "")


def top(frame: pd.DataFrame) -> str:
    """The last layer's gradient over the depths."""
    told = [
        f"{when}, {span(own.groupby(PLACE, sort=False)['grad_norm'].agg(centre))}"
        for when, own in frame.groupby("when", sort=False)
        if not math.isnan(float(own["grad_norm"].max()))
    ]
    return "; ".join(told)
