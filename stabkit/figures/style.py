"""One look for every picture: colour = method, line style and weight = depth, ink that follows the page.

Drawing happens inside `look()`, on matplotlib Figure objects, never through pyplot. `to_svg` gives the picture for the
page, whose text and lines take the colour of the text around them; `save` and `to_bytes` give a file on white.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from stabkit import methods
from stabkit.figures.comparison import SUPERSCRIPT, plain
from stabkit.store import write_file

COLOURS = {
    "post-ln": "#D55E00",
    "post-ln-init": "#E69F00",
    "admin": "#0072B2",
    "deepnorm": "#009E73",
    "pre-ln": "#56B4E9",
    "sub-ln": "#CC79A7",
}
FURTHER = ("#9467BD", "#8C6D31", "#17A2A2", "#C44569", "#7F8FA6", "#5C7A29", "#B07AA1", "#4E79A7", "#A0522D", "#6B5B95")
"""For the methods without a colour of their own, in table order."""

INK = "#010203"
"""Stands for "the colour of the text around": black on paper, `currentColor` in the page. Nothing else uses it."""

DASHES: tuple[Any, ...] = ((0, (1, 1.4)), (0, (4, 1.6)), (0, (6, 1.4, 1, 1.4)), "-")
"""Line styles from the shallowest to the deepest of up to four depths."""

WIDTH = 9.6
"""Inches; the page scales it to the width of a card."""

MOST_NAMES = 12
"""Beside the lines of one panel; of more lines the first, the last and evenly chosen ones between are named."""

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


def panels(count: int, columns: int, height: float, **share: Any) -> tuple[Figure, list[Axes]]:
    """A figure of `count` small multiples, at most `columns` beside each other, on one y scale."""
    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    figure = Figure(figsize=(WIDTH, height * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True, **share)
    flat = [axes for row in grid for axes in row]
    for axes in flat[count:]:
        axes.remove()
    return figure, flat[: max(count, 1)]


def empty(reason: str) -> Figure:
    """A picture that says why there is nothing to see."""
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
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
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


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]], step: float) -> None:
    """Names right of the panel beside the ends of their lines: (value, text, colour), `step` of its height apart."""
    low, high = axes.get_ylim()
    if len(ends) > MOST_NAMES:
        ends = [ends[round(i * (len(ends) - 1) / (MOST_NAMES - 1))] for i in range(MOST_NAMES)]
    span = _log(high) - _log(low)
    wanted = sorted(((_log(min(max(value, low), high)) - _log(low)) / span, text, hue) for value, text, hue in ends)
    placed = spread([at for at, _, _ in wanted], step)
    for (at, text, hue), to in zip(wanted, placed, strict=True):
        axes.plot([1.005, 1.035], [at, to], color=hue, linewidth=1, transform=axes.transAxes, clip_on=False)
        axes.text(1.045, to, safe(text, 16), transform=axes.transAxes, va="center", fontsize=7.5)


def reference(axes: Axes, value: float, name: str = "") -> None:
    """A reference line across the panel, its name on it."""
    axes.axhline(value, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.7)
    axes.text(0.02, value * 1.06, name, transform=axes.get_yaxis_transform(), fontsize=7, va="bottom")


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


def entitle(axes: Axes, *lines: str, width: int = 34) -> None:
    """A panel's title: each text on lines of its own, broken to the panel's width, three lines at most."""
    pieces = [piece for line in lines for piece in textwrap.wrap(safe(line), width)]
    axes.set_title("\n".join([*pieces[:2], textwrap.shorten(" ".join(pieces[2:]), width, placeholder=" …")]).strip())


def safe(text: str, most: int = 1000) -> str:
    """A text that the font can draw: characters it lacks are spelled out, so that nothing warns; cut at `most`."""
    glyphs = _glyphs()
    drawn = "".join(c if ord(c) in glyphs else c.encode("unicode_escape").decode() for c in plain(text))
    return drawn if len(drawn) <= most else drawn[: most - 1] + "…"


def to_svg(figure: Figure, name: str = "") -> str:
    """The picture for the page: an <svg> with ink in `currentColor`, text as text and ids that start with `name`.

    Equal figures give equal bytes.
    """
    root = ET.fromstring(to_bytes(figure, "svg", svg_fonttype="none", savefig_facecolor="none"))
    _tidy(root, name)
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": root.attrib["viewBox"],
        "width": root.attrib["width"].removesuffix("pt"),
        "height": root.attrib["height"].removesuffix("pt"),
    }
    return ET.tostring(root, encoding="unicode")


def to_bytes(figure: Figure, kind: str, **changes: Any) -> bytes:
    """The picture as the bytes of an svg, png or pdf file, on white, without a date."""
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    out = io.BytesIO()
    with look(**{"savefig_facecolor": "white", "svg_fonttype": "path", **changes}):
        if figure.get_layout_engine() is not None:
            figure.draw_without_rendering()  # laid out once, for all files alike
            figure.set_layout_engine(None)
        figure.savefig(out, format=kind, metadata=metadata, dpi=200 if kind == "png" else 72)
    return out.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write the picture to an .svg, .png or .pdf file, whole or not at all."""
    write_file(path, to_bytes(figure, path.suffix.lstrip(".").lower()))


def _tidy(element: ET.Element, name: str) -> None:
    """Namespaces off the names, our ink to `currentColor`, ids made the page's own, numbers to two decimals."""
    element.tag = element.tag.rpartition("}")[2]
    attributes: dict[str, str] = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id":
            if element.tag == "g":
                continue  # matplotlib numbers its groups from 1 in every picture
            value = f"{name}-{value}" if name else value
        elif name and key == "href":
            value = f"#{name}-{value[1:]}"
        elif name and key == "clip-path":
            value = value.replace("url(#", f"url(#{name}-")
        elif key == "style":
            value = _css(value)
        elif key in ("d", "x", "y", "width", "height"):
            value = _NUMBER.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), " ".join(value.split()))
        attributes[key] = value
    element.attrib = attributes
    if element.tag != "text" and not (element.text or "").strip():
        element.text = None
    for child in list(element):
        if child.tag.rpartition("}")[2] in ("metadata", "style", "title"):
            element.remove(child)
        else:
            _tidy(child, name)
            child.tail = None if not (child.tail or "").strip() else child.tail


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
