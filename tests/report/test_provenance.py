"""How it was run, as values."""

from __future__ import annotations

import pytest

from stabkit.report import provenance
from tests.figures.fake_runs import ENVIRONMENT, plausible, run, spec


def test_settings_away_from_their_defaults_stand_first() -> None:
    found = provenance.settings(
        [spec(digest="ab", warmup=0, lr=2e-3), spec("post-ln", 18, warmup=4000, lr=2e-3, seed=4)]
    )
    away = {setting.name: (setting.values, setting.default) for setting in found if setting.differs}
    assert away == {
        "train.warmup": (("0", "4000"), "0"),
        "train.lr": (("0.002",), "0.0005"),
        "train.max_tokens": (("512",), "256"),
    }
    assert [setting.differs for setting in found] == sorted((setting.differs for setting in found), reverse=True)
    assert not {"method", "seed", "options"} & {setting.name for setting in found}


def test_environments_are_told_apart_and_wall_time_is_not_one() -> None:
    other = {**ENVIRONMENT, "torch": "2.14.0", "wall_seconds": 99.0}
    runs = [
        plausible(spec("post-ln")),
        run(spec("admin"), {}, environment={**ENVIRONMENT, "wall_seconds": 1.0, "more": 2}),
    ]
    assert len(provenance.environments(runs)) == 1 and provenance.mixed(provenance.environments(runs)) == []
    found = provenance.environments([*runs, run(spec("deepnorm"), {}, environment=other)])
    assert [(one.runs, one.seconds) for one in found] == [(2, 13.5), (1, 99.0)]
    assert provenance.mixed(found) == ["torch"]


def test_an_environment_that_says_nothing_is_one_too() -> None:
    found = provenance.environments([run(spec("admin"), {}, environment={}), plausible(spec("post-ln"))])
    assert len(found) == 2 and "torch" in provenance.mixed(found)
    assert provenance.wall_seconds(run(spec("admin"), {}, environment={"wall_seconds": "nan"})) == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.84, "0.8 s"), (42.2, "42 s"), (440.0, "7 min 20 s"), (59.99, "60 s"), (7500.0, "2 h 5 min")],
)
def test_durations_are_written_for_reading(seconds: float, text: str) -> None:
    assert provenance.duration(seconds) == text
