"""The rule, at its edges."""

from pathlib import Path

import numpy as np
import pytest

from stabkit.results.chain import links
from stabkit.results.outcome import FELL_BELOW, VANISHED, judge, perplexity
from stabkit.results.records import Table
from stabkit.wording.legend import detail
from stabkit.words import scientific
from studies.markdown import csv_rows

U = 6.0


def records(steps=200, start=8.5, end=5.0, at_quarter=None, ratio=0.5, probe=None):
    """A run whose validation loss falls from `start` to `end`, `at_quarter` at ¾ of it."""
    t = np.arange(steps + 1)
    at_quarter = end if at_quarter is None else at_quarter
    quarter = round(0.75 * steps)
    falling = np.interp(t, [0, quarter, steps], [start, at_quarter, end])
    probe = falling if probe is None else np.asarray(probe, dtype=float)
    ones = np.ones((len(t), 1))
    grads = np.stack([np.full(len(t), ratio), np.ones(len(t))], axis=1)
    return {
        "loss": Table(t, ("train", "probe", "train@nll"), np.stack([probe, probe, probe - 0.5], axis=1)),
        "validation": Table(
            np.array([0, quarter, steps]),
            ("validation", "nll", "accuracy"),
            np.array([[loss, loss - 0.5, 1 / loss] for loss in (start, at_quarter, end)]),
        ),
        "update": Table(t, ("state",), t[:, None] * 0.1),
        "ln_input": Table(t, ("decoder.1.ffn", "decoder.1.ffn@omega"), np.concatenate([ones * 8, ones], axis=1)),
        "branch_ratio": Table(t, ("decoder.1.ffn",), ones * 0.3),
        "grad_norm": Table(
            t,
            ("embedding", "decoder.1.ffn", "decoder.2.ffn", "decoder.1", "decoder.2", "decoder.1@x", "decoder.2@x"),
            np.concatenate([ones, 7 * grads, grads, 100 * grads[:, ::-1]], axis=1),
        ),
    }


@pytest.mark.parametrize(
    ("word", "given", "warmup"),
    [
        ("trains", {"end": 5.6}, 0),
        ("trains", {"end": 5.6, "ratio": 1e-9}, 0),
        ("stuck", {"end": 6.0}, 0),
        ("stuck", {"end": 6.5}, 0),
        ("early", {"end": 6.0}, 4000),  # still warming up: nothing is decided at a tiny rate
        ("early", {"end": 6.0, "at_quarter": 6.2}, 0),  # it moves
        ("stuck", {"end": 6.0, "at_quarter": 6.2, "ratio": 1e-7}, 0),  # it drifts, and its gradient has long been gone
        ("early", {"end": 6.0, "at_quarter": 6.2, "ratio": 1e-7}, 160),  # not for fifty updates past the warm-up
        ("trains", {"end": 5.87}, 0),  # one line between training and stuck
        ("stuck", {"end": 5.89}, 0),
        ("early", {"end": 7.0}, 0),  # far above the unigram and flat, gradients alive
        ("stuck", {"end": 7.0, "ratio": 1e-7}, 4000),  # flat, and its gradient has vanished
        ("early", {"end": 7.0, "at_quarter": 7.5, "ratio": 1e-7}, 0),  # vanished, and yet it moves
        ("early", {"end": 7.9, "steps": 16}, 0),
        ("early", {"end": 6.0, "steps": 16, "ratio": 1e-9}, 0),  # too short to have a last quarter
    ],
)
def test_the_rule(word, given, warmup):
    assert judge(records(**given), unigram=U, warmup=warmup).word == word


def test_a_loss_that_is_not_finite_is_divergence_even_when_it_is_the_last_one():
    probe = np.full(201, 5.0)
    probe[-1] = np.nan
    assert judge(records(probe=probe), unigram=U, warmup=0).word == "diverged"


def test_one_noisy_reading_at_the_quarter_does_not_look_like_a_gain():
    probe = np.full(201, 6.0)
    probe[150] = 6.1
    assert judge(records(end=6.0, probe=probe), unigram=U, warmup=0).word == "stuck"


