"""What the curves of runs come to, from the least to the greatest curve: what stands under a picture after what a
healthy one shows, computed from the rows that are drawn."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from stabkit.figures.chain import findings
from stabkit.results.outcome import AT_UNIGRAM
from stabkit.results.readings import centre
from stabkit.words import listed, percent, short

CURVE = ["label", "condition", "depth"]


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
    return span(last.groupby(CURVE, sort=False)[value].agg(centre), unit)


def update(frame: pd.DataFrame) -> str:
    told = ends(frame[frame["outcome"] != "diverged"], "update")
    return f"‖ΔF‖ ends at {told}" if told else ""


def ln_input(frame: pd.DataFrame) -> str:
    growth = findings.growth(frame).set_index(CURVE)["growth"]
    told = span(growth.groupby(level=CURVE, sort=False).max(), " times")
    return f"at most {told} their initial length" if told else ""


def lengthened(frame: pd.DataFrame) -> str:
    told = ends(frame, "relative")
    return f"at the end {told}" if told else ""


def gradient(frame: pd.DataFrame) -> str:
    ratios = findings.ratios(frame)
    ratios = ratios[ratios["layers"] > 1]
    told = span(ratios.set_index(CURVE)["ratio"].groupby(level=CURVE, sort=False).min()) if len(ratios) else ""
    return f"the lowest layer's over the top layer's is {told}" if told else ""


def validation(frame: pd.DataFrame) -> str:
    """How many runs end below the line between training and not."""
    last = frame.loc[frame.groupby("run")["step"].transform("max") == frame["step"]]
    known = last[(last["unigram_loss"] > 0) & (last["outcome"] != "diverged")]
    below = int((known["validation_loss"] < AT_UNIGRAM * known["unigram_loss"]).sum())
    diverged = int((last["outcome"] == "diverged").sum())
    told = f"{below} of {len(last)} runs end below {percent(AT_UNIGRAM)} of it" if len(known) else ""
    return listed(told, f"{diverged} diverged" if diverged else "")


def branches(frame: pd.DataFrame) -> str:
    """At the last sub-layer, before training."""
    last = frame.loc[frame.groupby("run")["sublayer"].transform("max") == frame["sublayer"]]
    told = span(last.groupby(CURVE, sort=False)["branch_ratio"].agg(centre))
    return f"at the last sub-layer {told}" if told else ""


def top(frame: pd.DataFrame) -> str:
    """The last layer's gradient over the depths."""
    told = [
        f"{when}, {span(own.groupby(CURVE, sort=False)['grad_norm'].agg(centre))}"
        for when, own in frame.groupby("when", sort=False)
        if not math.isnan(float(own["grad_norm"].max()))
    ]
    return "; ".join(told)
