"""Losses at the end against one setting, one row each: DeepNet Fig. 9, in nats instead of BLEU; Fig. 7; and Table 11.

Fig. 9: runs that differ from the method's own α and β in one of the two; the run at 1 belongs to both panels. Fig. 7:
the paper draws loss curves; here a run is its end. Table 11: "− DeepNorm" is α = 1 with β kept, "− Init" β = 1 with α
kept; runs at the method's own factors only, a panel a setting, because the table is not expected to come out in every
one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from stabkit.figures.curve_picture import curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, always
from stabkit.methods.papers.deepnorm import TABLE_11
from stabkit.results import points, scales, settings
from stabkit.results.conditions import FACTS, conditions, shown
from stabkit.results.once import once
from stabkit.results.outcome import NOT_JUDGED
from stabkit.results.run import Run
from stabkit.wording import factors
from stabkit.words import listed, short, some

LOSS = "validation loss, nats a token"
SCALED_COLUMNS = (*FACTS, "axis", "scale", "unigram_loss", "validation_loss")
TABLE_11_COLUMNS = (*FACTS, "row", "unigram_loss", "validation_loss")
ROWS = {"": "as published", "deepnorm": "without DeepNorm (α = 1)", "init": "without Init (β = 1)"}


@once
def scaled(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and axis along which there are several factors; `condition` is what else sets runs apart."""
    frame = scales.frame(runs)
    along = {"α": ("alpha_scale", "beta_scale"), "β": ("beta_scale", "alpha_scale")}
    parts = [frame.iloc[:0].assign(axis="", scale=0.0)]
    for axis, (own, other) in along.items():
        rows = frame[frame[other] == 1]
        if rows[own].nunique() > 1:
            parts.append(rows.assign(axis=axis, scale=rows[own]))
    return pd.concat(parts).sort_values(["axis", "scale"], kind="stable").reset_index(drop=True)[list(SCALED_COLUMNS)]


def with_which_factors(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """The answer's first sentence; of runs without a verdict what is drawn."""
    said = factors.sentences(scales.frame(runs))
    return factors.in_short(said).removesuffix(".") if said else "Loss against a factor on α or β"


def _levels(group: pd.DataFrame) -> list[tuple[float, str]]:
    """What knowing word frequencies alone reaches, and what the published constants reach."""
    own = float(group.loc[group["scale"] == 1, "validation_loss"].median())
    return [*_unigram(group), *([(own, "")] if np.isfinite(own) else [])]


def factors_alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, depth, condition, axis), rows in frame.groupby(["label", "depth", "condition", "axis"], sort=False):
        for scale, loss in rows.groupby("scale")["validation_loss"].median().items():
            parts.append(f"{listed(label, depth, condition, axis)} × {scale:g} {short(float(loss), 3)}")
    return f"Validation loss against the factor on α and on β, medians over seeds. {'; '.join(parts[:24])}."


SCALED = curves_of(
    name="ablation",
    short="α and β scaled",
    room="ablation",
    caption="DeepNet Fig. 9 (journal version), validation loss for BLEU.",
    see="1 is the published constant, the lower dotted line its loss. A circle trains, a square is stuck.",
    read=(
        Note(
            "The paper: a small factor on α or a large one on β destabilises, a large factor on α or a small one on β "
            "undermines performance."
        ),
        Note("Seeds: median and band.", ("band",)),
    ),
    columns=SCALED_COLUMNS,
    value="validation_loss",
    frame=scaled,
    optional=True,
    arranged=lambda frame: frame.assign(panel=frame["depth"] + ", factor on " + frame["axis"]),
    title=with_which_factors,
    alt=factors_alt,
    none="No run has a scaled α or β.",
    what=lambda frame: Curves(
        x="scale",
        y="validation_loss",
        x_name="factor",
        y_label=LOSS,
        log_y=False,
        across="factors",
        middle=points.median,
        reference=_levels,
        upright=(1.0, "published"),
        ended=True,
        columns=2,
        height=3.0,
    ),
)


