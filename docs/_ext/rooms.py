"""The picture of the rooms: a forge draws docs/architecture.md's mermaid, the site, which asks nothing of a network,
draws the same lines as boxes in HTML. It reads what that picture is made of, groups of boxes in columns from left to
right, and ends the build at any other line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GROUP = re.compile(r'subgraph \w+\["(?P<title>[^"]+)"\]')
BOX = re.compile(r'\w+\["(?P<text>[^"]+)"\]')
ORDER = re.compile(r"flowchart LR|direction TB|(\w+ --> )+\w+")
"""Lines that say in which order boxes stand, which is the one that they are written in."""


def drawn(picture: str) -> Iterator[str]:
    """HTML of a picture's lines; raises ValueError at one that it cannot draw."""
    yield '<div class="rooms">'
    for line in filter(None, map(str.strip, picture.splitlines())):
        if group := GROUP.fullmatch(line):
            yield f'<div class="group"><span class="title">{group["title"]}</span>'
        elif box := BOX.fullmatch(line):
            yield f'<div class="box">{box["text"]}</div>'
        elif line == "end":
            yield "</div>"
        elif not ORDER.fullmatch(line):
            raise ValueError(f"a line of mermaid that the site cannot draw: {line!r}")
    yield "</div>"


def draw(app: Any, name: str, source: list[str]) -> None:
    source[0] = FENCE.sub(lambda found: "\n".join(drawn(found[1])), source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
