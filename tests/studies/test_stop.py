"""The bound of `stabkit log --stop`: its numbers are the corpus', its limit is scipy's, its promise is kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from stabkit.results import stop
from studies.own import corpus, public
from studies.own import stop as study

DOCS = Path(__file__).parents[2] / "docs" / "evidence"


@pytest.fixture(scope="module")
def rows():
    return list(corpus.read(DOCS / "own_corpus.csv").values())


def test_the_packages_numbers_are_counted_on_the_corpus(rows) -> None:
    assert study.counted(rows) == json.loads(study.JSON.read_text(encoding="utf-8"))


def test_the_page_is_what_the_rows_and_the_logs_give(rows) -> None:
    logs = public.read()
    texts = public.texts(logs, study.table(rows), study.beside(rows))
    assert texts == {name: (DOCS / name).read_text(encoding="utf-8") for name in texts}
    fresh = [log for log in logs if log.part == "fresh"]
    assert len(fresh) >= 20 and not [log.name for log in logs if log.part == "fresh" and log.is_confidently_wrong]


@pytest.mark.parametrize("key", study.KEYS)
@pytest.mark.parametrize("alpha", [0.02, 0.05, 0.1, 0.2])
def test_the_limit_is_the_largest_that_holds_with_nine_tenths(key, alpha) -> None:
    band = stop.bands()[key]
    place = int(np.flatnonzero(band.scores == band.limit(alpha))[-1]) + 1
    assert binom.cdf(place - 1, band.count, alpha) <= stop.UNSURE < binom.cdf(place, band.count, alpha)


@pytest.mark.parametrize("key", study.KEYS)
def test_the_edge_that_is_drawn_is_where_a_training_is_stopped(key) -> None:
    band, level = stop.bands()[key], 4.0
    edge = level * (1 - band.ways(0.05))
    for i, look in enumerate(stop.LOOKS):
        for over, at in ((1e-3, look), (-1e-3, None)):
            steps = np.array([1.0, 2.0, look - 5.0, look])
            losses = np.array([level, level, edge[i] + over, edge[i] + over])
            assert stop.judge(steps, losses, 0.05, **{key: level}).step == at


def test_of_trainings_drawn_alike_no_more_than_the_share_is_stopped() -> None:
    random = np.random.default_rng(0)
    stopped = []
    for _ in range(20):
        ways = np.cumsum(np.abs(random.normal(0.1, 0.1, (1700, len(stop.LOOKS)))), axis=1)
        given, others = ways[:200], ways[200:]
        band = study.banded(given)
        limit = band.limit(0.1)
        stopped.append(np.mean([min(band.rank(i, way) for i, way in enumerate(each)) < limit for each in others]))
    assert np.mean(np.array(stopped) > 0.1) <= 0.25 and 0.04 < np.mean(stopped) < 0.1


def test_what_is_dead_is_stopped_and_what_falls_is_not() -> None:
    steps = np.arange(1.0, 301.0)
    for key in study.KEYS:
        assert stop.judge(steps, np.full(300, 4.0), 0.05, **{key: 4.0}).step is not None
        assert stop.judge(steps, 4.0 * np.exp(-steps / 100), 0.05, **{key: 4.0}).step is None
    assert stop.judge(steps, np.full(300, 4.0), 0.05).why == "level"
    late = stop.judge(steps + 1000, np.full(300, 4.0), 0.05, level=4.0)
    assert late.step is None and late.looks == 0 and late.why
