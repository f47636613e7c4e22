"""What long runs say while they train."""

from __future__ import annotations

from stabkit.cli import progress


def events(*steps: int, run: str = "deepnorm-6L-6L-s0-0123456789ab"):
    return [{"id": run, "step": step, "steps": 1000, "loss": 4.5} for step in steps]


def test_a_long_run_tells_its_pace_and_what_is_left_once_a_minute(monkeypatch, capsys) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    lines = progress._Lines(1)
    for at, event in zip((0.0, 30.0, 61.0, 62.0, 130.0), events(0, 100, 200, 203, 400), strict=True):
        clock[0] = at
        lines.event(event)
    told = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[1] for line in told] == [
        "step 200 of 1000, loss 4.500, 305 ms a step, 4 min left",
        "step 400 of 1000, loss 4.500, 325 ms a step, 3 min left",
    ]


def test_a_short_run_says_nothing_on_the_way(monkeypatch, capsys) -> None:
    lines = progress._Lines(1)
    for event in events(0, 1, 2, 3):
        lines.event(event)
    assert capsys.readouterr().err == ""


def test_a_run_that_went_on_from_a_checkpoint_is_timed_from_there() -> None:
    pace = progress._Pace()
    first, second = events(500, 600)
    assert pace.of(first, 10.0) != pace.of(first, 10.0)
    assert pace.of(second, 30.0) == 0.2
