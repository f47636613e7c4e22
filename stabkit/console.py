"""The only module that prints: results to stdout, progress, warnings and the one error line to stderr.

Names and reasons come from files and from people: they are shown literally, control characters removed, never read as
markup.
"""

from __future__ import annotations

import math
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from stabkit.work import Event


def plain(text: object) -> str:
    """Text that can go to any terminal: control and format characters become a question mark, line ends a space."""
    spaced = " ".join(str(text).split("\n"))
    return "".join("?" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in spaced)


def error(message: object) -> None:
    """The one red line that a failed command ends with."""
    _err().print(f"[bold red]error:[/] {escape(plain(message))}", soft_wrap=True, highlight=False)


def warn(message: object) -> None:
    """One yellow line."""
    _err().print(f"[yellow]warning:[/] {escape(plain(message))}", soft_wrap=True, highlight=False)


def note(message: object) -> None:
    """One line about what is going on, beside the result."""
    _err().print(escape(plain(message)), soft_wrap=True, highlight=False)


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


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], styles: Callable[[str], str] = lambda text: ""
) -> None:
    """A table as wide as it needs to be; `styles` colours a cell by its text."""
    grid = Table(title=escape(title), title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    for i, name in enumerate(columns):
        grid.add_column(escape(name), overflow="fold", no_wrap=i == 0)
    for row in rows:
        cells = []
        for cell in row:
            text = "\n".join(plain(line) for line in str(cell).split("\n"))
            style = styles(text)
            cells.append(f"[{style}]{escape(text)}[/]" if style else escape(text))
        grid.add_row(*cells)
    _out().print(grid)


class Progress(Protocol):
    """What a running sweep shows."""

    def event(self, event: Event) -> None: ...
    def finished(self, run_id: str, line: str, seconds: float) -> None: ...


@contextmanager
def progress(runs: int, seconds: float, quiet: bool) -> Iterator[Progress]:
    """Live bars on a terminal, one line a finished run elsewhere, nothing when quiet.

    `seconds` is the estimated work of all runs: the whole bar advances by each run's share of it, so that its ETA holds
    although runs differ a hundredfold.
    """
    if quiet:
        yield _Quiet()
    elif sys.stderr is None or not sys.stderr.isatty():
        yield _Lines(runs)
    else:
        with _bars(runs, seconds) as bars:
            yield bars


def _aside(event: Event) -> bool:
    """Say what a worker has to say besides its progress; whether it had."""
    if "warning" in event:
        warn(event["warning"])
    elif "note" in event:
        note(event["note"])
    return "warning" in event or "note" in event


def _loss(event: Event) -> str:
    loss = event["loss"]
    return loss if isinstance(loss, str) else f"{loss:.3f}"


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Quiet:
    def event(self, event: Event) -> None:
        if "warning" in event:
            warn(event["warning"])

    def finished(self, run_id: str, line: str, seconds: float) -> None:
        pass


class _Pace:
    """How fast each run goes: from its first event that was seen here to its last."""

    def __init__(self) -> None:
        self.first: dict[str, tuple[float, int]] = {}

    def of(self, event: Event, now: float) -> float:
        """Seconds a step of this event's run; NaN at its first event."""
        at, step = self.first.setdefault(event["id"], (now, event["step"]))
        return (now - at) / (event["step"] - step) if event["step"] > step else math.nan


class _Lines:
    EVERY = 60.0
    """Seconds between two lines about one run that is still training."""

    def __init__(self, runs: int) -> None:
        self.runs, self.done = runs, 0
        self.pace = _Pace()
        self.told: dict[str, float] = {}

    def event(self, event: Event) -> None:
        if _aside(event):
            return
        now = time.monotonic()
        each = self.pace.of(event, now)
        if now - self.told.setdefault(event["id"], now) >= self.EVERY and each == each:
            self.told[event["id"]] = now
            left = each * (event["steps"] - event["step"])
            note(
                f"{event['id']}  step {event['step']} of {event['steps']}, loss {_loss(event)}, "
                f"{1000 * each:.0f} ms a step, {duration(left)} left"
            )

    def finished(self, run_id: str, line: str, seconds: float) -> None:
        self.done += 1
        note(f"[{self.done}/{self.runs}] {run_id}  {line}")


class _Bars:
    def __init__(self, bars: Any, runs: int, seconds: float) -> None:
        self.bars, self.runs, self.done, self.total = bars, runs, 0, seconds
        self.passed, self.pace = 0.0, _Pace()
        self.whole = bars.add_task("all runs", total=max(seconds, 1e-9), note=f"0/{runs}")
        self.tasks: dict[str, Any] = {}

    def event(self, event: Event) -> None:
        if _aside(event):
            return
        run_id = event["id"]
        if run_id not in self.tasks:
            self.tasks[run_id] = self.bars.add_task(escape(run_id), total=event["steps"], note="")
        each = self.pace.of(event, time.monotonic())
        speed = f"  {1000 * each:.0f} ms a step" if each == each else ""
        told = f"step {event['step']}  loss {_loss(event)}{speed}"
        self.bars.update(self.tasks[run_id], completed=event["step"], note=told)

    def finished(self, run_id: str, line: str, seconds: float) -> None:
        self.done += 1
        self.passed += seconds
        if run_id in self.tasks:
            self.bars.remove_task(self.tasks.pop(run_id))
        self.bars.update(self.whole, completed=self.passed, note=f"{self.done}/{self.runs}")
        self.bars.console.print(f"{escape(run_id)}  {escape(plain(line))}", highlight=False, soft_wrap=True)


@contextmanager
def _bars(runs: int, seconds: float) -> Iterator[_Bars]:
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=_err(), transient=True, expand=True) as bars:
        yield _Bars(bars, runs, seconds)


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


def _err() -> Console:
    return Console(file=cast(TextIO, _Patient(sys.stderr)))


def _out() -> Console:
    return Console()
