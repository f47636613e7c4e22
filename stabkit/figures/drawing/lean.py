"""The same picture in half the bytes: nothing invisible, no empty group, a style once for its neighbours, paths that
tell steps instead of places."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import groupby

_TOKEN = re.compile(r"[A-Za-z]|-?\d*\.?\d+(?:e-?\d+)?")
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}
"""{command of a path, as matplotlib writes it: how many points it takes}."""
LONG = 400
"""Characters of a path beyond which a tenth of a unit is enough: less than a line's own width."""


def lean(element: ET.Element) -> None:
    """Make an svg's tree smaller in place; what is seen stays, to a twentieth of a unit."""
    for each in element.iter():
        if "d" in each.attrib:
            each.attrib["d"] = steps(each.attrib["d"])
        if each.attrib.get("transform", "").startswith("rotate(-0 "):
            del each.attrib["transform"]
    _thin(element)


def _thin(element: ET.Element) -> None:
    for child in list(element):
        _thin(child)
    if element.tag not in ("svg", "g"):  # what stands in <defs> inherits from whatever uses it
        return
    children: list[ET.Element] = []
    for style, run in groupby((part for child in element for part in _shown(child)), _shared):
        some = list(run)
        if style and len(some) > 1:
            group = ET.Element("g", style=style)
            for one in some:
                del one.attrib["style"]
            group.extend(some)
            some = [group]
        children += some
    element[:] = children


def _shown(element: ET.Element) -> Iterator[ET.Element]:
    """The element, or its children where it is a mere bracket, or nothing where there is nothing of it to see."""
    if element.tag == "g" and not element.attrib:
        yield from element
    elif element.tag == "defs" and not len(element):
        return
    elif element.tag == "path" and "id" not in element.attrib and element.attrib.get("style") == "fill: none":
        return
    else:
        yield element


def _shared(element: ET.Element) -> str:
    """The style that a group can carry for its children: one that they inherit. Opacity would blend them as one."""
    style = element.attrib.get("style", "")
    return "" if element.tag not in ("path", "use", "text") or re.search(r"(^|; )opacity", style) else style


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
