"""The width ladder: its design, what is trained next, how a copy's word is counted, and the curves beside it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from torch import nn

from stabkit.results.own import alarm
from stabkit.results.own.cell import COPIED
from stabkit.wording import anatomy
from studies import texts
from studies.ladder import cells, curves, judge, logits, others, page_curves
from studies.ladder.curves import RATES, CurveRow, Training
from studies.ladder.design import LAWS, RUNGS, WIDTHS, case_of, copied, order, recipes, setups
from studies.ladder.judge import JudgedRecipe
from studies.own.corpus import CorpusRow
from studies.own.design import Case
from studies.own.models import BASE, Model
from studies.own.steppers import optimizers

DOCS = Path(__file__).parents[2] / "docs" / "evidence"


def test_forty_recipes_have_every_scheme_and_each_value_about_equally_often() -> None:
    assert len(recipes()) == 40 and [r.number for r in recipes()] == list(range(40))
    assert set(Counter(r.setup.scheme for r in recipes()).values()) == {4}
    for of in ("depth", "warmup", "text"):
        for optimizer in ("adamw", "muon"):
            count = Counter(getattr(s, of) for s in setups() if s.optimizer == optimizer)
            assert max(count.values()) - min(count.values()) <= 1
    assert all(len({r.offset for r in recipes() if r.setup is s}) == 2 for s in setups())
    assert {r.number for r in order()} == set(range(40))


@given(st.sampled_from(setups()), st.sampled_from(WIDTHS), st.integers(-6, 34))
def test_a_case_is_found_again_by_its_number(setup: object, width: int, half: int) -> None:
    for again in (False, True):
        case = setup.case(width, half, again=again)  # type: ignore[attr-defined]
        assert case_of(case.number) == case and case.shape.width == width


def test_a_copy_has_the_rate_times_the_width_to_the_laws_power() -> None:
    setup = setups()[0]
    for law, power in LAWS.items():
        wide, copy = setup.case(512, 4), setup.case(BASE, copied(4, 512, law))
        assert copy.rate / wide.rate == pytest.approx(8**power, rel=1e-4)


def row(case: Case, ends: str, losses: tuple[float, ...] = (6.0,) * 30) -> CorpusRow:
    """Without a probe's numbers, whose word is then by its losses."""
    return CorpusRow(
        case=case, measured=None, ends=ends, updates=300, level=5.0, reference=4.0, held_out=4.5, losses=losses,
        alarms={}, refused="nothing",
    )  # fmt: skip


def searched(best: dict[int, int]) -> dict[int, CorpusRow]:
    """Rows of every search, where rates up to `best` of a setup train at width 64."""
    rows: dict[int, CorpusRow] = {}
    for setup in setups():
        while (half := cells.search(rows, setup)[1]) is not None:
            case = setup.case(BASE, half)
            rows[case.number] = row(case, "trains" if half <= best.get(setup.number, 10) else "stuck")
    return rows


def test_first_the_edges_are_searched_then_copies_then_wide_models_of_every_scheme() -> None:
    assert all(case.shape.width == BASE for case in cells.left({})) and len(list(cells.left({}))) == len(setups())
    rows = searched({0: -1, 3: 24})
    assert cells.edge(rows, setups()[0]) == RUNGS[0] and cells.edge(rows, setups()[3]) == 24
    wanted = list(cells.left(rows))
    widths = [case.shape.width for case in wanted]
    first = widths.index(512)
    assert set(widths[:first]) == {BASE} and all(c.seed >= 5 for c in wanted[first:] if c.shape.width == BASE)
    assert [case.shape.width for case in islice(wanted, first, first + 3)] == [512, 256, 128]
    assert all(case.optimizer == "muon" for case in wanted[-20:]) and set(widths[-20:]) == {512}
    done = {case.number: row(case, "trains") for case in wanted}
    assert not list(cells.left({**rows, **done}))
    assert not judge.missing({**rows, **done}, 512) and len(judge.missing(rows, 512)) == 40


def judged(words: str, trains: bool, number: int = 0) -> JudgedRecipe:
    """`tfoq`: the words kept, root, own and `--quick`: `trains`, `probably fails` or `undecided`."""
    names = {"t": "trains", "f": "probably fails", "o": "undecided"}
    said = dict(zip(("kept", "root", "own", "quick"), (names[word] for word in words), strict=True))
    case = recipes()[number].setup.case(512, 0)
    ended = row(case, "trains" if trains else "stuck")
    return JudgedRecipe(recipes()[number], 512, ended, {**said, "all": "trains"})  # type: ignore[arg-type, dict-item]


