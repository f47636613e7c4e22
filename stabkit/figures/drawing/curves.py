"""Small multiples of curves: a panel a depth, methods by colour, conditions by line style.

A frame for `draw` has the columns of `FACTS`, an x, a y, and, unless its panels are its depths, `panel` (the text over
each, in their order). Several seeds are one line in a band from least to greatest; a run that diverged ends in a ✕.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.line_ends import BEYOND, label_ends, last_read
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.drawing.style import CONDITION_DASHES
from stabkit.results.conditions import MOST_IN_COLOUR
from stabkit.results.outcome import NOT_JUDGED
from stabkit.results.points import drawable, drawable_rows, median, medians, over_seeds, parted
from stabkit.results.readings import centre
from stabkit.words import listed, short, some

DRAWN = ("run", "method", "label", "condition", "depth", "seed", "outcome")
"""Columns that a line is drawn from, besides its own."""
LETTERS = 40
"""Of a name in the legend, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strokes:
    """What tells the lines of one colour in a panel apart."""

    column: str
    """Of the frame: each of its values is a line of its own."""
    looks: Mapping[str, Mapping[str, Any]]
    """Line style of each value and, where it has one, its weight; else the lines on top are the thinner ones."""
    named: Sequence[str] = ()
    """Values that the legend shows."""
    panels: Sequence[str] = ("panel",)
    right: float = 0.1
    """Room right of each panel, in inches."""
    ends: str = ""
    """A column whose values are named right of the panel, where their lines end."""


def conditions(frame: pd.DataFrame) -> Strokes:
    """A line style a condition; more than there are line styles have panels of their own."""
    texts = [str(text) for text in frame["condition"].unique()]
    if len(texts) > len(CONDITION_DASHES):
        looks = {text: {"linestyle": "-"} for text in texts}
        return Strokes(column="condition", looks=looks, panels=("panel", "condition"))
    looks = {text: {"linestyle": dashes} for text, dashes in zip(texts, CONDITION_DASHES, strict=False)}
    return Strokes(column="condition", looks=looks, named=texts if len(texts) > 1 else ())


def depths(frame: pd.DataFrame) -> Strokes:
    """A line style and a weight a depth; each is named where its line ends."""
    names = [str(depth) for depth in by_depth(frame)["depth"].unique()]
    looks = {name: style.depth_line(rank, len(names)) for rank, name in enumerate(names)}
    return Strokes(column="depth", looks=looks, right=0.85, ends="depth")


def solid(column: str) -> Callable[[pd.DataFrame], Strokes]:
    """A solid line for each value of a column."""

    def strokes(frame: pd.DataFrame) -> Strokes:
        looks = {str(value): {"linestyle": "-"} for value in frame[column].unique()}
        return Strokes(column=column, looks=looks)

    return strokes


@dataclass(frozen=True, kw_only=True, slots=True)
class Curves:
    """What a figure of curves shows."""

    x: str
    y: str
    x_name: str | Callable[[pd.DataFrame], str]
    """What x is, of all panels or of the rows of one: on its axis, and to who points at a curve."""
    y_label: str
    x_note: str = ""
    """What the axis says besides."""
    log_y: bool = True
    beside: str = ""
    """A second column, drawn thin and dotted."""
    middle: Callable[[Sequence[float]], float] = centre
    """What of several seeds is drawn."""
    reference: Callable[[pd.DataFrame], Sequence[tuple[float, str]]] = lambda group: ()
    """The height and the name of each reference line of a panel."""
    upright: tuple[float, str] | None = None
    """The x and the name of a line down each panel."""
    ended: bool = False
    """Whether each place of a line has the sign of how its runs ended, the worst of its seeds."""
    across: Literal["linear", "decades", "factors"] = "linear"
    """The x axis: decades for the steps of long runs, where what matters happens first; factors are marked one by one
    on a log scale."""
    ticks: Callable[[pd.DataFrame], Sequence[float]] | None = None
    one_x: bool = False
    """Whether all panels have the same x axis."""
    grouped: bool = False
    """Whether a panel of many places shows the medians of neighbours."""
    places: Sequence[str] = ()
    """Where x counts places from 0 on: their names."""
    marks: bool = False
    """Whether each line is a mark, with the sign of how its runs ended."""
    strokes: Callable[[pd.DataFrame], Strokes] = conditions
    """What the lines of one colour in a panel are: `conditions` or `depths`."""
    columns: int = 4
    height: float = 2.7

    def name_of_x(self, group: pd.DataFrame) -> str:
        return self.x_name if isinstance(self.x_name, str) else self.x_name(group)


