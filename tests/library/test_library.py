"""The library's door: its functions' examples run as printed, and each does what its command does."""

from __future__ import annotations

import doctest
import importlib
import math
from pathlib import Path

import numpy as np
import pytest

import stabkit
from stabkit.errors import StoreError, UsageError
from stabkit.library import own, runs
from stabkit.library.options import read
from stabkit.own.watch import watch
from stabkit.running import execute
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
        ({"untied": "False"}, "untied is True or False"),
        ({"out": b"lib"}, "takes a text or numbers"),
        ({"bleu": True}, "no option 'bleu'"),
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


def test_values_of_python_are_read_as_they_are_meant(tmp_path: Path) -> None:
    text = read("sweep", {"depths": [(3, 2), 6], "lr": np.array([1e-3, 5e-4]), "seeds": np.arange(2), "out": None})
    assert text["depths"] == "3x2,6" and text["lr"] == "0.001,0.0005" and text["seeds"] == "0,1" and text["out"] == ""
    assert read("sweep", {"depths": np.array(2)})["depths"] == "2" and text["untied"] is False


def test_a_damaged_run_is_left_out_with_a_warning(tmp_path: Path) -> None:
    stabkit.sweep("deepnorm", seeds=(0, 1), out=tmp_path, **SMALL)
    (damaged, _) = sorted((tmp_path / "runs").glob("[a-z]*"))
    (damaged / "outcome.json").write_text("{")
    with pytest.warns(UserWarning, match="corrupt run, left out"):
        assert len(stabkit.load_runs(tmp_path)) == 1


def test_what_a_sweep_leaves_out_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "run", lambda *asked, **more: execute.RequestResult([], [], [], []))
    with pytest.warns(UserWarning, match="is left out"):
        assert stabkit.sweep("today", optimizer="sgd", out=tmp_path, **SMALL).empty


def test_a_depth_without_a_result_is_warned_of_and_a_factory_that_ignores_it_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "partly.py").write_text(
        "from tests.own.probe_models import pre_ln\n\n\n"
        "def partly(depth):\n    assert depth < 8, 'too deep'\n    return pre_ln(depth)\n\n\n"
        "def flat(depth):\n    return pre_ln(2)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "other"))
    partly = importlib.import_module("partly")
    options = {"seeds": 0, "steps": 2, "out": tmp_path}
    with pytest.warns(UserWarning, match="depth 8, seed 0 has no result"):
        assert len(stabkit.probe(partly.partly, depths=(2, 4, 8), **options)) == 4
    with pytest.raises(UsageError, match="as many layers as it is asked for"):
        stabkit.probe(partly.flat, depths=(2, 4), **options)
