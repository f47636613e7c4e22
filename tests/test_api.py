"""The Python API: the docstrings' examples run as printed, each function does what its command does and returns a small
value; a signature is the one place of an option."""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import re
import subprocess
import sys
import warnings
from html import escape, unescape
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pytest
import torch
from torch import nn

import stabkit
from stabkit import api
from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.options import lines, ranges
from stabkit.options.commands import COMMANDS, COMPARED
from stabkit.options.option import PANELS, Argument, Option
from stabkit.options.requests import request_of
from stabkit.report.result import AuditResult, ProbeResult, SweepResult, TransferResult
from stabkit.running import execute
from stabkit.surface import anymodel
from tests.commands import stabkit as command
from tests.conftest import FULL
from tests.own import audit_models, probe_models

FUNCTIONS = {name: getattr(api, name) for name in (*COMMANDS, "audit")}
SMALL: dict[str, Any] = dict(
    depths=2, steps=2, hidden=16, ffn=32, vocab=200, warmup=0, max_tokens=64, executor="inline"
)
STEP: dict[str, Any] = {name: value for name, value in SMALL.items() if name not in ("steps", "warmup")}


@pytest.mark.slow
def test_the_examples_in_the_docstrings_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """In the order of a first visit: a store is made before it is read."""
    monkeypatch.setenv("STABKIT_HOME", str(tmp_path))
    order = ["sweep", "load_runs", "load_records", "probe", "watch", "loss_surface"]
    names = {"nn": nn, "torch": torch}
    examples = {
        test.name.rpartition(".")[2]: test
        for module in (api, anymodel)
        for test in doctest.DocTestFinder(recurse=True).find(module, extraglobs=names)
        if test.examples
    }
    assert set(examples) == set(order)
    for name in order:
        done = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples[name])
        assert done.attempted > 1 and done.failed == 0, name


def test_the_names_can_be_completed_and_each_says_what_it_is() -> None:
    assert set(dir(stabkit)) == set(stabkit.__all__)
    for name in stabkit.__all__:
        assert getattr(stabkit, name) is not None
        assert name == "__version__" or (getattr(stabkit, name).__doc__ or "").strip()


def test_a_trainers_callback_takes_the_options_of_a_watch_by_name_and_type() -> None:
    options = inspect.signature(api.watch).parameters
    kinds = {name: option.annotation for name, option in options.items() if name not in ("model", "optimizer")}
    assert {name: hint.__forward_arg__ for name, hint in api.WatchOptions.__annotations__.items()} == kinds


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_is_short_and_plain_and_the_docstring_has_a_line_of_each_option(name: str) -> None:
    function = FUNCTIONS[name]
    options = inspect.signature(getattr(function, "options", function)).parameters
    text = str(inspect.signature(function))
    assert len(text) <= 1500 and "Annotated" not in text and "Option" not in text
    assert all(f"\n- {option}: " in (inspect.getdoc(function) or "") for option in options)


def test_an_option_that_is_none_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="sweep has no option 'depth'; did you mean 'depths'"):
        stabkit.sweep(depth=2)  # type: ignore[call-arg]
    for wrong in ("json", "quiet"):
        with pytest.raises(UsageError, match=rf"no option '{wrong}'; help\(stabkit.sweep\) lists them"):
            stabkit.sweep(**{wrong: 2})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_option_has_its_type_default_panel_and_help(name: str) -> None:
    parameters = inspect.signature(getattr(FUNCTIONS[name], "options", FUNCTIONS[name])).parameters
    for option, parameter in parameters.items():
        if option == "listener":
            continue
        assert get_origin(parameter.annotation) is Annotated, f"{name}({option})"
        _, *said = get_args(parameter.annotation)
        assert isinstance(said[-1], (Option, Argument)) and said[-1].help.endswith((".", "…")), f"{name}({option})"
        if isinstance(said[-1], Option):
            assert said[-1].panel in PANELS and parameter.default is not parameter.empty
    assert "Any" not in str([p.annotation for option, p in parameters.items() if option != "factory"])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_default_is_written_as_a_command_line_reads_it(name: str) -> None:
    """`range(3)` is `0..2`: the help's default is the signature's, and typing it out gives the same request."""
    shown = command(name, "--help").stdout
    for option in COMMANDS[name]:
        word = "FACTORY" if (name, option) == ("transfer", "factory") else f"--{option.replace('_', '-')}"
        assert word in shown
    if name == "probe":
        return
    asked = {"yes": True, **({"models": "pre-ln"} if name == "transfer" else {})}
    plain = request_of(name, asked)
    typed = {
        option: ranges.text(default)
        for option, default in COMMANDS[name].items()
        if not isinstance(default, bool) and default is not None
    }
    assert request_of(name, {**typed, **asked}).specs == plain.specs


