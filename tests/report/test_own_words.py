"""What a probe says: the word with what it is worth, the link that explains it, no exponent that says nothing."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, replace
from html import unescape

import pytest

from stabkit.report.result import ProbeResult
from stabkit.results.depth_fit import DepthFit
from stabkit.results.forecast.logistic import word
from stabkit.results.own import looks
from stabkit.results.own.cure import Cure
from stabkit.results.own.forecast import ONE_BATCH, RATE, Healthy, OwnForecast
from stabkit.results.own.judged import Judged
from stabkit.results.own.looks import Decision
from stabkit.results.own.rules import Evidence, Ground, LinkVerdict
from stabkit.results.own.verdict import DepthVerdict, Verdict
from stabkit.wording import links
from stabkit.wording.chain import with_depth
from tests.results.test_own import made

GOOD = Healthy(low=0.2, high=3.0, n=90, percent=50.0)
LINK = LinkVerdict(verdict="pass", ground=Ground(key="tokens"), level=1.0, limit=0.0, step=16, healthy=GOOD)


def judged(p, cures=(), *, axes=(), basis="forecast", updates=16, warmup=0, shallow=None, diverges=False, **changed):
    """A model of 24 layers, and of 6 where those have a probability."""
    links_ = dict.fromkeys(("gradient", "scores", "update", "stream", "tokens", "loss", "finite"), LINK) | changed
    own = OwnForecast(probability=p, depth=24, axes=axes, warmup=warmup, corpus="c")
    decision = Decision(word(p), basis, p, updates, diverges)
    depths = [(6, looks.at_once(shallow))] * (shallow is not None) + [(24, decision)]
    words = tuple(DepthVerdict(depth=depth, decision=one, seed=0, seeds=(one,)) for depth, one in depths)
    cell = made(24)
    cell = replace(cell, facts=replace(cell.facts, warmup=warmup))
    return Judged([cell], [Verdict(lr=0.0, depths=words, forecast=own, **links_)], cures)


LOW = replace(
    LINK, ground=Ground(key="gradient"), level=0.004, step=0, healthy=replace(GOOD, percent=1.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (judged(0.97, shallow=0.98),
         "b trains at 6 to 24 layers, without warm-up (24 layers: forecast 0.97). Of 90 held-out "
         "models with such a forecast, 88 trained (95 %: 92 to 99 %)."),
        (judged(0.04, warmup=50, shallow=0.95, gradient=LOW),
         "b trains to 6 layers, fails at 24, with a warm-up of 50 updates (24 layers: forecast 0.04). Of 57 "
         "held-out models with such a forecast, 53 did not train (95 %: 83 to 97 %). The lowest layer receives "
         "0.0040 of the top layer's gradient before any update: lower than in 99 % of models that train."),
        (judged(0.5, basis="seen", updates=300),
         "b is undecided at 24 layers, without warm-up (seen, after 300 updates). Of 40 held-out "
         "models judged so, 20 trained (95 %: 35 to 65 %)."),
        (judged(None, axes=("width", ONE_BATCH)),
         "b is undecided at 24 layers, without warm-up (no forecast: every update used the same batch, which a model "
         "can learn by heart: give loss(model, step); its width is outside of what was tested (4 to 48 layers, widths "
         "64 to 256)). Each link alone is as in models that train."),
        (judged(0.0, basis="seen", updates=3, diverges=True, gradient=replace(LOW, verdict="fail")),
         "b fails at 24 layers, without warm-up (seen, diverges at update 3). The lowest layer receives 0.0040 of the "
         "top layer's gradient before any update."),
        (judged(0.8),
         "b probably trains at 24 layers, without warm-up (forecast 0.80). No such model was among those tested. Train "
         "it; if it stalls, a third of the rate comes first."),
    ],
)  # fmt: skip
def test_the_sentence_has_the_word_what_it_is_worth_and_why(found, said, monkeypatch):
    told = {"trains, forecast": (88, 90), "fails, forecast": (53, 57), "undecided, seen": (20, 40)}
    counted = replace(links.ours(), looks=replace(links.ours().looks, told=told))
    monkeypatch.setattr(links, "ours", lambda: counted)
    assert links.answer(found) == said


@pytest.mark.parametrize(
    ("percent", "rank"), [(0.0, "lower than in all 90 models that train"),
                          (3.0, "lower than in 97 % of models that train"),
                          (20.0, ""), (30.0, "")],
)  # fmt: skip
def test_scores_explain_first_where_they_are_beyond_what_models_have_that_train(percent, rank):
    little = replace(
        LOW, ground=Ground(key="scores"), level=0.01, step=32, healthy=replace(LOW.healthy, percent=percent, n=90)
    )
    said = links.answer(judged(0.5, scores=little, gradient=LOW))
    assert (
        f"about their input while the rate rises to 16 times its peak: {rank}." in said
        if rank
        else "The lowest layer receives" in said
    )


def test_a_probability_is_never_certain():
    assert [links.probability(p) for p in (0.0, 1.0, 0.123)] == ["0.01", "0.99", "0.12"]
    assert [links.probability(p) for p in (0.8996, 0.9004, 0.1004, 0.0996)] == ["0.89", "0.90", "0.11", "0.10"]


CLIP = Cure(change="clip", label="clipping", word="probably trains", basis="forecast", probability=0.88, code="clip()",
            loss=None, without=None, updates=16)  # fmt: skip
RATE_3 = replace(CLIP, change="rate/3", label="a third of the rate", word="trains", basis="seen", code="lr = 3e-4",
                 loss=1.314, without=3.16, updates=150)  # fmt: skip


@pytest.mark.parametrize(
    ("cures", "said", "short"),
    [
        ((CLIP, RATE_3),
         "With a third of the rate it trains: `lr = 3e-4`. The loss is 1.31 after 150 updates, 3.16 without.",
         "b fails at 24 layers; with a third of the rate it trains (1.31, 3.16 without)."),
        ((RATE_3, replace(RATE_3, label="a warm-up", loss=1.1)),
         "With a warm-up it trains: `lr = 3e-4`. The loss is 1.10 after 150 updates, 1.31 with a third of the rate, "
         "3.16 without.", "with a warm-up it trains (1.10, 3.16 without)."),
        ((replace(RATE_3, without=math.nan),),
         "it trains: `lr = 3e-4`. The loss is 1.31 after 150 updates, diverged without.",
         "(1.31, diverged without)."),
        ((replace(CLIP, word="trains", probability=0.95),),
         "With clipping it trains, by its forecast alone (0.95): `clip()`.", "with clipping it trains."),
        ((CLIP,), "With clipping it probably trains, by its forecast alone (0.88): `clip()`.", "it probably trains."),
        ((replace(CLIP, word="fails"),), "The change tried does not make it train.",
         "b fails at 24 layers (forecast 0.04)."),
    ],
)  # fmt: skip
def test_a_change_that_was_seen_to_mend_it_is_named_with_both_losses_and_comes_next(cures, said, short):
    found = judged(0.04, cures)
    assert links.answer(found).endswith(said) and links.in_short(found).endswith(short)
    following = links.following(found, "a:b", "stabkit probe a:b --depths 24")
    assert (following.splitlines()[0] == cures[-1].code) is (found.cure is not None)
    assert ("then: stabkit probe a:b --depths 24  # of the changed model" in following) is (found.cure is not None)
    assert [row["word"] for row in links.cures(found)] == [own.word for own in cures]


def test_what_a_probe_will_take_is_said_before():
    begin = "3 depths, one seed each to begin with: about 25 s"
    assert links.announced(3, 25.0, 120.0, quick=True) == begin
    assert links.announced(3, 25.0, 120.0, quick=False) == (
        f"{begin}; then training on, and changes where it fails: at most 2 min (--time)"
    )
    probed = asdict(Decision("undecided", "forecast", 0.55, 16))
    assert links.before_training(probed) == "undecided, forecast 0.55, not firm yet; training on"


def test_changes_for_which_there_was_no_time_are_counted():
    assert links.answer(replace(judged(0.04), untried=7, time=120.0)).endswith(
        "For 7 changes there was no time: --time 240 tries more."
    )
    assert links.answer(replace(judged(0.04, 2 * (replace(CLIP, word="fails"),)), untried=1, time=9.0)).endswith(
        "None of 2 changes tried makes it train; for 1 more change there was no time: --time 18 tries more."
    )


@pytest.mark.parametrize(
    ("percent", "said"),
    [(2.0, "lower than in 98 % of models that train"), (99.0, "higher than in 99 % of models that train"),
     (40.0, "as in models that train (0.20 to 3.0)")],
)  # fmt: skip
def test_a_number_lies_somewhere_among_models_that_train(percent, said):
    assert links.among(replace(LINK, healthy=replace(GOOD, percent=percent))) == said


def test_an_interval_wider_than_its_exponent_is_not_shown():
    wide = DepthFit(
        exponent=-9.14, low=-71.4, high=53.1, factor=0.5, factor_low=0.1, factor_high=2.0, exponential=False, seeds=1
    )
    assert wide.vague and with_depth(wide) == "one seed does not show how it scales with depth"
    one = replace(LINK, fit=wide, evidence=(Evidence(depth=6, value=1.0, seeds=(1.0,)),))
    assert links._with_depth(one) == "–, one seed"
    assert links._with_depth(replace(one, fit=replace(wide, seeds=3))) == "–, seeds differ"
    assert with_depth(replace(wide, seeds=3)) == "3 seeds do not show how it scales with depth"
    narrow = replace(wide, exponent=0.5, low=0.4, high=0.6)
    assert links._with_depth(replace(one, fit=narrow)).startswith("N^0.50")


def test_scores_that_tell_little_explain_where_no_link_is_unusual():
    little = replace(LOW, ground=Ground(key="scores"), level=0.01, step=32, healthy=replace(LOW.healthy, percent=20.0))
    said = links.answer(judged(0.5, scores=little))
    assert said.endswith(
        "The logits hold 0.01 nats of information about their input while the rate rises to 16 times its peak: "
        "lower than in 80 % of models that train."
    )


@pytest.mark.parametrize(
    ("found", "word", "change"),
    [
        (judged(0.97), "trains, forecast 0.97", ""),
        (judged(None, axes=(ONE_BATCH,)), "undecided", ""),
        (judged(0.02, basis="seen", updates=40, gradient=replace(LOW, verdict="fail")), "fails, seen, after 40", ""),
        (judged(0.04, (CLIP, replace(RATE_3, label="<b>", code="a < b"))), "fails, forecast 0.04",
         "With <b> it trains: loss 1.31, 3.16 without (seen, 150 updates) a < b"),
        (judged(0.04, (replace(CLIP, word="trains", probability=0.95),)), "fails, forecast 0.04",
         "With clipping it trains (forecast 0.95, 16 updates) clip()"),
    ],
)  # fmt: skip
def test_a_notebook_shows_the_verdict_the_change_and_every_link(found, word, change):
    shown = ProbeResult(call="", request=None, done=None, judged=found, seconds=1.0)._repr_html_()
    text = " ".join(unescape(re.sub("<[^>]+>", " ", shown)).split())
    assert text.startswith(word) and links.answer(found).partition(" With")[0] in text and change in text
    assert all(name in text for name in links.NAMES.values()) and "usual" in text


def test_a_rate_beyond_all_tested_ones_is_told_beside_them():
    found = judged(None, axes=(RATE,))
    fast = [replace(cell, facts=replace(cell.facts, rate=0.06, optimizers=("AdamW",))) for cell in found.cells]
    said = links.answer(replace(found, cells=fast))
    assert "6e-2 is 60 times the usual 1e-3 of AdamW; tested models had 1/33 to 30 times it." in said
