"""The search over a store: rounds, what is not trained again, runs that are lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stabkit import api
from stabkit.methods.blocks import BLOCKS
from stabkit.results.forecast import logistic
from stabkit.results.forecast.model import Forecast
from stabkit.results.tolerance import COARSE, FACTOR, exponents
from stabkit.running import execute, tolerance
from stabkit.running.request import Request
from stabkit.running.tolerance import Searched
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from tests.commands import stabkit, strict


@dataclass
class Fake:
    """A run with a forecast."""

    spec: RunSpec
    forecast: Forecast

    @property
    def run_id(self) -> str:
        return self.spec.run_id


class Searching:
    """Carries requests out by a law, and remembers what was asked for."""

    def __init__(self, limit: Callable[[RunSpec], float], lost: Callable[[RunSpec], bool] = lambda spec: False) -> None:
        self.limit, self.lost = limit, lost
        self.rounds: list[list[RunSpec]] = []

    def out(self, request: Request, *_: object, **__: object) -> execute.RequestResult:
        specs = list(request.specs)
        self.rounds.append(specs)
        p = {spec.run_id: 0.95 if spec.train.lr <= self.limit(spec) else 0.05 for spec in specs}
        made = {
            spec.run_id: Forecast(
                word=logistic.word(p[spec.run_id]), p_trains=p[spec.run_id], features={}, axes=(), corpus=""
            )
            for spec in specs
        }
        runs = [Fake(spec, made[spec.run_id]) for spec in specs if not self.lost(spec)]
        failed = [(spec, "killed") for spec in specs if self.lost(spec)]
        return execute.RequestResult(cast(Any, runs), failed, [], [])


def searched(monkeypatch: pytest.MonkeyPatch, fake: Searching, **options: str) -> Searched:
    monkeypatch.setattr(tolerance.execute, "run", fake.out)
    asked = api.request("tolerance", {"models": "post-ln,deepnorm", "depths": "6,18,50", "seeds": "0,1", **options})
    return tolerance.search(asked, lambda spec: spec.method, cast(Any, None), cast(Any, None))


def law(spec: RunSpec) -> float:
    """Every method has its limit, a little other with every seed; it falls as 1/N."""
    limit = {"post-ln": 6e-3, "deepnorm": 5e-2}[spec.method]
    return limit * (1 + 0.3 * spec.seed) * 64 / (spec.model.decoder_layers * spec.model.hidden)


def test_the_limit_of_every_cell_is_found_and_nothing_is_trained_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Searching(law)
    found = searched(monkeypatch, fake)
    assert len(found.found) == 6 and not found.failed
    for one in found.found:
        for seed in one.seeds:
            limit = law(
                RunSpec(
                    method=one.method, model=ModelConfig(encoder_layers=1, decoder_layers=one.depth), seed=seed.seed
                )
            )
            if limit >= COARSE[0]:
                assert seed.passes and seed.fails and seed.passes <= limit < seed.fails <= seed.passes * FACTOR * 1.01
            else:
                assert seed.passes is None
        assert one.monotone
    fits = {one.method: one for one in exponents(found.found, "depth")}
    assert fits["deepnorm"].p == pytest.approx(1.0, abs=0.15)
    asked = [spec.run_id for specs in fake.rounds for spec in specs]
    assert len(set(asked)) == len(asked) == len(found.runs)
    assert {(spec.train.steps, spec.train.warmup) for specs in fake.rounds for spec in specs} == {(16, 0)}
    assert {spec.seed for spec in fake.rounds[0]} == {0}, "half-decades on the first seed alone"


def test_widths_are_an_axis_too(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"models": "deepnorm", "depths": "12", "hidden": "64,128,256", "ffn": "2x"}
    found = searched(monkeypatch, Searching(law), **options)
    assert [one.hidden for one in found.found] == [64, 128, 256] and not exponents(found.found, "depth")
    (fit,) = exponents(found.found, "width")
    assert fit.p == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("word", ["trains", "stuck", "diverged", "early"])
def test_under_another_optimiser_a_rate_is_judged_by_training(word: str) -> None:
    """Lion is none that the forecast knows; AdamW is one, where it was scored."""
    spec = RunSpec(
        method="pre-ln",
        model=ModelConfig(encoder_layers=0, decoder_layers=2),
        train=TrainConfig(optimizer="lion", steps=tolerance.JUDGED, warmup=0),
    )
    assert tolerance.updates(spec) == 250
    known = replace(spec, train=TrainConfig(optimizer="adamw", weight_decay=0.1, warmup=0))
    llama = ModelConfig(encoder_layers=0, decoder_layers=2, **BLOCKS["llama"])
    assert tolerance.updates(replace(known, model=llama)) == 16
    assert tolerance.updates(known) == 250, "never scored in the classic block"
    assert tolerance.updates(replace(known, model=replace(llama, encoder_layers=2))) == 250, "nor with an encoder"
    warm = replace(known.train, warmup=10)
    assert tolerance.updates(replace(known, model=llama, train=warm)) == 250, "nor with a warm-up"
    judged = SimpleNamespace(spec=spec, outcome=SimpleNamespace(word=word), forecast=None)
    assert tolerance.probability(cast(Any, judged)) == {"trains": 1.0, "early": None}.get(word, 0.0)


def test_a_run_that_is_lost_ends_its_cell_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Searching(
        law, lambda spec: spec.method == "post-ln" and spec.model.decoder_layers == 18 and spec.train.lr < 1e-3
    )
    found = searched(monkeypatch, fake)
    assert {spec.model.decoder_layers for spec, _ in found.failed} == {18}
    assert len(found.found) == 6 and all(one.seeds[-1].seed == 1 for one in found.found if one.method == "deepnorm")


def test_the_command_searches_trains_and_leaves_a_page(tmp_path: Path) -> None:
    command = ("tolerance", *("--hidden", "16", "--ffn", "24", "--vocab", "200", "--max-tokens", "64", "--json"))
    command = (*command, "--models", "deepnorm", "--depths", "1", "--seeds", "0", "--out", str(tmp_path))
    done = stabkit(*command)
    assert done.returncode == 0, done.stderr
    found = strict(done.stdout)
    (one,) = found["tolerance"]
    assert {"model", "depth", "seeds", "rate", "bracket", "monotone"} <= set(one) and found["exponents"] == []
    page = Path(found["report"]).read_text()
    assert found["answer"].split(";")[0] in page and 'id="figure-tolerance"' in page
    again = stabkit(*command)
    assert "new 1" not in again.stderr and strict(again.stdout)["tolerance"] == found["tolerance"]


def test_a_plan_says_what_is_certain_and_what_comes_beyond_it(tmp_path: Path) -> None:
    done = stabkit("tolerance", "--depths", "6,18", "--dry-run", "--out", tmp_path / "none")
    assert done.returncode == 0 and "48 runs, 48 to train" in done.stdout
    assert "then about 120 runs between these rates" in done.stdout and not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--depths", "0"), "--depths"),
        (("--models", "deepnrm"), "deepnorm"),
        (("--seeds", "x"), "--seeds"),
        (("--lr", "1e-3"), "no option --lr"),
    ],
)
def test_bad_input_is_one_line_and_code_2(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = stabkit("tolerance", *args, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not list(tmp_path.iterdir())