def test_a_sweep_is_its_runs_a_sentence_and_a_page_and_the_same_again_trains_nothing(tmp_path: Path) -> None:
    first = stabkit.sweep(["post-ln", "deepnorm"], seeds=range(2), out=tmp_path, **SMALL)
    assert isinstance(first, SweepResult) and not first.failed
    runs = first.runs
    assert runs["label"].tolist() == ["Post-LN", "Post-LN", "DeepNorm", "DeepNorm"]
    assert runs["seed"].tolist() == [0, 1, 0, 1] and (runs["outcome"] == "not judged").all()
    assert (runs["validation_loss"] > 0).all() and (runs["steps"] == 2).all() and (runs["update"] > 0).all()
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/spec.json")}
    again = stabkit.sweep("post-ln,deepnorm", seeds="0,1", out=tmp_path, **{**SMALL, "depths": "2"})
    assert again.runs.equals(runs) and stabkit.load_runs(tmp_path).equals(runs)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    records = stabkit.load_records(tmp_path)
    last = records[(records["probe"] == "update") & (records["step"] == 2) & (records["site"] == "state")]
    assert sorted(last["value"]) == pytest.approx(sorted(runs["update"]))


@pytest.mark.slow
def test_a_result_shows_itself_in_a_notebook_and_its_page_names_the_command_that_makes_it(tmp_path: Path) -> None:
    given = {**SMALL, "steps": 16}
    result = stabkit.sweep(("post-ln", "deepnorm"), seeds=0, out=tmp_path, **given)
    assert result.verdict.endswith(".") and escape(result.verdict) in result._repr_html_()
    assert "<th>method</th>" in result._repr_html_() and "<td>DeepNorm</td>" in result._repr_html_()
    page, shown = result.page, result.page.read_text().replace("&#39;", "&#x27;")  # a headline, then the rest
    assert page.parent == tmp_path / "reports" and all(escape(one) in shown for one in result.verdict.split(". ", 1))
    words, *_ = result.call.split(" --", 1)
    assert words == "stabkit sweep" and "--steps" not in result.call, "16 updates are the default"
    again = command(*result.call.split()[1:], "--json")
    assert again.returncode == 0 and f'"report": "{page}"' in again.stdout, "the same page"
    assert "16/16" not in again.stderr and "finished run" in again.stderr + "finished run", "nothing is trained again"


@pytest.mark.slow
def test_each_function_returns_what_its_command_does(tmp_path: Path) -> None:
    step = stabkit.sweep(
        ("post-ln", "deepnorm"), optimizer="sgd", steps=1, warmup=0, lr=(1e-4, 1e-5), out=tmp_path, **STEP
    )
    assert isinstance(step, SweepResult) and len(step.runs) == 4 and "<table" in step._repr_html_()
    scaled = stabkit.ablate(alpha_scale=(0.5, 2), beta_scale=[1], out=tmp_path, **SMALL)
    assert isinstance(scaled, SweepResult) and len(scaled.runs) == 3
    drawn = stabkit.landscape(
        against=None, points=3, cut_points=3, direction_seeds=0, snapshots=0, path="none", out=tmp_path, **SMALL
    )
    assert isinstance(drawn, SweepResult) and len(drawn.runs) == 1 and drawn.trained.surfaces
    rates = {**STEP, "depths": 1, "lr": "1e-3..4e-3", "steps": 40}
    found = stabkit.transfer(models="deepnorm", highest=True, seeds=0, out=tmp_path, **rates)
    assert isinstance(found, TransferResult) and list(found.best["case"]) == ["DeepNorm"]
    assert escape(found.verdict) in found._repr_html_() and len(found.runs) > 1 and not found.failed
    for result in (drawn, found):
        assert result.page.is_file()


def plain() -> Any:
    """A DeepNorm of two layers without its initialisation."""
    return audit_models.Net(2, 0)


