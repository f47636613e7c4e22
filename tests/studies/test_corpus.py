"""The designed corpus: what is in it, and that a study goes on from its rows."""

from __future__ import annotations

import contextlib
import io
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from stabkit.errors import UsageError
from stabkit.options import lines
from stabkit.options.requests import request_of
from stabkit.paper.items import STUDIES
from stabkit.running.request import Request
from stabkit.spec import RunSpec
from stabkit.storage.store import Store
from studies import __main__ as command
from studies import study
from studies.forecast import corpus as designed
from studies.forecast.corpus import BEYOND, DEFAULT_GRID, DESIGN, SLICES, WIDTHS, verdict_at
from studies.forecast.holdouts import fixed
from studies.rows import from_csv, row
from tests.commands import Done, stabkit, strict


def request(line: str, out: Path = Path("nowhere"), **changes: str) -> Request:
    name, options = lines.words(line)
    assert name == "sweep"
    return request_of(name, {**options, "out": str(out), **changes})


def specs(*commands: str) -> list[RunSpec]:
    return [spec for line in commands for spec in request(line).specs]


def corpus() -> list[tuple[RunSpec, designed.Slice]]:
    """(spec, slice) of every run of the corpus; the task is the slice's, for here there is no text."""
    return [
        (spec, one)
        for seed, one in enumerate(SLICES, 1)
        for line in designed.commands(one, seed)
        for spec in request(line).specs
    ]


def test_the_corpus_is_as_it_was_designed() -> None:
    runs = corpus()
    shallow = [one for one in runs if one[1].layers < 100]
    share = {n: sum(one.layers == n for _, one in shallow) / len(shallow) for n in (6, 12, 18, 30, 50)}
    assert len(runs) >= 640 and sum(one.layers == 100 for _, one in runs) == 24
    assert share == pytest.approx({6: 0.30, 12: 0.25, 18: 0.25, 30: 0.12, 50: 0.08}, abs=0.03)
    methods = Counter(spec.method for spec, _ in runs)
    assert set(methods) == set(fixed()["method"]) and min(methods.values()) >= 50
    text = sum(one.task == "text" for _, one in runs) / len(runs)
    both = sum(one.arch == "encoder-decoder" for _, one in runs) / len(runs)
    assert text == pytest.approx(0.75, abs=0.02) and both == pytest.approx(0.5, abs=0.02)
    assert {spec.train.warmup for spec, _ in runs} == {0, 50}
    rates = {spec.train.lr for spec, _ in runs}
    assert min(rates) == 5e-4 and max(rates) == 3e-2 and set(fixed()["rate"]) == set(sorted(rates)[-2:])
    assert {one.layers for _, one in runs} == set(fixed()["depth"])


def test_a_run_is_judged_250_updates_past_its_warm_up_and_400_on_the_synthetic_task() -> None:
    for spec, one in corpus():
        past = 250 if one.task == "text" else 400
        assert spec.train.verdict_at == verdict_at(one) == spec.train.warmup + past and spec.train.steps == 800
        assert spec.train.max_tokens == 256 and (spec.model.hidden, spec.model.ffn, spec.model.heads) == (64, 128, 2)


def test_every_method_meets_small_and_large_rates_at_several_depths() -> None:
    every = corpus()
    for method in fixed()["method"]:
        own = [spec for spec, _ in every if spec.method == method]
        for rates in (lambda lr: lr <= 4e-3, lambda lr: lr >= 8e-3):
            assert len({spec.model.decoder_layers for spec in own if rates(spec.train.lr)}) >= 3, method


def test_widths_default_cells_and_long_warm_ups_stand_apart_from_the_corpus() -> None:
    widths = specs(*WIDTHS)
    assert len(widths) == 60 and {spec.model.hidden for spec in widths} == set(fixed()["width"])
    assert {max(spec.model.encoder_layers, spec.model.decoder_layers) for spec in widths} == {6, 12, 18}
    assert {spec.seed for spec in specs(*DEFAULT_GRID)} == {0} and len(specs(*DEFAULT_GRID)) == 10
    assert {spec.train.warmup for spec in specs(*BEYOND)} == {400}
    every = [spec.run_id for spec in specs(*DESIGN.commands)]
    assert len(set(every)) == len(every) and 0 not in {spec.seed for spec, _ in corpus()}


