"""A picture as the page's svg or as a file.

In the page text and lines take the colour of the text around them, and what was marked (`style.mark`) carries its
method; a file stands on white.
"""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from stabkit.figures.drawing import style
from stabkit.storage.folder import write_file

LARGEST = 1e300
"""Beyond it three digits may round to infinity."""
PAGE = {"svg_fonttype": "none", "savefig_facecolor": "none"}
_NUMBER = re.compile(r"-?\d+\.\d+")


def to_page(figure: Figure, name: str = "") -> tuple[str, list[dict[str, Any]]]:
    """The picture for the page and its curves.

    An <svg> with ink in `currentColor`, text as text and ids made of `name`; marked groups carry their method.
    A curve: {"m": method, "n": name, "x": what its x is, "p": [[x, y] in the svg's units], "v": [[x, y] as measured]}.
    Equal figures give equal bytes.
    """
    marked, known = _marks(figure)
    panels, windows = _panels(figure), figure.get_gid()
    root = ET.fromstring(_bytes(figure, marked, known, "svg", **PAGE, svg_hashsalt=f"stabkit {name}"))
    _tidy(root, {f"mark{i}": info for i, info in enumerate(known)}, panels)
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        **({"id": f"drawn-{name}"} if panels or windows else {}),
        **({"class": "single"} if figure.get_figwidth() == style.SINGLE else {}),
        **({"data-windows": windows.removeprefix(style.MARK)} if windows else {}),
        "viewBox": root.attrib["viewBox"],
        "width": root.attrib["width"].removesuffix("pt"),
        "height": root.attrib["height"].removesuffix("pt"),
    }
    curves = [
        {"m": info["method"], "n": info["name"], "x": info["x"], **_points(figure, artist, info.get("values"))}
        for artist, info in zip(marked, known, strict=True)
        if info["name"] and isinstance(artist, Line2D)
    ]
    return ET.tostring(root, encoding="unicode"), [curve for curve in curves if curve["p"]]


def _panels(figure: Figure) -> Mapping[str, str]:
    """{id of its group: `x y width height` of its frame in the svg's units} of every panel, where there are several:
    the page's script sets them below one another on a phone."""
    if len(figure.axes) < 2:
        return {}
    wide, high = (72 * size for size in figure.get_size_inches())
    frames = {}
    for i, axes in enumerate(figure.axes):
        axes.set_gid(f"panel{i}")
        box = axes.get_position()
        numbers = (box.x0 * wide, (1 - box.y1) * high, box.width * wide, box.height * high)
        frames[f"panel{i}"] = " ".join(f"{number:.0f}" for number in numbers)
    return frames


def _marks(figure: Figure) -> tuple[list[Artist], list[dict[str, Any]]]:
    """The marked artists of a picture, and what they were marked with."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    seen = [artist for axes in figure.axes for artist in axes.get_children()]
    seen += [part for made in legends if made for part in (*made.get_texts(), *made.legend_handles) if part is not None]
    marked = [artist for artist in seen if (artist.get_gid() or "").startswith(style.MARK)]
    return marked, [json.loads((artist.get_gid() or "").removeprefix(style.MARK)) for artist in marked]


def _points(figure: Figure, line: Line2D, values: list[list[float]] | None) -> dict[str, list[list[float]]]:
    """Where a line's finite points stand in the svg (72 units an inch, y downwards), and what they say."""
    data = np.asarray(line.get_xydata(), dtype=float)
    measured = data if values is None else np.asarray(values, dtype=float).reshape(len(data), 2)
    where = line.get_transform().transform(data) * (72 / figure.dpi)
    where[:, 1] = figure.get_figheight() * 72 - where[:, 1]
    kept = np.flatnonzero(np.isfinite(where).all(axis=1) & (np.abs(measured) <= LARGEST).all(axis=1))
    kept = kept[_apart(where[kept])]
    return {
        "p": [[round(float(x), 1), round(float(y), 1)] for x, y in where[kept]],
        "v": [[float(f"{x:.6g}"), float(f"{y:.3g}")] for x, y in measured[kept]],
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
        with style.look(**{"savefig_facecolor": "white", "svg_fonttype": "path", **changes}):
            figure.savefig(out, format=kind, metadata=metadata, dpi=200 if kind == "png" else 72)
    finally:
        for artist, info in zip(marked, known, strict=True):
            artist.set_gid(style.MARK + json.dumps(info))
    return out.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write the picture to an .svg, .png or .pdf file, whole or not at all."""
    write_file(path, to_bytes(figure, path.suffix.lstrip(".").lower()))


def _tidy(element: ET.Element, marks: Mapping[str, Mapping[str, Any]], panels: Mapping[str, str]) -> None:
    """Namespaces off the names, our ink to `currentColor`, marks to their methods, numbers to two decimals
    and those of paths to one."""
    element.tag = element.tag.rpartition("}")[2]
    attributes: dict[str, str] = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id":
            if element.tag == "g":
                if value in panels:
                    attributes["data-panel"] = panels[value]
                elif value in marks:
                    attributes["data-legend" if marks[value]["legend"] else "data-method"] = str(marks[value]["method"])
                continue  # matplotlib numbers its groups from 1 in every picture
        elif key == "style":
            value = _css(value)
        elif key == "d":
            value = re.sub(r" ?([A-Za-z]) ?", r"\1", _rounded(" ".join(value.split()), 1))
        elif key == "transform" and value.startswith("rotate(-0 "):
            continue
        elif key in ("x", "y", "width", "height"):
            value = _rounded(" ".join(value.split()))
        attributes[key] = value
    element.attrib = attributes
    if element.tag != "text" and not (element.text or "").strip():
        element.text = None
    for child in list(element):
        empty = not (len(child) or child.attrib or (child.text or "").strip())
        if empty or child.tag.rpartition("}")[2] in ("metadata", "style", "title"):
            element.remove(child)
        else:
            _tidy(child, marks, panels)
            child.tail = None if not (child.tail or "").strip() else child.tail
    element[:] = [part for child in element for part in (child if _bare(child) else (child,))]


def _bare(element: ET.Element) -> bool:
    """Whether it is a group that says nothing of its parts."""
    return element.tag == "g" and not element.attrib and not element.text and not element.tail


def _rounded(value: str, digits: int = 2) -> str:
    """Every number to so many decimals: a tenth of a unit is a tenth of a pixel."""
    return _NUMBER.sub(lambda number: f"{float(number[0]):.{digits}f}".rstrip("0").rstrip("."), value)


def _css(text: str) -> str:
    text = text.replace(style.INK, "currentColor")
    text = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;]*;?|text-anchor: start;?", "", text)
    return re.sub(r"\s*([:;])\s*", r"\1", text).strip(";")
