"""The gradient of every decoder layer at the end of the early window: DeepNet Fig. 3(d).

‖∂L/∂θ_layer‖₂ over all parameters of a decoder layer, in the training step (probe `grad_norm`, sites `decoder.1` …
`decoder.M`). The paper shows the vanishing *after* the explosion, so the step is the last recorded one at which every
layer's gradient is finite; beside it the mean over all recorded steps from 1 on at which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures import style
from stabkit.figures.comparison import FACTS, Shown, geometric_mean, listed, short, shown
from stabkit.store import Run

NAME = "grad_norm"
SHORT = "Gradient by layer"
INDEX: str | None = "layer"
VALUE = "grad_norm"
CAPTION = "DeepNet Fig. 3(d) (journal version)."
READ = (
    "Layer 1 is the lowest. A curve that falls to the left by decades is a decoder whose lower layers receive almost "
    "no gradient: they do not learn. Several seeds: geometric mean in a band from the least to the greatest; thin "
    "dotted line: the mean over all recorded steps. A layer whose gradient is exactly 0 has no point. ✕: diverged, at "
    "the last step with finite gradients."
)
COLUMNS = (*FACTS, "step", "layer", "grad_norm", "window_mean")


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and decoder layer. Runs without a decoder, or never with finite gradients, have none."""
    rows = []
    for each in shown(runs):
        rows += _layers(each)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _layers(each: Shown) -> list[dict[str, object]]:
    table = each.run.records.get("grad_norm")
    sites = [f"decoder.{layer}" for layer in range(1, each.run.spec.model.decoder_layers + 1)]
    if table is None or not sites or not set(sites) <= set(table.sites):
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


def ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """The first decoder layer's gradient over the last's: geometric mean over the seeds of each curve.

    0 where a seed's first layer receives exactly nothing (float32 ends at 1e-45). Runs that diverged have no say: their
    last finite gradients are of another step.
    """
    ends = (
        frame[frame["outcome"] != "diverged"]
        .groupby(["label", "condition", "depth", "decoder_layers", "run"], sort=False)["grad_norm"]
        .agg(["first", "last"])
    )
    ratio = (ends["first"] / ends["last"].where(ends["last"] > 0)).rename("ratio").reset_index()
    by = ["label", "condition", "depth", "decoder_layers"]
    return ratio.groupby(by, sort=False)["ratio"].agg(_mean).reset_index()


def _mean(ratios: pd.Series[float]) -> float:
    return 0.0 if (ratios == 0).any() else geometric_mean(ratios)


