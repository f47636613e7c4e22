"""What long runs say while they train, on a terminal and without one."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabkit.cli import progress
from stabkit.cli.eta import Eta
from stabkit.cli.progress import Bars, Board
from tests.figures.fake_runs import at16

RUN = "deepnorm-6L-6L-s0-0123456789ab"


def events(*steps: int):
    return [{"id": RUN, "step": step, "steps": 1000, "loss": 4.5} for step in steps]


def bars(quiet: bool = False, **more) -> Bars:
    return Bars(Eta(2), quiet, **more)


def test_a_long_run_tells_its_pace_and_what_is_left_once_a_minute(monkeypatch, capsys) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    lines = bars()
    for at, event in zip((0.0, 30.0, 61.0, 62.0, 130.0), events(0, 100, 200, 203, 400), strict=True):
        clock[0] = at
        lines.event(event)
    told = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[1] for line in told] == [
        "step 200 of 1000, loss 4.500, 305 ms a step, 4.1 min left",
        "step 400 of 1000, loss 4.500, 325 ms a step, 3.2 min left",
    ]


def test_a_short_run_says_only_how_it_ended(capsys) -> None:
    lines = bars(names={RUN: "DeepNorm [6L-6L]"})
    for event in events(0, 1, 2, 3):
        lines.event(event)
    assert capsys.readouterr().err == ""
    lines.ended(RUN, "trains  3 s")
    assert capsys.readouterr().err == "[1/2] DeepNorm [6L-6L]  trains  3 s\n"


def test_what_is_quiet_or_has_no_lines_passes_warnings_on(capsys) -> None:
    for shown in (bars(quiet=True), bars(lines=False)):
        with shown:
            shown.event({"id": RUN, "note": "nobody asked"})
            shown.event({"id": RUN, "warning": "a full disk"})
            shown.event(events(3)[0])
            shown.ended(RUN, "trains")
        assert capsys.readouterr().err == "warning: a full disk\n"


def test_a_run_that_went_on_from_a_checkpoint_is_timed_from_there() -> None:
    eta = Eta(1)
    eta.reached(RUN, 0.5, 10.0)
    assert eta.left_of(RUN) == eta.left() == 0.0
    eta.reached(RUN, 0.6, 30.0)
    assert eta.left_of(RUN) == eta.left() == pytest.approx(80.0)


def test_jobs_that_are_heard_of_when_they_end_are_timed_by_their_ends() -> None:
    eta = Eta(10)
    for job, now in enumerate((100.0, 102.0, 104.0)):
        eta.reached(str(job), 1.0, now)
    assert eta.left() == pytest.approx(14.0)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 4), st.integers(1, 99))
def test_what_is_left_is_what_workers_that_keep_their_pace_still_take(works: list[int], workers: int, at: int) -> None:
    """The first free one takes the next; a unit of work is a second."""
    free, spans = [0.0] * workers, {}
    for job, work in enumerate(works):
        worker = free.index(min(free))
        spans[str(job)] = free[worker], free[worker] + work
        free[worker] += work
    end = max(free)
    shares = {str(job): float(work) for job, work in enumerate(works)}
    now, eta = end * at / 100, Eta(len(works), shares, workers)
    for tick in sorted({now, *(edge for span in spans.values() for edge in span if edge <= now)}):
        for job, (first, last) in spans.items():
            if first <= tick and eta.parts.get(job, 0.0) < 1:
                eta.reached(job, min(1.0, (tick - first) / (last - first)), tick)
    assert eta.left() == pytest.approx(end - now)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_bars_stand_under_the_table_and_what_ended_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    runs = [at16("deepnorm", 6, 1.0, "trains"), at16("post-ln", 6, 1.0, "stuck")]
    board = Board([run.spec for run in runs])
    with bars(above=board, names=board.names) as shown:
        shown.event({"id": runs[0].run_id, "step": 4, "steps": 16, "loss": 4.5})
        board.ended(runs[0].spec, runs[0])
        shown.ended(runs[0].run_id, "trains  3 s")
    drawn = terminal.getvalue()
    assert "step 4, loss 4.500" in drawn and "1/2" in drawn and "DeepNorm 6L-6L seed 0  trains  3 s" in drawn
    table = drawn[drawn.rindex("6L-6L") :]
    assert "trains" in table and "…" in table, "one cell has ended and one not"


def test_a_standard_error_that_is_closed_or_broken_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        with bars() as shown:
            shown.ended(RUN, "trains")