def by_depth(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame in the order of depths; runs of one depth keep theirs."""
    order = frame.assign(total=frame["encoder_layers"] + frame["decoder_layers"])
    return order.sort_values(["total", "encoder_layers"], kind="stable").drop(columns="total").reset_index(drop=True)


def draw(frame: pd.DataFrame, what: Curves) -> Figure | None:
    """The panels and one legend for all; a panel a depth where the frame names none; None where no value has a
    place."""
    frame = frame if "panel" in frame else frame.assign(panel=frame["depth"])
    seen = frame[drawable_rows(frame[what.y], what.log_y)]
    if seen.empty:
        return None
    strokes = what.strokes(frame)
    groups, more = style.drawn_groups(list(frame.groupby(list(strokes.panels), sort=False)))
    titles = [lettering.wrapped(*(str(text) for text in key)) for key, _ in groups]
    labels = [lettering.safe(str(text), LETTERS) for text in (*frame["label"].unique(), *strokes.named)]
    longest = max(map(len, labels))
    beside = min(6 if longest <= 20 else 3 if longest <= 40 else 2 if longest <= 60 else 1, len(labels))
    named = frame["method"].nunique() > MOST_IN_COLOUR and not strokes.ends
    ends = [rows for i, (_, rows) in enumerate(groups, 1) if named and (i == len(groups) or i % what.columns == 0)]
    rest = set(map(str, frame["label"])).difference(*(map(str, rows["label"]) for rows in ends))
    figure, all_axes = style.panels(
        len(groups),
        what.columns,
        what.height,
        titles=max(map(len, titles)),
        right=strokes.right,
        legend=-(-(len(strokes.named) + len(rest)) // beside),
        more=more,
        beyond=BEYOND if named else 0.0,
    )
    low, high = _range(seen, groups, what)
    values, line = [y for y in (what.y, what.beside) if y], ["run", strokes.column]
    handles: dict[str, Artist] = {}
    for number, (axes, (key, whole)) in enumerate(zip(all_axes, groups, strict=True)):
        lettering.entitle(axes, *(str(text) for text in key))
        group, note = medians(whole, what.x, values, line) if what.grouped else (whole, "")
        style.log_axis(axes, "y", low, high) if what.log_y else axes.set_ylim(low, high)
        _across(axes, seen if what.one_x else group, what)
        for height, words in what.reference(group):
            style.reference(axes, height, words if number % what.columns == 0 else "", right=what.across == "factors")
        if what.upright:
            style.upright(axes, *what.upright)
        _lost(axes, group, what)
        for label, handle, plain in _lines(axes, group, what, strokes):
            if plain or label not in handles:
                handles[label] = handle
        if strokes.ends:
            _name(axes, group, what, strokes.ends)
        if any(rows is whole for rows in ends):
            _name(axes, group, what, "label")
        if number % min(what.columns, len(groups)) == 0:
            axes.set_ylabel(what.y_label)
        axes.set_xlabel(what.name_of_x(group) + what.x_note + note)
    shown = [
        Line2D(
            [], [], color=style.INK, label=lettering.safe(text, LETTERS), **{"linewidth": 1.2, **strokes.looks[text]}
        )
        for text in strokes.named
    ]
    if entries := [*(handle for label, handle in handles.items() if label in rest), *shown]:
        style.legend(figure, entries, ncols=beside, handlelength=2.4)
    return figure


def _lines(axes: Axes, group: pd.DataFrame, what: Curves, strokes: Strokes) -> list[tuple[str, Artist, bool]]:
    """Draws the lines of a panel: each one's label, its handle, and whether it is solid, as a legend shows it best."""
    drawn = []
    x_name = what.name_of_x(group)
    names = [name for name in (*DRAWN, what.x, what.y, what.beside) if name]
    for under, columns in enumerate(parted(group, ["label", "condition", strokes.column], names)):
        look = {"linewidth": max(1.2, 2.4 - 0.3 * under), **strokes.looks[str(columns[strokes.column][0])]}
        drawn.append((str(columns["label"][0]), _curve(axes, columns, what, look, x_name), look["linestyle"] == "-"))
    return drawn


def _lost(axes: Axes, group: pd.DataFrame, what: Curves) -> None:
    """The runs without a single value: by name, or, where each factor has its place on the axis, as a ✕ there."""
    if what.across == "factors" or what.places:
        return _crosses(axes, group, what)
    if not (group["outcome"] == "diverged").any():
        return
    unseen = [
        f"✕ {listed(label, f'seed {seed}')}: diverged at once"
        for (label, seed, _), rows in group[group["outcome"] == "diverged"].groupby(["label", "seed", "run"])
        if not drawable_rows(rows[what.y], what.log_y).any()
    ]
    for line_number, text in enumerate(unseen[:6]):
        axes.text(0.03, 0.03 + 0.07 * line_number, text, transform=axes.transAxes, fontsize=7)


def _crosses(axes: Axes, group: pd.DataFrame, what: Curves) -> None:
    """A ✕ at the upper edge over the factor of every run that diverged and has no value."""
    lost = group[~drawable_rows(group[what.y], what.log_y)].drop_duplicates(["method", what.x])
    for method, x in zip(lost["method"], lost[what.x].astype(float), strict=True):
        across = axes.get_xaxis_transform()
        (cross,) = axes.plot([x], [0.96], "x", color=style.colour(str(method)), markersize=7, mew=2, transform=across)
        style.mark(cross, str(method))


def _name(axes: Axes, group: pd.DataFrame, what: Curves, column: str) -> None:
    """Each value of a column beside the panel, at the height of its last reading."""
    ends = last_read(group, what.x, what.y, column, middle=what.middle, log=what.log_y)
    label_ends(axes, ends, min(0.15, 2.1 / max(len(ends), 1)) / what.height)


def _curve(axes: Axes, columns: Mapping[str, list[Any]], what: Curves, look: dict[str, Any], x_name: str) -> Artist:
    """One method under one condition: the seeds that lasted as a line in its band, those that diverged one by one."""
    method, label = str(columns["method"][0]), str(columns["label"][0])
    hue = style.colour(method)
    width = look["linewidth"]
    line: dict[str, Any] = {"linestyle": look["linestyle"], "label": lettering.safe(label, LETTERS)}
    ys = [y for y in (what.y, what.beside) if y]
    seen = {y: [value if drawable(value, what.log_y) else math.nan for value in columns[y]] for y in ys}
    condition, depth = str(columns["condition"][0]), str(columns["depth"][0])
    handle: Artist = Line2D([], [], **line)
    kept, lost = list[int](), dict[str, list[int]]()
    for row, (run, outcome) in enumerate(zip(columns["run"], columns["outcome"], strict=True)):
        (lost.setdefault(run, []) if outcome == "diverged" else kept).append(row)
    for rows in lost.values():
        x, y = [columns[what.x][i] for i in rows], [seen[what.y][i] for i in rows]
        handle = style.line(axes, x, y, linewidth=0.9, **line, **style.signed(method, y))
        style.mark(
            handle, method, listed(label, depth, condition, f"seed {columns['seed'][rows[0]]}", "diverged"), x=x_name
        )
        for at, value in [point for point in zip(x, y, strict=True) if not math.isnan(point[1])][-1:]:
            cross = style.line(axes, [at], [value], marker="x", linestyle="", color=hue, markersize=7, mew=2, zorder=5)
            style.mark(cross, method)
    if kept:
        seeds = {columns["seed"][i] for i in kept}
        depth = depth if len({columns["depth"][i] for i in kept}) == 1 else ""
        x = [columns[what.x][i] for i in kept]
        x_of, middle, low, high = over_seeds(x, [seen[what.y][i] for i in kept], what.middle)
        if len(seeds) > 1:
            band: Artist = axes.fill_between(x_of, low, high, color=hue, alpha=0.16, linewidth=0)
            if len(middle) == 1:  # a band needs two
                band = axes.vlines(x_of, low, high, color=hue, alpha=0.55, linewidth=1.4)
            style.mark(band, method)
        if what.beside:
            x_beside, second, _, _ = over_seeds(x, [seen[what.beside][i] for i in kept], what.middle)
            thin = style.line(axes, x_beside, second, color=hue, linewidth=0.8, linestyle=":")
            style.mark(thin, method)
        thick = width if len(seeds) > 1 else min(width, 1.4)
        ink = _sign(method, columns["outcome"]) if what.marks else style.signed(method, middle)
        if what.ended:
            ink, words = {"color": hue}, [columns["outcome"][i] for i in kept]
            _signs(axes, method, zip(x, words, strict=True), dict(zip(x_of, middle, strict=True)))
        handle = style.line(axes, x_of, middle, **{"linewidth": thick, **line, **ink})
        whose = f"seed {columns['seed'][kept[0]]}" if len(seeds) == 1 else f"median of {len(seeds)} seeds"
        style.mark(handle, method, listed(label, depth, condition, whose), x=x_name)
    if what.marks:
        handle = Line2D([], [], color=hue, **MARKS["trains"], **{**line, "linestyle": ""})
    if not style.method_of(handle):
        style.mark(handle, method)
    return handle


def _signs(axes: Axes, method: str, ends: Iterable[tuple[float, str]], heights: Mapping[float, float]) -> None:
    """At each x the sign of how its runs ended."""
    words: dict[float, list[str]] = {}
    for x, word in ends:
        words.setdefault(x, []).append(word)
    for x, outcomes in words.items():
        (sign,) = axes.plot([x], [heights[x]], zorder=4, **_sign(method, outcomes))
        style.mark(sign, method)


def _sign(method: str, outcomes: Sequence[str]) -> dict[str, Any]:
    """A mark without a line, of the worst of these outcomes."""
    word = next((word for word in ("stuck", NOT_JUDGED) if word in outcomes), "trains")
    return {"color": style.colour(method), **MARKS[word], "linestyle": ""}


def _across(axes: Axes, group: pd.DataFrame, what: Curves) -> None:
    """The x axis: from the first to the last value, a decade scale for more than 100 steps."""
    first, last = float(group[what.x].min()), float(group[what.x].max())
    if what.places:
        axes.set_xlim(-0.4, len(what.places) - 0.6)
        axes.set_xticks(range(len(what.places)), what.places, fontsize=7.5)
    elif what.across == "factors":
        places = sorted(group[what.x].unique())
        style.log_axis(axes, "x", places[0] / 1.15, places[-1] * 1.15, ticks=places[:: -(-len(places) // 6)])
    elif what.ticks is not None:
        axes.set_xlim(first - 0.03 * max(last - first, 1), last + 0.03 * max(last - first, 1))
        axes.xaxis.set_major_locator(FixedLocator(list(what.ticks(group))))
    elif what.across == "decades" and last > 100:
        style.log_axis(axes, "x", 1, last)
    else:
        axes.set_xlim(first, max(last, first + 1))
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _range(seen: pd.DataFrame, groups: list[tuple[Any, pd.DataFrame]], what: Curves) -> tuple[float, float]:
    """Of all that is drawn in any panel, reference lines and their names included."""
    lines = [height for _, group in groups for height, _ in what.reference(group)]
    beside = seen[what.beside][drawable_rows(seen[what.beside], what.log_y)].tolist() if what.beside else []
    values = [float(seen[what.y].min()), float(seen[what.y].max()), *beside, *lines]
    if what.log_y:
        room = min(1.5, max(1.08, (max(values) / min(values)) ** 0.1))
        return min(values) / room, max(values) * (room**2 if lines else room)
    room = 0.06 * (max(values) - min(values) or abs(max(values)) or 1.0)
    return min(values) - room, max(values) + room


def layer_ticks(group: pd.DataFrame, column: str = "layer") -> list[int]:
    """1, multiples of a round number, and the last."""
    last = int(group[column].max())
    step = next((n for n in (1, 2, 3, 5, 10, 20, 25, 50, 100) if last <= 6 * n), 200)
    return sorted({1, *range(step, last - step // 2, step), last})


def lines(frame: pd.DataFrame, column: str, name: str, height: Callable[[float], float]) -> list[tuple[float, str]]:
    """A reference line for each finite value of a column; only a single one is named alone."""
    values = sorted({float(f"{value:.6g}") for value in frame[column].unique() if math.isfinite(value)})
    return [(height(value), name if len(values) == 1 else f"{name} ({column} {value:g})") for value in values]


def ends(frame: pd.DataFrame, x: str, y: str) -> str:
    """`Post-LN 18L-18L 0.75; …`: each curve at its last x, sixteen at most: what an alt text is made of."""
    texts = []
    for columns in parted(frame, ["label", "condition", "depth"], [x, y]):
        seen = [(at, value) for at, value in zip(columns[x], columns[y], strict=True) if math.isfinite(value)]
        last = max((at for at, _ in seen), default=None)
        where = listed(columns["label"][0], columns["condition"][0], columns["depth"][0])
        texts.append(f"{where} {short(median([value for at, value in seen if at == last]))}")
    return some(texts, 16)
