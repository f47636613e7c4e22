"""How findings are tried: judges on rows made by hand, searches, runs near the line, the text that chose nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stabkit import api
from stabkit.results.outcome import AT_UNIGRAM
from stabkit.running import texts
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.text import ParallelText
from studies import study
from studies.findings import judges, page
from studies.findings.design import TIMES
from studies.near import page as near
from studies.study import Design, begun, doubled
from studies.unseen_text import others
from tests.studies.study_rows import measured, row

U = 6.05


def rows(method, ends, depth=18, options="", **given):
    """A row a seed, numbered by method, depth and seed."""
    made = []
    for seed, end in enumerate(ends):
        one = row(seed, method=method, encoder_layers=depth, decoder_layers=depth, seed=seed, options=options, **given)
        made.append(replace(one, **end))
    return made


def by_depth(method, exponent, seeds=3, spread=0.0):
    return [
        one
        for depth in (6, 18, 50)
        for one in rows(
            method, [{"update_end": 0.02 * depth ** (exponent + spread * seed)} for seed in range(seeds)], depth
        )
    ]


@pytest.mark.parametrize(
    ("exponent", "spread", "word"), [(0.53, 0.01, "holds"), (0.1, 0.01, "falls"), (0.25, 0.2, "undecided")]
)
def test_growth_holds_where_the_interval_of_the_exponent_lies_above_nearly_none(exponent, spread, word):
    cell = judges.growth("deepnorm")(by_depth("deepnorm", exponent, spread=spread))
    assert cell and cell.word == word and cell.numbers.startswith("N^")


def test_saturated_and_deeper_models_have_no_say_in_an_exponent():
    beyond = rows("deepnorm", [{"update_end": 1e-6}] * 3, 100)
    assert judges.growth("deepnorm")([*by_depth("deepnorm", 0.5), *beyond]).word == "holds"
    flat = judges.growth("deepnorm")([replace(one, update_end=9.0) for one in by_depth("deepnorm", 0.5)])
    assert (flat.word, flat.numbers) == ("undecided", "no exponent (3 seeds saturated)")


def test_who_grows_faster_is_compared_seed_by_seed():
    judge = judges.faster("post-ln", "deepnorm")
    assert judge([*by_depth("post-ln", 1.0), *by_depth("deepnorm", 0.5)]).word == "holds"
    assert judge([*by_depth("post-ln", 0.7, spread=0.4), *by_depth("deepnorm", 0.5)]).word == "undecided"
    assert judge(by_depth("post-ln", 1.0)).word == "undecided", "nobody to compare with"


def test_outcomes_hold_in_every_seed_in_part_or_fall():
    trains, stuck = {"outcome": "trains"}, {"outcome": "stuck"}
    judge = judges.separated(("post-ln",), ("admin",))
    admin = rows("admin", [trains] * 3)
    assert judge([*rows("post-ln", [stuck] * 3), *admin]).word == "holds"
    assert judge([*rows("post-ln", [stuck, trains, stuck]), *admin]).word == "in part"
    fallen = judge([*rows("post-ln", [trains] * 3), *admin])
    assert fallen.word == "falls" and fallen.numbers == "train of 3: Post-LN 3, ADMIN 3"
    assert judge(admin).word == "undecided", "no seed has both"
    assert judge([*rows("post-ln", [stuck]), *admin]).word == "holds (one seed)"


def test_a_lower_loss_is_lower_beyond_seeds_and_the_draw_of_the_text():
    judge = judges.lower("mhc:start=identity", "mhc")
    plain = rows("mhc", [{"unseen": 5.0 + 0.1 * seed} for seed in range(3)])

    def less(apart, **given):
        return rows(
            "mhc", [{"unseen": 5.0 + 0.1 * seed - apart} for seed in range(3)], options="start=identity", **given
        )

    assert judge([*plain, *less(0.05)]).word == "holds" and judge([*plain, *less(-0.05)]).word == "falls"
    assert judge([*plain, *less(0.005)]).word == "undecided", "within what another text would say"
    known = [replace(one, validation=one.unseen, unseen=None) for one in (*plain, *less(0.04))]
    assert judge(known).word == "undecided", "judged on a few sentences"


def test_the_lowest_is_compared_with_the_next():
    losses = {"pre-ln": 5.2, "mhc": 5.1, "hyper-connections": 5.0}
    made = [one for name, loss in losses.items() for one in rows(name, [{"unseen": loss + s / 10} for s in range(3)])]
    assert judges.lowest("hyper-connections")(made).numbers.endswith("to mHC")
    assert judges.lowest("pre-ln")(made).word == "falls"
    wide = rows("keel", [{"unseen": loss} for loss in (4.9, 6.9, 5.9)])
    assert judges.lowest("hyper-connections")([*made, *wide]).word == "undecided", "one rival is not shown to be higher"
    assert judges.lower("mhc", "pre-ln")(rows("mhc", [{"unseen": 5.0}])).word == "undecided"


def test_an_order_is_nearly_the_same_where_its_correlation_is_shown_to_be_high():
    names = ["post-ln", "pre-ln", "deepnorm", "admin", "sub-ln", "dlcl", "keel", "peri-ln", "dyt", "rezero"]

    def order(of):
        made = []
        for optimizer, losses in (("adamw", range(10)), ("muon", of)):
            for name, loss in zip(names, losses, strict=True):
                made += rows(name, [{"unseen": 5.0 + loss / 10}], optimizer=optimizer)
        return judges.same_order(made)

    assert order(range(10)).word == "holds" and order(range(9, -1, -1)).word == "falls"
    assert order([1, 0, 3, 2, 5, 4, 9, 6, 8, 7]).word == "undecided"


def test_of_a_search_the_rows_at_each_methods_best_rate_are_compared_without_the_seed_that_chose_it():
    tried = [(1e-3, 0, 5.2), (2e-3, 0, 5.0), (4e-3, 0, 5.4), (2e-3, 1, 5.1), (2e-3, 2, 5.3)]
    mine = [
        replace(row(i, method="admin"), rate=rate, seed=seed, profile=SimpleNamespace(loss=loss))
        for i, (rate, seed, loss) in enumerate(tried)
    ]
    assert [(one.rate, one.seed) for one in page.at_best(mine)] == [(2e-3, 1), (2e-3, 2)]


def test_embeddings_rates_are_compared_at_each_methods_best_factor_and_not_at_an_end():
    def searched(best, rate=2e-3):
        made = []
        for key, least in (("own-pre-ln-embedding", 5.1), ("own-depth-mup-embedding", 5.0)):
            for factor in TIMES:
                loss = least + 0.2 * (factor != best)
                ends = [
                    {"unseen": loss, "rate": rate, "profile": SimpleNamespace(loss=loss + s / 10)} for s in (0, 1, 2, 3)
                ]
                made += rows(key, ends, options="" if factor == 1 else f"times={factor}")
        return made

    inside = judges.own_embedding(searched(4))
    assert inside.word == "holds" and "Pre-LN 0.002, embedding 0.008" in inside.numbers
    assert judges.own_embedding(searched(TIMES[-1])).word == "undecided"
    assert judges.own_embedding(searched(4)[4 * len(TIMES) :]).word
    assert judges.own_embedding(searched(4, rate=1.25e-4)).numbers.endswith("at an end)")


def test_what_ends_near_the_line_is_trained_twice_as_long_and_counted(tmp_path, monkeypatch):
    spec = RunSpec(
        method="post-ln",
        model=ModelConfig(encoder_layers=2, decoder_layers=2),
        train=TrainConfig(steps=250, warmup=0, max_tokens=64),
    )
    far = replace(spec, seed=1)
    line = AT_UNIGRAM * U
    made = {
        spec.run_id: {"outcome": "stuck", "validation": line + 0.04},
        far.run_id: {"outcome": "trains", "validation": line - 0.4},
        doubled(spec).run_id: {"outcome": "trains", "validation": line - 0.2},
    }
    design = Design(key="near", title="", question="", scaled="", commands=("sweep",), doubled=("sweep",))
    request = SimpleNamespace(specs=(spec, far))
    path = tmp_path / "near.csv"

    def state(*specs):
        kept = [
            study.row(one, steps=one.train.steps, digest="ab" * 32, measured=measured(unigram=U), **made[one.run_id])
            for one in specs
        ]
        path.write_bytes(study.to_csv(kept))
        return begun(design, ("stabkit sweep",), [request], path)

    assert [one.train.steps for one in state(spec, far).missing] == [500], "only the one near the line"
    whole = state(spec, far, doubled(spec))
    assert whole.missing == () and near.sentence(whole) == (
        "Of 2 runs 1 end within 0.1 nats of the line; trained twice as long 1 of them changes the word "
        "(1 stuck → trains)."
    )
    assert near.lines(whole)[-1] == "| Post-LN 2L-2L, seed 0 | 0.0005 | +0.04 | stuck | −0.20 | trains |"


@pytest.mark.slow
def test_the_unseen_text_shares_no_sentence_with_what_judges_a_run(multi30k: Path, tmp_path: Path):
    spec = api.request("sweep", {"data": str(multi30k), "source": "de", "target": "en", "arch": "decoder-only"}).specs[
        0
    ]
    where = {"directory": str(multi30k)}
    task = texts.task(spec, where, tmp_path)
    rest, own = others(spec, task).validation(), (*task.validation(), task.probe())
    seen, left = ({tuple(line) for batch in some for line in trimmed(batch)} for some in (own, rest))
    assert len(left) > 900 and len(seen & left) <= 2, "a sentence may stand twice in the corpus"
    assert isinstance(task.task, ParallelText) and sum(len(batch.target_out) for batch in rest) > 950


def trimmed(batch):
    return [line[line != 0].tolist() for line in np.asarray(batch.target_out)]


def test_the_docs_count_what_twice_the_updates_changes():
    state = near.committed(near.FILE.with_name("near.csv"))
    text = near.FILE.read_text(encoding="utf-8")
    assert state.missing == () and near.sentence(state) in " ".join(text.split())
    assert "\n".join(near.lines(state)) in text
