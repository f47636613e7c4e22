"""The claims of the methods of 2026, on runs whose profiles are made by hand: able to hold, able to fail."""

from __future__ import annotations

from typing import Any

import pytest

from stabkit.claims.verdict import judge
from stabkit.results.outcome import Word
from stabkit.results.profile import Profile
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from studies.recent.claims import CLAIMS
from studies.row_run import RowRun, ended
from tests.studies.study_rows import measured

EVERY = {claim.key: claim for claim in CLAIMS}
PLAIN = Profile(
    **dict(loss=5.3, gradient=1.0, gradient_lowest=0.5, gradient_spread=4.0, spikes=2.0, cosine=0.9, cosine_deep=0.9),
    **dict(stream_start=1.4, stream_half=3.0, stream=6.0),
)


def kept(
    method: str, depth: int = 18, seed: int = 0, outcome: Word = "trains", long: bool = False, **given: Any
) -> Any:
    from dataclasses import replace

    spec = RunSpec(
        method=method,
        model=ModelConfig(encoder_layers=0, decoder_layers=depth),
        train=LONG if long else TrainConfig(steps=800, verdict_at=250, lr=1e-3, warmup=0, max_tokens=256),
        seed=seed,
    )
    return RowRun(spec=spec, outcome=ended(outcome), digest="", measured=measured(), profile=replace(PLAIN, **given))


def five(method: str, **given: Any) -> list[Any]:
    return [kept(method, seed=seed, **given) for seed in range(5)]


def matched(method: str, loss: float) -> list[Any]:
    """Long runs, Pre-LN's at a loss of 5."""
    return five(method, loss=loss, long=True) + five("pre-ln", loss=5.0, long=True)


LONG = TrainConfig(steps=8000, lr=1e-3, warmup=0, max_tokens=4000)
"""As long as the papers' own comparisons of quality."""
LINEAR, SQUARE = {"stream_half": 5.0**0.5, "stream": 3.0}, {"stream_half": 5.0, "stream": 10.0}
PRE, STUCK = five("pre-ln"), five("post-ln", outcome="stuck")
CASES = {
    "peri-linear": (five("peri-ln", **LINEAR), five("peri-ln", stream_half=3.0, stream=9.0)),
    "sandwich-scale": (five("sandwich-ln", stream=3.0) + PRE, five("sandwich-ln") + PRE),
    "reordered-spikes": (five("reordered-norm", spikes=1.5) + PRE, five("reordered-norm") + PRE),
    "mix-even": (
        five("mix-ln", gradient_spread=2.0) + PRE + five("post-ln"),
        five("mix-ln", gradient_spread=5.0) + PRE + five("post-ln"),
    ),
    "keel-trains": (five("keel") + STUCK, five("keel", outcome="stuck") + STUCK),
    "lns-deep": (five("layernorm-scaling", cosine_deep=0.8) + PRE, five("layernorm-scaling") + PRE),
    "dyt-matches": (matched("dyt", 5.0), matched("dyt", 5.5)),
    "derf-matches": (matched("derf", 5.0), matched("derf", 5.5)),
    "gpas-smaller": (five("gpas", stream=3.0) + PRE, five("gpas") + PRE),
    "gated-spikes": (five("gated-attention", spikes=1.5) + PRE, five("gated-attention") + PRE),
    "value-residual-loss": (matched("value-residual", 4.8), matched("value-residual", 5.0)),
    "siamese-trains": (five("siamesenorm") + STUCK, five("siamesenorm", outcome="stuck") + STUCK),
    "attnres-bounded": (five("attention-residuals", stream=1.5) + PRE, five("attention-residuals") + PRE),
    "attnres-even": (five("attention-residuals", gradient_spread=2.0) + PRE, five("attention-residuals") + PRE),
    "mhc-gain": (five("mhc"), five("mhc", mixing=3.0)),
    "hc-gain": (
        five("hyper-connections", mixing=300.0) + five("mhc"),
        five("hyper-connections", mixing=1.2) + five("mhc"),
    ),
}
"""{claim: (runs of which it holds, of which it fails)}."""


@pytest.mark.parametrize("key", EVERY)
def test_a_claim_is_able_to_hold_and_able_to_fail(key: str) -> None:
    holds, fails = CASES[key]
    assert judge(EVERY[key], holds).verdict == "holds", judge(EVERY[key], holds)
    assert judge(EVERY[key], fails).verdict == "fails", judge(EVERY[key], fails)
    assert judge(EVERY[key], []).verdict == "untested"


def test_who_is_better_in_the_end_is_out_of_reach_of_short_runs_and_who_trains_is_not() -> None:
    short = five("dyt", loss=5.5) + five("pre-ln", loss=5.0)
    assert judge(EVERY["dyt-matches"], short).verdict == "out of reach"
    stuck = five("dyt", loss=6.0, outcome="stuck") + five("pre-ln", loss=5.0)
    assert judge(EVERY["dyt-matches"], stuck).verdict == "fails"


def test_growth_as_a_square_is_not_linear_and_not_exponential_either() -> None:
    found = judge(EVERY["peri-linear"], five("peri-ln", **SQUARE))
    assert found.verdict == "mixed" and {place.verdict for place in found.places} == {"holds", "fails"}


def test_where_post_ln_trains_nothing_is_said_of_keel() -> None:
    assert judge(EVERY["keel-trains"], five("keel") + five("post-ln")).verdict == "untested"


def test_a_stuck_run_of_the_method_itself_is_no_witness() -> None:
    stuck = five("sandwich-ln", stream=3.0, outcome="stuck") + five("pre-ln")
    assert judge(EVERY["sandwich-scale"], stuck).verdict == "untested"


def test_a_run_that_goes_on_is_told_by_where_it_was_judged() -> None:
    (place,) = judge(EVERY["dyt-matches"], five("dyt") + five("pre-ln")).places
    assert place.measured.steps == 250
