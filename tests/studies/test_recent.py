"""The methods of 2026 under two optimisers: the design, the search, the table and the page, on rows made by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from stabkit import methods
from stabkit.errors import StoreError
from stabkit.options import lines
from stabkit.options.requests import request_of
from stabkit.results.profile import Profile
from stabkit.spec import RunSpec
from stabkit.training.optimizers import OPTIMIZERS
from studies import rungs, study
from studies.__main__ import main
from studies.findings.listed import read_list
from studies.numbers import with_sign
from studies.recent import design, page, sentences
from studies.recent.costs import FILE, costs
from studies.recent.table import RecentTable, variant
from studies.rows import StudyRow, from_csv, row, to_csv
from tests.studies.study_rows import measured

HERE = Path(__file__).parents[2]
ROWS = HERE / "docs" / "evidence" / "2026.csv"
PLAIN = Profile(
    **dict(loss=5.3, gradient=1.0, gradient_lowest=0.5, gradient_spread=4.0, spikes=2.0, cosine=0.9, cosine_deep=0.9),
    **dict(stream_start=1.4, stream_half=3.0, stream=6.0),
)


def specs(*commands: str) -> list[RunSpec]:
    found: list[RunSpec] = []
    for line in commands:
        name, options = lines.words(line)
        found += request_of(name, {**options, "out": "nowhere"}).specs
    return found


@pytest.fixture(scope="module")
def every() -> list[RunSpec]:
    return specs(*design.COMMANDS)


def test_every_method_of_the_set_is_searched_under_both_optimisers_at_four_depths(every: list[RunSpec]) -> None:
    under = {
        optimizer: {methods.variant(one) for one in every if one.train.optimizer == optimizer}
        for optimizer in design.OPTIMIZERS
    }
    assert under["adamw"] == {*methods.SETS["2026"], *design.STARTS}
    assert under["adamw"] - under["muon"] == {"depth-mup", "completep"}
    assert {one.model.decoder_layers for one in every} == {6, 18, 50, 100}
    assert {one.model.encoder_layers for one in every} == {0} and {one.model.norm for one in every} == {"rms"}
    assert {one.train.weight_decay for one in every} == {0.1} and {one.train.warmup for one in every} == {0}
    assert {one.train.momentum for one in every if one.train.optimizer == "muon"} == {0.95}
    assert {one.seed for one in every if one.model.decoder_layers in (6, 100)} == {design.SEARCHING}


def loss_of(spec: RunSpec, best: float) -> float:
    """A bowl in the logarithm of the rate; what is eight times too high diverges."""
    away = math.log2(spec.train.lr / best)
    return math.inf if away > 2.5 else 5.0 + 0.1 * away**2 + 0.01 * spec.seed


def row_of(spec: RunSpec, loss: float, mixing: float = 1.0) -> StudyRow:
    ended = math.isinf(loss)
    return row(
        spec,
        outcome="diverged" if ended else "trains",
        steps=20 if ended else 250,
        validation=9.0 if ended else loss,
        digest="0" * 64,
        measured=measured(),
        profile=None if ended else replace(PLAIN, loss=loss, mixing=mixing),
    )


@pytest.mark.parametrize("best", [2.5e-4, 1e-3, 4e-3, 1.6e-2, 0.512])
def test_the_search_walks_to_the_lowest_loss_and_the_other_seeds_follow(every: list[RunSpec], best: float) -> None:
    place = ("pre-ln", "muon", 18)
    cell = [one for one in every if (one.method, one.train.optimizer, one.model.decoder_layers) == place]
    stored: dict[str, StudyRow] = {}
    while wanted := [s for s in study.next_tried(cell, stored, design.FIRST) if s.run_id not in stored]:
        stored |= {one.run_id: row_of(one, loss_of(one, best)) for one in wanted}
        assert len(stored) < 20
    searched = {r.rate: r.equal_loss for r in stored.values() if r.seed == design.SEARCHING}
    found = rungs.best(design.RUNGS, searched)
    assert found and found.known and found.rate == pytest.approx(best, rel=0.05)
    assert {r.seed for r in stored.values() if r.rate == found.rate} == {0, 1, 2, 3}
    assert all(r.seed == 0 for r in stored.values() if r.rate != found.rate)


@pytest.fixture(scope="module")
def rows(every: list[RunSpec]) -> list[StudyRow]:
    """All methods whole at 18 layers; what Muon loses is in the opposite order of AdamW's."""
    names = [methods.variant(one) for one in every]
    place = {name: i for i, name in enumerate(dict.fromkeys(names))}
    found = []
    for one, name in zip(every, names, strict=True):
        if one.model.decoder_layers != 18 or one.train.lr not in (2e-3, 4e-3, 8e-3):
            continue
        if one.seed and one.train.lr != 4e-3:
            continue
        under = place[name] if one.train.optimizer == "adamw" else len(place) - place[name]
        loss = 5 + 0.02 * under + (0.1 if one.train.lr != 4e-3 else 0.0) + 0.001 * one.seed
        found.append(row_of(one, loss, 700.0 if one.method == "hyper-connections" else 1.0))
    return found


