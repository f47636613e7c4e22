"""One look for every picture: colour = method, line style and weight = depth, ink that follows the page.

Drawing happens inside `look()`, on matplotlib Figure objects, never through pyplot. `to_page` gives the picture for the
page, whose text and lines take the colour of the text around them; `save` and `to_bytes` give a file on white.

Whatever belongs to one method is given to `mark`, with a name if it is a curve to point at: the page can then switch
the method off and say what is under the pointer.
"""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from stabkit import methods
from stabkit.figures.comparison import SUPERSCRIPT, plain
from stabkit.folder import write_file

Group = TypeVar("Group")

COLOURS = {
    "post-ln": "#D55E00",
    "post-ln-init": "#E69F00",
    "admin": "#0072B2",
    "deepnorm": "#009E73",
    "pre-ln": "#56B4E9",
    "sub-ln": "#CC79A7",
}
FURTHER = ("#7E57C2", "#8C6D31", "#7A7A7A", "#C2185B", "#00A5B8", "#5C7A29", "#B07AA1", "#4E79A7", "#A0522D", "#6B5B95")
"""For the methods without a colour of their own, in table order."""

INK = "#010203"
"""Stands for "the colour of the text around": black on paper, `currentColor` in the page. Nothing else uses it."""

DASHES: tuple[Any, ...] = ((0, (1, 1.4)), (0, (4, 1.6)), (0, (6, 1.4, 1, 1.4)), "-")
"""Line styles from the shallowest to the deepest of up to four depths."""

WIDTH = 9.6
"""Inches; the page scales it to the width of a card."""

LEFT, TITLE_LINE, LEGEND_LINE = 0.74, 0.155, 0.2
"""Inches: left of the first panel for its scale, a line of a panel's title, a line of the legend."""

MOST_NAMES = 12
"""Beside the lines of one panel; of more lines the first, the last and evenly chosen ones between are named."""

MOST_PANELS = 12
"""Small multiples in one picture; of more, eleven evenly chosen ones and a note."""

MARK = "stabkit:"
"""What the group id of a marked artist begins with."""

MOST_TOLD = 1e300
"""Beyond it three digits may round to infinity."""

LOWEST, HIGHEST = 1e-45, 1e40
"""What a logarithmic axis shows: all that float32 can hold. Beyond it a value counts as not finite."""

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "stabkit",
    "pdf.fonttype": 42,
}


@contextmanager
def look(**changes: Any) -> Iterator[None]:
    """matplotlib's defaults and ours over them, whatever the user's matplotlibrc says; undone on leaving."""
    with matplotlib.style.context(["default", {**RC, **{key.replace("_", "."): v for key, v in changes.items()}}]):
        yield


def colour(method: str) -> str:
    """The method's colour, the same on every page."""
    if method in COLOURS:
        return COLOURS[method]
    others = [key for key in methods.KEYS if key not in COLOURS]
    place = others.index(method) if method in others else zlib.crc32(method.encode())
    return FURTHER[place % len(FURTHER)]


def depth_line(place: int, count: int) -> dict[str, Any]:
    """Line style and weight of the `place`-th of `count` depths: the deeper, the heavier; the deepest is solid."""
    share = 1.0 if count == 1 else place / (count - 1)
    return {"linestyle": DASHES[-1 - min(count - 1 - place, len(DASHES) - 1)], "linewidth": 0.9 + 1.1 * share}


def kept(groups: Sequence[Group]) -> tuple[list[Group], int]:
    """The panels to draw, the first and the last among them, and how many are left out."""
    if len(groups) <= MOST_PANELS:
        return list(groups), 0
    chosen = [groups[round(i * (len(groups) - 1) / (MOST_PANELS - 2))] for i in range(MOST_PANELS - 1)]
    return chosen, len(groups) - len(chosen)


