"""A figure as a page shows it: the drawing, its texts, the numbers to read, the data for the script."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from markupsafe import Markup

from stabkit.figures.drawing import svg
from stabkit.figures.drawing.style import EmptyFigure
from stabkit.figures.picture import Mark, Note, Picture, Room
from stabkit.results.points import evenly
from stabkit.words import listed, short

Source = TypeVar("Source")

DATA_LIMIT = 400_000
"""Bytes of one figure's data; a longer table is not put into the page (`--figures DIR` writes all)."""
TABLE_LIMIT = 300
"""Cells of a folded table; beyond it the page shows rows at equal distances, the last among them, and says so."""

MOST_COLUMNS = 8
"""Steps or layers of a folded table."""
ALL_TOO_LONG = "This page cannot hold all rows: `stabkit report --figures DIR` writes them as CSV."


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """One figure as the page shows it."""

    name: str
    room: Room | None
    """The section that it stands in."""
    needs: str
    """What these runs lack for it; "" where there is something to see."""
    short: str
    title: str
    svg: Markup
    alt: str
    see: str
    """What there is to see, in a sentence."""
    read: str
    """How to read the rest; of marks those alone that are drawn."""
    caption: str
    data: str
    """For the script, packed: the curves under the pointer, and the frame for the CSV."""
    large: bool
    """Whether its frame is too large for the page, so that there is no CSV to get."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def card(figure: Picture[Source], frame: pd.DataFrame, made_of: Source, before: str = "") -> Card:
    """What was selected and its picture, wrapped up with downloads and the folded table; `before` its name, where a
    page has several of its kind."""
    name = before + figure.name
    image, marks, needs = drawing(figure, frame, name)
    head, rows, note = _folded(frame, figure)
    table = _grouped(frame)
    large = len(json.dumps(table)) > DATA_LIMIT
    written = as_written(frame, table["columns"])
    return Card(
        name=name,
        room=figure.room,
        needs=needs,
        short=figure.short,
        title=figure.title(made_of),
        svg=Markup(image),
        alt=figure.described(written),
        see=figure.what_to_see(written),
        read=reading(figure.read, frame),
        caption=figure.caption,
        data=packed({"curves": [_across(mark) for mark in marks], "table": None if large else table}),
        large=large,
        head=head,
        rows=rows,
        note=f"{note} {ALL_TOO_LONG if large else 'The CSV has all.'}" if note and len(frame) else note,
    )


def as_written(frame: pd.DataFrame, measured: Sequence[str]) -> pd.DataFrame:
    """The frame with its measured numbers as the page's CSV has them, from which a reader can compute the caption."""
    written = frame.copy()
    for name in frame[list(measured)].select_dtypes("float").columns:
        written[name] = [float(f"{value:.{digits(frame)}g}") for value in frame[name]]
    return written


def drawing(figure: Picture[Any], frame: pd.DataFrame, name: str) -> tuple[str, list[dict[str, Any]], str]:
    """The svg for the page, its curves, and "" or what it needs before there is anything to draw."""
    drawn = figure.drawn(frame)
    return (*svg.to_page(drawn, name), drawn.reason if isinstance(drawn, EmptyFigure) else "")


MARKS: Mapping[Mark, Callable[[pd.DataFrame], bool]] = {
    "diverged": lambda frame: _holds(frame, "diverged"),
    "stuck": lambda frame: _holds(frame, "stuck"),
    "band": lambda frame: "seed" not in frame or frame["seed"].nunique() > 1,
}
"""{mark: whether a frame has what it stands for}."""


def _holds(frame: pd.DataFrame, outcome: str) -> bool:
    return "outcome" not in frame or outcome in set(frame["outcome"])


def reading(notes: Sequence[Note], frame: pd.DataFrame) -> str:
    """The notes, without those that explain only marks which this frame does not have."""
    shown = [note for note in notes if not note.marks or any(MARKS[mark](frame) for mark in note.marks)]
    return " ".join(note.text for note in shown)


def _across(mark: Mapping[str, Any]) -> dict[str, Any]:
    """A curve with its points by axis, which packs better than by point: "p" and "v" are [all x, all y]."""
    return {**mark, **{key: [list(axis) for axis in zip(*mark[key], strict=True)] for key in ("p", "v")}}


