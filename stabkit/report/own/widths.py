"""The page of `stabkit probe --widths`: does it train at each width, and how does its highest rate fall?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stabkit.figures.depth.widths import PICTURE as RATES
from stabkit.report.cards import card
from stabkit.report.frame import once, page, shell
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.widths import Widths
from stabkit.storage.folder import reports
from stabkit.wording import widths as over
from stabkit.wording.anatomy import UNSEEN, WHY
from stabkit.words import plain

if TYPE_CHECKING:
    from stabkit.running.probes import ProbeRequest

TITLE = "Will your model train at this width?"


def write(words: Widths, asked: ProbeRequest, lost: Sequence[str], command: str) -> Path:
    """Write the page; returns where."""
    name = asked.factory.replace(":", "-").replace(".", "-")[:60]
    key = hashlib.sha256(
        repr((asked.depths, asked.widths, asked.seeds, asked.lrs, asked.steps, asked.warmup, asked.blocks)).encode()
    ).hexdigest()
    path = reports(asked.out) / f"probe-{name}-widths-{key[:4]}.html"
    tried = sum(len(row.tried) for row in words.rows)
    return once(asked.out, path, [tried, len(lost), *asked.predict], lambda: render(words, asked, lost, command))


@np.errstate(all="ignore")
def render(words: Widths, asked: ProbeRequest, lost: Sequence[str], command: str) -> str:
    """The page as one HTML file."""
    return page(
        "widths.html.j2",
        shell(TITLE, command, [over.in_short(_name(asked), words), whole(words, asked)]),
        rates=card(RATES, RATES.select(words), words),
        word_heads=over.HEADS,
        words=over.rows(words),
        unseen=UNSEEN,
        unseen_why=WHY,
        lost=[plain(one) for one in lost],
    )


def whole(words: Widths, asked: ProbeRequest) -> str:
    """The words of all widths."""
    return over.answer(_name(asked), words, asked.predict, asked.time, searched=asked.steps == UPDATES)


def _name(asked: ProbeRequest) -> str:
    return asked.factory.rpartition(":")[2]