def panels(
    count: int, columns: int, height: float, *, titles: int = 1, right: float = 0.1, legend: int = 0, more: int = 0
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` small multiples, at most `columns` beside each other; only the first column has tick labels.

    `height` of a row and `right`, the room right of each panel, in inches; `titles` lines over a panel, `legend` lines
    under all; a note in the place after the last says that `more` panels were left out. The places are computed:
    matplotlib's own layout takes longer than the drawing.
    """
    places = max(count, 1) + bool(more)
    columns = max(1, min(columns, places))
    rows = -(-places // columns)
    tall = rows * height + (0.1 + LEGEND_LINE * legend if legend else 0.0)
    figure = Figure(figsize=(WIDTH, tall))
    width = (WIDTH - LEFT) / columns
    top, bottom = 0.1 + TITLE_LINE * titles, 0.46
    found = []
    for i in range(places):
        row, column = divmod(i, columns)
        place = (LEFT + column * width, tall - (row + 1) * height + bottom, width - right - 0.1, height - top - bottom)
        axes = figure.add_axes((place[0] / WIDTH, place[1] / tall, place[2] / WIDTH, place[3] / tall))
        if column:
            axes.tick_params(labelleft=False)
        found.append(axes)
    if more:
        note = found.pop()
        note.axis("off")
        note.text(
            0.05,
            0.6,
            f"and {more} panels more, left out here;\n`stabkit report --figures DIR`\nwrites every number as CSV",
            va="center",
        )
    return figure, found


def empty(reason: str) -> Figure:
    """A picture that says why there is nothing to see."""
    with look():
        figure = Figure(figsize=(WIDTH, 1.2))
        figure.text(0.5, 0.5, reason, ha="center", va="center")
        return figure


def log_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float, ticks: Sequence[float] = ()) -> None:
    """A logarithmic axis from `low` to `high`, ticks written 0.01 and 10⁻⁷; given ticks replace the decades."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    if ticks:
        axis.set_ticks(list(ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    else:
        narrow = which == "y" and _log(high) - _log(low) < 2.5
        within = (1, 2, 3, 5, 7) if _log(high) - _log(low) < 1 else (1, 2, 5)
        axis.set_major_locator(LogLocator(10, subs=within if narrow else (1,), numticks=12 if narrow else 7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: decade(value)))
    axis.set_minor_locator(NullLocator())


def decade(value: float) -> str:
    """A power of ten as a tick: 0.01, 1, 100, 10⁻⁷."""
    if 1e-3 < value < 1e4:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    ten = "10" + str(int(exponent)).translate(SUPERSCRIPT)
    return ten if mantissa == "1" else f"{mantissa}·{ten}"


def mark(
    artist: Artist,
    method: str,
    name: str = "",
    values: Sequence[tuple[float, float]] | None = None,
    *,
    legend: bool = False,
) -> None:
    """Say whose artist this is, and what a reader who points at it is told: `name`, and the nearest of its points.

    `values` where the points drawn are not the data themselves: one (x, y) for each point. `legend`: a part of the
    legend, which stays when the method is switched off.
    """
    known: dict[str, Any] = {"method": method, "name": plain(name), "legend": legend}
    artist.set_gid(MARK + json.dumps(known if values is None else {**known, "values": [list(v) for v in values]}))


def method_of(artist: Artist) -> str:
    """The method that an artist was marked with; "" for none."""
    gid = artist.get_gid() or ""
    return str(json.loads(gid.removeprefix(MARK))["method"]) if gid.startswith(MARK) else ""


def legend(parent: Figure | Axes, handles: Sequence[Artist], **placed: Any) -> Legend:
    """A legend whose entries belong to the methods of their handles; of a figure: in its lower left corner."""
    if isinstance(parent, Figure):
        placed = {"loc": "lower left", "bbox_to_anchor": (0.0, 0.0), "borderaxespad": 0.2, **placed}
    made: Legend = parent.legend(handles=list(handles), **placed)
    for handle, text, key in zip(handles, made.get_texts(), made.legend_handles, strict=True):
        if method := method_of(handle):
            for part in (text, key):
                if part is not None:
                    mark(part, method, legend=True)
    return made


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]], step: float, method: str = "") -> None:
    """Names right of the panel beside the ends of their lines: (value, text, colour), `step` of its height apart."""
    low, high = axes.get_ylim()
    if len(ends) > MOST_NAMES:
        ends = [ends[round(i * (len(ends) - 1) / (MOST_NAMES - 1))] for i in range(MOST_NAMES)]
    span = _log(high) - _log(low)
    wanted = sorted(((_log(min(max(value, low), high)) - _log(low)) / span, text, hue) for value, text, hue in ends)
    placed = spread([at for at, _, _ in wanted], step)
    for (at, text, hue), to in zip(wanted, placed, strict=True):
        (lead,) = axes.plot([1.005, 1.035], [at, to], color=hue, linewidth=1, transform=axes.transAxes, clip_on=False)
        word = axes.text(1.045, to, safe(text, 16), transform=axes.transAxes, va="center", fontsize=7.5)
        if method:
            mark(lead, method)
            mark(word, method)


def reference(axes: Axes, value: float, name: str = "") -> None:
    """A reference line across the panel, its name on it."""
    axes.axhline(value, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.7)
    axes.annotate(
        name,
        (0.02, value),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        fontsize=7,
        va="bottom",
    )


def spread(wanted: Sequence[float], step: float) -> list[float]:
    """Sorted places moved as little as possible (least squares), so that neighbours are at least `step` apart."""
    blocks: list[tuple[float, int]] = []  # pooled adjacent violators of `wanted` less i steps: (mean, members)
    for i, at in enumerate(wanted):
        mean, members = at - i * step, 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean, members = (before * more + mean * members) / (more + members), more + members
        blocks.append((mean, members))
    flat = [mean for mean, members in blocks for _ in range(members)]
    return [at + i * step for i, at in enumerate(flat)]


def wrapped(*lines: str, width: int = 34) -> list[str]:
    """A panel's title: each text on lines of its own, broken to the panel's width, three lines at most."""
    pieces = [piece for line in lines for piece in textwrap.wrap(safe(line), width)]
    rest = textwrap.shorten(" ".join(pieces[2:]), width, placeholder=" …")
    return [*pieces[:2], *([rest] if rest else [])]


def entitle(axes: Axes, *lines: str, width: int = 34) -> None:
    """Write a panel's title."""
    axes.set_title("\n".join(wrapped(*lines, width=width)))


def safe(text: str, most: int = 1000) -> str:
    """A text that the font can draw: characters it lacks are spelled out, so that nothing warns; cut at `most`."""
    glyphs = _glyphs()
    drawn = "".join(c if ord(c) in glyphs else c.encode("unicode_escape").decode() for c in plain(text))
    return drawn if len(drawn) <= most else drawn[: most - 1] + "…"


def to_page(figure: Figure, name: str = "") -> tuple[str, list[dict[str, Any]]]:
    """The picture for the page and its curves.

    An <svg> with ink in `currentColor`, text as text and ids that start with `name`; marked groups carry their method.
    A curve: {"m": method, "n": name, "x": what its x is, "p": [[x, y] in the svg's units], "v": [[x, y] as measured]}.
    Equal figures give equal bytes.
    """
    marked, known = _marks(figure)
    root = ET.fromstring(_bytes(figure, marked, known, "svg", svg_fonttype="none", savefig_facecolor="none"))
    _tidy(root, name, {f"mark{i}": info for i, info in enumerate(known)})
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": root.attrib["viewBox"],
        "width": root.attrib["width"].removesuffix("pt"),
        "height": root.attrib["height"].removesuffix("pt"),
    }
    curves = [
        {"m": info["method"], "n": info["name"], "x": _x_name(artist), **_points(figure, artist, info.get("values"))}
        for artist, info in zip(marked, known, strict=True)
        if info["name"] and isinstance(artist, Line2D)
    ]
    return ET.tostring(root, encoding="unicode"), [curve for curve in curves if curve["p"]]


def _x_name(line: Line2D) -> str:
    """`step`: the first words of the label under the line's panel."""
    return line.axes.get_xlabel().partition(" (")[0].partition(",")[0] or "step" if line.axes is not None else ""


def _marks(figure: Figure) -> tuple[list[Artist], list[dict[str, Any]]]:
    """The marked artists of a picture, and what they were marked with."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    seen = [artist for axes in figure.axes for artist in axes.get_children()]
    seen += [part for made in legends if made for part in (*made.get_texts(), *made.legend_handles) if part is not None]
    marked = [artist for artist in seen if (artist.get_gid() or "").startswith(MARK)]
    return marked, [json.loads((artist.get_gid() or "").removeprefix(MARK)) for artist in marked]


def _points(figure: Figure, line: Line2D, values: list[list[float]] | None) -> dict[str, list[list[float]]]:
    """Where a line's finite points stand in the svg (72 units an inch, y downwards), and what they say."""
    data = np.asarray(line.get_xydata(), dtype=float)
    told = data if values is None else np.asarray(values, dtype=float).reshape(len(data), 2)
    where = line.get_transform().transform(data) * (72 / figure.dpi)
    where[:, 1] = figure.get_figheight() * 72 - where[:, 1]
    kept = np.flatnonzero(np.isfinite(where).all(axis=1) & (np.abs(told) <= MOST_TOLD).all(axis=1))
    kept = kept[_apart(where[kept])]
    return {
        "p": [[round(float(x), 1), round(float(y), 1)] for x, y in where[kept]],
        "v": [[float(f"{x:.6g}"), float(f"{y:.3g}")] for x, y in told[kept]],
    }


def _apart(where: NDArray[np.float64]) -> list[int]:
    """The points that can be pointed at one by one: each 1.5 units or more from the one kept before; the last too."""
    kept: list[int] = []
    for i, point in enumerate(where):
        if not kept or abs(point - where[kept[-1]]).max() >= 1.5:
            kept.append(i)
    return kept if not len(where) or kept[-1] == len(where) - 1 else [*kept, len(where) - 1]


def to_bytes(figure: Figure, kind: str) -> bytes:
    """The picture as the bytes of an svg, png or pdf file, on white, without a date; marks are mere numbers there."""
    return _bytes(figure, *_marks(figure), kind)


def _bytes(figure: Figure, marked: list[Artist], known: list[dict[str, Any]], kind: str, **changes: Any) -> bytes:
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    out = io.BytesIO()
    try:
        for i, artist in enumerate(marked):
            artist.set_gid(f"mark{i}")
        with look(**{"savefig_facecolor": "white", "svg_fonttype": "path", **changes}):
            figure.savefig(out, format=kind, metadata=metadata, dpi=200 if kind == "png" else 72)
    finally:
        for artist, info in zip(marked, known, strict=True):
            artist.set_gid(MARK + json.dumps(info))
    return out.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write the picture to an .svg, .png or .pdf file, whole or not at all."""
    write_file(path, to_bytes(figure, path.suffix.lstrip(".").lower()))


def _tidy(element: ET.Element, name: str, marks: Mapping[str, Mapping[str, Any]]) -> None:
    """Namespaces off the names, our ink to `currentColor`, ids made the page's own, marks to their methods, numbers to
    two decimals."""
    element.tag = element.tag.rpartition("}")[2]
    attributes: dict[str, str] = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id":
            if element.tag == "g":
                if value in marks:
                    attributes["data-legend" if marks[value]["legend"] else "data-method"] = str(marks[value]["method"])
                continue  # matplotlib numbers its groups from 1 in every picture
            value = f"{name}-{value}" if name else value
        elif name and key == "href" and value.startswith("#"):
            value = f"#{name}-{value[1:]}"
        elif name and key == "clip-path":
            value = value.replace("url(#", f"url(#{name}-")
        elif key == "style":
            value = _css(value)
        elif key in ("d", "x", "y", "width", "height"):
            value = _rounded(" ".join(value.split()))
        attributes[key] = value
    element.attrib = attributes
    if element.tag != "text" and not (element.text or "").strip():
        element.text = None
    for child in list(element):
        if child.tag.rpartition("}")[2] in ("metadata", "style", "title"):
            element.remove(child)
        else:
            _tidy(child, name, marks)
            child.tail = None if not (child.tail or "").strip() else child.tail


def _rounded(value: str) -> str:
    """Every number to two decimals; to one in a long curve, which needs less than a marker's outline."""
    digits = 1 if len(value) > 400 else 2
    return _NUMBER.sub(lambda number: f"{float(number[0]):.{digits}f}".rstrip("0").rstrip("."), value)


def _css(style: str) -> str:
    style = style.replace(INK, "currentColor")
    style = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", style)
    return re.sub(r"font-family: [^;]*;?", "", style)


_NUMBER = re.compile(r"-?\d+\.\d+")


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


def _log(value: float) -> float:
    return math.log10(value)
