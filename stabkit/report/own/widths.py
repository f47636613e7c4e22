"""The page of `stabkit probe --widths`: does it train at each width, and do coordinates keep their size?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stabkit.figures.depth.coordinates import PICTURE
from stabkit.figures.depth.widths import PICTURE as RATES
from stabkit.report.cards import card
from stabkit.report.frame import once, page, shell
from stabkit.results.own.coordinates import LEVEL, Coordinates
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.widths import Widths
from stabkit.storage.folder import reports
from stabkit.wording import widths as over
from stabkit.wording.anatomy import UNSEEN, WHY
from stabkit.words import plain, short

if TYPE_CHECKING:
    from stabkit.running.probes import ProbeRequest

TITLE = "Will your model train at this width?"


def write(words: Widths, found: Coordinates, asked: ProbeRequest, lost: Sequence[str], command: str) -> Path:
    """Write the page; returns where."""
    name = asked.factory.replace(":", "-").replace(".", "-")[:60]
    key = hashlib.sha256(
        repr((asked.depths, asked.widths, asked.seeds, asked.lrs, asked.steps, asked.warmup, asked.blocks)).encode()
    ).hexdigest()
    path = reports(asked.out) / f"probe-{name}-widths-{key[:4]}.html"
    tried = sum(len(row.tried) for row in words.rows)
    return once(asked.out, path, [tried, len(lost), *asked.predict], lambda: render(words, found, asked, lost, command))


@np.errstate(all="ignore")
def render(words: Widths, found: Coordinates, asked: ProbeRequest, lost: Sequence[str], command: str) -> str:
    """The page as one HTML file."""
    return page(
        "widths.html.j2",
        shell(TITLE, command, [over.in_short(_name(asked), words), whole(words, found, asked)]),
        card=card(PICTURE, PICTURE.select(found), found),
        rates=card(RATES, RATES.select(words), words),
        heads=[str(width) for width in widths(found)],
        table=rows(found),
        word_heads=over.HEADS,
        words=over.rows(words),
        steps=asked.steps,
        seeds=len(asked.seeds),
        level=f"{LEVEL:g}",
        unseen=UNSEEN,
        unseen_why=WHY,
        lost=[plain(one) for one in lost],
    )


def whole(words: Widths, found: Coordinates, asked: ProbeRequest) -> str:
    """The words of all widths, and what their coordinates do."""
    searched = asked.steps == UPDATES
    return f"{over.answer(_name(asked), words, asked.predict, asked.time, searched=searched)} {over.coordinates(found)}"


def _name(asked: ProbeRequest) -> str:
    return asked.factory.rpartition(":")[2]


def widths(found: Coordinates) -> list[int]:
    """Those of any coordinate."""
    return sorted({width for row in found.rows for width in row.sizes})


def rows(found: Coordinates) -> list[tuple[str, str, list[str], str, str]]:
    """(name, label, its size at every width, exponent, verdict)."""
    return [
        (
            row.name,
            row.label,
            [short(row.sizes[width], 3) if width in row.sizes else "–" for width in widths(found)],
            over.exponent(row.law),
            row.verdict,
        )
        for row in found.rows
    ]
