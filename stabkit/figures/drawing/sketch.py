"""A page's picture as a thumbnail: its lines and areas without a word, what is told at a glance."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
TALL = 0.5
"""Of its width, beyond which a sketch is cut off below."""


def sketch(picture: str) -> str:
    """The svg with ids of its own, without texts, legend and what the script reads; hidden from who hears the page."""
    ET.register_namespace("", SVG.strip("{}"))
    root = ET.fromstring(picture)
    for each in list(root.iter()):
        each[:] = [one for one in each if one.tag != f"{SVG}text" and "data-legend" not in one.attrib]
        each.attrib.pop("data-method", None)
    for each in list(root.iter()):
        each[:] = [one for one in each if one.tag != f"{SVG}g" or len(one)]
    x, y, width, height = (float(part) for part in root.attrib["viewBox"].split())
    root.attrib = {"viewBox": f"{x:g} {y:g} {width:g} {min(height, TALL * width):g}", "aria-hidden": "true"}
    own = hashlib.sha256(picture.encode()).hexdigest()[:6]  # two pages may have a picture of one name
    return re.sub(r'(id="|href="#|url\(#)i[0-9a-f]{6}-', rf"\g<1>s{own}-", ET.tostring(root, encoding="unicode"))