def title(runs: Sequence[Run]) -> str:
    """The smallest share of the top layer's gradient that arrives at the lowest, when it is a tenth or less."""
    frame = select(runs)
    share = ratios(frame)
    share = share[(share["decoder_layers"] > 1) & (share["ratio"] <= 0.1)]
    if share.empty:
        return "How much gradient each decoder layer receives"
    least = share.sort_values("ratio", kind="stable").iloc[0]
    where = f"{least.depth} ({least.condition})" if least.condition else least.depth
    steps = sorted(set(frame["step"]))
    when = f"At step {steps[0]}, {where}," if len(steps) == 1 else f"At {where}"
    share_text = f"{short(least.ratio, 1)} of" if least.ratio > 0 else "nothing of"
    return f"{when} {least.label}'s lowest decoder layer receives {share_text} the top layer's gradient"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded gradients of decoder layers."
    parts = [
        f"{listed(label, condition, depth)} {short(ratio, 1)}"
        for label, condition, depth, _, ratio in ratios(frame).itertuples(index=False)
    ]
    extra = f" and {len(parts) - 16} more" if len(parts) > 16 else ""
    return f"Gradient norm by decoder layer, logarithmic. Lowest over top layer: {'; '.join(parts[:16])}{extra}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth × condition, methods by colour, one y scale."""
    with style.look():
        positive = frame[(frame["grad_norm"] >= style.LOWEST) & (frame["grad_norm"] <= style.HIGHEST)]
        if positive.empty:
            return style.empty("No run has recorded gradients of decoder layers.")
        order = ["encoder_layers", "decoder_layers"]
        frame = frame.assign(total=frame[order[0]] + frame[order[1]])
        groups = list(frame.groupby(["total", *order, "depth", "condition"]))
        places = {text: i for i, text in enumerate(frame["condition"].unique())}
        groups.sort(key=lambda item: (*item[0][:3], places[item[0][4]]))
        columns = 4 if len(places) == 1 else min(4, len(places)) if len(places) > 1 else 1
        figure, all_axes = style.panels(len(groups), columns=columns, height=2.7)
        low, high = positive["grad_norm"].min() / 3, positive["grad_norm"].max() * 3
        named: dict[str, object] = {}
        for place, (axes, (key, group)) in enumerate(zip(all_axes, groups, strict=True)):
            depth, condition = key[3], key[4]
            steps = sorted(set(group["step"]))
            when = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]}–{steps[-1]}"
            style.entitle(axes, f"{depth}, {when}", str(condition))
            style.log_axis(axes, "y", low, high)
            layers = int(group["layer"].max())
            axes.set_xlim(1 - 0.03 * layers, layers * 1.03)
            axes.set_xticks(_ticks(layers))
            for under, (label, of_method) in enumerate(group.groupby("label", sort=False)):
                named.setdefault(str(label), _method(axes, str(label), of_method, width=max(1.2, 2.8 - 0.45 * under)))
            if place % columns == 0:
                axes.set_ylabel("‖∂L/∂θ‖ of the layer")
            axes.set_xlabel("decoder layer")
        figure.legend(
            handles=list(named.values()),
            loc="outside lower left",
            ncols=min(6 if max(map(len, named)) <= 20 else 2, len(named)),
            handlelength=2.2,
        )
        return figure


def _ticks(layers: int) -> list[int]:
    """Layer 1, multiples of a round number, and the last layer."""
    step = next((n for n in (1, 2, 3, 5, 10, 20, 25, 50, 100) if layers <= 6 * n), 200)
    return sorted({1, *range(step, layers - step // 2, step), layers})


def _method(axes: Axes, label: str, frame: pd.DataFrame, width: float) -> object:
    """One method's curve; the first of a panel is the widest, so that those drawn over it leave it to be seen.

    Runs that diverged stand for themselves, thin and with a ✕.
    """
    hue = style.colour(frame["method"].iloc[0])
    line: dict[str, Any] = {"color": hue, "linestyle": "--" if "(" in label else "-", "label": style.safe(label, 40)}
    line["marker"] = "." if frame["layer"].max() == 1 else ""
    for name in ("grad_norm", "window_mean"):
        frame = frame.assign(**{name: frame[name].where(frame[name].between(style.LOWEST, style.HIGHEST))})
    handle: object = None
    for _, lost in frame[frame["outcome"] == "diverged"].groupby("run"):
        (handle,) = axes.plot(lost["layer"], lost["grad_norm"], linewidth=1.0, **line)
        axes.plot(lost["layer"].iloc[-1:], lost["grad_norm"].iloc[-1:], "x", color=hue, markersize=7, mew=2, zorder=5)
    kept = frame[frame["outcome"] != "diverged"]
    if len(kept):
        by_layer = kept.groupby("layer")
        middle, window = (by_layer[name].agg(geometric_mean) for name in ("grad_norm", "window_mean"))
        if kept["run"].nunique() > 1:
            low, high = by_layer["grad_norm"].min(), by_layer["grad_norm"].max()
            axes.fill_between(middle.index, low, high, color=hue, alpha=0.18, linewidth=0)
        axes.plot(window.index, window, color=hue, linewidth=0.8, linestyle=":")
        (handle,) = axes.plot(middle.index, middle, linewidth=width, **line)
    return handle
