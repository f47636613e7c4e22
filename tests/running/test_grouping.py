"""`--together`: jobs of runs that are alike go to a worker as one, and come back one by one."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stabkit.running import work
from stabkit.running.executors.base import Lost
from stabkit.running.grouping import grouped, shape
from stabkit.storage.store import Store
from tests.commands import stabkit
from tests.conftest import job, tiny

GRID = ["--models", "post-ln,deepnorm,sub-ln", "--depths", "2", "--steps", "3", "--hidden", "16", "--ffn", "24"]
GRID += ["--vocab", "200", "--max-tokens", "128", "--warmup", "0", "--executor", "inline"]


def test_methods_unlike_in_what_attention_does_are_of_other_shapes():
    plain = tiny("pre-ln")
    others = [("value-residual", {}), ("gated-attention", {}), ("gated-attention", {"gate": "head"}), ("gpas", {})]
    shapes = [shape(replace(plain, method=key, options=options), {}) for key, options in others]
    assert len({shape(plain, {}), *shapes}) == 1 + len(others)


def test_alike_is_what_differs_in_numbers():
    base = tiny("post-ln")
    same = [
        replace(base, seed=3),
        replace(base, method="deepnorm"),
        replace(base, method="deepnorm", alpha_scale=2.0, beta_scale=0.5),
        replace(base, train=replace(base.train, lr=1.0, warmup=77)),
    ]
    others = [
        replace(base, method="pre-ln"),
        replace(base, method="sub-ln"),
        replace(base, method="rezero"),
        replace(base, model=replace(base.model, decoder_layers=3)),
        replace(base, train=replace(base.train, steps=99)),
        replace(base, dtype="float64"),
        replace(base, snapshots=4),
    ]
    assert {shape(spec, {}) for spec in same} == {shape(base, {})} != {""}
    assert shape(base, {}) not in {shape(spec, {}) for spec in others}
    assert shape(replace(base, train=replace(base.train, dropout=0.1)), {}) == "", "it draws from one stream a run"


def test_jobs_are_grouped_and_come_back_one_by_one():
    seen = []

    def execute(jobs, tell):
        for each in jobs:
            seen.append([one["id"] for one in each.get("jobs", [each])])
            runs = each.get("jobs")
            yield (
                each,
                json.dumps({one["id"]: f"end of {one['id']}" for one in runs}) if runs else f"end of {each['id']}",
            )

    jobs = [job(replace(tiny("post-ln"), seed=seed)) for seed in range(5)] + [job(tiny("pre-ln"))]
    answers = list(grouped(execute, 3, 1)(jobs, print))
    assert [each["id"] for each, _ in answers] == [each["id"] for each in jobs]
    assert all(answer == f"end of {each['id']}" for each, answer in answers)
    assert list(map(len, seen)) == [3, 2, 1]


def test_runs_that_were_lost_together_are_tried_alone():
    given = []

    def execute(jobs, tell):
        for each in jobs:
            given.append(each["kind"])
            yield each, Lost("died", "it fell") if each["kind"] == "runs" else "early"

    jobs = [job(replace(tiny("post-ln"), seed=seed)) for seed in range(3)]
    once = grouped(execute, 8, 1)
    first = list(once(jobs, print))
    assert all(isinstance(answer, Lost) for _, answer in first) and len(first) == 3
    assert [answer for _, answer in once(jobs, print)] == ["early"] * 3
    assert given == ["runs", "run", "run", "run"]


@pytest.mark.slow
def test_a_sweep_of_runs_at_once_is_the_sweep(tmp_path: Path):
    for name, more in (("one", ("--kernels", "python")), ("many", ("--together", "4"))):
        done = stabkit("sweep", *GRID, "--seeds", "0..2", *more, "--out", tmp_path / name, "-q")
        assert done.returncode == 0, done.stderr
    one, many = (Store(tmp_path / name) for name in ("one", "many"))
    assert one.ids() == many.ids() and len(one.ids()) == 9
    at_once = 0
    for run_id in one.ids():
        alone, together_ = one.load(run_id), many.load(run_id)
        assert alone.outcome.word == together_.outcome.word
        at_once += "at once" in str(together_.environment["kernels"])
        for name, table in alone.records.items():
            np.testing.assert_allclose(together_.records[name].values, table.values, rtol=2e-3, atol=1e-5, err_msg=name)
    assert at_once >= 7, "six of Post-LN and DeepNorm by four, three of Sub-LN"


def test_a_stack_from_another_version_is_refused():
    spec = tiny()
    foreign = {**job(spec), "id": "deepnorm-2L-2L-s0-000000000000"}
    with pytest.raises(Exception, match="but another one planned"):
        work.do({"kind": "runs", "id": "x", "jobs": [foreign], "out": "o", "corpus": None, "device": "cpu"}, print)