@pytest.fixture
def tiny_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same machinery on four runs of a second, each a part of its own."""
    line = "sweep --models post-ln,deepnorm --depths 1 --hidden 16 --ffn 24 --max-tokens 64 --warmup 0 "
    commands = (line + "--steps 60 --verdict-at 40 --lr 2e-3,2e-2 --seeds 3",)
    monkeypatch.setitem(command.DESIGNS, "forecast", replace(DESIGN, commands=commands))
    monkeypatch.setattr(study, "MINUTES", 0.0)


def studies(*args: object, cwd: Path) -> Done:
    """`python -m studies ARGS…` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command.main([*map(str, args), "--executor", "inline"])
    return Done(code, out.getvalue(), err.getvalue())


TEXT = ("--data", "text", "--source", "de", "--target", "en")


def text(folder: Path) -> None:
    folder.mkdir()
    for name in ("train", "valid"):
        for language in ("de", "en"):
            letters = "abcdefghijklmnopqrstuvwxyz"
            words = (" ".join(letters[(i * k) % 23 :][:3] for k in (1, 3, 7)) + language for i in range(1, 401))
            (folder / f"{name}.{language}").write_text("\n".join(words) + "\n")


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_study")
def test_rows_are_kept_and_what_has_a_row_is_not_trained_again(tmp_path: Path) -> None:
    text(tmp_path / "text")
    words = ("forecast", *TEXT, "--vocab", "60", "--rows", "rows.csv", "--json")
    done = studies(*words, "--out", "one", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said, rows = strict(done.stdout), from_csv(tmp_path / "rows.csv")
    assert said["missing"] == 0 and len(rows) == 4 and (tmp_path / "one/reports/forecast.html").exists()
    digests = {run_id: Store(tmp_path / "one").load(run_id).digest for run_id in Store(tmp_path / "one").ids()}
    assert {row.run_id: row.digest for row in rows} == digests
    assert {row.task for row in rows} == {"text"} and all(row.steps >= 40 for row in rows)
    again = studies(*words, "--out", "two", cwd=tmp_path)
    assert again.returncode == 0 and not (tmp_path / "two/runs").exists() or not Store(tmp_path / "two").ids()
    assert from_csv(tmp_path / "rows.csv") == rows


@pytest.mark.usefixtures("tiny_study")
def test_a_budget_ends_a_study_between_two_parts_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text(tmp_path / "text")
    words = ("forecast", *TEXT, "--vocab", "60", "--json", "--out", "out")
    clock = iter(range(0, 100_000, 40))
    monkeypatch.setattr(study.time, "monotonic", lambda: float(next(clock)))
    done = studies(*words, "--budget", "90s", cwd=tmp_path)
    assert done.returncode == 0 and 0 < strict(done.stdout)["missing"] < 4, done.stderr
    monkeypatch.undo()
    rows = len(from_csv(tmp_path / "out/studies/forecast.csv"))
    assert 0 < rows < 4


def test_a_study_needs_a_text(tmp_path: Path) -> None:
    done = studies("forecast", cwd=tmp_path)
    assert done.returncode == 2 and "studies a text beside the synthetic task" in done.stderr
    assert done.stderr.count("\n") == 1
    with pytest.raises(UsageError, match="between 40"):
        request("sweep --verdict-at 20 --steps 800")


@pytest.mark.parametrize("key", STUDIES)
def test_paper_says_in_one_line_where_a_study_went(key: str, tmp_path: Path) -> None:
    for words in ((key,), (key, "fig4"), (key, "--dry-run")):
        done = stabkit("paper", *words, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout
        assert f"`python3 dev.py evidence {key}`" in done.stderr


def test_a_row_may_say_that_a_loss_was_not_finite_and_not_that_a_run_was_another() -> None:
    one = specs("sweep --models rezero --depths 2 --steps 3 --warmup 0")[0]
    held = row(one, outcome="diverged", steps=3, validation=math.nan, digest="", measured=None)
    assert study._departs(held, one) == ""
    assert study._departs(replace(held, seed=7), one) == "seed 7 where it is 0"
