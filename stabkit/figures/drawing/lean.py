"""The same picture in half the bytes: nothing invisible, no empty group, a style once for its neighbours, paths that
tell steps instead of places, ticks written out, short names."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

_TOKEN = re.compile(r"[A-Za-z]|-?\d*\.?\d+(?:e-?\d+)?")
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}
"""{command of a path, as matplotlib writes it: how many points it takes}."""
LONG = 400
"""Characters of a path beyond which a tenth of a unit is enough: less than a line's own width."""


SHORT = 40
"""Characters of a marker's path up to which it is written out at each of its places, a tick's for one."""
_SILENT = re.compile(r"(?:^|(?<=;))(?:stroke-dashoffset:0|text-anchor:start)(?:;|$)")
"""What a style says and would be so without it."""


def lean(root: ET.Element, name: str = "") -> None:
    """Make an svg's tree smaller in place; what is seen stays, to a twentieth of a unit. Its ids become short ones made
    of `name`, where there is one."""
    for each in root.iter():
        if "d" in each.attrib:
            each.attrib["d"] = steps(each.attrib["d"])
        if "style" in each.attrib:
            each.attrib["style"] = _SILENT.sub("", re.sub(r"\s*([:;])\s*", r"\1", each.attrib["style"])).strip(";")
        if each.attrib.get("transform", "").startswith("rotate(-0 "):
            del each.attrib["transform"]
    markers = {one.attrib["id"]: one for one in root.iter("path") if "id" in one.attrib}
    _thin(root, {f"#{key}": one for key, one in markers.items() if len(one.attrib["d"]) <= SHORT})
    used = {each.attrib.get("href", "") for each in root.iter()}
    for each in list(root.iter("defs")):
        each[:] = [one for one in each if one.tag != "path" or f"#{one.attrib.get('id')}" in used]
    for each in list(root.iter()):
        each[:] = [one for one in each if one.tag != "defs" or len(one)]
    if name:
        _rename(root, f"i{hashlib.sha256(name.encode()).hexdigest()[:6]}-")


def _rename(root: ET.Element, prefix: str) -> None:
    new = {one.attrib["id"]: f"{prefix}{i}" for i, one in enumerate(one for one in root.iter() if "id" in one.attrib)}
    for each in root.iter():
        for key, value in each.attrib.items():
            if key == "id":
                each.attrib[key] = new[value]
            elif key == "href" and value[1:] in new:
                each.attrib[key] = f"#{new[value[1:]]}"
            elif key == "clip-path" and value[5:-1] in new:  # url(#…)
                each.attrib[key] = f"url(#{new[value[5:-1]]})"


def _thin(element: ET.Element, markers: Mapping[str, ET.Element]) -> None:
    for child in list(element):
        _thin(child, markers)
    if element.tag not in ("svg", "g"):  # what stands in <defs> inherits from whatever uses it
        return
    children: list[ET.Element] = []
    shown = _written([part for child in element for part in _shown(child)], markers)
    for style, run in groupby(shown, _shared):
        some = list(run)
        if style and len(some) > 1:
            group = ET.Element("g", style=style)
            for one in some:
                del one.attrib["style"]
            group.extend(some)
            some = [group]
        children += some
    element[:] = children


def _written(elements: Sequence[ET.Element], markers: Mapping[str, ET.Element]) -> Iterator[ET.Element]:
    """The elements, neighbouring uses of one short marker as one path that has it at each of their places."""
    for (marker, style), run in groupby(elements, lambda one: _use(one, markers)):
        some = list(run)
        if not marker:
            yield from some
            continue
        path = markers[marker]
        x, y, rest = re.match(r"m(-?[\d.]+) ?(-?[\d.]+)(.*)", path.attrib["d"]).groups()  # type: ignore[union-attr]
        places = [(float(one.attrib["x"]) + float(x), float(one.attrib["y"]) + float(y)) for one in some]
        d = "".join(f"M{_number(round(100 * a), 2)} {_number(round(100 * b), 2)}{rest}" for a, b in places)
        written = ET.Element("path", d=d)
        if own := _over(style, path.attrib.get("style", "")):
            written.attrib["style"] = own
        yield written


def _over(below: str, above: str) -> str:
    """One style of two; what both say is said by the second."""
    said = dict(one.split(":", 1) for style in (below, above) for one in style.split(";") if one)
    return ";".join(f"{key}:{value}" for key, value in said.items())


def _use(element: ET.Element, markers: Mapping[str, ET.Element]) -> tuple[str, str]:
    """(the short marker that it places, its style), or ("", "")."""
    if element.tag != "use" or not set(element.attrib) <= {"href", "x", "y", "style"}:
        return "", ""
    marker = element.attrib["href"]
    fits = marker in markers and set(markers[marker].attrib) <= {"id", "d", "style"}
    return (marker, element.attrib.get("style", "")) if fits else ("", "")


def _shown(element: ET.Element) -> Iterator[ET.Element]:
    """The element, or its children where it is a mere bracket, or nothing where there is nothing of it to see."""
    if element.tag == "g" and not element.attrib:
        yield from element
    elif element.tag == "g" and len(element) == 1 and set(element.attrib) == {"data-method"} and _bare(element[0]):
        element[0].attrib.update(element.attrib)
        yield element[0]
    elif element.tag == "defs" and not len(element):
        return
    elif element.tag == "path" and "id" not in element.attrib and element.attrib.get("style") == "fill:none":
        return
    else:
        yield element


def _bare(element: ET.Element) -> bool:
    return element.tag in ("g", "path", "text") and not {"data-method", "id"} & set(element.attrib)


def _shared(element: ET.Element) -> str:
    """The style that a group can carry for its children: one that they inherit. Opacity would blend them as one."""
    style = element.attrib.get("style", "")
    return "" if element.tag not in ("path", "use", "text") or re.search(r"(^|;)opacity", style) else style


def steps(path: str) -> str:
    """A path's places as steps from the place before, each rounded where it ends, so that no error adds up."""
    digits = 1 if len(path) > LONG else 2
    tokens = _TOKEN.findall(path)
    if any(token.isalpha() and token.upper() not in _POINTS or token.islower() and token != "z" for token in tokens):
        return path
    grain, here, start, last = 10**digits, (0, 0), (0, 0), ""
    said: list[str] = []
    place = 0
    while place < len(tokens):
        command = tokens[place].upper()
        place += 1
        count = _POINTS[command]
        if not count:
            said.append("z")
            here, last = start, "Z"
            continue
        points = [
            (round(float(tokens[i]) * grain), round(float(tokens[i + 1]) * grain))
            for i in range(place, place + 2 * count, 2)
        ]
        place += 2 * count
        numbers = [_number(end - begin, digits) for point in points for begin, end in zip(here, point, strict=True)]
        said.append(_joined("" if command == last != "M" else command.lower(), numbers, said))
        here, last = points[-1], command
        start = here if command == "M" else start
    return "".join(said)


def _joined(command: str, numbers: list[str], before: list[str]) -> str:
    """Numbers with a space only where they would run into one another."""
    text = command
    for number in numbers:
        ends = text[-1:] or (before[-1][-1:] if before else "")
        text += number if number.startswith("-") or not ends.isdigit() else f" {number}"
    return text


def _number(value: int, digits: int) -> str:
    """`-.5` for -50 of hundredths."""
    text = f"{value / 10**digits:.{digits}f}".rstrip("0").rstrip(".")
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (text.removeprefix("0") or "0") if text != "0" else "0"
