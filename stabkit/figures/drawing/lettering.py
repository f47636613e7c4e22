"""Texts in a picture: broken at a width, shown literally, without letters that the font lacks."""

from __future__ import annotations

import textwrap
from functools import cache

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font

from stabkit.words import plain


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


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())
