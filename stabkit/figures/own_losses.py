"""The picture of `stabkit probe` that stands first: how the loss of every depth goes, and with the changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.picture import Note, Picture
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.cure import BY_KEY
from stabkit.results.own.decided import losses
from stabkit.results.own.judged import Judged
from stabkit.results.own.looks import TEN
from stabkit.words import short, updates

COLUMNS = ("run", "kind", "x", "value")
DEPTH, CHANGE, LEVEL, HALF, REFERENCE = "depth", "change", "level", "half", "reference"
HUE, OTHERS, GREY = "#0072B2", ("#D55E00", "#CC79A7"), "#767676"
"""Of the model as it is, the deeper the heavier; of the changes; of level and reference."""
DASHES = {LEVEL: "--", HALF: "-.", REFERENCE: ":"}
CHANGES = 2
"""That are drawn, at most."""


def _lines(source: Judged) -> Iterator[tuple[str, str, ModelCell]]:
    """(name, kind, cell): every depth at the worst rate with the seed that its word is of, trained as far as it was."""
    longer = {cell.depth: cell for key, cell in source.beside if not key}
    for own in source.worst.depths:
        cells = [cell for cell in source.cells if (cell.facts.depth, cell.facts.lr) == (own.depth, source.worst.lr)]
        cell = longer.get(own.depth or 0) or next(cell for cell in cells if cell.seed == own.seed)
        yield f"{own.depth}L" if own.depth else "as it is", DEPTH, cell
    good = [one for one in source.cures if one.word in ("trains", "probably trains")]
    seen = [one.change for one in good if one.loss is not None]
    best = source.cure.change if source.cure else ""
    for key, cell in sorted(source.beside, key=lambda one: one[0] != best):
        if key in list(dict.fromkeys((best, *seen)))[:CHANGES]:
            yield key, CHANGE, cell


def _select(source: Judged) -> pd.DataFrame:
    """Means of the last TEN losses at every update, of fewer at the first; level and reference at both ends."""
    rows: list[tuple[str, str, int, float]] = []
    for name, kind, cell in _lines(source):
        made = losses(cell)
        means = [float(np.mean(made[max(0, t - TEN) : t])) for t in range(1, len(made) + 1)]
        rows += [(name, kind, t, value) for t, value in enumerate(means, 1)]
    last = max((row[2] for row in rows), default=1)
    facts = max(source.cells, key=lambda cell: cell.depth).facts
    known = "best constant" if facts.regression else "frequencies"
    level, reference = facts.frequencies, facts.entropy
    half = None if level is None or reference is None else (level + reference) / 2
    for name, kind, value in ((known, LEVEL, level), ("half way", HALF, half), ("all is learnt", REFERENCE, reference)):
        rows += [(name, kind, t, value) for t in (1, last) if value is not None]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _draw(frame: pd.DataFrame) -> Figure | None:
    """None where no number is left."""
    finite = frame[np.isfinite(frame["value"])]
    own = finite[finite["kind"].isin((DEPTH, CHANGE))]
    if own.empty:
        return None
    figure, (panel,) = style.panels(1, 1, 3.2, right=1.6)
    names = own[own["kind"] == DEPTH]["run"].unique().tolist()
    first = next(iter(own[own["kind"] == CHANGE]["run"]), "")
    ends: list[End] = []
    for name, rows in finite.groupby("run", sort=False):
        kind = str(rows["kind"].iloc[0])
        ink = OTHERS[name != first] if kind == CHANGE else HUE if kind == DEPTH else GREY
        dash = "-." if kind == CHANGE and name != first else DASHES.get(kind, "-")
        plain: dict[str, Any] = {"linewidth": 1.8 if kind == CHANGE else 0.9, "linestyle": dash}
        look = style.depth_line(names.index(name), len(names)) if kind == DEPTH else plain
        (line,) = panel.plot(rows["x"], rows["value"], color=ink, **look)
        style.mark(line, "", str(name), x="update")
        at, value = int(rows["x"].iloc[-1]), float(rows["value"].iloc[-1])
        if early := at < finite["x"].max():
            panel.plot([at], [value], "o", color=ink, markersize=3.5)
        ends.append((value, f"{name}, to {at}" if early and kind == DEPTH else str(name), ink, ""))
    lines = finite[finite["kind"].isin(DASHES)]["value"].tolist()
    low, high = min([*own["value"], *lines]), max([*lines, *own.groupby("run")["value"].first()])
    panel.set_ylim(low - 0.05 * (high - low), high + 0.15 * (high - low))  # what diverges leaves the panel
    panel.set_xlabel("updates")
    panel.set_ylabel("training loss, mean of ten")
    label_ends(panel, ends, 0.075)
    return figure


def _title(source: Judged) -> str:
    """`Loss: 3.16 at 24 layers after 150 updates, 1.31 with DeepNorm in place of Post-LN`."""
    frame = _select(source)
    own = frame[frame["kind"] == DEPTH]
    if own.empty:
        return "Loss: a number was lost before any update"
    name = str(own["run"].iloc[-1])
    rows = own[own["run"] == name]
    change = frame[frame["kind"] == CHANGE]
    if change.empty:
        return f"Loss: {_value(rows)} at {name} after {updates(len(rows))}"
    first = str(change["run"].iloc[0])
    with_it = change[change["run"] == first]
    both = min(len(rows), len(with_it))
    said = f"Loss: {_value(rows[:both])} at {name} after {updates(both)}"
    return f"{said}, {_value(with_it[:both])} with {BY_KEY[first].label}"


def _value(rows: pd.DataFrame) -> str:
    last = float(rows["value"].iloc[-1])
    return short(last, 3) if np.isfinite(last) else "diverged"


def _alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{name} ends at {_value(rows)} after {updates(int(rows['x'].max()))}"
        for name, rows in frame[frame["kind"].isin((DEPTH, CHANGE))].groupby("run", sort=False)
    ]
    return f"Training loss against updates: {'; '.join(parts)}."


LOSSES: Picture[Judged] = Picture(
    name="own_losses",
    short="Losses",
    caption=(
        f"Training loss, each update on a batch of its own: the mean of the last {TEN}. Grey: what knowing nothing of "
        "the input costs and, where that is known, what knowing all costs, and half way. All saw the same batches."
    ),
    see="a model that trains falls half way to what can be learnt; that line stands where it is known",
    read=(
        Note(
            "A line that ends early had its word by then. Changes are trained beside the deepest model that fails, "
            "as far as it."
        ),
    ),
    columns=COLUMNS,
    value="value",
    select=_select,
    draw=_draw,
    title=_title,
    alt=_alt,
)
