"""‖ΔF‖ against the step, a panel a method and a curve a depth: DeepNet Fig. 4 read along the steps.

‖ΔF‖ = mean over tokens of ‖F(x, θ_t) − F(x, θ_0)‖₂, F the final state on the probe batch (probe `update`, `state`).
Two uncorrelated outputs of a final LayerNorm are √(2d) apart: there the curve is at its ceiling and orders no depths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.chain import run_spans
from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import points
from stabkit.results.conditions import FACTS, Shown, shown
from stabkit.results.once import once
from stabkit.results.readings import centre, reference_step, series
from stabkit.results.run import Run
from stabkit.words import listed, short, updates

HEIGHT, LINE = 2.7, 0.18
"""Inches: a row of panels; what a name beside a line needs, generously, as a panel is shorter than its row."""
READINGS = ("width", "step", "update")
COLUMNS = (*FACTS, *READINGS)


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """Every recorded ‖ΔF‖ of every run, step 0 and non-finite values included."""
    rows = [{**placed.facts(), **row} for placed in shown(runs) for row in readings(placed)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def readings(placed: Shown) -> Iterator[dict[str, Any]]:
    """A row a recorded step of a run."""
    steps, values = series(placed.run, "update", "state")
    width = placed.run.spec.model.hidden
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        yield {"width": width, "step": step, "update": value}


def title(runs: Sequence[Run]) -> str:
    """How far the output of the farthest and of the nearest method is at the deepest depth that two of them share."""
    step = reference_step(runs)
    frame = select(runs)
    frame = frame[(frame["step"] == step) & points.drawable_rows(frame["update"], log=True)]
    order = ["encoder_layers", "decoder_layers"]
    frame = frame.assign(total=frame[order].sum(axis=1)).sort_values(["total", *order], kind="stable", ascending=False)
    for (depth, condition), rows in frame.groupby(["depth", "condition"], sort=False):
        moved = sorted((centre(own), str(label)) for label, own in rows.groupby("label", sort=False)["update"])
        if len(moved) > 1:
            where = f"{depth} ({condition})" if condition else depth
            ends = " to ".join(f"{short(value)} ({label})" for value, label in (moved[-1], moved[0]))
            return f"At {where} the output moves by {ends} in {updates(step)}"
    return "How far the output moves from its start, step by step"


def alt(frame: pd.DataFrame) -> str:
    ends = []
    for rows in points.parted(frame, ["label", "condition", "depth"], ["run", "step", "update"]):
        last: dict[str, tuple[int, float]] = {}
        for run, step, value in zip(rows["run"], rows["step"], rows["update"], strict=True):
            if math.isfinite(value) and (run not in last or step > last[run][0]):
                last[run] = step, value
        where = listed(rows["label"][0], rows["condition"][0], rows["depth"][0])
        ends.append(f"{where} ends at {short(points.median([value for _, value in last.values()]))}")
    extra = f" and {len(ends) - 16} more" if len(ends) > 16 else ""
    return f"Line chart of ‖ΔF‖ against the step, one panel per method. {'; '.join(ends[:16])}{extra}."


def draw(frame: pd.DataFrame) -> Figure:
    """Small multiples: method × condition, depths by line style and weight."""
    groups, more = style.kept(list(frame.groupby(["label", "condition"], sort=False)))
    titles = [lettering.wrapped(str(label), str(condition)) for (label, condition), _ in groups]
    figure, all_axes = style.panels(len(groups), 4, HEIGHT, titles=max(map(len, titles)), right=0.42, more=more)
    low, high = _range(frame)
    order = frame.drop_duplicates("depth").assign(total=lambda f: f.encoder_layers + f.decoder_layers)
    depths = list(order.sort_values(["total", "encoder_layers"], kind="stable")["depth"])
    last = max(1, int(frame["step"].max()))
    for place, (axes, ((label, condition), group)) in enumerate(zip(all_axes, groups, strict=True)):
        lettering.entitle(axes, str(label), str(condition))
        if last > 100:
            style.log_axis(axes, "x", 1, last)
        else:
            axes.set_xlim(min(1, last - 1), last)
        style.log_axis(axes, "y", low, high)
        ceiling = math.sqrt(2 * int(group["width"].iloc[0]))
        style.reference(axes, ceiling, "√(2d): uncorrelated" if place % 4 == 0 else "")
        _curves(axes, group, depths)
        if place % 4 == 0:
            axes.set_ylabel("‖ΔF‖, output units")
        if place + 4 >= len(groups):
            axes.set_xlabel("step (updates done)")
    return figure


def _curves(axes: Axes, group: pd.DataFrame, depths: list[str]) -> None:
    method = str(group["method"].iloc[0])
    hue = style.colour(method)
    ends: list[End] = []
    unseen: list[str] = []
    names = ["run", "label", "condition", "seed", "outcome", "encoder_layers", "decoder_layers", "step", "update"]
    end = group["step"].max()
    for rows in points.parted(group, ["depth"], names):
        depth, short_depth = str(rows["depth"][0]), _short_depth(rows)
        line = style.depth_line(depths.index(depth), len(depths))
        places = [i for i, value in enumerate(rows["update"]) if points.drawable(value, True)]
        x, middle, low, high = points.over_seeds(
            [rows["step"][i] for i in places], [rows["update"][i] for i in places], points.median
        )
        runs = list(dict.fromkeys(rows["run"]))
        if len(runs) > 1:
            band = axes.fill_between(x, low, high, color=hue, alpha=0.18, linewidth=0)
            style.mark(band, method)
        else:
            line["linewidth"] *= 0.75
        curve = style.line(axes, x, middle, color=hue, marker="." if len(middle) == 1 else "", **line)
        whose = f"seed {rows['seed'][0]}" if len(runs) == 1 else f"median of {len(runs)} seeds"
        style.mark(curve, method, listed(rows["label"][0], depth, rows["condition"][0], whose))
        for run in (
            run for run, word in dict(zip(rows["run"], rows["outcome"], strict=True)).items() if word == "diverged"
        ):
            seen = [i for i in places if rows["run"][i] == run]
            if seen:
                at, value = [rows["step"][seen[-1]]], [rows["update"][seen[-1]]]
                cross = style.line(axes, at, value, marker="x", linestyle="", color=hue, markersize=7, mew=2, zorder=5)
                style.mark(cross, method)
            else:
                steps = [step for step, whose in zip(rows["step"], rows["run"], strict=True) if whose == run]
                seed = rows["seed"][rows["run"].index(run)]
                unseen.append(f"{short_depth} seed {seed}: diverged at step {max(steps)}")
        if len(middle) and x[-1] == end:
            ends.append((float(middle[-1]), short_depth, hue, method))
        elif len(middle):  # ended before the others: named where it ends
            axes.annotate(
                short_depth,
                (float(x[-1]), float(middle[-1])),
                xytext=(6, -2),
                textcoords="offset points",
                fontsize=7.5,
            )
    for line_number, text in enumerate(unseen[:6]):
        axes.text(0.03, 0.03 + 0.07 * line_number, f"✕ {text}", transform=axes.transAxes, fontsize=7)
    label_ends(axes, ends, LINE / HEIGHT)


def _short_depth(own: Mapping[str, list[Any]]) -> str:
    encoder, decoder = own["encoder_layers"][0], own["decoder_layers"][0]
    return f"{decoder}L" if encoder == decoder else str(own["depth"][0])


def _range(frame: pd.DataFrame) -> tuple[float, float]:
    """Of all that is drawn, the reference line and its name included."""
    values = frame.loc[points.drawable_rows(frame["update"], log=True), "update"]
    line = math.sqrt(2 * int(frame["width"].max()))
    return min([*values, line]) / 1.5, max([*values, line]) * 2.2


PICTURE: RunPicture = Picture(
    name="update",
    short="‖ΔF‖ by step",
    room="chain",
    caption="DeepNet Fig. 3(a) and Fig. 4 (journal version), against the step.",
    see="curves of the same height at every depth",
    here=run_spans.update,
    read=(
        Note(
            "Each panel is one method, on a common scale; the heavier the line, the deeper the model. "
            "At √(2d) an output that ends in a norm has nothing left in common with that of step 0 (without norms "
            "there is no such bound). Without warm-up every curve gets there; what differs is how soon."
        ),
        Note(
            "Several seeds: the median of those still finite, in a band from the lowest to the highest; one seed: a "
            "thin line.",
            ("band",),
        ),
        Note("✕: diverged, at its last finite value.", ("diverged",)),
        Note("Step 0 is 0 by definition, so a logarithmic axis cannot show it."),
    ),
    columns=COLUMNS,
    index="step",
    value="update",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has recorded a model update.",
)
