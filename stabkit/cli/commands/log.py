"""`stabkit log`: what a log says, in a terminal or as JSON; read again where it grows."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from stabkit.cli import console
from stabkit.cli.command import Invocation
from stabkit.errors import Unstable, UsageError
from stabkit.options.commands import LogOptions
from stabkit.options.log import read
from stabkit.report import log as report
from stabkit.report.json_document import text
from stabkit.storage.logs import files
from stabkit.wording import log as words

PAUSE = 2.0
"""Seconds between looks at a running log."""


def log(invocation: Invocation) -> None:
    """Read, show, write the page; raises Unstable where the bound says that one is to be stopped."""
    asked, json = LogOptions(**invocation.given), invocation.flag("json")
    result, begin = _first(asked, wait=invocation.flag("follow")), time.monotonic()
    show(result, json=json)
    while invocation.flag("follow") and not result.stop:
        before, took = _signature(asked), time.monotonic() - begin
        while _signature(asked) == before:
            time.sleep(max(PAUSE, took))
        begin = time.monotonic()
        with suppress(UsageError):  # it is just being written anew
            now = read(asked)
            if now.answers != result.answers:
                show(now, json=json, again=True)
            result = now
    if result.stop:
        raise Unstable("a training diverged, or left the band that good ones stay in: exit code 7")


def _first(asked: LogOptions, *, wait: bool) -> report.LogResult:
    """What is read at first; `wait`: until every file is there and not empty."""
    while True:
        try:
            return read(asked)
        except UsageError as error:
            if not wait or all(Path(name).exists() and Path(name).stat().st_size for name in asked.files):
                raise
            console.note(f"waiting: {error}")
        while not all(Path(name).exists() and Path(name).stat().st_size for name in asked.files):
            time.sleep(PAUSE)


def show(result: report.LogResult, *, json: bool, again: bool = False) -> None:
    """The sentences, and the page; `again` without what was said of it before."""
    page = result.page
    if json:
        console.document(text(report.body(result, page)))
        return
    if len(result.logs) > 1:
        console.table("What each log says", ("log", *words.HEADS), [words.row(own) for own in result.logs])
        console.say()
    for line in result.answers:
        console.paragraph(line)
    if again:
        return
    for note in result.notes:
        console.paragraph(f"note: {note}")
    console.say(f"report: {page}")
    if any(own.word != "learning" for own in result.logs):
        console.say("next: stabkit probe package.module:function tells which link of the chain breaks")


def _signature(asked: LogOptions) -> list[tuple[str, int, int]]:
    """Of every file that is read: its size, and when it was written."""
    found = []
    for path in [one for name in asked.files for one in files(Path(name))]:
        with suppress(OSError):
            status = path.stat()
            found.append((str(path), status.st_size, status.st_mtime_ns))
    return found