def test_words_lean_to_a_side_and_are_right_missed_false_or_open() -> None:
    some = [judged("tfto", True), judged("tffo", False), judged("ftto", True), judged("ooto", True)]
    kept, own = judge.counts(some, "kept"), judge.counts(some, "own")
    assert (kept.right, kept.missed, kept.false, kept.open, kept.of) == (1, 1, 1, 1, 4)
    assert own.right == own.of == 4 and judge.good(some, "own") and not judge.good(some, "kept")


def test_the_sentence_follows_the_designs_rule() -> None:
    kept = [judged("tooo", True)] * 9 + [judged("fooo", False)] * 9
    assert judge.sentence(kept) == "kept" and judge.sentence(kept[:3] + kept[9:]) == "kept"
    root = [judged("ftoo", True)] * 10 + [judged("ttoo", True)] * 10 + [judged("ffoo", False)] * 10
    assert judge.sentence(root) == "root"
    worse = [judged("ooto", True)] * 5 + [judged("ttto", True)] * 5 + [judged("fffo", False)] * 5
    assert judge.sentence(worse) == "own"
    beaten = [judged("oott", True)] * 8 + [judged("tttt", True)] * 30 + [judged("ffff", False)] * 10
    assert judge.counts(beaten, "kept").share > 0.8 and judge.sentence(beaten) == "own"
    assert judge.sentence([judged("oooo", True)] * 10) == "none"
    assert judge.sentence([judged("toto", True)] * 9 + [judged("toto", False)]) == "kept", "as good as that all train"


def test_every_case_of_the_ladder_has_a_forecast_where_its_numbers_are_there() -> None:
    cases = [setup.case(width, 6, again=again) for setup in setups() for width in WIDTHS for again in (False, True)]
    assert not any(case.regression for case in cases) and len({case.number for case in cases}) == len(cases)


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_sign_test_is_scipys(more: int, fewer: int) -> None:
    some = [judged("ooot", True)] * more + [judged("tooo", True)] * fewer
    first, second, p = judge.sign_test(some, "quick", "kept")
    assert (first, second) == (more, fewer)
    assert p == pytest.approx(binomtest(more, more + fewer).pvalue if more + fewer else 1.0)


def curve(rate: float, end: float, largest: float, **more: object) -> CurveRow:
    training = Training(study="sensitivity", width=64, depth=6, heads=False, rate=rate, seed=0, updates=250)
    return CurveRow(
        training=replace(training, **more),  # type: ignore[arg-type]
        start=7.0, end=end, reached=250, losses=(), largest={0: 4.0, 16: largest / 10, 250: largest}, log_z={},
    )  # fmt: skip


ENDS = (4.0, 3.5, 3.0, 3.2, 3.05, math.nan, 9.0)
LARGEST = (5.0, 9.0, 30.0, 2_000.0, 400.0, 3e4, 5.0)


def some_curves(**more: object) -> list[CurveRow]:
    return [curve(rate, end, z, **more) for rate, end, z in zip(RATES, ENDS, LARGEST, strict=True)]


def test_the_sensitivity_is_the_mean_loss_over_the_best_and_at_most_what_it_began_with() -> None:
    assert curves.sensitivity(some_curves()) == pytest.approx(np.mean([1.0, 0.5, 0.0, 0.2, 0.05, 4.0, 4.0]))


def test_a_training_is_hurt_above_the_best_rate_and_its_logits_are_counted() -> None:
    (group,) = logits.groups(some_curves(), "sensitivity")
    assert [group.hurt(own) for own in group.rows] == [False, False, False, True, False, True, True]
    one = logits.alarmed([group], 1000.0, 250)
    assert (one.found, one.hurt, one.false, one.well) == (2, 3, 0, 4)
    assert logits.alarmed([group], 100.0, 250).false == 1 and logits.alarmed([group], 1000.0, 16).found == 1
    assert logits.chosen(some_curves()) == 1000.0


def test_a_law_of_the_sensitivity_is_found_with_an_interval_that_holds_it() -> None:
    some = [logits.RateGroup([curve(RATES[0], 3.0, 1.0, depth=n), curve(RATES[1], 3.0 + 0.2 * n**0.5, 1.0, depth=n)])
            for n in (3, 6, 12, 24)]  # fmt: skip
    law = page_curves.slope(some, "depth")
    assert law is not None and law.value == pytest.approx(0.5) and law.low <= 0.5 <= law.high
    assert page_curves.slope(some[:2], "depth") is None and page_curves.slope([*some[:2], *some[:2]], "depth") is None


def test_the_rate_of_a_curve_warms_up_and_falls_to_nothing() -> None:
    rates = [curves.factor(t, 100) for t in range(100)]
    assert rates[0] == pytest.approx(0.2) and rates[4] == rates[5] == 1.0 and rates[-1] < 0.001
    assert all(a >= b for a, b in zip(rates[5:], rates[6:], strict=False))


