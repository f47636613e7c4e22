"""What a probe says: the word with what it is worth, the link that explains it, no exponent that says nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from stabkit.report.result import ProbeResult
from stabkit.results.depth_fit import DepthFit
from stabkit.results.own.cure import Cure
from stabkit.results.own.forecast import ONE_BATCH, RATE, Healthy, OwnForecast, Record
from stabkit.results.own.judged import Judged
from stabkit.results.own.rules import Evidence, Ground, LinkVerdict
from stabkit.results.own.verdict import Verdict
from stabkit.wording import links
from stabkit.wording.chain import with_depth
from tests.results.test_own import made

GOOD = Healthy(low=0.2, high=3.0, n=90, percent=50.0)
LINK = LinkVerdict(verdict="pass", ground=Ground(key="tokens"), level=1.0, limit=0.0, step=16, healthy=GOOD)


def told(p, *, low=0.0, high=1.0, axes=(), n=57, trained=4, warmup=0):
    record = Record(low=low, high=high, n=n, trained=trained) if n else None
    return OwnForecast(probability=p, depth=24, record=record, axes=axes, warmup=warmup, corpus="c")


def judged(forecast, cures=(), **changed):
    links_ = dict.fromkeys(("gradient", "scores", "update", "stream", "tokens", "loss", "finite"), LINK) | changed
    return Judged([made(24)], [Verdict(lr=0.0, forecast=forecast, **links_)], cures)


LOW = replace(
    LINK, ground=Ground(key="gradient"), level=0.004, step=0, healthy=replace(GOOD, percent=1.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (judged(told(0.97, n=90, trained=88)),
         "b at 24 layers is likely to train, without warm-up: probability 0.97; 88 of 90 held-out models with "
         "this forecast trained (95 %: 92 to 99 %)."),
        (judged(told(0.04, warmup=50), gradient=LOW),
         "b at 24 layers is likely stuck, with a warm-up of 50 updates: it trains with probability 0.04; 53 of 57 "
         "held-out models with this forecast did not train (95 %: 83 to 97 %). The lowest layer receives 0.004 of the "
         "top layer's gradient before any update: lower than in 99 % of models that train."),
        (judged(told(0.5, low=0.35, high=0.65, n=40, trained=20)),
         "Whether b at 24 layers trains is open, without warm-up: probability 0.50; 20 of 40 held-out models "
         "forecast at 0.35 to 0.65 trained. Each link alone is as in models that train."),
        (judged(told(None, axes=("width", ONE_BATCH), n=0)),
         "No forecast for b at 24 layers: every update used the same batch, which a model can learn by heart: "
         "give loss(model, step); its width is beyond those of all tested models."),
        (judged(told(0.97), gradient=replace(LOW, verdict="fail")),
         "b at 24 layers does not train as it stands. The lowest layer receives 0.004 of the top layer's "
         "gradient before any update."),
    ],
)  # fmt: skip
def test_the_sentence_has_the_word_what_it_is_worth_and_why(found, said):
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
    said = links.answer(judged(told(0.5, low=0.35, high=0.65, n=40, trained=20), scores=little, gradient=LOW))
    assert (
        f"the logits hold 0.01 nats of information about their input: {rank}." in said
        if rank
        else "The lowest layer receives" in said
    )


def test_a_probability_is_never_certain():
    assert [links.probability(p) for p in (0.0, 1.0, 0.123)] == ["0.01", "0.99", "0.12"]
    assert [links.probability(p) for p in (0.8996, 0.9004, 0.1004, 0.0996)] == ["0.89", "0.90", "0.11", "0.10"]


def test_the_smallest_change_that_mends_it_is_named_and_comes_next():
    cures = (
        Cure(change="rate/3", label="a third of the rate", word="open", probability=0.6, code="lr = 3e-3"),
        Cure(change="rate/10", label="a tenth of the rate", word="likely trains", probability=0.95, code="lr = 1e-3"),
        Cure(change="clip", label="clipping", word="likely trains", probability=0.99, code="clip()"),
    )
    found = judged(told(0.04), cures, gradient=LOW)
    assert links.answer(found).endswith("Likely to train with a tenth of the rate: `lr = 1e-3`.")
    assert [row["probability"] for row in links.cures(found)] == ["0.04", "0.60", "0.95", "0.99"], (
        "the model as it is, then the changes"
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
    said = links.answer(judged(told(0.5, low=0.35, high=0.65, n=40, trained=20), scores=little))
    assert said.endswith(
        "At this depth no link is unusual; the weakest: while the rate is raised to 16 times its peak, the logits hold "
        "0.01 nats of information about their input, lower than in 80 % of models that train."
    )


CLIP = Cure(change="clip", label="clipping", word="open", probability=0.88, code="clip()")


@pytest.mark.parametrize(
    ("p", "cures", "headline", "told_of"),
    [
        (0.87, (CLIP,), "b at 24 layers is open, more likely to train than not (0.87).", "models that train."),
        (0.2, (CLIP,), "b at 24 layers is open, more likely stuck than not (0.20); best change: clipping (0.88).",
         "The change tried is clipping, 0.88: `clip()`; "
         "for 7 more changes there was no time: --cure-time 90 is enough."),
        (0.2, (replace(CLIP, word="likely trains", probability=0.95),),
         "b at 24 layers is open (0.20); with clipping it is likely to train (0.95).",
         "Likely to train with clipping: `clip()`."),
    ],
)  # fmt: skip
def test_a_change_is_named_where_it_gains_something(p, cures, headline, told_of):
    found = replace(judged(told(p, low=0.1, high=0.9, n=40, trained=20), cures=cures), untried=7)
    found = replace(found, untried=0 if found.cure else 7, wanted=90)
    assert links.in_short(found) == headline
    assert links.answer(found).endswith(told_of) and ("clip" in links.answer(found)) == (p == 0.2)


@pytest.mark.parametrize(
    ("found", "word", "change"),
    [
        (judged(told(0.97, n=90, trained=88)), "likely trains 0.97", ""),
        (judged(told(None, axes=(ONE_BATCH,), n=0)), "out of range", ""),
        (judged(told(0.97), gradient=replace(LOW, verdict="fail")), "does not train", ""),
        (judged(told(0.2), (CLIP,)), "open 0.20", "The best of the changes tried: clipping (open 0.88)\nclip()"),
        (judged(told(0.04), (CLIP, replace(CLIP, word="likely trains", label="<b>", code="a < b"))),
         "likely stuck 0.04",
         "The smallest change after which it is likely to train: <b> (likely trains 0.88)\na < b"),
    ],
)  # fmt: skip
def test_a_notebook_shows_the_verdict_the_change_and_every_link(found, word, change):
    shown = ProbeResult(call="", request=None, done=None, judged=found)._repr_html_()
    text = unescape(re.sub("<[^>]+>", "", shown)).strip()
    assert text.startswith(f"{word} {links.answer(found).replace('`', '')}") and change in text
    assert ("change" in text.partition("Will it train?")[0]) == bool(change)
    assert all(name in text for name in links.NAMES.values()) and "usual" in text


def test_to_a_model_that_likely_trains_no_change_of_the_model_is_offered():
    """It would be surgery on what works; a change of the training costs nothing to try."""
    found = judged(told(0.74, low=0.65, high=0.9, n=34, trained=29), (replace(CLIP, change="branch/N"), CLIP))
    assert links.helpful(replace(found, cures=found.cures[:1])) is None
    assert links.helpful(replace(found, cures=found.cures[1:])) == CLIP


def test_a_rate_beyond_all_tested_ones_is_told_beside_them():
    found = judged(told(None, axes=(RATE,), n=0))
    fast = [replace(cell, facts=replace(cell.facts, rate=0.06, optimizers=("AdamW",))) for cell in found.cells]
    said = links.answer(replace(found, cells=fast))
    assert "6e-2 is 60 times the usual 1e-3 of AdamW; tested models had 1/33 to 30 times it." in said
