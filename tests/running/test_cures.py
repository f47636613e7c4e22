"""Which changes are probed in which seeds, whatever they come to."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from stabkit.results.own.cure import Cure
from stabkit.running import probes
from stabkit.running.probes import ProbeRequest

REQUEST = ProbeRequest(
    factory="a:b", here="", depths=(4, 8), seeds=(0, 1, 2), lrs=(1e-3,), warmup=None, steps=16, blocks="", fresh=False,
    out=Path(),
)  # fmt: skip


def found(monkeypatch, says):
    """(what came of each change, what was probed); `says`: {(change, how many seeds): word}, `open` for the others."""
    asked = []

    def tried(request, lr, seeds, keys, execute, limit, shown, cells):
        asked.append((seeds, keys if len(keys) == 1 else len(keys)))
        for key in keys:
            cells.setdefault(key, []).extend((key, seed) for seed in seeds)
        return []

    def cure(cells):
        key = cells[0][0]
        word = says.get((key, len(cells)), "open")
        return Cure(change=key, label=key, word=word, probability=0.5, code=key, seeds=len(cells))

    monkeypatch.setattr(probes, "_tried", tried)
    monkeypatch.setattr(probes, "cure", cure)

    @contextmanager
    def probing(count):
        yield None, None

    made, untried = probes.cures(REQUEST, 1e-3, 2, None, 60.0, probing)
    assert untried == 0
    return {own.change: (own.word, own.seeds) for own in made}, asked[1:]


def test_a_change_that_is_enough_for_one_seed_is_looked_at_in_the_others_and_the_next_after_it(monkeypatch):
    says = {("rate/3", 1): "likely trains", ("clip", 1): "likely trains", ("clip", 3): "likely trains"}
    made, asked = found(monkeypatch, says)
    assert made["rate/3"] == ("open", 3) and made["clip"] == ("likely trains", 3)
    assert list(made)[-1] == "clip", "what was ready beyond it is a matter of timing"
    assert asked == [((0, 1), ("rate/3",)), ((0, 1), ("clip",))]


def test_two_together_are_tried_where_none_is_enough(monkeypatch):
    pair = "rate=usual+smaller"
    made, asked = found(monkeypatch, {(pair, 1): "likely trains", (pair, 3): "likely trains"})
    assert made[pair] == ("likely trains", 3) and list(made)[-1] == pair
    assert asked == [((2,), (pair,)), ((0, 1), (pair,))]


@pytest.mark.parametrize(("waiting", "known"), [((), True), (("rate/3",), False), (("warmup",), True)])
def test_nothing_more_is_tried_once_the_first_that_is_enough_is_known(monkeypatch, waiting, known):
    monkeypatch.setattr(
        probes, "cure", lambda cells: Cure(change="", label="", word=cells[0], probability=None, code="")
    )
    tried = {"rate/10": ["likely trains"]} | ({} if "rate/3" in waiting else {"rate/3": ["open"]})
    assert probes._enough(("rate/3", "rate/10", "warmup"), waiting, tried) is known
