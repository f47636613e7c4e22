"""The only module that prints: results to stdout, progress, warnings and the one error line to stderr.

Names and reasons come from files and from people: they are shown literally, control characters removed, never read as
markup.
"""

from __future__ import annotations

import sys
import textwrap
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TextIO, cast

from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text


def plain(text: object) -> str:
    """Text that can go to any terminal: control and format characters become a question mark, line ends a space."""
    spaced = " ".join(str(text).split("\n"))
    return "".join("?" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in spaced)


def error(message: object) -> None:
    """The one red line that a failed command ends with."""
    _line(err(), "[bold red]error:[/] ", message)


def warn(message: object) -> None:
    """One yellow line."""
    _line(err(), "[yellow]warning:[/] ", message)


def note(message: object) -> None:
    """One line about what is going on, beside the result."""
    _line(err(), "", message)


def say(message: object = "") -> None:
    """One line of the result."""
    _line(_out(), "", message)


def _line(console: Console, before: str, message: object) -> None:
    console.print(f"{before}{escape(plain(message))}", soft_wrap=True, highlight=False)


def paragraph(message: object, indent: str = "") -> None:
    """A sentence of the result, broken between words at the terminal's width (80 in a file); later lines indented."""
    _out().print(escape(_filled(message, indent)), soft_wrap=True, highlight=False)


def _filled(message: object, indent: str = "") -> str:
    return textwrap.fill(plain(message), max(40, _out().width), subsequent_indent=indent, break_on_hyphens=False)


def document(text: str) -> None:
    """A whole document, to the letter (JSON, TOML)."""
    if sys.stdout is not None:  # closed by the caller: there is no one to read it
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


LONGEST = 40
"""Characters of a word that a column keeps whole."""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as wide as it needs to be; a cell that is a `Text` in its colour. No word is broken that is shorter than
    LONGEST: where the lines between columns leave too little room for that they go."""
    out = _out()
    out.print(f"[bold]{escape(_filled(title))}[/]", soft_wrap=True, highlight=False)
    out.print(grid(columns, rows, out.width))


def grid(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Table:
    """The table itself, for a terminal of this width."""
    texts = [
        [line for cell in (name, *(row[i] for row in rows)) for line in str(cell).split("\n")]
        for i, name in enumerate(columns)
    ]
    whole = [max(map(cell_len, lines)) for lines in texts]
    least = [max((cell_len(word) for line in lines for word in line.split()), default=0) for lines in texts]
    kept = 1 if whole[0] <= width // 2 else 0  # a first column of names is not broken at all
    least = [*whole[:kept], *(min(LONGEST, word) for word in least[kept:])]
    lines, spaces = 3 * (len(columns) - 1), 2 * (len(columns) - 1)
    tight = sum(least) + lines > width or sum(whole) + spaces <= width < sum(whole) + lines
    box, padding = (None, (0, 2, 0, 0)) if tight else (HEAVY_HEAD, (0, 1, 0, 1))
    table = Table(show_edge=False, pad_edge=False, box=box, padding=padding)
    for i, name in enumerate(columns):
        table.add_column(escape(name), overflow="fold", no_wrap=i < kept, min_width=least[i])
    for row in rows:
        cells = ["\n".join(map(plain, str(cell).split("\n"))) for cell in row]
        table.add_row(*(Text(text, getattr(cell, "style", "")) for text, cell in zip(cells, row, strict=True)))
    return table


def columns(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A long table as plain columns, one line a row."""
    texts = [[plain(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in texts]
    _out().print(escape("\n".join([plain(title), *lines])), soft_wrap=True, highlight=False)


class _Patient:
    """Standard error, which may be closed, broken or full: nobody reading it is no reason to stop training."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        """An attribute of the stream; of its three methods here one that does what it can."""
        return partial(self._tried, name) if name in ("write", "flush", "isatty") else getattr(self.stream, name)

    def _tried(self, name: str, *arguments: str) -> Any:
        with suppress(OSError, ValueError, AttributeError):  # None has none of them
            return getattr(self.stream, name)(*arguments)


def err() -> Console:
    """Standard error, as it is now."""
    return Console(file=cast(TextIO, _Patient(sys.stderr)), emoji=False)


def _out() -> Console:
    return Console(emoji=False)
