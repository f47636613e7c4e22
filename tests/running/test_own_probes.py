"""Which seeds and which changes of a user's model are probed, whatever they come to."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from stabkit.results.own.cell import Broke
from stabkit.results.own.judged import Judged
from stabkit.results.own.looks import at_once
from stabkit.results.own.verdict import verdict
from stabkit.running import probes
from stabkit.running.executors.base import Lost
from stabkit.running.plan import Done
from stabkit.running.probes import ProbedCell, ProbeRequest
from tests.results.test_own import made

REQUEST = ProbeRequest(
    factory="a:b", here="", depths=(4, 8), seeds=(0, 1, 2), lrs=(1e-3,), warmup=None, steps=16, blocks="", fresh=False,
    out=Path(),
)  # fmt: skip


@contextmanager
def probing(count):
    yield (lambda event: None), (lambda spec, ending: None)


@pytest.mark.parametrize(
    ("firsts", "asked", "quick"),
    [
        ((0.97, 0.02), [], False),
        ((0.97, 0.8), [(8, 1), (8, 2)], False),
        ((None, 0.3), [(4, 1), (4, 2), (8, 1), (8, 2)], True),
    ],
)
def test_further_seeds_are_probed_only_where_the_word_of_the_first_is_not_firm(monkeypatch, firsts, asked, quick):
    words, seen, trained = dict(zip(REQUEST.depths, firsts, strict=True)), [], []

    def probed(request, specs, *rest):
        seen.append([(spec.depth, spec.seed) for spec in specs])
        trained.append(probes.train(request))
        return Done(
            results=[replace(one := made(s.depth, s.seed), facts=replace(one.facts, lr=s.lr)) for s in specs],
            lost=[], reused=1,
        )  # fmt: skip

    monkeypatch.setattr(probes, "_probed", probed)
    monkeypatch.setattr(probes, "decided", lambda cell: at_once(words[cell.facts.depth]))
    done = probes.run(replace(REQUEST, quick=quick), None, 4e9, probing)
    assert seen == [[(4, 0), (8, 0)], *([asked] if asked else [])] and done.reused == len(seen)
    assert len(done.results) == 2 + len(asked) and set(trained) == {"no" if quick else "undecided"}


def changes(monkeypatch, says, *, ends=(0, 0, 0), reused=False, training=()):
    """(keys of those that are shown, how many were left, {change: which are trained}); `says`: what comes back, in this
    order, {change: (word, basis)}, None of one that does not apply; "" is the model as it is. The time is over where
    `ends`, of every look at the clock the last for all others, is 1; these are in `training` then."""
    trained, clock = {}, chain(ends, repeat(ends[-1]))

    def settled(jobs, execute, tell, attempts, *, patience):
        by = {job["change"]: job for job in jobs}
        trained.update({key: job["train"] for key, job in by.items()})
        assert {(job["depth"], job["seed"]) for job in jobs} == {(8, 1)}, "the deepest, of the seed that speaks"
        for key in training:
            tell({"id": by[key]["id"], "step": 20, "steps": 150, "loss": 1.0})
        return (answer for answer in [(by[key], json.dumps({"key": key})) for key in says])

    def read(shelf, answer):
        key = json.loads(answer)["key"]
        own = made(8, 0)
        if says[key] is None:
            return Lost("error", "does not apply to this model")
        return ProbedCell(replace(own, facts=replace(own.facts, change=key)), reused=reused)

    def cure(cell, without=None):
        word, basis = says[cell.facts.change]
        trains = (word, basis) == ("trains", "seen")
        return SimpleNamespace(change=cell.facts.change, word=word, basis=basis, trains=trains)

    monkeypatch.setattr(probes.plan, "settled", settled)
    monkeypatch.setattr(probes, "closing", nullcontext)
    monkeypatch.setattr(probes, "_read", read)
    monkeypatch.setattr(probes, "cure", cure)
    monkeypatch.setattr(probes, "time", SimpleNamespace(time=lambda: next(clock)))
    cells = [made(4, 0), made(8, 0), made(8, 1, broke=Broke(step=3, where="the loss"))]
    found = probes.changed(Judged(cells, [verdict(cells)]), replace(REQUEST, lrs=(0.0,)), None, 0.5, probing)
    return [one.change for one in found.cures], found.untried, trained


SEEN, LIKELY, NOT = ("trains", "seen"), ("trains", "forecast"), ("fails", "seen")
ORDER = ["smaller", "rate=usual", *probes.first_tried(verdict([made(8)]), [made(8)])[2:]]


def test_changes_are_tried_in_their_order_until_two_are_seen_to_train(monkeypatch):
    first, second, third, fourth = ORDER[2:6]
    says = {"": NOT, "smaller": None, "rate=usual": None, fourth: SEEN, first: SEEN, third: SEEN, second: LIKELY}
    keys, left, trained = changes(monkeypatch, says)
    assert keys == [first, second, third] and left == 0, "what was ready beyond it is a matter of timing"
    assert trained.pop("") == "always" and set(trained.values()) == {"passing"} and list(trained) == ORDER


def test_what_there_was_no_time_for_is_counted_and_what_is_stored_is_shown(monkeypatch):
    says = {"": NOT, **dict.fromkeys(ORDER[:4], NOT)}
    keys, left, _ = changes(monkeypatch, says)
    assert keys == ORDER[:4] and left == len(ORDER) - 4
    over = {"ends": (0, 0, 1)}
    assert changes(monkeypatch, says, **over, reused=True)[0] == ORDER[:4], "stored ones cost nothing"
    assert changes(monkeypatch, says, **over)[:2] == ([], len(ORDER)), "the model as it is came back after its end"
    assert changes(monkeypatch, says, **over, training=("", *ORDER[:2]))[0] == ORDER[:2], "they end by themselves"
    assert changes(monkeypatch, says, ends=(1,))[1:] == (len(ORDER), {}), "nothing is begun"