def test_rows_of_curves_are_read_as_they_were_written(tmp_path: Path) -> None:
    every = {own.training: own for own in map(lambda t: replace(curve(0.0, 3.0, 5.0), training=t), curves.trainings())}
    curves.write(tmp_path / "rows.csv", every)
    assert curves.read(tmp_path / "rows.csv") == every and not curves.read(tmp_path / "none.csv")


def test_queries_and_keys_are_normalised_and_mup_divides_scores_and_adams_rate_by_the_width() -> None:
    torch.manual_seed(0)
    case = next(s for s in setups() if s.scheme == "CompleteP").case(256, 0)
    model = Model(case.shape)
    (adam,) = optimizers(model, "adamw", 1e-2)
    assert model.out == 0.25 and [group["lr"] for group in adam.param_groups] == [1e-2, 2.5e-3]
    matrices = {id(p) for p in model.blocks.parameters() if p.dim() == 2}
    assert {id(p) for p in adam.param_groups[1]["params"]} == matrices
    tokens = torch.randint(0, 1000, (2, 32))
    whole = model(tokens)
    model.out = 1.0
    assert torch.allclose(model(tokens), 4 * whole)
    heads = Model(next(s for s in setups() if s.scheme == "QK-norm").case(64, 0).shape)
    nn.init.normal_(heads.blocks[0][0].f.query.weight, std=100.0)
    largest: list[torch.Tensor] = []
    norm = heads.blocks[0][0].f.norms[0]
    norm.register_forward_hook(lambda *seen: largest.append(seen[-1].detach().norm(dim=-1).max()))
    heads(tokens)
    assert float(largest[0]) <= 32**0.5 + 1e-3


def test_the_model_of_others_has_its_published_shape_and_begins_at_a_uniform_guess(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = others.Nanochat(3)
    tokens = torch.randint(0, texts.WORDS, (2, others.TOKENS))
    scores = model(tokens).detach()
    assert scores.shape == (2, others.TOKENS, texts.WORDS) and float(scores.abs().max()) == 0.0
    blocks = sum(p.numel() for p in model.blocks.parameters())
    assert blocks == 3 * 12 * others.WIDTH**2 and len(others.PUBLISHED) == len(others.RATES)
    assert callable(others.cell_7_5) and not hasattr(others, "cells_7_5")
    x, turn = torch.randn(1, 2, others.TOKENS, 128), model.turn
    assert torch.allclose(others.rotated(x, turn).norm(dim=-1), x.norm(dim=-1), rtol=1e-5)
    cell = others.OtherCell(rate=0.01, decay=0.1, published=3.79, word="fails", probability=0.03)
    others.write(tmp_path / "rows.csv", [cell])
    assert others.read(tmp_path / "rows.csv") == [cell] and cell.alarm


def test_a_text_is_held_out_by_pieces_and_batches_keep_apart() -> None:
    text = texts.Text(np.arange(10_000), 10_000)
    trained = text.batch((50, 9), 3)
    assert int(trained.max()) < 9_000 and int(text.batch((50, 9), texts.HELD_OUT).min()) >= 9_000
    assert torch.equal(trained, text.batch((50, 9), 3)) and not torch.equal(trained, text.batch((50, 9), 4))
    assert texts.Text(np.array([0, 0, 1, 1]), 2).frequencies == pytest.approx(math.log(2))


def test_what_is_said_of_copies_is_what_the_committed_rows_give() -> None:
    rows = cells.read(DOCS / "ladder.csv")
    for width, told in COPIED.items():
        found = judge.judged(rows, width, ())
        kept, root, quick = (judge.counts(found, reading) for reading in ("kept", "root", "quick"))
        assert (kept.right, root.right, quick.right, len(found)) == told and {kept.of, root.of, quick.of} == {
            len(found)
        }
        facts = [SimpleNamespace(facts=SimpleNamespace(width=w)) for w in (64, width)]
        assert f"of {told[-1]} models of width {width} its word" in anatomy.wide(facts)  # type: ignore[arg-type]
        assert not anatomy.wide(facts[:1])  # type: ignore[arg-type]
        for file in ("README.md", "SKILL.md"):
            text = " ".join((DOCS.parents[1] / file).read_text(encoding="utf-8").split())
            named = (kept.right,) if file == "README.md" else (kept.right, root.right)
            assert all(f"{n} of {len(found)}" in text for n in named), file


def test_the_alarms_limit_and_its_record_are_what_the_committed_rows_give() -> None:
    rows = list(curves.read(DOCS / "ladder_curves.csv").values())
    assert logits.chosen(rows) == alarm.LOGIT
    assert page_curves.recall(rows, alarm.LOGIT_RECALL[-1]) == alarm.LOGIT_RECALL
