"""The table of 2026: its design, its numbers by hand, its page and its document, and what is committed of it."""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stabkit import api, methods
from stabkit.errors import StoreError
from stabkit.options import lines
from stabkit.spec import RunSpec
from studies.__main__ import main
from studies.forecast.coefficients import before, document
from studies.forecast.evaluation import Evaluation
from studies.forecast.heldout_methods import TRUSTED, held_out
from studies.rows import StudyRow, from_csv, to_csv
from studies.today import design, page, page_tables, sentences
from studies.today.design import BLOCKS, DESIGN, KEYS, LADDER, RUNGS, SEED, TABLE
from studies.today.table import MethodTable, Number
from tests.claims.test_today import PLAIN
from tests.studies.study_rows import row

HERE = Path(__file__).parents[2]
ROWS = HERE / "docs" / "today.csv"


def specs(*commands: str) -> list[RunSpec]:
    found = []
    for line in commands:
        name, options = lines.words(line, api.COMMANDS)
        assert name == "sweep"
        found += api.request(name, {**options, "out": "nowhere"}).specs
    return found


def test_the_table_is_as_it_was_asked_for() -> None:
    runs = specs(*TABLE)
    count = Counter((one.model.norm, one.model.decoder_layers) for one in runs)
    assert count == {(norm, n): 13 * (5 if n < 50 else 1) for norm in ("layer", "rms") for n in (6, 18, 50, 100)}
    assert {one.model.encoder_layers for one in runs} == {0} and {one.train.max_tokens for one in runs} == {256}
    assert {one.method for one in runs} == set(KEYS) == set(methods.SETS["today"]) and len(KEYS) == 13


def test_the_search_has_rates_on_both_sides_and_a_seed_of_its_own() -> None:
    runs = specs(*LADDER)
    assert {one.train.lr for one in runs} == set(RUNGS) and {one.seed for one in runs} == {SEED}
    assert {one.model.decoder_layers for one in runs} == {6, 18, 50}
    assert SEED not in {one.seed for one in specs(*TABLE)}
    assert all(b / a == pytest.approx(2) for a, b in zip(RUNGS, RUNGS[1:], strict=False))
    assert {one.train.verdict_at for one in specs(*DESIGN.commands)} == {250}


def made(key: str, depth: int, block: str, seed: int, loss: float, **given: Any) -> StudyRow:
    profile = replace(PLAIN, loss=loss, **given.pop("profile", {}))
    place = {"method": key, "encoder_layers": 0, "decoder_layers": depth, "block": block, "rate": 1e-3}
    unique = abs(hash((key, depth, block, seed, given.get("rate", 0)))) % 16**12
    run_id = f"{key}-0L-{depth}L-s{seed}-{unique:012x}"
    return row(0, **{**place, "run_id": run_id, "seed": seed, "task": "text", "profile": profile, **given})


LOSSES = {"pre-ln": (5.0, 5.1, 5.2, 5.3, 5.4), "keel": (5.1, 5.1, 5.3, 5.5, 5.5), "post-ln": (6.0, 6.1, 6.0, 6.1, 6.0)}


def rows() -> list[StudyRow]:
    found = [
        made(key, depth, block, seed, loss, outcome="stuck" if key == "post-ln" and depth > 6 else "trains")
        for block in BLOCKS
        for key, losses in LOSSES.items()
        for depth in (6, 18)
        for seed, loss in enumerate(losses)
    ]
    found += [made(key, 50, block, 0, 5.0) for key in ("pre-ln", "keel") for block in BLOCKS]
    found += [
        made("keel", 6, "llama", SEED, loss, rate=rate, outcome=end)
        for rate, loss, end in (
            (8e-3, 4.9, "trains"),
            (0.064, 6.3, "stuck"),
            (0.016, 4.8, "trains"),
            (0.032, 6.2, "stuck"),
        )
    ]
    return found


