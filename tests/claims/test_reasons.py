"""Our own readings: where deeper models end behind, does their deficit shrink?"""

from __future__ import annotations

import pytest

from stabkit.claims import reasons
from stabkit.claims.base import judge
from tests.figures.fake_runs import run, spec, table

CLAIM, RATE = reasons.CLAIMS


def made(depth: int, middle: float, end: float, word: str = "trains", seed: int = 0, method: str = "deepnorm"):
    own = spec(method, depth, warmup=0, steps=200, seed=seed)
    return run(own, {"validation": table([0, 100, 150, 200], {"validation": [8.0, middle, 7.0, end]})}, word)


def found(*runs):
    return judge(CLAIM, list(runs))


def test_a_deficit_that_shrinks_holds_and_one_that_grows_fails() -> None:
    shallow = made(6, 6.0, 5.0)
    told = found(shallow, made(18, 6.5, 5.1))
    assert (told.verdict, told.measured) == (
        *("holds", "0.50 nats behind half-way, 0.10 at the end (DeepNorm 18L-18L)"),
    )
    assert found(shallow, made(18, 6.1, 5.3)).verdict == "fails"
    assert found(shallow, made(18, 6.11, 5.109)).verdict == "fails", "by a hundredth it does not shrink"


def test_a_deeper_model_that_was_never_behind_needs_no_reason_and_one_that_overtakes_is_the_strongest() -> None:
    assert found(made(6, 6.0, 5.0), made(18, 5.9, 4.9)).verdict == "untested"
    assert found(made(6, 6.0, 5.0), made(18, 6.5, 4.9)).verdict == "holds"
    assert found(made(6, 6.0, 5.0), made(18, 6.5, 5.01)).verdict == "holds", "what has nearly closed is not left out"


def test_only_runs_that_train_of_the_same_seeds_and_method_are_compared() -> None:
    shallow = made(6, 6.0, 5.0)
    assert found(shallow, made(18, 6.5, 6.4, "stuck")).verdict == "untested"
    assert found(shallow, made(18, 6.5, 5.1, seed=1)).verdict == "untested"
    assert found(shallow, made(18, 6.5, 5.1, method="post-ln")).verdict == "untested"
    both = found(shallow, made(6, 6.2, 5.2, seed=1), made(18, 6.5, 5.1), made(18, 6.7, 5.5, seed=1))
    assert both.measured == "0.50 nats behind half-way, 0.20 at the end (DeepNorm 18L-18L)"


def at(rate: float, depth: int, end: float, word: str = "trains", **more: object):
    own = spec("deepnorm", depth, **{"warmup": 0, "steps": 200, "lr": rate, **more})
    return run(own, {"validation": table([0, 200], {"validation": [8.0, end]})}, word)


def rated(*runs) -> tuple[str, str]:
    told = judge(RATE, list(runs))
    return told.verdict, told.measured


def test_a_deficit_that_a_larger_rate_closes_was_one_of_the_rate() -> None:
    behind = [at(1e-3, 6, 4.0), at(1e-3, 18, 4.25)]
    told = "0.25 nats behind at 0.001 (4.25 against 4.00), 0.10 at 0.002 (4.15 against 4.05) (DeepNorm 18L-18L)"
    assert rated(*behind, at(2e-3, 6, 4.05), at(2e-3, 18, 4.15)) == ("holds", told)
    assert rated(*behind, at(2e-3, 6, 4.0), at(2e-3, 18, 4.25))[0] == "fails"
    assert rated(*behind, at(2e-3, 6, 4.0), at(2e-3, 18, 3.9))[0] == "holds"


def test_what_a_larger_rate_changes_orders_the_places_and_a_lost_run_changes_nothing() -> None:
    behind = [at(1e-3, 6, 4.0), at(1e-3, 18, 4.25)]
    (closed,) = judge(RATE, [*behind, at(2e-3, 6, 4.05), at(2e-3, 18, 4.15)]).evidence
    assert closed.value == pytest.approx(0.10 - 0.25)
    (lost,) = judge(RATE, [*behind, at(2e-3, 6, 4.0), at(2e-3, 18, float("inf"), "diverged")]).evidence
    assert lost.value == 0.0


def test_a_gap_that_closes_because_the_shallow_model_gets_worse_is_none_of_the_deep_ones() -> None:
    behind = [at(1e-3, 6, 4.0), at(1e-3, 18, 4.25)]
    assert rated(*behind, at(2e-3, 6, 4.5), at(2e-3, 18, 4.51))[0] == "fails"


def test_a_deep_model_that_no_longer_trains_at_the_larger_rate_is_evidence_against() -> None:
    behind = [at(1e-3, 6, 4.0), at(1e-3, 18, 4.25), at(2e-3, 6, 4.0)]
    verdict, told = rated(*behind, at(2e-3, 18, 6.0, "stuck"))
    assert verdict == "fails" and "stuck at 0.002" in told
    assert rated(*behind, at(2e-3, 18, float("nan"), "diverged"))[0] == "fails"
    assert rated(*behind, at(2e-3, 18, 5.0, "early"))[0] == "untested"


def test_rates_are_compared_where_both_depths_train_at_both_and_nothing_else_differs() -> None:
    behind = [at(1e-3, 6, 4.0), at(1e-3, 18, 4.25)]
    assert rated(*behind)[0] == "untested"
    assert rated(*behind, at(2e-3, 18, 4.1))[0] == "untested", "nothing shallow to be behind at that rate"
    assert rated(*behind, at(2e-3, 6, 4.0, warmup=100), at(2e-3, 18, 4.0, warmup=100))[0] == "untested"
    assert rated(*behind, at(2e-3, 6, 4.0, seed=1), at(2e-3, 18, 4.0, seed=1))[0] == "untested"
    ahead = [at(1e-3, 6, 4.0), at(1e-3, 18, 3.9), at(2e-3, 6, 4.0), at(2e-3, 18, 3.9)]
    assert rated(*ahead)[0] == "untested", "what is not behind needs no reason"
