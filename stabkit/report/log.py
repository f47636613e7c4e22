"""The page of `stabkit log`, and what the command returns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from stabkit.report.json_document import SCHEMA, Document
from stabkit.report.result import Answered
from stabkit.results.log import LogEvent, LogJudgement, Word, reached
from stabkit.results.stop import Reason, Stop
from stabkit.wording import log as words
from stabkit.words import listed, plain

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Is this training dead, slow or fine?"


@dataclass(frozen=True, kw_only=True, repr=False)
class LogResult(Answered):
    """Of `read_log`: what each log says of its training."""

    call: str
    out: Path
    logs: tuple[LogJudgement, ...]
    stops: tuple[Stop | None, ...]
    other: LogJudgement | None
    """What they are compared with."""

    @property
    def verdict(self) -> str:
        """The word of one log and where it stands, or that it is to be stopped; of several how many are what."""
        (first, *more) = self.stops
        if first is not None and not more and (self.stop or first.why):
            return " ".join([words.in_short(self.logs)] * (not self.stop) + [f"{words.stop(first)}."])
        dead = [row.log.name for row, stop in zip(self.logs, self.stops, strict=True) if stop and stop.step is not None]
        return words.in_short(self.logs) + (f" Stop {listed(*map(plain, dead))}." if dead else "")

    @property
    def word(self) -> str:
        """Of the first log: `learning`, `slow`, `diverged`."""
        return self.logs[0].word

    @property
    def stop(self) -> bool:
        """Whether one of them is to be stopped."""
        return any(one is not None and one.step is not None for one in self.stops)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a log: log, word, first_loss, last_loss, level (NaN: unknown), last_step, unit, stop (whether it is
        to be)."""
        import pandas as pd

        of = ("word", "first", "last", "level", "updates")
        rows = [(own.log.name, *(getattr(own, name) for name in of), own.log.unit) for own in self.logs]
        table = pd.DataFrame(rows, columns=["log", "word", "first_loss", "last_loss", "level", "last_step", "unit"])
        return table.assign(
            level=table["level"].astype(float),
            stop=[one is not None and one.step is not None for one in self.stops],
        )

    @property
    def answers(self) -> list[str]:
        """A line of each log, beside what it is compared with, and what the bound says."""
        found = []
        for own, stop in zip(self.logs, self.stops, strict=True):
            more = [] if self.other is None else [words.against(own, self.other, reached(own, self.other))]
            said = [] if stop is None else [words.stop(stop, own.level_of)]
            ends = stop is not None and stop.step is not None
            found.append(words.answer(own, said if ends else [], more if ends else [*more, *said]))
        bound = words.bound(next((one for one in self.stops if one is not None and one.looks), None))
        return [*found, bound] if bound else found

    @property
    def notes(self) -> list[str]:
        """What was not looked at, and what was read in another way than it stands there."""
        return [*words.lacks(self.logs), *dict.fromkeys(note for own in self.logs for note in own.log.notes)]

    @cached_property
    @np.errstate(all="ignore")
    def page(self) -> Path:
        """The HTML page, written when it is first asked for."""
        from stabkit.figures.logs import PICTURE, LogPicture
        from stabkit.report.cards import card
        from stabkit.report.frame import page, shell
        from stabkit.storage.folder import reports, write_file

        every = [*self.logs, *([self.other] if self.other else [])]
        drawn = LogPicture(every, [*self.stops, *([None] if self.other else [])])
        text = page(
            "log.html.j2",
            shell(TITLE, self.call, [self.verdict, *self.answers]),
            card=card(PICTURE, PICTURE.select(drawn), drawn),
            heads=words.HEADS,
            table=[words.row(own) for own in every],
            forms=[f"{own.log.name}: {own.log.form}, its {own.log.column}" for own in every],
            notes=self.notes,
        )
        key = hashlib.sha256(self.call.encode()).hexdigest()[:6]
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in self.logs[0].log.name)[:40]
        path = reports(self.out) / f"log-{name}-{key}.html"
        write_file(path, text.encode())
        return path


class StopJson(TypedDict):
    """What `--stop` says of one log."""

    step: float | None
    """Where it stops it; null where it goes on."""
    diverged: bool
    looks: int
    why: Reason | None
    """Why the band says nothing."""
    edge: list[float | None]
    """The loss above which it stops it at updates 50, 100, … 300."""


class LogJson(TypedDict):
    """One log."""

    log: str
    form: str
    column: str
    word: Word
    sentences: list[str]
    since: float | None
    first: float
    last: float
    level: float | None
    level_of: str
    updates: float
    falls: bool
    events: tuple[LogEvent, ...]
    lacks: list[str]
    stop: StopJson | None
    """Null where nothing was asked."""


class LogDocument(Document):
    """`stabkit log`."""

    verdict: str
    logs: list[LogJson]
    against: str
    notes: list[str]
    report: str


def body(result: LogResult, page: Path) -> LogDocument:
    """The document."""
    return {
        "schema": SCHEMA,
        "verdict": result.verdict,
        "logs": [_of(own, stop) for own, stop in zip(result.logs, result.stops, strict=True)],
        "against": "" if result.other is None else result.other.log.name,
        "notes": result.notes,
        "report": str(page),
    }


def _of(own: LogJudgement, stop: Stop | None) -> LogJson:
    return {
        "log": own.log.name,
        "form": own.log.form,
        "column": own.log.column,
        "word": own.word,
        "sentences": words.sentences(own),
        "since": own.since,
        "first": own.first,
        "last": own.last,
        "level": own.level,
        "level_of": own.level_of,
        "updates": own.updates,
        "falls": own.falls,
        "events": own.events,
        "lacks": list(own.lacks),
        "stop": None
        if stop is None
        else {
            "step": stop.step,
            "diverged": stop.diverged,
            "looks": stop.looks,
            "why": stop.why,
            "edge": [float(one) if np.isfinite(one) else None for one in stop.edge],
        },
    }