def test_a_cells_numbers_are_those_of_its_seeds() -> None:
    found = design.read(rows())
    cell = found.of("classic", "keel")[18]
    assert cell.outcomes == {"trains": 5} and cell.trains and cell.limit is None
    assert cell.loss is not None and cell.loss.value == pytest.approx(statistics.fmean(LOSSES["keel"]))
    half = 2.776 * statistics.stdev(LOSSES["keel"]) / math.sqrt(5)
    assert (cell.loss.low, cell.loss.high) == pytest.approx((cell.loss.value - half, cell.loss.value + half))
    apart = [mine - theirs for mine, theirs in zip(LOSSES["keel"], LOSSES["pre-ln"], strict=True)]
    assert cell.difference is not None and cell.difference.value == pytest.approx(statistics.fmean(apart))
    assert found.of("classic", "post-ln")[18].trains is False
    deep = found.of("classic", "keel")[50].loss
    assert deep is not None and deep.low is None, "one seed has no interval"


def test_a_limit_is_the_highest_rung_that_trains() -> None:
    cell = design.read(rows()).of("llama", "keel")[6]
    assert cell.limit is not None and (cell.limit.passes, cell.limit.fails, cell.limit.known) == (0.016, 0.032, True)


def test_an_exponent_needs_three_depths_and_finds_a_power() -> None:
    some = [
        replace(one, measured=replace(one.measured, update_first=0.1 * one.decoder_layers**0.5))
        for one in rows()
        if one.measured
    ]
    found = design.read(some).exponents
    assert found["classic", "keel"].value == pytest.approx(0.5)
    assert ("classic", "post-ln") not in found, "two depths"


def study(some: list[StudyRow] | tuple[StudyRow, ...], missing: int = 0) -> Any:
    return SimpleNamespace(
        rows=tuple(some),
        design=DESIGN,
        commands=DESIGN.commands,
        path=ROWS,
        missing=[None] * missing,
        failed=(),
        specs={},
    )


def content(some: Any, table: MethodTable) -> page.Content:
    searched, tabled = (held_out(rows, before()[0], 0.03) for rows in (table.halved, table.tabled))
    return page.Content(study=some, table=table, cost={}, searched=searched, tabled=tabled, findings=())


def test_the_page_says_how_far_it_is_and_survives_having_nothing(tmp_path: Path, undrawn: None) -> None:
    empty = design.read(())
    words = sentences.answer(empty)
    assert words == "No search is through yet."
    text = page.render(content(study((), 7), empty), "python -m studies today")
    assert "Not whole yet" in text and "7 of them next" in text
    full = design.read(rows())
    text = page.render(content(study(rows()), full), "stabkit")
    assert "Not whole yet" not in text and "stuck 5/5" in text and "1.6e-2" in text


def test_every_picture_has_a_title_and_words_for_those_who_do_not_see_it() -> None:
    full = design.read(rows())
    for figure in page.FIGURES:
        frame = figure.select(full)
        assert not frame.empty and figure.title(full) and "Keel" in figure.alt(frame)
        figure.draw(frame)


def test_the_forecast_says_of_whom_it_has_seen_no_failure() -> None:
    rates = [made("pre-ln", 6, "llama", SEED, 5.0, rate=rate) for rate in (1e-3, 2e-3)]
    full, by = design.read(rows()), before()[0]
    new, tabled = held_out([*full.halved, *rates], by, 0.03), held_out(full.tabled, by, 0.03)
    scored, alike, table = sentences.forecast_sentences(new, tabled)
    assert alike.startswith("Every run of Pre-LN at these rates trains") and f"{tabled.whole.n} runs" in table
    assert f"{new.within.whole.n} runs" in scored and sentences.forecast_sentences(held_out([], by, 0.03), tabled)
    heads = [name for name, _ in sentences.scores(new, tabled)]
    assert heads[0].startswith("the search, at rates") and heads[-1] == "the table, at 1e-3" and "Keel" in heads
    assert sentences.given_sentence(()) == "" and "for DyT, where" in sentences.given_sentence(("dyt",))


def test_a_number_is_written_with_its_interval() -> None:
    assert page_tables.with_interval(Number(5.301, 5.25, 5.35), 3) == "5.30 (5.25 to 5.35)"
    assert page_tables.with_interval(Number(-0.1), signed=True) == "−0.10" and page_tables.with_interval(None) == "–"