def test_an_audit_says_what_is_found_and_what_is_violated() -> None:
    result = stabkit.audit("tests.test_api:plain", method="deepnorm", depths=2)
    assert isinstance(result, AuditResult) and result.audit.findings
    assert "DeepNorm's recipe is violated in" in result.verdict and escape(result.verdict) in result._repr_html_()
    assert list(result.findings) == ["what", "recipe", "measured", "remedy", "parameters"]
    assert {"stack", "kind", "layers"} <= set(result.runs)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"untied": "False"}, "untied must be True or False"),
        ({"out": b"lib"}, "takes a string or a path"),
        ({"depths": "two"}, "--depths"),
        ({"depths": 2.5}, "'2.5' is not a depth"),
        ({"depths": (2, (3, "x"))}, "--depths"),
        ({"seeds": True}, "--seeds"),
        ({"seeds": (0, 1.0)}, "'1' is not a whole number"),
        ({"lr": "fast"}, "--lr"),
        ({"lr": None}, "--lr"),
        ({"hidden": ()}, "--hidden"),
        ({"models": "deepnrom"}, "did you mean 'deepnorm'"),
        ({"models": ["deepnorm", 3]}, "--models"),
        ({"optimizer": "adamm"}, "did you mean 'adam'"),
        ({"workers": 0}, "--workers"),
        ({"device": 0}, "--device"),
        ({"dropout": "much"}, "--dropout"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        stabkit.sweep(**{"out": tmp_path, **SMALL, **wrong})


ODD = (None, 5, -1, 2.5, math.nan, object(), [], (), {}, b"x", True, "", ",", "x", "6,18", [None], ["a", 3], {1: 2})
ODD += (range(0), range(5), [[1, 2]], (1, 2, 3), 10**30, "é", "\0")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "probe"])
def test_a_value_of_any_type_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """All values at a sweep's options in CI, elsewhere a part of them at each: most options are a sweep's."""
    place: dict[str, Any] = {"out": str(tmp_path / "none"), "yes": True}
    for place_of, option in enumerate(COMMANDS[name]):
        for value in ODD if FULL and name == "sweep" else ODD[place_of % 5 :: 5]:
            try:
                request_of(name, {**place, option: value})
            except StabkitError as error:
                assert "\n" not in str(error), (option, value)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "value",
    [6, (6, 18), [6, (60, 12)], range(2, 5), np.array([6, 18]), np.int64(6), "6,60x12", ((60, 12),)],
    ids=str,
)
def test_depths_of_python_are_those_of_the_text(value: Any) -> None:
    text = ranges.text(ranges.plain(value))
    assert ranges.depths("--depths", ranges.plain(value)) == ranges.depths("--depths", text)


@pytest.mark.parametrize("value", [5e-4, (5e-4, 1e-3), np.array([1e-3, 5e-4]), np.float32(0.5), "5e-4", 1])
def test_rates_of_python_are_those_of_the_text(value: Any) -> None:
    text = ranges.text(ranges.plain(value))
    assert ranges.reals("--lr", ranges.plain(value), 0, 10) == ranges.reals("--lr", text, 0, 10)


def test_a_call_is_written_as_people_type_it() -> None:
    given = {"depths": (6, (60, 12)), "lr": (1e-3,), "seeds": range(3), "qk_norm": True, "models": COMPARED}
    written = lines.line("sweep", given)
    assert written == "sweep --depths 6,60x12 --qk-norm --seeds 0..2 --lr 1e-3"
    assert request_of(*lines.words(written)).specs == request_of("sweep", given).specs


def test_where_there_is_no_store_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        stabkit.load_runs(tmp_path / "nowhere")


LINKS = ("gradient", "logits", "update", "stream", "tokens", "loss", "finite")


