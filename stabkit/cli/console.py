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
from dataclasses import dataclass
from typing import Any, TextIO, cast

from rich.box import HEAVY_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def plain(text: object) -> str:
    """Text that can go to any terminal: control and format characters become a question mark, line ends a space."""
    spaced = " ".join(str(text).split("\n"))
    return "".join("?" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in spaced)


def error(message: object) -> None:
    """The one red line that a failed command ends with."""
    err().print(f"[bold red]error:[/] {escape(plain(message))}", soft_wrap=True, highlight=False)


def warn(message: object) -> None:
    """One yellow line."""
    err().print(f"[yellow]warning:[/] {escape(plain(message))}", soft_wrap=True, highlight=False)


def note(message: object) -> None:
    """One line about what is going on, beside the result."""
    err().print(escape(plain(message)), soft_wrap=True, highlight=False)


def say(message: object = "") -> None:
    """One line of the result."""
    _out().print(escape(plain(message)), soft_wrap=True, highlight=False)


def paragraph(message: object, indent: str = "") -> None:
    """A sentence of the result, broken between words at the terminal's width (80 in a file); later lines indented."""
    out = _out()
    text = textwrap.fill(plain(message), max(40, out.width), subsequent_indent=indent, break_on_hyphens=False)
    out.print(escape(text), soft_wrap=True, highlight=False)


def document(text: str) -> None:
    """A whole document, to the letter (JSON, TOML)."""
    if sys.stdout is not None:  # closed by the caller: there is no one to read it
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Styled:
    """A cell of a table with a colour of its own."""

    text: str
    style: str

    def __str__(self) -> str:
        return self.text


LONGEST = 40
"""Characters of a word that a column keeps whole."""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as wide as it needs to be; a cell that is `Styled` in its colour. No word is broken that is shorter than
    LONGEST: where the lines between columns leave too little room for that they go."""
    out = _out()
    text = textwrap.fill(plain(title), max(40, out.width), break_on_hyphens=False)
    out.print(f"[bold]{escape(text)}[/]", soft_wrap=True, highlight=False)
    out.print(grid(columns, rows, out.width))


def grid(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Table:
    """The table itself, for a terminal of this width."""
    texts = [
        [line for cell in (name, *(row[i] for row in rows)) for line in str(cell).split("\n")]
        for i, name in enumerate(columns)
    ]
    whole = [max(map(cell_len, lines)) for lines in texts]
    least = [max((cell_len(word) for line in lines for word in line.split()), default=0) for lines in texts]
    least = [*whole[:1], *(min(LONGEST, word) for word in least[1:])]  # the first is not broken at all
    lines, spaces = 3 * (len(columns) - 1), 2 * (len(columns) - 1)
    tight = sum(least) + lines > width or sum(whole) + spaces <= width < sum(whole) + lines
    made = Table(
        show_edge=False,
        pad_edge=False,
        box=None if tight else HEAVY_HEAD,
        padding=(0, 2, 0, 0) if tight else (0, 1),
    )
    for i, name in enumerate(columns):
        made.add_column(escape(name), overflow="fold", no_wrap=i == 0, min_width=least[i])
    for row in rows:
        cells = []
        for cell in row:
            text = "\n".join(plain(line) for line in str(cell).split("\n"))
            style = cell.style if isinstance(cell, Styled) else ""
            cells.append(f"[{style}]{escape(text)}[/]" if style else escape(text))
        made.add_row(*cells)
    return made


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
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError, AttributeError):
            self.stream.write(text)  # type: ignore[union-attr]  # None has no write: suppressed
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            self.stream.flush()  # type: ignore[union-attr]

    def isatty(self) -> bool:
        with suppress(OSError, ValueError, AttributeError):
            return bool(self.stream.isatty())  # type: ignore[union-attr]
        return False


def err() -> Console:
    """Standard error, as it is now."""
    return Console(file=cast(TextIO, _Patient(sys.stderr)), emoji=False)


def _out() -> Console:
    return Console(emoji=False)