# — what is committed —


def committed() -> tuple[StudyRow, ...]:
    return from_csv(ROWS)


def test_the_committed_rows_are_of_the_study_and_read_back_to_the_byte() -> None:
    found = committed()
    assert to_csv(found) == ROWS.read_bytes()
    assert {one.method for one in found} == set(KEYS) and {one.block for one in found} == set(BLOCKS)
    assert {one.rate for one in found if one.seed != SEED} == {1e-3}
    assert {one.rate for one in found if one.seed == SEED} <= set(RUNGS)
    assert sum(one.outcome == "early" for one in found) <= 0.05 * len(found)


def test_the_forecast_was_scored_before_it_was_joined() -> None:
    """The coefficients hold the fit without these runs, and that is the one by which they are judged."""
    halved = design.read(committed()).halved
    own = held_out(halved, *before())
    assert len(own.rows) >= 120 and len(own.of("block")) == 2
    corpus = Evaluation(from_csv(HERE / "docs" / "forecast.csv")).fitted_rows
    body = document(corpus, halved)
    kept = [one for one in own.rows if one.method not in body["abstains"]]
    assert body["before"]["runs"] == len(corpus) and body["runs"] == len(corpus) + len(kept) > len(corpus) + 120
    fit, highest = before()
    assert fit.weight == pytest.approx(body["before"]["weight"])
    assert highest == max(one.rate for one in corpus) == 0.03


def test_a_method_whose_failures_the_forecast_misses_gets_none(undrawn: None) -> None:
    """Told before it is joined: skill by runs of both outcomes, or against everyone's base rate where all end alike."""
    corpus = Evaluation(from_csv(HERE / "docs" / "forecast.csv")).fitted_rows
    own = held_out(design.read(committed()).halved, *before())
    near, body = own.within, document(corpus, own.rows)
    doubted = {key for key, one in near.of("method").items() if near.skill(one.whole) < TRUSTED}
    assert set(body["abstains"]) == doubted - {one.method for one in corpus}
    alike = near.of("method")["pre-ln"].whole
    share = near.whole.base_rate
    assert alike.trained == alike.n and near.skill(alike) == pytest.approx(1 - alike.brier / (share * (1 - share)))


def test_the_docs_say_what_the_rows_say(multi30k: Path, tmp_path: Path, undrawn: None, capsys: Any) -> None:
    """docs/today.md is what the study writes from the committed rows, each of a run that it names."""
    text = ["--data", str(multi30k), "--source", "de", "--target", "en", "--rows", str(ROWS), "--out", str(tmp_path)]
    assert main(["today", *text, "--budget", "1s", "--json", "--quiet"]) == 0
    report = Path(json.loads(capsys.readouterr().out)["report"])
    assert report.with_suffix(".md").read_text(encoding="utf-8") == (HERE / "docs" / "today.md").read_text("utf-8")
    assert f"{len(committed())} rows" in report.read_text(encoding="utf-8")


def test_the_results_say_what_the_rows_say() -> None:
    text = (HERE / "docs" / "results.md").read_text(encoding="utf-8")
    assert sentences.answer(design.read(committed())) in re.sub(r"\s+", " ", text)


def test_the_costs_are_of_every_method_and_block() -> None:
    with ROWS.with_name(design.COSTS).open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert {(one["block"], one["method"]) for one in found} == {(block, key) for block in BLOCKS for key in KEYS}
    assert all(float(one["low"]) <= float(one["ratio"]) <= float(one["high"]) for one in found)
    assert all(one["processor"] for one in found)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"block,method\nclassic,keel\n",
        b"block,method,ratio,low,high\nclassic,keel,1.0\n",
        b"block,method,ratio,low,high\nclassic,keel,nan,nan,nan\n",
        b"block,method,ratio,low,high\nclassic,keel,-1,-2,0\n",
        b"block,method,ratio,low,high\nclassic,keel,1.0,1.1,1.2\n",
    ],
)
def test_times_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / design.COSTS
    path.write_bytes(content)
    with pytest.raises(StoreError, match="step_cost"):
        page.costs(path)
