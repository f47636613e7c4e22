"""The pictures of a watch of a user's model: lines against the updates, one row of the table each.

A row holds its texts, what it takes from the records and how that is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stabkit.figures.drawing import model_curves
from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.points import evenly
from stabkit.figures.shared.words import short
from stabkit.storage.watched import Watched

Line = tuple[str, str, NDArray[np.int64], NDArray[np.float64]]
"""(name, panel, updates, values)."""

COLUMNS = ("run", "panel", "x", "value")
MOST_LINES, MOST_POINTS = 6, 240
"""That one picture draws of a stack, and that one line has."""


def _picture(
    name: str,
    *,
    caption: str,
    see: str,
    read: str = "",
    lines: Callable[[Watched], Iterable[Line]],
    title: Callable[[Watched], str],
    y_label: str,
    limits: Mapping[float, str],
    reads: str,
) -> Picture[Watched]:
    """Lines against the updates."""
    return Picture(
        name=f"watched_{name}",
        short=name.capitalize(),
        caption=caption,
        see=see,
        read=(Note(read),) if read else (),
        columns=COLUMNS,
        value="value",
        select=lambda watch: _frame(lines(watch)),
        draw=lambda frame: model_curves.by_update(frame, y_label, limits),
        title=title,
        alt=lambda frame: _ends(frame, reads),
    )


def _gradient_lines(watch: Watched) -> Iterable[Line]:
    """At most six layers of a stack."""
    table = watch.cell.records.get("gradient")
    for stack in watch.cell.stacks if table is not None else ():
        norms = watch.cell.gradients(stack)
        if table is None or norms.shape[1] < 2:
            continue
        with np.errstate(all="ignore"):
            ratio = norms / norms[:, -1:]
        panel = stack if len(watch.cell.stacks) > 1 else ""
        for layer in evenly(range(norms.shape[1] - 1), MOST_LINES):
            yield f"{stack}.{layer + 1}", panel, table.steps, ratio[:, layer]


def _gradient_title(watch: Watched) -> str:
    """The lowest that a layer came to, and what became of it."""
    frame = _frame(_gradient_lines(watch))
    frame = frame[np.isfinite(frame["value"])]
    if frame.empty:
        return "Gradient: no two layers could be compared"
    least = frame.loc[frame["value"].idxmin()]
    if least["value"] > 0.5:
        return "Gradient: every layer receives as much as the top layer, or more"
    return f"Gradient: {least['run']} receives {least['value']:.2g} of the top layer's at update {least['x']:,}"


def _stream_lines(watch: Watched) -> Iterable[Line]:
    """At most six sub-layers of a stack."""
    stream = watch.cell.records["stream"]
    for stack in watch.cell.stacks:
        panel = stack if len(watch.cell.stacks) > 1 else ""
        for name in evenly([stack, *(sublayer.name for sublayer in watch.cell.of(stack))], MOST_LINES):
            yield f"{stack}, input" if name == stack else name, panel, stream.steps, stream.at(name)


def _stream_title(watch: Watched) -> str:
    """How much the end of the last stack grew from the first reading to the last."""
    last = watch.cell.facts.sublayers[-1].name
    values = watch.cell.records["stream"].at(last)
    ratio = values[-1] / values[0] if values[0] else np.nan
    return f"Stream: {last} ends at {short(float(ratio))} times its size at the start"


OUTPUT, WEIGHTS = "output", "largest step"


def _update_lines(watch: Watched) -> Iterable[Line]:
    """How far the output is from the start, and the largest step of the weights."""
    update, delta = watch.cell.records["update"], watch.cell.records.get("delta")
    yield OUTPUT, "", update.steps, update.at("state@relative")
    if delta is not None:
        names = [f"{sublayer.name}@relative" for sublayer in watch.cell.facts.sublayers]
        yield WEIGHTS, "", delta.steps, delta.select(names).max(axis=1)


def _update_title(watch: Watched) -> str:
    """Where the output is in the end, and the largest step of the weights."""
    frame = _frame(_update_lines(watch))
    moved, steps = (frame[frame["run"] == name]["value"].to_numpy() for name in (OUTPUT, WEIGHTS))
    most = f", one update moves weights by up to {np.nanmax(steps):.2g} of their norm" if len(steps) else ""
    return f"Update: the output ends {moved[-1]:.2g} times its size away from the start{most}"


def _loss_lines(watch: Watched) -> Iterable[Line]:
    """None where no loss was given."""
    loss = watch.cell.records.get("loss")
    return [] if loss is None else [("loss", "", loss.steps, loss.at("train"))]


def _loss_title(watch: Watched) -> str:
    """Its first, least and last."""
    values = _frame(_loss_lines(watch))["value"]
    if values.empty:
        return "Loss: none was given to the watch"
    return f"Loss: {values.iloc[0]:.3g} at the start, {values.min():.3g} at its least, {values.iloc[-1]:.3g} at the end"


WATCHED: tuple[Picture[Watched], ...] = (
    _picture(
        "gradient",
        caption="‖∂L/∂θ‖ over all parameters of a layer, over that of the top layer, before every update.",
        see="Level at 1: every layer learns alike.",
        read=(
            "A line that falls: that layer receives less and less and stands still; few of stabkit's own runs came "
            "back from below 10⁻². A line that rises: its gradient explodes."
        ),
        lines=_gradient_lines,
        title=_gradient_title,
        y_label="gradient ÷ top layer's",
        limits={1e-2: "warns below", 1e-4: "nothing trained", 1e2: "warns above"},
        reads="Gradient of each layer over the top layer's",
    ),
    _picture(
        "stream",
        caption="‖x_i‖/√d, mean over the probe batch's tokens, x_i what leaves sub-layer i, in eval mode.",
        see="Lines that stay together: the stream keeps its size on the way up.",
        read="A jump between two readings, while the rate is what it was, is what an update did that was too large.",
        lines=_stream_lines,
        title=_stream_title,
        y_label="rms of x",
        limits={},
        reads="rms of the residual stream",
    ),
    _picture(
        "update",
        caption=(
            "‖F(θ_t) − F(θ_0)‖/‖F(θ_0)‖, F the last stack's output after its final norm; ‖θ_t − θ_{t−1}‖/‖θ_{t−1}‖ of "
            "the sub-layer that an update moves most."
        ),
        see="Output: how far it is from where it began; at √2 it has nothing to do with that.",
        read=(
            "Largest step: where one update moves a sub-layer by as much as its own norm, the rate is too high for it."
        ),
        lines=_update_lines,
        title=_update_title,
        y_label="relative movement",
        limits={1.0: "an update as large as the weights"},
        reads="Relative movement",
    ),
    _picture(
        "loss",
        caption="The training loss, as `watch.loss(…)` was given it.",
        see="The loss, which the other pictures are to predict.",
        lines=_loss_lines,
        title=_loss_title,
        y_label="loss",
        limits={},
        reads="Training loss",
    ),
)


def _frame(lines: Iterable[Line]) -> pd.DataFrame:
    """One row a point; of a long line points that are a little more apart with every update."""
    rows: list[dict[str, object]] = []
    for name, panel, steps, values in lines:
        for i in thinned(steps):
            rows.append({"run": name, "panel": panel, "x": int(steps[i]), "value": float(values[i])})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def thinned(steps: NDArray[np.int64]) -> list[int]:
    """Places of at most MOST_POINTS of them, evenly in the update's logarithm, the first and the last among them."""
    if len(steps) <= MOST_POINTS:
        return list(range(len(steps)))
    wanted = np.geomspace(1, steps[-1] + 1, MOST_POINTS) - 1
    return sorted({0, len(steps) - 1, *np.searchsorted(steps, wanted).clip(max=len(steps) - 1).tolist()})


def _ends(frame: pd.DataFrame, reads: str) -> str:
    """The picture in words: where each line begins and ends."""
    if frame.empty:
        return "Nothing was recorded."
    parts = [
        f"{name}: {short(float(rows['value'].iloc[0]))} to {short(float(rows['value'].iloc[-1]))}"
        for name, rows in frame.groupby("run", sort=False)
    ]
    return f"{reads}, from the first reading to the last: {'; '.join(parts)}."
