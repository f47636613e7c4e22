"""The search over a store: rounds, what is not trained again, runs that are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabkit.results.forecast import model
from stabkit.results.forecast.model import Forecast
from stabkit.results.tolerance import COARSE, FACTOR
from stabkit.storage.store import Run
from tests.commands import stabkit, strict

COMMAND = ("tolerance", *("--hidden", "16", "--ffn", "24", "--vocab", "200", "--max-tokens", "64"), "--json", "-q")
LIMITS = {"post-ln": 1e-3, "deepnorm": 8e-3}


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method has its limit, a little other with every seed, whatever the runs are like."""

    def forecast(self: Run) -> Forecast:
        limit = LIMITS[self.spec.method] * (1 + 0.3 * self.spec.seed) / self.spec.model.decoder_layers
        p = 0.95 if self.spec.train.lr <= limit else 0.05
        return Forecast(word=model.word(p), p_trains=p, features={}, axes=(), corpus="ab" * 32)

    monkeypatch.setattr(Run, "forecast", property(forecast))


@pytest.mark.usefixtures("limits")
def test_the_limit_of_every_cell_is_found_and_nothing_is_trained_twice(tmp_path: Path) -> None:
    command = (*COMMAND, "--models", "post-ln,deepnorm", "--depths", "1,2,4", "--seeds", "0,1", "--out", tmp_path)
    done = stabkit(*command)
    assert done.returncode == 0, done.stderr
    found = strict(done.stdout)
    assert len(found["tolerance"]) == 6
    for one in found["tolerance"]:
        for seed in one["by_seed"]:
            limit = LIMITS[one["model"]] * (1 + 0.3 * seed["seed"]) / one["depth"]
            passes, fails = seed["bracket"]
            if limit >= COARSE[0]:
                assert passes <= limit < fails <= passes * FACTOR * 1.01
            else:
                assert passes is None
        assert one["monotone"]
    fits = {one["model"]: one for one in found["exponents"]}
    assert fits["deepnorm"]["p"] == pytest.approx(1.0, abs=0.2) and fits["deepnorm"]["axis"] == "depth"
    assert "DeepNorm" in found["answer"] and Path(found["report"]).exists()
    page = Path(found["report"]).read_text()
    assert found["answer"].split(";")[0] in page and 'id="figure-tolerance"' in page
    again = stabkit(*(word for word in command if word != "-q"))
    assert "new 1" not in again.stderr and strict(again.stdout)["tolerance"] == found["tolerance"]


@pytest.mark.usefixtures("limits")
def test_widths_are_an_axis_too(tmp_path: Path) -> None:
    done = stabkit(
        *(
            "tolerance",
            "--models",
            "deepnorm",
            "--depths",
            "2",
            "--hidden",
            "16,32,64",
            "--ffn",
            "2x",
            "--vocab",
            "200",
        ),
        *("--max-tokens", "64", "--seeds", "0", "--json", "-q", "--out", tmp_path),
    )
    found = strict(done.stdout)
    assert [one["hidden"] for one in found["tolerance"]] == [16, 32, 64]
    assert [one["axis"] for one in found["exponents"]] == ["width"]


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
        (("--lr", "1e-3"), "No such option"),
    ],
)
def test_bad_input_is_one_line_and_code_2(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = stabkit("tolerance", *args, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and not list(tmp_path.iterdir())
