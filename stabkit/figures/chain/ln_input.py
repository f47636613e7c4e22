"""The inputs of the layer norms against the step: DeepNet Fig. 3(b), after the feed-forward, and 3(c), after attention.

Mean over all sub-layers of a kind, encoder and decoder together, of ‖ω·x + γ·G(x)‖₂ a token (probe `ln_input`); the
frame holds each stack apart too. Attention: self- and cross-attention together, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import points
from stabkit.figures.shared.comparison import FACTS, norm_after_sum, shown
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import short
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "width", "origin", "step", "ln_input", "encoder", "decoder")
ORIGINS = {"feed-forward": ("ffn",), "attention": ("self", "cross")}


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run, origin and recorded step: the mean norm over both stacks, and over each."""
    return readings(runs, "").rename(columns={"value": "ln_input"})


def readings(runs: Sequence[Run], quantity: str) -> pd.DataFrame:
    """The means of the sites whose names end in `quantity`: "" for the norms, "@omega" for those over ω√d."""
    rows = []
    for each in shown(runs):
        table = each.run.records.get("ln_input")
        if table is None:
            continue
        facts = {**each.facts(), "width": each.run.spec.model.hidden}
        for origin, kinds in ORIGINS.items():
            ends = tuple(f".{kind}{quantity}" for kind in kinds)
            sites = [site for site in table.sites if site.endswith(ends)]
            if not sites:
                continue
            values = table.select(sites)
            stacks = {
                stack: table.select(own).mean(axis=1) if (own := [s for s in sites if s.startswith(stack)]) else None
                for stack in ("encoder", "decoder")
            }
            for i, step in enumerate(table.steps.tolist()):
                rows.append(
                    {
                        **facts,
                        "origin": origin,
                        "step": step,
                        "value": float(values[i].mean()),
                        **{name: math.nan if own is None else float(own[i]) for name, own in stacks.items()},
                    }
                )
    return pd.DataFrame(rows, columns=[*FACTS, "width", "origin", "step", "value", "encoder", "decoder"])


def growth(frame: pd.DataFrame) -> pd.DataFrame:
    """By method, condition and depth: the greatest norm of a run over its own at step 0, median over seeds."""
    each = frame.groupby(["label", "condition", "depth", "run", "step"], sort=False)["ln_input"].mean()
    by_run = each.groupby(level=["label", "condition", "depth", "run"], sort=False).agg(["first", "max"])
    ratio = (by_run["max"] / by_run["first"]).rename("growth")
    return ratio.groupby(level=["label", "condition", "depth"], sort=False).agg(centre).reset_index()


def title(runs: Sequence[Run]) -> str:
    """Whose LN inputs grew most, when they grew by a tenth."""
    frame = select(runs)
    norms = {each.label: norm_after_sum(each.run.spec) for each in shown(runs)}
    grown = growth(frame) if len(frame) else frame
    grown = grown[grown["growth"] > 1.1] if len(grown) else grown
    if grown.empty:
        return "The inputs of the layer norms" + (" stay where they began" if len(frame) else "")
    most = grown.sort_values("growth", kind="stable").iloc[-1]
    where = f"{most.depth}, {most.condition}" if most.condition else most.depth
    told = short(float(most.growth))
    if not norms[str(most.label)]:
        return f"{most.label}'s residual stream grows most: to {told} times its start ({where})"
    return f"{most.label}'s LN inputs grow most: to {told} times their start ({where})"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded the inputs of its norms."
    parts = [f"after {origin}: {'; '.join(curves.ends(own, 'step', 'ln_input'))}" for origin, own in _rows(frame)]
    return f"Line charts of the norm of LN inputs against the step, one panel a depth. At the end, {'. '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """Two rows of panels: the norms' inputs after feed-forward and after attention."""
    return panels(
        frame,
        "ln_input",
        "‖LN input‖, mean over tokens",
        lambda group: curves.lines(group, "width", "√d", math.sqrt),
    )


def panels(
    frame: pd.DataFrame,
    value: str,
    label: str,
    reference: Callable[[pd.DataFrame], Sequence[tuple[float, str]]],
    log_y: bool = True,
) -> Figure:
    """What both figures of LN inputs draw."""
    depths = frame["depth"].nunique()
    ordered = pd.concat([curves.by_depth(own) for _, own in _rows(frame)]) if len(frame) else frame
    ordered = ordered.assign(panel=ordered["depth"] + ", after " + ordered["origin"])
    return curves.draw(
        ordered,
        Curves(
            x="step",
            across="decades",
            y=value,
            x_name="step",
            x_note=" (updates done)",
            y_label=label,
            none="No run has recorded the inputs of its norms.",
            middle=points.median,
            reference=reference,
            log_y=log_y,
            columns=min(4, max(depths, 1)) if depths > 1 else 2,
        ),
    )


def _rows(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(origin, own) for origin in ORIGINS if len(own := frame[frame["origin"] == origin])]


PICTURE: RunPicture = Picture(
    name="ln_input",
    short="LN input",
    room="chain",
    caption="DeepNet Fig. 3(b) and 3(c) (journal version).",
    see="A level line: what enters the norms keeps the size that it began with.",
    read=(
        Note(
            "First what enters those after a feed-forward, then after attention. √d is the length of a normalised "
            "state: ω√d is what stands here by construction when a branch adds nothing, so DeepNorm and ADMIN lie "
            "higher than Post-LN without being in danger; the next figure divides that out. Of methods with the norm "
            "elsewhere or without: the residual stream after the sub-layer, which grows with every branch that is "
            "added."
        ),
    ),
    columns=COLUMNS,
    value="ln_input",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
