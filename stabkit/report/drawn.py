"""The pictures of a page, drawn by two processes where a second core has nothing to do.

Drawing is most of a page's time, and a picture is a function of its frame alone. So a part of them is drawn in a copy
of this process (fork), which sends them back as JSON and ends; a fresh process would take longer to import matplotlib
than to draw. A copy is safe only of a process with one thread and without torch, on Linux, as a command's is when its
page is made; anywhere else, and whenever the copy fails, everything is drawn here. The pictures are the same.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import pandas as pd

from stabkit.figures.drawing import svg

if TYPE_CHECKING:
    from stabkit.figures.catalogue import Picture as Figure

Asked = tuple[Any, pd.DataFrame, str]
"""A figure, its frame, its name on the page."""
Picture = tuple[str, list[dict[str, Any]], str]
"""The drawing for the page, its curves, and "" or what it needs before there is anything to draw."""
FEWEST = 6
"""Pictures from which on a copy is worth its while."""
MOST = 255
"""That a byte can count."""


def picture(figure: Figure, frame: pd.DataFrame, name: str) -> Picture:
    """The drawing for the page, its curves and what it lacks; a function of the frame and the name alone."""
    drawing = figure.draw(frame)
    return (*svg.to_page(drawing, name), str(drawing.get_label() or ""))


def pictures(asked: Sequence[Asked]) -> list[Picture]:
    """Every picture, in the order given; each process takes the largest that neither has begun."""
    order = sorted(range(len(asked)), key=lambda i: asked[i][1].size, reverse=True)
    if not (copyable() and FEWEST <= len(asked) <= MOST):
        return [picture(*one) for one in asked]
    left, writer = os.pipe()
    os.write(writer, bytes(order))  # a byte a picture: a read of one byte is a turn, whoever reads
    os.close(writer)
    reader, pid = _copy(asked, left)
    found = _turns(asked, left)
    os.close(left)
    found |= _received(reader, pid)
    return [found[i] if i in found else picture(*asked[i]) for i in range(len(asked))]


def _turns(asked: Sequence[Asked], left: int) -> dict[int, Picture]:
    """{place: its picture} of those that this process came to draw."""
    found = {}
    while turn := os.read(left, 1):
        found[turn[0]] = picture(*asked[turn[0]])
    return found


def copyable() -> bool:
    """Whether a copy of this process can draw beside it."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return sys.platform == "linux" and alone and len(os.sched_getaffinity(0)) > 1


def _copy(asked: Sequence[Asked], left: int) -> tuple[BinaryIO, int]:
    """A process that draws its turns of these and writes them as JSON: (what it writes, its id)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return open(reader, "rb"), pid
    code = 1
    try:  # nothing of this process's may be done twice: no handler, no clean-up, no buffer
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.close(reader)
        with open(writer, "wb") as pipe:
            pipe.write(json.dumps(_turns(asked, left)).encode())
        code = 0
    finally:
        os._exit(code)


def _received(reader: BinaryIO, pid: int) -> dict[int, Picture]:
    """What the copy drew; nothing where it failed."""
    with reader:
        data = reader.read()
    _, status = os.waitpid(pid, 0)
    if status:
        return {}
    try:
        return {
            int(place): (str(image), marks, str(needs)) for place, (image, marks, needs) in json.loads(data).items()
        }
    except ValueError:
        return {}