@pytest.mark.slow
def test_a_model_of_ones_own_is_probed_by_name_or_as_a_function(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    options: dict[str, Any] = {"depths": (2, 4, 8), "seeds": 0, "steps": 2, "quick": True, "out": tmp_path}
    named = stabkit.probe("tests.own.probe_models:pre_ln", **options)
    request.getfixturevalue("workers")
    given = stabkit.probe(probe_models.pre_ln, workers=1, **options)
    shown = unescape(re.sub("<[^>]+>", "", named._repr_html_()))
    assert isinstance(named, ProbeResult) and named.verdict.replace("`", "") in shown and "Does it train?" in shown
    columns = ["change", "word", "basis", "probability", "loss", "without", "updates", "code"]
    assert named.cures.columns.tolist() == columns and named.cures.empty
    assert given.links.equals(named.links) and list(named.links["link"]) == list(LINKS)
    assert set(named.links["word"]) <= {"usual", "better", "unusual", "broken", "–"}
    stream = named.links[named.links["link"] == "stream"].iloc[0]
    assert math.isfinite(stream["exponent"]) and stream["why"]
    assert stream["level"] >= 1 and stream["usual_low"] < stream["usual_high"]
    assert named.runs["depth"].tolist() == [2, 4, 8] and named.page.is_file()
    assert set(named.links["lr"]) == set(named.runs["lr"]) == {1e-3}, "the rate that was used, none being asked for"


FRESH = """
import sys, stabkit
result = stabkit.probe("tests.own.probe_models:pre_ln", (2, 4), seeds=0, steps=2, workers=1, out=sys.argv[1])
assert result.verdict and result.judged.worst.word
heavy = {"typer", "matplotlib", "pandas", "rich", "jinja2"} & set(sys.modules)
ours = {name for name in sys.modules if name.startswith(("stabkit.cli", "stabkit.claims", "stabkit.report.cards"))}
print(sorted(heavy | ours))
"""


@pytest.mark.slow
def test_a_probe_in_a_fresh_process_imports_neither_the_command_line_nor_a_figure(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FRESH, tmp_path], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_function_that_no_other_process_can_import_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="new processes"):
        stabkit.probe(lambda depth: None, depths=2, out=tmp_path)


def test_a_damaged_run_is_left_out_with_a_warning(tmp_path: Path) -> None:
    stabkit.sweep("deepnorm", seeds=(0, 1), out=tmp_path, **SMALL)
    (damaged, _) = sorted((tmp_path / "runs").glob("[a-z]*"))
    (damaged / "outcome.json").write_text("{")
    with pytest.warns(UserWarning, match="left out a corrupt run") as told:
        assert len(stabkit.load_runs(tmp_path)) == 1 and len(stabkit.load_records(tmp_path)["run"].unique()) == 1
    assert [warning.filename for warning in told] == [__file__] * 2


def test_what_a_sweep_leaves_out_and_what_has_no_result_is_warned_of_where_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(asked: Any, *more: Any, **options: Any) -> execute.RequestResult:
        return execute.RequestResult([], [(spec, "killed") for spec in asked.specs], [])

    monkeypatch.setattr(execute, "run", lost)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = stabkit.sweep("2026", optimizer="sgd", out=tmp_path, **SMALL)
    said = [str(warning.message) for warning in told if issubclass(warning.category, UserWarning)]
    assert any("is left out" in sentence for sentence in said)
    assert f"{len(result.failed)} of {len(result.specs)} runs have no result; `.failed` and the page say why" in said
    assert {warning.filename for warning in told} == {__file__}
    assert result.runs.empty and {reason for _, reason in result.failed} == {"killed"}


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
    options: dict[str, Any] = {"seeds": 0, "steps": 2, "out": tmp_path}
    with pytest.warns(UserWarning, match="depth 8, seed 0 has no result"):
        probed = stabkit.probe(partly.partly, depths=(2, 4, 8), **options)
    assert len(probed.links) == len(LINKS) and len(probed.failed) == 1
    with pytest.raises(UsageError, match="as many layers as it is asked for"):
        stabkit.probe(partly.flat, depths=(2, 4), **options)


CHECKED = """
import stabkit

result = stabkit.sweep(depths=(6, 18), models=("post-ln", "deepnorm"), lr=1e-3, optimizer="radam")
frame = result.runs
reveal_type(result.verdict)
stabkit.sweep(depths=2, optimiser="adam")
stabkit.sweep(optimizer="lamb")
stabkit.probe("a:b", depths="6", lr=(1e-3, 1e-4)).links
"""


@pytest.mark.slow
def test_a_type_checker_knows_names_and_choices(tmp_path: Path) -> None:
    """By the settings and the cache of `dev.py lint`, which has read the package."""
    (tmp_path / "user.py").write_text(CHECKED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", tmp_path / "user.py"],
        cwd=Path(stabkit.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert 'Revealed type is "str"' in done.stdout, done.stdout + done.stderr
    assert 'user.py:7: error: Unexpected keyword argument "optimiser"' in done.stdout
    assert 'user.py:8: error: Argument "optimizer"' in done.stdout
    assert done.stdout.count(": error:") == 2
