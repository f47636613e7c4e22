"""Words over width: the search for the highest rate that trains, its law by brackets, what is expected elsewhere."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.figures.depth import widths as picture
from stabkit.results.line import boxed, line
from stabkit.results.own import widths
from stabkit.results.own.looks import Decision
from stabkit.results.own.widths import FARTHEST, RESOLVED, AtWidth, Widths, over_widths
from stabkit.running import probes
from stabkit.running.executors.base import Lost
from stabkit.running.plan import Done
from stabkit.running.probes import ProbeRequest, ProbeSpec
from stabkit.wording import widths as words


def at(width: int, edge: float, rate: float = 1e-3) -> AtWidth:
    """What the search finds where rates below `edge` train."""
    row = AtWidth(width=width, rate=rate, tried={1.0: said(rate < edge)})
    while (k := row.next_multiple) is not None:
        assert k not in row.tried
        row = AtWidth(width=width, rate=rate, tried={**row.tried, k: said(k * rate < edge)})
    return row


def said(trains: bool) -> Decision:
    return Decision("trains" if trains else "fails", "seen", 0.98 if trains else 0.01, 120)


@given(st.floats(-1.9, 1.9))
def test_the_search_ends_in_a_bracket_that_holds_the_edge(exponent: float) -> None:
    edge = 1e-3 * 10**exponent
    low, high = at(64, edge).bracket or (math.nan, math.nan)
    assert low < edge <= high and high / low <= 1.01 * RESOLVED


def test_an_edge_out_of_reach_has_no_bracket() -> None:
    assert at(64, 1e3).bracket is None and max(at(64, 1e3).tried) == FARTHEST
    assert at(64, 1e-9).bracket is None and min(at(64, 1e-9).tried) == 1 / FARTHEST


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(-4, 8))
def test_the_range_of_a_law_holds_every_line_through_the_brackets(shares: list[float], x: float) -> None:
    across, low, high = [0.0, 1.0, 2.5], [1.0, 0.4, -1.0], [1.5, 1.4, 0.0]
    y = [a + share * (b - a) for a, b, share in zip(low, high, shares, strict=True)]
    fit = line(across, y)
    slope, level = boxed(across, low, high), boxed(across, low, high, x)
    assert slope.low - 1e-9 <= fit.slope <= slope.high + 1e-9
    assert level.low - 1e-9 <= fit.slope * x + fit.level <= level.high + 1e-9
    middle = line(across, np.add(low, high) / 2)
    assert slope.value == pytest.approx(middle.slope)


def falling(power: float, rate: float = 1e-3) -> Widths:
    return Widths([at(d, 2e-2 * (d / 64) ** power, rate) for d in (64, 128, 256)])


def test_the_law_of_rates_that_fall_with_the_root_of_the_width() -> None:
    law = falling(-0.5).law
    assert law is not None and law.low <= -0.5 <= law.high
    expected = falling(-0.5).expected(1024)
    assert expected is not None and expected.word == "trains" and expected.highest.low < 5e-3 < expected.highest.high


def test_a_rate_above_what_the_highest_may_be_is_expected_to_fail_and_one_within_is_undecided() -> None:
    high, within = falling(-1.0, 1e-2).expected(2048), falling(-1.0, 2e-3).expected(640)
    assert high is not None and high.word == "fails" and within is not None and within.word == "undecided"


def test_a_factorys_own_law_of_the_rate_is_kept() -> None:
    own = Widths([at(d, 2e-2 * 64 / d, 1e-3 * 64 / d) for d in (64, 128, 256)])
    expected = own.expected(1024)
    assert expected is not None and expected.rate == pytest.approx(1e-3 / 16) and expected.word == "trains"


def test_the_sentence_says_words_law_and_what_is_expected() -> None:
    said = words.answer("gpt", falling(-0.5), (1024,), 120.0)
    assert said.startswith("gpt trains at 64 to 256 wide at 1e-3 (256 wide: seen, after 120 updates)")
    assert (
        "The highest rate that trains goes as d^−0.50" in said
        and "At 1024 wide it is expected to train at 1e-3" in said
    )


def test_without_a_bracket_at_every_width_there_is_no_law_and_nothing_is_expected() -> None:
    rows = [at(32, 1e3), at(64, 1e3), at(128, 1e-2)]
    said = words.answer("gpt", Widths(rows), (512, 1024), 120.0)
    assert Widths(rows).law is None and Widths([at(d, 1e-2) for d in (64, 128)]).law is None, "of three widths"
    assert "every rate tried trains at 32 and 64 wide" in said
    assert "Without that law nothing is expected of 512 and 1024 wide" in said
    open_ = AtWidth(width=256, rate=1e-3, tried={1.0: rows[0].decision, 4.0: rows[0].decision})
    assert "at 256 wide, where --time 240 may go on" in words.answer("gpt", Widths([*rows[2:], open_]), (), 120.0)


def test_the_picture_has_a_bracket_a_width_and_draws_what_was_never_found() -> None:
    frame = picture.select(falling(-0.5))
    assert list(frame["width"]) == [64, 128, 256] and (frame["trains"] < frame["fails"]).all()
    assert (frame["low"] < frame["high"]).all() and "trains up to" in picture.alt(frame)
    alone = picture.select(Widths([at(64, 1e3), at(128, 1e3)]))
    assert alone["fails"].isna().all() and "not at none tried" in picture.alt(alone)
    for some in (frame, alone):
        assert picture.draw(some).axes


def test_what_is_undecided_ends_no_bracket_and_a_rate_that_is_none_is_not_searched() -> None:
    undecided = Decision("undecided", "forecast", 0.5, 16)
    row = AtWidth(width=64, rate=1e-3, tried={1.0: said(True), 4.0: undecided, 16.0: said(False)})
    assert row.bracket == (1e-3, 1.6e-2) and row.next_multiple is None
    assert replace(row, tried={1.0: said(True), 4.0: undecided}).next_multiple == 16.0
    for rate in (0.0, math.nan):
        assert replace(row, rate=rate).next_multiple is None
        assert "at –" in words.answer("gpt", Widths([replace(row, rate=rate)] * 3), (), 120.0)


def request(seeds: tuple[int, ...], **more: Any) -> ProbeRequest:
    return ProbeRequest(
        factory="m:f", here=".", depths=(4,), seeds=seeds, lrs=(0.0,), warmup=None, steps=16, blocks="", fresh=False,
        out=Path("out"), widths=(64, 128, 256), **more,
    )  # fmt: skip


def searched(seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, lost: tuple[Any, ...] = ()) -> tuple[Any, int]:
    """What `probes.over` finds where rates below 3e-2 train, and how many cells it asked for. `lost`: (width, seed,
    multiple) without a result."""
    asked: list[ProbeSpec] = []

    def cells(request: Any, specs: list[ProbeSpec], *_: Any) -> Done[ProbeSpec, Any]:
        asked.extend(specs)
        kept = [own for own in specs if (own.width, own.seed, own.times) not in lost]
        results = [
            SimpleNamespace(
                seed=own.seed, facts=SimpleNamespace(width=own.width, times=own.times, rate=1e-3 * own.times)
            )
            for own in kept
        ]
        gone = [(own, Lost("error", "gone")) for own in specs if own not in kept]
        return Done(results=results, lost=gone, reused=0)

    monkeypatch.setattr(probes, "_probed", cells)
    monkeypatch.setattr(widths, "decided", lambda cell: said(cell.facts.rate < 3e-2))
    done = probes.over(request(seeds), None, time.time() + 5, None)  # type: ignore[arg-type]
    return over_widths(done.results, seeds[0]), len(asked)


@pytest.mark.parametrize("seeds", [(0,), (5, 2), (0, 1, 2)])
def test_rates_are_searched_with_the_first_seed_that_was_given(
    seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = searched(seeds, monkeypatch)
    assert [row.width for row in found.rows] == [64, 128, 256] and found.law is not None
    assert all(row.bracket and row.bracket[0] < 3e-2 <= row.bracket[1] for row in found.rows)
    assert asked == 3 * len(seeds) + 3 * 4


@pytest.mark.parametrize("lost", [((128, 0, 1.0),), ((64, 0, 4.0),), ((64, 0, 16.0), (256, 0, 32.0))])
def test_cells_that_are_lost_end_the_search_where_they_are_and_nowhere_else(
    lost: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = searched((0, 1), monkeypatch, lost)
    assert asked < 20 and {row.width for row in found.rows} >= {64, 256}
    assert words.answer("gpt", found, (512,), 120.0)