@pytest.mark.parametrize(("length", "word"), [(20, "trains"), (21, "diverged")])
def test_twenty_steps_above_one_and_a_half_times_the_minimum_is_divergence(length, word):
    probe = np.full(201, 5.0)
    probe[100 : 100 + length] = 7.6
    assert judge(records(probe=probe), unigram=U, warmup=0).word == word


def test_an_early_run_says_what_is_known():
    assert detail(judge(records(end=7.9, steps=16, ratio=1e-7), unigram=U, warmup=4000)) == "gradient 1e-7"
    assert detail(judge(records(end=7.9, steps=16, ratio=9e-3), unigram=U, warmup=4000)) == "gradient 9e-3"
    assert detail(judge(records(end=7.9, steps=16), unigram=U, warmup=4000)) == "no warning sign"
    risen = records(end=7.9, probe=np.append(np.full(16, 8.0), 9.0), steps=16)
    assert detail(judge(risen, unigram=U, warmup=4000)) == "loss 9.0, 8.0 at the start"
    steps, sites = (
        np.array([0, 16]),
        ("encoder.1.ffn", "decoder.1.self", "decoder.1.ffn", "decoder.2.self", "decoder.2.ffn"),
    )
    held = records(end=7.9, steps=16) | {
        "parameter_update": Table(steps, sites, np.array([[0.0] * 5, [0.0, 0.0, 0.0, 0.0, 1e-9]]))
    }
    told = judge(held, unigram=U, warmup=4000)
    assert detail(told) == "1 of 2 layers frozen" and told.chain.frozen_layers == 1.0
    broken = {**held, "parameter_update": Table(steps, sites, np.array([[0.0] * 5, [np.nan] * 5]))}
    assert judge(broken, unigram=U, warmup=4000).chain.frozen_layers == 0.0, "what diverged is not frozen"
    unseen = {name: table for name, table in records(end=7.9, steps=16).items() if name != "grad_norm"}
    assert detail(judge(unseen, unigram=U, warmup=4000)) == "", "nothing is said where nothing was seen"


def test_the_chain_is_read_at_its_steps():
    chain = judge(records(ratio=0.25), unigram=U, warmup=0).chain
    assert (chain.update_first, chain.reference_step) == (pytest.approx(0.1), 16)
    assert chain.update_reference == pytest.approx(1.6) and chain.gradient_ratio_lowest == 0.25
    assert judge(records(steps=5), unigram=U, warmup=0).chain.reference_step == 5


def test_what_the_limit_was_worth_is_what_the_stored_runs_say():
    rows = csv_rows(Path(__file__).parents[2] / "docs" / "evidence" / "blind.csv")
    for word, seen in FELL_BELOW.items():
        own = [float(row["lowest_ratio"]) for row in rows if row["one"] == row["two"] == word]
        assert (sum(ratio < VANISHED for ratio in own), len(own)) == seen


def test_perplexity_and_accuracy_are_of_the_last_validation_reading():
    outcome = judge(records(end=5.0), unigram=U, warmup=0)
    assert outcome.perplexity == pytest.approx(np.exp(4.5)) and outcome.token_accuracy == pytest.approx(0.2)


@pytest.mark.parametrize(("nll", "wanted"), [(0.0, 1.0), (699.0, np.exp(699.0)), (701.0, np.inf), (np.inf, np.inf)])
def test_a_perplexity_beyond_a_float_is_infinite(nll, wanted):
    assert perplexity(nll) == pytest.approx(wanted)
    assert np.isnan(perplexity(np.nan))


def test_powers_are_written_with_a_bare_exponent():
    assert [scientific(v, 1) for v in (1e-7, 3.4e-14, 0.2, 0.0)] == ["1e-7", "3e-14", "2e-1", "0"]


def test_the_growth_of_ln_inputs_is_their_greatest_multiple_of_what_they_were() -> None:
    made = records(steps=20)
    steps, sites = made["ln_input"].steps, ("decoder.1.ffn", "decoder.2.ffn", "decoder.1.ffn@omega")
    one, other = 8.0 + steps, np.full(len(steps), 4.0)
    made["ln_input"] = Table(steps, sites, np.stack([one, other, 100.0 + 50 * steps], axis=1))
    assert links(made).ln_input_growth == pytest.approx((28 / 8 + 1) / 2)
