"""The pictures of `stabkit probe`, of a user's model: a curve a depth, one link of the chain a row of the table.

A row holds its texts, what it takes from the records of a cell and how that is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pandas as pd

from stabkit.figures.drawing import model_curves
from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.words import short
from stabkit.results.depth_fit import geometric
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.judged import Judged
from stabkit.results.words import scientific

Link = Literal["stream", "update", "gradient"]
Points = Sequence[tuple[float, float]]

COLUMNS = ("run", "panel", "depth", "seed", "x", "value")


def _picture(
    link: Link,
    *,
    caption: str,
    see: str,
    read: str,
    points: Callable[[Judged, ModelCell, str], Points],
    by_stack: bool = True,
    x_name: str,
    x_note: str = "",
    y_label: str,
    limits: Mapping[float, str],
    reads: str,
) -> Picture[Judged]:
    """A curve a depth: the `points` of every cell, stack by stack; its title is what the link's verdict says."""

    def select(source: Judged) -> pd.DataFrame:
        rows: list[dict[str, object]] = []
        for cell in source.cells:
            for stack in cell.stacks if by_stack else [""]:
                rows += _rows(cell, _panel(source, cell, stack), points(source, cell, stack))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    return Picture(
        name=f"own_{link}",
        short=link.capitalize(),
        caption=caption,
        see=see,
        read=(Note(read),),
        columns=COLUMNS,
        value="value",
        select=select,
        draw=lambda frame: model_curves.by_depth(frame, x_name, x_note, y_label, limits),
        title=lambda source: f"{link.capitalize()}: {source.worst.links[link].why}",
        alt=lambda frame: _ends(frame, reads),
    )


def _stream_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """x is the share of the way through the stack."""
    names = [stack, *(sublayer.name for sublayer in cell.of(stack))]
    stream = cell.records["stream"]
    return [(i / (len(names) - 1), float(stream.at(name)[0])) for i, name in enumerate(names)]


def _update_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """Step 0, at which nothing has moved, is left out."""
    steps = cell.records["update"].steps
    return [(int(step), float(value)) for step, value in zip(steps[1:], cell.update()[1:], strict=True)]


def _gradient_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """At the step judged; x is the share of the way from the top layer to the lowest."""
    norms = cell.gradients(stack)
    if norms.shape[1] < 2:
        return []
    steps = {verdict.lr: verdict.gradient.step for verdict in source.verdicts}
    layers = norms[min(steps[cell.facts.lr], len(norms) - 1)]
    top = float(layers[-1]) or float("nan")
    return [(i / (len(layers) - 1), float(value) / top) for i, value in enumerate(layers[::-1])]


OWN: Mapping[Link, Picture[Judged]] = {
    "stream": _picture(
        "stream",
        caption="rms of x_i before any update, x_i what leaves sub-layer i; the band is the range over seeds.",
        see=(
            "The axis is logarithmic: a straight slope is growth by a factor a layer; independent branches, which add "
            "up as the square root of their number, bend down."
        ),
        read="Where every sub-layer ends in a norm it is level.",
        points=_stream_points,
        x_name="way through the stack",
        x_note=", from the first sub-layer to the last",
        y_label="rms of x",
        limits={},
        reads="rms of the residual stream",
    ),
    "update": _picture(
        "update",
        caption=(
            "‖F(θ_t) − F(θ_0)‖/‖F(θ_0)‖, F the last stack's output after its final norm, mean over the batch's tokens."
        ),
        see="Curves that lie on one another: depth does not change how far an update reaches.",
        read="At √2 the output has nothing to do with what it was: a plateau there is saturation, not stability.",
        points=_update_points,
        by_stack=False,
        x_name="update",
        y_label="‖ΔF‖ ÷ ‖F‖",
        limits={0.9: "saturated", math.sqrt(2): "√2: nothing of the start is left"},
        reads="Share of its size that the output has moved",
    ),
    "gradient": _picture(
        "gradient",
        caption=(
            "‖∂L/∂θ‖ over all parameters of a layer, over that of the top layer, before the update of the step judged."
        ),
        see="Level: every layer learns alike.",
        read=(
            "Falling to the right: the lower layers receive next to nothing and stand still; rising: their gradients "
            "explode. In stabkit's own runs nothing trained below 10⁻⁴, nearly all did above 10⁻²."
        ),
        points=_gradient_points,
        x_name="way through the stack",
        x_note=", from the top layer to the lowest",
        y_label="gradient ÷ top layer's",
        limits={1e-2: "warns below", 1e-4: "fails below", 1e2: "warns above", 1e4: "fails above"},
        reads="Gradient of each layer over the top layer's",
    ),
}
"""{link of the chain: its picture}, of `stabkit probe`."""


def _panel(judged: Judged, cell: ModelCell, stack: str = "") -> str:
    """Where a cell is drawn: by rate where there are several, by stack where there are."""
    rate = f"rate {scientific(cell.facts.lr)}" if len(judged.verdicts) > 1 else ""
    stack = stack if len(cell.stacks) > 1 else ""
    return ", ".join(word for word in (rate, stack) if word)


def _depth_text(cell: ModelCell) -> str:
    """`12 layers`; of a factory that takes no depth, the sub-layers found."""
    depth = cell.facts.depth
    return f"{depth} layers" if depth is not None else f"{len(cell.facts.sublayers)} sub-layers"


def _rows(cell: ModelCell, panel: str, points: Points) -> list[dict[str, object]]:
    """A curve as rows of a frame."""
    return [
        {
            "run": f"{_depth_text(cell)}, seed {cell.facts.seed}{f', {panel}' if panel else ''}",
            "panel": panel,
            "depth": cell.facts.depth or 0,
            "seed": cell.facts.seed,
            "x": x,
            "value": value,
        }
        for x, value in points
    ]


def _ends(frame: pd.DataFrame, reads: str) -> str:
    """The picture in words: where each depth ends."""
    if frame.empty:
        return "Nothing was recorded."
    parts = []
    for (panel, depth), rows in frame.groupby(["panel", "depth"], sort=False):
        last = geometric(rows[rows["x"] == rows["x"].max()]["value"].tolist())
        where = f"{depth} layers" if depth else "the model"
        parts.append(f"{where}{f', {panel}' if panel else ''}: {short(last)}")
    return f"{reads}, at its right end: {'; '.join(parts)}."