def _grouped(frame: pd.DataFrame) -> dict[str, Any]:
    """The frame with what is the same in all rows of a run written once, and all else column by column: {"facts",
    "runs": [[fact, …] of each run], "columns", "of": [each row's run], "cells": [each column's values]}."""
    if frame.empty:
        return {"facts": [], "runs": [], "columns": list(frame.columns), "of": [], "cells": []}
    cells = {str(name): frame[name].tolist() for name in frame.columns}
    first: dict[str, int] = {}
    for i, run in enumerate(cells["run"]):
        first.setdefault(run, i)
    leads = [first[run] for run in cells["run"]]
    facts = [name for name, values in cells.items() if all(map(_same, values, (values[i] for i in leads)))]
    columns = [name for name in cells if name not in facts]
    places = {run: place for place, run in enumerate(first)}
    return {
        "facts": facts,
        "runs": [[_number(cells[name][i]) for name in facts] for i in first.values()],
        "columns": columns,
        "of": [places[run] for run in cells["run"]],
        "cells": [[_number(value, digits(frame)) for value in cells[name]] for name in columns],
    }


def _same(value: Any, other: Any) -> bool:
    return value is other or bool(value == other) or (value != value and other != other)  # NaN is NaN


MEASURED, SURFACE = 4, 6
"""Digits of a measured number on a page, as much as a picture shows; `stabkit export` has all."""


def digits(frame: pd.DataFrame) -> int:
    """Of the measured numbers of a frame; of a surface's loss, whose second differences are told, more."""
    return SURFACE if "ruler" in frame else MEASURED


def _number(value: Any, digits: int = 6) -> Any:
    """A cell of the CSV: whole numbers and texts as they are, so many digits of the others, nothing for NaN."""
    if isinstance(value, float | np.floating):
        return None if math.isnan(value) else str(value) if math.isinf(value) else float(f"{value:.{digits}g}")
    return int(value) if isinstance(value, int | np.integer) else str(value)


def packed(value: Any) -> str:
    """JSON as a page carries what is read on request: deflated (RFC 1950), in base64; half its size or less."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _folded(frame: pd.DataFrame, figure: Picture[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """The drawn values for reading: runs down, steps or layers across, or the frame as it is."""
    if frame.empty:
        return (), (), "Nothing was drawn."
    if figure.index is None:
        names = [name for name in frame.columns if name not in ("run", "method")]
        head, count = tuple(name.replace("_", " ") for name in names), len(frame)
        kept = max(1, TABLE_LIMIT // len(head))
        some = frame[names].iloc[evenly(range(count), kept)]
        rows = [tuple(map(_cell, row)) for row in some.itertuples(index=False)]
        return head, tuple(rows), f"{kept} of {count} rows, evenly spread." if count > kept else ""
    return _by_run(frame, figure.index, figure.value)


def _by_run(frame: pd.DataFrame, index: str, value: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """A row a run, a column a step or layer: as many of both as are read with ease, from the first to the last."""
    runs = frame.drop_duplicates("run")
    held: dict[str, dict[int, float]] = {}
    for run, at, number in zip(*(frame[name].tolist() for name in ("run", index, value)), strict=True):
        held.setdefault(run, {})[int(at)] = float(number)
    places = sorted({at for own in held.values() for at in own})
    columns = evenly(places, MOST_COLUMNS)
    kept = evenly(range(len(runs)), max(1, TABLE_LIMIT // (1 + len(columns))))
    rows = []
    for label, depth, condition, seed, run in (
        runs[["label", "depth", "condition", "seed", "run"]].iloc[kept].itertuples(index=False)
    ):
        name = listed(f"{label} {depth}", condition, f"seed {seed}")
        rows.append((name, *(_cell(held[run][at]) if at in held[run] else "" for at in columns)))
    parts = [f"{len(kept)} of {len(runs)} runs"] if len(kept) < len(runs) else []
    parts += [f"{len(columns)} of {len(places)} {index}s"] if len(columns) < len(places) else []
    return (f"run, {index}", *map(str, columns)), tuple(rows), f"{' and '.join(parts)}, evenly spread." if parts else ""


def _cell(value: Any) -> str:
    return short(float(value), 3) if isinstance(value, float | np.floating) else str(value)
