"""The library's door: its functions' examples run as printed, and each does what its command does."""

from __future__ import annotations

import doctest
import math
from pathlib import Path

import pytest

import stabkit
from stabkit.errors import StoreError, UsageError
from stabkit.library import own, runs
from stabkit.own.watch import watch
from stabkit.surface import anymodel
from tests.own import probe_models


def test_the_examples_in_the_docstrings_run_as_printed(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """In the order of a first visit: a store is made before it is read."""
    order = ["sweep", "load_runs", "load_records", "probe", "loss_surface", "Watch"]
    examples = {
        test.name.rpartition(".")[2]: test
        for module in (runs, own, anymodel, watch)
        for test in doctest.DocTestFinder(recurse=True).find(module, extraglobs={"out": tmp_path})
        if test.examples
    }
    assert set(examples) == set(order)
    for name in order:
        found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples[name])
        assert found.attempted > 1 and found.failed == 0, name


def test_the_names_can_be_completed_and_each_is_there() -> None:
    assert set(dir(stabkit)) == set(stabkit.__all__)
    for name in stabkit.__all__:
        assert getattr(stabkit, name) is not None
        assert name == "__version__" or (getattr(stabkit, name).__doc__ or "").strip()


SMALL = dict(depths=(2,), steps=2, hidden=16, ffn=32, vocab=200, warmup=0, max_tokens=64)


def test_a_sweep_is_a_table_and_the_same_again_trains_nothing(tmp_path: Path) -> None:
    first = stabkit.sweep(["post-ln", "deepnorm"], seeds=range(2), out=tmp_path, **SMALL)
    assert first["label"].tolist() == ["Post-LN", "Post-LN", "DeepNorm", "DeepNorm"]
    assert first["seed"].tolist() == [0, 1, 0, 1] and (first["outcome"] == "early").all()
    assert (first["validation_loss"] > 0).all() and (first["steps"] == 2).all() and (first["update"] > 0).all()
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/spec.json")}
    again = stabkit.sweep("post-ln,deepnorm", seeds="0,1", out=tmp_path, **SMALL)
    assert again.equals(first) and stabkit.load_runs(tmp_path).equals(first)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    records = stabkit.load_records(tmp_path)
    last = records[(records["probe"] == "update") & (records["step"] == 2) & (records["site"] == "state")]
    assert sorted(last["value"]) == pytest.approx(sorted(first["update"]))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"depth": 2}, "did you mean 'depths'"),
        ({"depths": "two"}, "--depths"),
        ({"models": "deepnrom"}, "did you mean 'deepnorm'"),
        ({"json": True}, "no option 'json'"),
    ],
)
def test_a_wrong_option_is_named(wrong: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        stabkit.sweep(**{"out": tmp_path, **SMALL, **wrong})


def test_where_there_is_no_store_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        stabkit.load_runs(tmp_path / "nowhere")


def test_a_model_of_ones_own_is_probed_by_name_or_as_a_function(tmp_path: Path) -> None:
    options = {"depths": (2, 4, 8), "seeds": 0, "steps": 2, "out": tmp_path}
    named = stabkit.probe("tests.own.probe_models:pre_ln", **options)
    given = stabkit.probe(probe_models.pre_ln, **options)
    assert given.equals(named) and list(named["link"]) == ["stream", "update", "gradient", "finite"]
    assert set(named["verdict"]) <= {"pass", "warn", "fail", "cannot tell"}
    stream = named[named["link"] == "stream"].iloc[0]
    assert math.isfinite(stream["exponent"]) and stream["why"]


def test_a_function_that_no_other_process_can_import_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fresh processes"):
        stabkit.probe(lambda depth: None, depths=2, out=tmp_path)