def where_it_fails(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """Who fails at which value, or that all train."""
    judged = frame[frame["outcome"] != NOT_JUDGED]
    if judged.empty:
        return "Larger learning rates, batches and widths, one at a time"
    lost = judged[judged["outcome"] != "trains"]
    if lost.empty:
        who = judged["label"].unique()
        spans = [_span(judged, axis) for axis in settings.AXES if axis.name in set(judged["axis"])]
        return f"{who[0] if len(who) == 1 else 'Every method'} trains at every setting: {', '.join(spans)}"
    at = [
        f"{label} at {settings.phrase(axis, f'{value:g}')}"
        for (label, axis, value), rows in judged.groupby(["label", "axis", "value"], sort=False)
        if (rows["outcome"] != "trains").any()
    ]
    more = f" and {len(at) - 3} more" if len(at) > 3 else ""
    runs_ = judged.drop_duplicates("run")
    count = int((runs_["outcome"] == "trains").sum())
    return f"{count} of {len(runs_)} runs train; not {', '.join(at[:3])}{more}"


def _span(frame: pd.DataFrame, axis: settings.Axis) -> str:
    values = frame.loc[frame["axis"] == axis.name, "value"]
    return settings.phrase(axis.name, f"{values.min():g} to {values.max():g}")


def ends_alt(frame: pd.DataFrame) -> str:
    cells = [
        f"{listed(label, depth, condition, settings.phrase(axis, f'{value:g}'))}: "
        f"{short(float(rows['validation_loss'].median()), 3)} ({' and '.join(dict.fromkeys(rows['outcome']))})"
        for (label, depth, condition, axis, value), rows in frame.groupby(
            ["label", "depth", "condition", "axis", "value"], sort=False
        )
    ]
    return f"Validation loss at the end against one setting at a time. {some(cells, 40)}."


def _of_axes(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel an axis, of several depths a panel each."""
    several = frame["depth"].nunique() > 1
    return frame.assign(panel=frame["axis"] + (", " + frame["depth"] if several else ""))


def _unigram(group: pd.DataFrame) -> list[tuple[float, str]]:
    """One line: of other batches it is of other sentences, and as good as the same."""
    height = float(group["unigram_loss"].median())
    return [(height, "unigram loss")] if np.isfinite(height) else []


LABELS = {axis.name: axis.name for axis in settings.AXES} | {"hidden size": "hidden size d"}


ROBUSTNESS = curves_of(
    name="robustness",
    short="Rate, batch, width",
    room="ablation",
    caption="DeepNet Fig. 7 (18L-18L on WMT-17 En-De: loss curves at larger rates, batches and widths).",
    see="The validation loss at the end, all settings but one the same; a run that diverged is a ✕.",
    read=always(
        "All runs have the same number of updates, so a larger batch sees more text. Validation text is batched "
        "like training text, so batch sizes do not use exactly the same sentences; the dashed unigram loss is "
        "their median."
    ),
    columns=settings.COLUMNS,
    value="validation_loss",
    frame=settings.frame,
    optional=True,
    arranged=_of_axes,
    title=where_it_fails,
    alt=ends_alt,
    none="No run varies the learning rate, the batch or the width alone.",
    what=lambda frame: Curves(
        x="value",
        y="validation_loss",
        x_name=lambda group: LABELS[str(group["axis"].iloc[0])],
        y_label=LOSS,
        log_y=False,
        middle=points.median,
        reference=_unigram,
        across="factors",
        columns=3,
        height=3.0,
    ),
)


@once
def without_a_part(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of a method of which a variant without one of its parts is there too; `row`: which of the three."""
    placed = [
        (each, row)
        for each in shown(runs)
        if each.run.spec.alpha_scale == 1 == each.run.spec.beta_scale and (row := _row(each.run)) is not None
    ]
    cut = {each.run.spec.method for each, row in placed if row}
    kept = [(each, row) for each, row in placed if each.run.spec.method in cut]
    rest = conditions([each.run.spec for each, _ in kept])
    rows = [
        {
            **each.facts("unigram_loss", "validation_loss"),
            "condition": condition.text,
            "row": ROWS[row],
        }
        for (each, row), condition in zip(kept, rest, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(TABLE_11_COLUMNS))


def _row(run: Run) -> str | None:
    """ "" for the method as published, the name of the part that is taken away, None for anything else."""
    options = dict(run.spec.options)
    return "" if not options else next((name for name, drop in TABLE_11.items() if drop == options), None)


def how_many_train(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """How many runs of each variant train, over all settings, in the paper's order."""
    whole = [f"{row} {_rate(of_row)}" for row, of_row in frame.groupby("row", sort=False)] if _panels(frame) else []
    told = ", ".join(whole) or "The method without one of its two parts"
    return f"{told[0].upper()}{told[1:]}"


def variants_here(frame: pd.DataFrame) -> str:
    """What each variant does in each setting."""
    parts = []
    for name, group in _panels(frame):
        words = [f"{row} {_rate(of_row)}" for row, of_row in group.groupby("row", sort=False)]
        parts.append(f"{name}: {', '.join(words)}" if name else ", ".join(words))
    return "; ".join(parts)


def _panels(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    by = frame.groupby(["depth", "condition"], sort=False)
    named = [(listed(*(str(part) for part in key)), own) for key, own in by]
    return [(name, own) for name, own in named if set(own["row"]) != {ROWS[""]}]


def _rate(rows: pd.DataFrame) -> str:
    """`trains in 2 of 3`, of those long enough to judge."""
    early = int((rows["outcome"] == NOT_JUDGED).sum())
    if early == len(rows):
        return NOT_JUDGED
    short_ = f", {early} {NOT_JUDGED}" if early else ""
    return f"trains in {int((rows['outcome'] == 'trains').sum())} of {len(rows) - early}{short_}"


def variants_alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{listed(name, row)} {_rate(of_row)}, median loss {short(float(of_row['validation_loss'].median()), 3)}"
        for name, own in _panels(frame)
        for row, of_row in own.groupby("row", sort=False)
    ]
    return f"Validation loss with and without each part of the method. {'; '.join(parts[:24])}."


def _by_setting(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel a setting in which a part is missing."""
    parts = [rows.assign(panel=name, place=rows["row"].map(PLACES.index)) for name, rows in _panels(frame)]
    return pd.concat(parts)


PLACES = list(ROWS.values())
TABLE11 = curves_of(
    name="table11",
    short="Table 11",
    room="ablation",
    caption=(
        "DeepNet Table 11 (journal version): 42.4 BLEU; − DeepNorm: diverged; − Init: 42.2. Validation loss for BLEU."
    ),
    see="each part removed leaves the loss where the published method has it",
    here=variants_here,
    read=(
        Note("Each mark is a run; lower is better. A ✕ at the upper edge: a run that diverged.", ("diverged",)),
        Note("A square: a run that is stuck.", ("stuck",)),
        Note(
            "On the dashed line the model has learnt nothing. The claims test the paper's two sentences (without "
            "DeepNorm it diverges, without the initialisation it is slightly worse) run by run, and say where they "
            "hold."
        ),
    ),
    columns=TABLE_11_COLUMNS,
    value="validation_loss",
    frame=without_a_part,
    optional=True,
    arranged=_by_setting,
    title=how_many_train,
    alt=variants_alt,
    none="No run is without one of the method's parts.",
    what=lambda frame: Curves(
        x="place",
        y="validation_loss",
        x_name="variant",
        y_label=LOSS,
        log_y=False,
        reference=_unigram,
        places=("as published", "α = 1", "β = 1"),
        marks=True,
        strokes=curves.solid("run"),
        columns=3,
        height=2.7,
    ),
)