def test_the_table_has_the_best_rates_the_seeds_and_the_orders(rows: list[StudyRow]) -> None:
    table = RecentTable(rows, (*design.KEYS, *design.STARTS))
    cells = {(cell.optimizer, cell.variant): cell for cell in table.cells}
    mhc = cells["adamw", "mhc:start=static"]
    assert mhc.label == "mHC (start=static)" and mhc.best and mhc.best.rate == 4e-3 and mhc.tried == 3
    assert mhc.loss and mhc.loss.value == pytest.approx(mhc.best.loss + 0.002)
    assert mhc.less and mhc.less.value == pytest.approx(mhc.best.loss - cells["adamw", "pre-ln"].best.loss)  # type: ignore[union-attr]
    found = table.correlation(18)
    assert found and found[0] == pytest.approx(-1.0) and found[1] == len(cells) - len(cells) // 2 - 1
    assert table.correlation(6) is None


def test_the_sentences_say_what_the_table_has_with_its_n(rows: list[StudyRow]) -> None:
    table = RecentTable(rows, (*design.KEYS, *design.STARTS))
    told = sentences.answer(table)
    assert told.startswith("At 18 layers") and "not the same" in told and "rank correlation is −1.00" in told
    assert not sentences.paragraphs(table)
    assert sentences.answer(RecentTable([], ())) == "No depth is searched through under both optimisers yet."


def test_the_rows_come_back_from_their_file_and_older_files_have_no_such_columns(
    rows: list[StudyRow], tmp_path: Path
) -> None:
    path = tmp_path / "recent.csv"
    path.write_bytes(to_csv(rows))
    assert sorted(from_csv(path), key=lambda r: r.run_id) == sorted(rows, key=lambda r: r.run_id)
    assert "optimizer" in path.read_text().splitlines()[0]
    for older in ("forecast.csv", "later.csv"):
        text = (HERE / "docs" / "evidence" / older).read_bytes()
        assert to_csv(from_csv(HERE / "docs" / "evidence" / older)) == text and b"optimizer" not in text


@pytest.mark.slow
def test_the_page_and_the_document_are_whole(rows: list[StudyRow], tmp_path: Path) -> None:
    path = tmp_path / "recent.csv"
    path.write_bytes(to_csv(rows))
    begun = study.Study(design=design.DESIGN, commands=design.COMMANDS, path=path, rows=tuple(rows), missing=())
    (tmp_path / FILE).write_text(
        "kind,name,ratio,low,high,second,second_low,second_high\n"
        "method,mhc,2.4,2.3,2.5,3.1,3.0,3.2\noptimizer,lion,1.1,1.0,1.2,,,\n"
    )
    content = page.write(begun, tmp_path / "recent.md", "python -m studies recent")
    assert json.loads(json.dumps(content, allow_nan=False))["answer"] == content["answer"]
    told = (tmp_path / "recent.md").read_text(encoding="utf-8")
    assert "| 18 | −1.00" in told and "mHC takes 2.40 (2.30 to 2.50) times" in told
    losses, costs = ((tmp_path / f"2026_{name}.csv").read_text(encoding="utf-8") for name in ("losses", "costs"))
    assert "\nPre-LN,AdamW,18," in losses and "mHC (start=identity),Muon,18," in losses
    assert "mHC,2.40 (2.30 to 2.50),3.1 (3.0 to 3.2)," in costs and "lion,1.10 (1.00 to 1.20),–," in costs


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"kind,name\nmethod,keel\n",
        b"kind,name,ratio,low,high,second,second_low,second_high\nmethod,keel,1.0\n",
        b"kind,name,ratio,low,high,second,second_low,second_high\nmethod,keel,nan,nan,nan,,,\n",
        b"kind,name,ratio,low,high,second,second_low,second_high\nmethod,keel,-1,-2,0,,,\n",
        b"kind,name,ratio,low,high,second,second_low,second_high\nmethod,keel,1.0,0.9,1.2,1.0,1.1,1.2\n",
    ],
)
def test_times_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreError, match="step_cost"):
        costs(tmp_path / FILE)
    assert costs(tmp_path / "nowhere.csv") == []


def test_the_committed_rows_are_of_the_studys_runs(every: list[RunSpec]) -> None:
    """As far as the study has come, on parallel text; the same command goes on."""
    asked = {(methods.variant(s), s.train.optimizer, s.model.decoder_layers, s.train.lr, s.seed) for s in every}
    rows = from_csv(ROWS)
    assert to_csv(rows) == ROWS.read_bytes() and {row.task for row in rows} == {"text"}
    found = {(variant(row), row.optimizer, row.depth, row.rate, row.seed) for row in rows}
    assert found <= asked and len(found) == len(rows)


@pytest.mark.slow
def test_the_docs_say_what_the_rows_say(multi30k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """evidence/2026.md is what the study writes from the committed rows; the list of findings has its correlations."""
    text = ["--data", str(multi30k), "--source", "de", "--target", "en", "--rows", str(ROWS), "--out", str(tmp_path)]
    assert main(["recent", *text, "--budget", "1s", "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    page = Path(document["report"])
    assert page.read_text("utf-8") == ROWS.with_suffix(".md").read_text("utf-8")
    for name in ("2026_losses.csv", "2026_costs.csv"):
        assert page.with_name(name).read_text("utf-8") == ROWS.with_name(name).read_text("utf-8")
    table = RecentTable(from_csv(ROWS), (*design.KEYS, *design.STARTS))
    (order,) = [one.sentence for one in read_list().findings if one.key == "order"]
    for depth in (6, 18, 50, 100):
        found = table.correlation(depth)
        assert found and with_sign(found[0]) in order


def test_the_costs_are_of_every_method_and_optimiser() -> None:
    found = costs(ROWS.with_name(FILE))
    assert {cost.name for cost in found if cost.kind == "method"} == set(design.KEYS)
    assert {cost.name for cost in found if cost.kind == "optimizer"} == set(OPTIMIZERS)
