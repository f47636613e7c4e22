"""`stabkit transfer` over a store: both kinds of models, what is not trained again, budgets, bad input, the page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import stabkit
from stabkit.errors import UsageError
from stabkit.report import transfer as page
from stabkit.results.valley import Trial
from stabkit.running import transfer
from stabkit.running.transfer import CaseName, Place, SearchPlan, Trained
from tests.commands import stabkit as command
from tests.commands import strict

pytestmark = pytest.mark.usefixtures("undrawn")
SMALL = {
    "hidden": 16,
    "ffn": 32,
    "vocab": 200,
    "max_tokens": 64,
    "steps": 40,
    "arch": "decoder-only",
    "executor": "inline",
}
FACTORY = "tests.own.carried_models:tiny"


def plan(**changes: Any) -> SearchPlan:
    asked = {
        "axis": "depth",
        "cases": {"m": CaseName("M", "pre-ln")},
        "sizes": (4, 8, 16),
        "rungs": stabkit_rungs(),
        "seeds": (0, 1, 2),
        "steps": 100,
        "predict": (32,),
    }
    return SearchPlan(**{**asked, **changes})


def stabkit_rungs() -> tuple[float, ...]:
    from stabkit.results.valley import rungs

    return rungs(1e-4, 1e-1)


def made(p: float, rungs: tuple[float, ...], rounds: list[int], lost: int = 0) -> transfer.Train:
    """Valleys whose bottom goes as size^p; runs of size `lost` have no result."""

    def train(places: Any) -> Trained:
        rounds.append(len(places))
        trials = {}
        for place in places:
            away = math.log2(rungs[place.rung] / (4e-3 * (place.size / 4) ** p))
            loss = 5 - 0.1 * math.log2(place.size) + 0.05 * away**2 + 0.004 * math.sin(7 * place.seed + place.rung)
            if place.size != lost:
                trials[place] = Trial(loss if away < 3 else math.inf, away < 3)
        return Trained(
            trials, [(f"m-{lost}", "killed")] if lost in {place.size for place in places} else [], len(trials)
        )

    return train


def nothing(places: Any) -> float:
    return 0.0


@pytest.mark.parametrize(("p", "verdict"), [(0.0, "carries"), (-0.6, "drifts")])
def test_a_search_ends_with_a_verdict_a_sentence_and_a_page(p: float, verdict: str) -> None:
    rounds: list[int] = []
    asked = plan()
    found = transfer.search(asked, made(p, asked.rungs, rounds), nothing, None)
    (case,) = found.found
    assert case.verdict == verdict and found.left == 0 and len(rounds) < 12
    said = page.answer(found)
    assert f"M's best rate {verdict} from 4 to 16 layers" in said
    if verdict == "drifts":
        assert "by that law set" in said and "at 32" in said and "N^−0.5" in said
    text = page.render(found, "stabkit transfer")
    assert said[:40] in text.replace("&#39;", "'") and "The best rate predicted by the law" in text


def test_the_highest_alone_has_a_sentence_and_a_page() -> None:
    asked = plan(highest=True, predict=())
    found = transfer.search(asked, made(-0.6, asked.rungs, []), nothing, None)
    said = page.answer(found)
    assert said == "M trains up to 2.5e-2 at 4 layers, up to 1.8e-2 at 8 layers, up to 1.3e-2 at 16 layers."
    text = page.render(found, "stabkit transfer --highest")
    assert "Which learning rate is still stable?" in text and "highest stable rate" in text
    assert "nats lost" not in text and "No minimum was searched" in text
    several = plan(highest=True, predict=(), cases={"m": CaseName("M", "pre-ln"), "n": CaseName("N", "deepnorm")})
    both = transfer.search(several, made(0.0, asked.rungs, []), nothing, None)
    assert page.answer(both) == "At 16 layers M trains up to 2.5e-2, N trains up to 2.5e-2."
    assert json.dumps([case.rates_json() for case in found.found], allow_nan=False)


@pytest.mark.slow
def test_the_highest_of_one_depth_of_built_in_methods_and_of_a_factory(tmp_path: Path) -> None:
    asked = {"models": "pre-ln", "depths": 1, "lr": "1e-3..1e-1", "seeds": (0, 1), "out": tmp_path, "highest": True}
    found = stabkit.transfer(**asked, **SMALL)
    (case,) = found.searched.found
    assert found.page.name.startswith("highest-depth-1-to-1-Pre-LN") and case.valleys[0].highest and not found.failed
    words = ("transfer", FACTORY, "--depths", "1", "--highest", "--steps", "10", "--seeds", "0", "--json")
    body = strict(command(*words, "--lr", "1e-3..3e-1", "--out", str(tmp_path)).stdout)
    assert set(body) == {"schema", "report", "answer", "cases", "left", "notes", "failed"}
    assert body["cases"][0]["depths"][0]["highest_stable"] > 1e-3 and "verdict" not in body["cases"][0]


def test_a_run_that_is_lost_ends_the_search_of_its_size_alone() -> None:
    asked = plan()
    found = transfer.search(asked, made(0.0, asked.rungs, [], lost=16), nothing, None)
    assert found.failed == (("m-16", "killed"),) and found.found[0].valleys[0].best
    assert not found.found[0].valleys[2].trials and "a run at 16 has no result" in page.answer(found)


def test_a_budget_ends_the_search_between_two_rounds_and_says_what_is_next() -> None:
    asked, rounds = plan(), list[int]()
    found = transfer.search(asked, made(0.0, asked.rungs, rounds), lambda places: 100.0, 50.0)
    assert len(rounds) == 1 and found.left > 0 and found.found[0].verdict == "cannot tell"


def test_places_are_asked_for_once_the_largest_first() -> None:
    seen: set[Place] = set()
    asked = plan()
    inner = made(-0.3, asked.rungs, [])

    def train(places: Any) -> Trained:
        assert [place.size for place in places] == sorted((place.size for place in places), reverse=True)
        assert not seen & set(places) and not seen.update(places)
        return inner(places)

    transfer.search(asked, train, nothing, None)


@pytest.mark.slow
def test_built_in_methods_and_the_same_again_trains_nothing(tmp_path: Path) -> None:
    asked = {"models": "pre-ln,deepnorm", "depths": (1, 2), "lr": "1e-2..4e-2", "seeds": 0, "out": tmp_path}
    found = stabkit.transfer(**asked, **SMALL)
    assert [name.label for name in found.searched.plan.cases.values()] == ["Pre-LN", "DeepNorm"] and not found.failed
    assert {"case", "depth", "lr", "seed", "loss", "trains"} == set(found.runs.columns) and len(found.best) == 4
    stored = {path.name for path in (tmp_path / "runs").iterdir() if path.name[0] != "."}
    again = stabkit.transfer(**asked, **SMALL)
    assert {path.name for path in (tmp_path / "runs").iterdir() if path.name[0] != "."} == stored
    assert again.verdict == found.verdict and again.page.exists() and len(stored) == len(found.runs)


@pytest.mark.slow
def test_a_factory_over_depth_and_over_width(tmp_path: Path) -> None:
    asked = ("transfer", FACTORY, "--lr", "1e-3..3e-1", "--seeds", "0,1", "--steps", "10", "--out", str(tmp_path))
    body = strict(command(*asked, "--depths", "1,2", "--json", "--predict", "4").stdout)
    assert body["verdict"] in ("carries", "drifts", "cannot tell") and [one["depth"] for one in body["depths"]] == [
        1,
        2,
    ]
    assert {"best", "low", "high", "highest_stable", "loss"} <= set(body["depths"][0])
    assert [one["depth"] for one in body["predicted"]] == [4]
    wide = strict(command(*asked, "--depths", "1", "--widths", "4,8", "--json").stdout)
    assert [one["width"] for one in wide["widths"]] == [4, 8] and Path(wide["report"]).exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((FACTORY, "--depths", "4"), "one depth shows no drift; give several: --depths 4,8"),
        ((FACTORY, "--lr", "1e-3"), "from the lowest to the highest rate: 1e-4..1e-1"),
        ((FACTORY, "--lr", "1e-3..2e-3"), "spans less than a factor 4"),
        ((FACTORY, "--lr", "1e-1..1e-3"), "give the lowest first: 1e-3..1e-1"),
        ((FACTORY, "--models", "pre-ln"), "give either a FACTORY or --models"),
        ((FACTORY, "--widths", "16"), "one width shows no drift"),
        ((FACTORY, "--arch", "decoder-only"), "--arch is for built-in methods"),
        ((FACTORY, "--depths", "1,2", "--widths", "4,8"), "not both"),
        ((), "your own FACTORY"),
        (("--models", "pre-ln", "--widths", "4,8"), "--hidden 64,128"),
        (("--models", "pre-ln", "--depths", "2"), "one depth shows no drift"),
        (("--models", "pre-ln", "--max-tokens", "64,128"), "varies only the rate, the seed, and"),
        (("--models", "pre-ln", "--steps", "5"), "fewer than 40 updates is not judged"),
        (("--models", "pre-ln", "--depths", "2,4", "--predict", "4,8"), "this size is tried already"),
        (("--models", "pre-ln", "--depths", "2", "--highest", "--predict", "4"), "--highest searches only the highest"),
        ((FACTORY, "--budget", "soon"), "--budget takes a time"),
        (("tests.own.carried_models:nothing",), "has no 'nothing'"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = command("transfer", *words, "--out", str(tmp_path))
    assert ended.returncode == 2 and said in " ".join(ended.stderr.split()), ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_where_nothing_trains_it_says_so(tmp_path: Path) -> None:
    found = stabkit.transfer("tests.own.carried_models:exploding", depths=(1, 2), seeds=0, steps=3, out=tmp_path)
    assert found.searched.found[0].verdict == "cannot tell" and "no rate tried trains at 1, 2" in found.verdict
    assert found.page.exists()


def test_a_factory_without_a_rate_is_refused_where_it_is_called(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no size has a result: .*--lr scales the rates"):
        stabkit.transfer("tests.own.carried_models:unrated", depths=(1, 2), seeds=0, steps=3, out=tmp_path)
    assert not (tmp_path / "reports").exists()


def test_a_model_that_learns_nothing_is_noted(tmp_path: Path) -> None:
    asked = {"depths": (1, 2), "seeds": 0, "steps": 3, "lr": "1e-7..1e-6"}
    found = stabkit.transfer("tests.own.carried_models:tiny", **asked, out=tmp_path)
    assert any("the model learns almost nothing in these updates" in note for note in found.searched.notes)


def test_a_dry_run_trains_nothing(tmp_path: Path) -> None:
    told = command("transfer", "--models", "pre-ln", "--depths", "6,12", "--dry-run", "--out", str(tmp_path)).stdout
    assert "about 40 runs of 300 updates" in told and not (tmp_path / "runs").exists()
    assert strict(command("transfer", FACTORY, "--depths", "6,12", "--dry-run", "--json").stdout)["depths"] == [6, 12]


def test_strict_ends_with_7_where_it_drifts(monkeypatch: pytest.MonkeyPatch) -> None:
    from stabkit.cli.command import Invocation
    from stabkit.cli.commands import train
    from stabkit.cli.commands import transfer as commands
    from stabkit.errors import Unstable
    from stabkit.report.result import TransferResult

    asked = plan()
    found = transfer.search(asked, made(-0.8, asked.rungs, []), nothing, None)
    result = TransferResult(call="stabkit transfer", out=Path("nowhere"), name="x", searched=found)
    result.__dict__["page"] = Path("nowhere.html")
    monkeypatch.setattr(train, "followed", lambda *args, **options: result)
    words = {"command": "transfer", "given": {}, "typed": frozenset()}
    commands.carried(Invocation(params={"quiet": True}, **words))
    with pytest.raises(Unstable, match="the best rate of M drifts"):
        commands.carried(Invocation(params={"quiet": True, "strict_drift": True}, **words))


def test_json_has_no_number_that_json_lacks() -> None:
    asked = plan()
    for p in (0.0, -2.0):
        found = transfer.search(asked, made(p, asked.rungs, []), nothing, None)
        assert json.dumps([case.to_json() for case in found.found], allow_nan=False)


def test_api_takes_no_model_at_all_as_a_mistake() -> None:
    with pytest.raises(UsageError, match="name what to try"):
        stabkit.transfer()


VALLEY: dict[str, Any] = {
    "trials": [1], "highest": 3, "whole": True, "found": True, "rim": "", "alike": False,
    "seeds": (0, 1), "edge": False, "best": (2,),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"highest": None}, "no rate tried trains at 8"),
        ({"whole": False}, "nothing was tried at 8"),
        ({"found": None}, "at 8 some seed diverges at every rate"),
        ({"rim": "lowest"}, "at 8 the lowest loss is at the lowest rate tried"),
        ({"alike": True}, "all seeds have bit-identical losses"),
        ({"edge": True}, "at 8 the lowest loss is next to a rate that diverges"),
        ({"best": ()}, "at 8 the seeds differ too much"),
    ],
)
def test_a_search_without_a_verdict_says_at_which_size_and_why(change: dict[str, Any], said: str) -> None:
    first, last = SimpleNamespace(size=4, **VALLEY), SimpleNamespace(size=8, **{**VALLEY, **change})
    case: Any = SimpleNamespace(valleys=(first, last), lost=frozenset(), regret=None)
    assert page.why(case, 0).startswith(said)
    if "whole" in change:
        assert page.why(case, 3) == "the search at 8 is not finished"
    case.lost = frozenset({8, 6})
    assert page.why(case, 0) == "a run at 8 has no result"
