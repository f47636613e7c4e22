"""`stabkit probe --baseline`: what became worse than a committed file, and what a CI is told of it."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from benchmarks import gate
from stabkit.cli.commands import gate as gate_command
from stabkit.errors import UsageError
from stabkit.results.own import baseline
from stabkit.results.own.baseline import Baseline, RateBaseline
from stabkit.version import __version__
from tests.commands import stabkit

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "tutorials" / "ci.md").read_text(encoding="utf-8")
(MODEL,) = re.findall(r"```python\n# model\.py\n(.*?)```", PAGE, re.S)
BEFORE, AFTER = re.findall(r"^\$ stabkit (.*)$", PAGE, re.M)

RATE = RateBaseline(
    lr=None,
    rate=1e-3,
    verdict="undecided",
    probability=0.5,
    apart=0.0,
    failing=(),
    levels={"gradient": 1.0, "scores": 0.1},
    words={"2": "trains"},
)
GIVEN = Baseline(stabkit=__version__, factory="m:f", depths=(2, 4), seeds=(0,), steps=16, quick=False, rates=(RATE,))


def changed(**changes: object) -> Baseline:
    return replace(GIVEN, rates=(replace(RATE, **changes),))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({}, []),
        ({"probability": 0.41}, []),
        ({"probability": 0.39}, ["undecided (0.50 before, 0.39 now)"]),
        ({"probability": 0.99, "verdict": "trains"}, []),
        ({"verdict": "fails", "probability": 0.01}, ["undecided (0.50) before, fails (0.01) now"]),
        ({"verdict": "undecided", "probability": None}, []),
        ({"verdict": "probably fails", "probability": None}, ["undecided (0.50) before, probably fails now"]),
        ({"failing": ("stream",)}, ["broken, and not before: stream"]),
        ({"words": {"2": "fails"}}, ["at 2 layers trains before, fails now"]),
        ({"words": {"2": "probably fails"}}, []),
        ({"failing": ("stream", "gradient")}, ["broken, and not before: stream and gradient"]),
        ({"rate": 1e-2, "levels": {"gradient": 30.0, "scores": 1.0}}, []),
        (
            {"probability": 0.2, "rate": 1e-2, "levels": {"gradient": 3.0, "scores": 0.001}},
            [
                "undecided (0.50 before, 0.20 now)",
                "its rate is 1e-2, 1e-3 before",
                "information in the logits 0.001, 0.1 before",
            ],
        ),
    ],
)
def test_worse_is_a_later_verdict_a_new_failure_or_a_lower_probability(now, said) -> None:
    assert baseline.worse(GIVEN, changed(**now)) == said


def test_what_falls_by_less_than_the_files_own_seeds_lie_apart_is_no_news() -> None:
    near = replace(GIVEN, rates=(replace(RATE, probability=0.92, verdict="trains", apart=0.4),))
    assert baseline.worse(near, changed(probability=0.6)) == []
    assert baseline.worse(near, changed(probability=0.5)) == ["trains (0.92) before, undecided (0.50) now"]
    wide = replace(GIVEN, rates=(replace(RATE, probability=0.65, apart=0.9),))
    assert baseline.worse(wide, changed(probability=0.02, verdict="fails")), "what fails is worse however far apart"
    edge = replace(GIVEN, rates=(replace(RATE, probability=0.91, verdict="trains"),))
    assert baseline.worse(edge, changed(probability=0.89)) == [], "a word's border is no regression"


def test_what_failed_before_may_fail_again_and_a_lighter_verdict_is_no_news() -> None:
    bad = changed(verdict="fails", probability=0.02, failing=("gradient",))
    assert baseline.worse(bad, bad) == [] and baseline.worse(bad, GIVEN) == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(GIVEN, depths=(2, 8)), "--depths 2,4, this probe with 2,8"),
        (replace(GIVEN, seeds=(0, 1)), "--seeds 0, this probe with 0,1"),
        (replace(GIVEN, steps=2), "--steps 16, this probe with 2"),
        (replace(GIVEN, quick=True), "made without --quick, this probe with --quick"),
        (changed(lr=1e-3), "no rate 1e-3"),
        (replace(GIVEN, factory="other:f"), "is of m:f, not of other:f"),
    ],
)
def test_another_probe_is_no_comparison(other: Baseline, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        lrs = [rate.lr for rate in other.rates]
        baseline.comparable(GIVEN, other.factory, other.depths, other.seeds, other.steps, lrs, quick=other.quick)


def test_a_baseline_of_another_version_is_refused_and_of_the_same_file_by_another_name_is_not() -> None:
    def compare(before: Baseline, factory: str) -> None:
        baseline.comparable(before, factory, before.depths, before.seeds, before.steps, [None], quick=before.quick)

    compare(replace(GIVEN, factory="pack.model:f"), "./pack/model.py:f")
    with pytest.raises(UsageError, match="made by stabkit 0.9, this is"):
        compare(replace(GIVEN, stabkit="0.9"), GIVEN.factory)


def test_what_is_no_worse_is_said_with_both_numbers() -> None:
    assert baseline.steady(GIVEN, changed(probability=0.53)) == "undecided (0.50 before, 0.53 now)"
    better = changed(verdict="trains", probability=0.97)
    assert baseline.steady(GIVEN, better) == "undecided (0.50) before, trains (0.97) now"
    assert baseline.steady(changed(verdict="undecided", probability=None), GIVEN) == "undecided"
    lower = changed(verdict="probably trains", probability=0.89)
    assert "now; a fall of less than 0.1" in baseline.steady(better, lower)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--baseline", "none.json"), "there is no such file"),
        (("--baseline", "depth.json", "--seeds", "0,1"), "made with --seeds 0, this probe with 0,1"),
        (("--baseline", "depth.json", "--seeds", "0", "--lr", "1e-3"), "the baseline has no rate 1e-3"),
        (("--update-baseline",), "name the file"),
        (("--update-baseline", "--baseline", "/proc/b.json"), "cannot write /proc/b.json"),
        (("--update-baseline", "--baseline", "."), "is not a regular file"),
        (("--baseline", "/dev/zero"), "not a regular file"),
    ],
)
def test_a_baseline_that_cannot_be_compared_is_refused_before_anything_is_probed(given, said, tmp_path) -> None:
    (tmp_path / "depth.json").write_text(json.dumps(GIVEN.to_json()))
    (tmp_path / "m.py").touch()
    done = stabkit("probe", "m:f", "--depths", "2,4", *given, cwd=tmp_path)
    code = 5 if "cannot write" in said else 2
    assert done.returncode == code and said in done.stderr and not (tmp_path / "probes").exists()


def test_a_file_is_read_as_it_was_written_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert baseline.parse("b.json", json.dumps(GIVEN.to_json())) == GIVEN
    for text in ("", "{}", "[]", json.dumps({**GIVEN.to_json(), "schema": "x"}), '{"schema": 1}', "[" * 100_000):
        with pytest.raises(UsageError, match="--update-baseline writes it"):
            baseline.parse("b.json", text)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"probability": math.nan}, "NaN"),
        ({"probability": -1.0}, "probability"),
        ({"apart": 5.0}, "apart"),
        ({"rate": math.inf}, "Infinity"),
        ({"levels": {"gradient": -1.0}}, "levels"),
        ({"failing": ("nothing",)}, "failing"),
    ],
)
def test_a_value_that_no_probe_can_have_written_disarms_no_gate(change: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        baseline.parse("b.json", json.dumps(changed(**change).to_json()))


def test_the_action_passes_all_lines_of_its_arguments(tmp_path: Path) -> None:
    run = next(step["run"] for step in ACTION["runs"]["steps"] if step["name"] == "probe")
    (tmp_path / "stabkit").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "stabkit").chmod(0o755)
    values = {"FACTORY": "m:f", "DEPTHS": "2", "SEEDS": "0", "BASELINE": "", "ARGUMENTS": "--strict\n--lr 1e-3\n"}
    there = {**os.environ, **values, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", run], env=there, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-3:] == ["--strict", "--lr", "1e-3"]


def test_a_summary_that_cannot_be_written_is_a_note(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/nonexistent/s.md")
    gate_command._summarised("text")
    assert "no step summary" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_the_tutorial_ends_with_0_for_the_good_model_and_7_for_the_bad_change(tmp_path) -> None:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    assert stabkit(*BEFORE.split(), cwd=tmp_path).returncode == 0
    kept = (tmp_path / "depth.json").read_bytes()
    summary = tmp_path / "summary.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    good = stabkit(*AFTER.split(), cwd=tmp_path, env=github)
    assert good.returncode == 0 and "::notice title=stabkit probe model:gpt::" in good.stderr
    assert "No worse than depth.json at 16 layers: trains (0.9" in summary.read_text()
    assert good.stderr.count("no worse than depth.json at 16 layers: trains (0.9") == 2, "and annotated"
    assert re.search(r"\| Gradient \| (usual|unusual) \|", summary.read_text())

    (tmp_path / "model.py").write_text(MODEL.replace("norm_first=True", "norm_first=False"), encoding="utf-8")
    bad = stabkit(*AFTER.split(), cwd=tmp_path, env=github)
    (printed,) = re.findall(r"```text\n(error: .*)\n```", PAGE)
    assert bad.returncode == 7
    number, last = re.compile(r"\d[\d.e-]*"), bad.stderr.splitlines()[-1]
    assert number.sub("N", last) == number.sub("N", printed)
    for said, shown in zip(number.findall(last), number.findall(printed), strict=True):
        assert float(said) == pytest.approx(float(shown), rel=0.05, abs=0.03), "as another processor may round it"
    said = "orse than depth.json at 16 layers: trains (0.99) before, fails (0.0"
    assert f"::error title=stabkit probe model:gpt::w{said}" in bad.stderr
    assert f"**W{said}" in summary.read_text() and "broken, and not before: gradient" in summary.read_text()
    assert (tmp_path / "depth.json").read_bytes() == kept, "a gate writes no baseline"
    assert stabkit(*BEFORE.split(), "--quick", cwd=tmp_path).returncode == 0, "accepted"
    assert stabkit(*AFTER.split(), "--quick", cwd=tmp_path).returncode == 0, "as it was before"


def test_a_factory_that_raises_is_told_of_wherever_ci_looks(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def gpt(depth):\n    raise RuntimeError('no weights')\n", encoding="utf-8")
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    asked = ("probe", "model:gpt", "--depths", "2", "--seeds", "0")
    done = stabkit(*asked, cwd=tmp_path, env=env)
    said = "model:gpt gave no result at any depth: RuntimeError: no weights (model.py:2)"
    assert done.returncode == 2 and f"::error title=stabkit probe model:gpt::{said}" in done.stderr
    assert f"**No result**: {said}" in (tmp_path / "summary.md").read_text()
    done = stabkit(*asked, "--baseline", tmp_path / "none.json", cwd=tmp_path, env=env)
    assert done.returncode == 2 and "::error title=stabkit probe model:gpt::" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_depth_without_a_result_is_no_regression(tmp_path: Path) -> None:
    """Out of memory at the deepest, say: the gate names it, and advises no new baseline."""
    deep = MODEL.replace(
        "def gpt(depth):", "def gpt(depth):\n    if BREAKS and depth == 8:\n        raise ValueError('full')"
    )
    assert deep != MODEL
    asked = ("probe", "model:gpt", "--depths", "2,8", "--seeds", "0", "--quick", "--baseline", "depth.json")
    env = {"GITHUB_ACTIONS": "true"}
    (tmp_path / "model.py").write_text(f"BREAKS = False\n{deep}", encoding="utf-8")
    assert stabkit(*asked, "--update-baseline", cwd=tmp_path).returncode in (0, 7)
    kept = (tmp_path / "depth.json").read_bytes()
    (tmp_path / "model.py").write_text(f"BREAKS = True\n{deep}", encoding="utf-8")
    done = stabkit(*asked, cwd=tmp_path, env=env)
    assert done.returncode == 3, done.stderr
    assert "::error title=stabkit probe model:gpt::depth 8, seed 0 has no result: ValueError: full" in done.stderr
    said = " ".join(done.stdout.split())
    assert "worse than" not in done.stderr and re.search(r"gpt [a-z ]+ at 2 layers", said)
    assert "next:" not in said
    assert stabkit(*asked, "--update-baseline", cwd=tmp_path).returncode == 3
    assert (tmp_path / "depth.json").read_bytes() == kept


def test_the_action_gives_every_input_to_the_probe(tmp_path: Path) -> None:
    """Its step, run by the shell that GitHub runs it with, on a `stabkit` that prints what it was called with."""
    (step,) = [step for step in ACTION["runs"]["steps"] if step["name"] == "probe"]
    asked = {
        "factory": "model:gpt",
        "depths": "4,8",
        "seeds": "0",
        "baseline": "depth.json",
        "arguments": "--lr 1e-3 -q",
    }
    assert set(asked) | {"working-directory", "artifact"} == set(ACTION["inputs"])
    (tmp_path / "stabkit").write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\nexit 7\n')
    (tmp_path / "stabkit").chmod(0o755)
    env = {name: asked[re.fullmatch(r"\$\{\{ inputs\.(\S+) \}\}", text)[1]] for name, text in step["env"].items()}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
    )
    words = "probe model:gpt --depths 4,8 --seeds 0 --lr 1e-3 -q --baseline depth.json".split()
    assert done.returncode == 7 and done.stdout.split() == words, done.stderr


def test_the_page_says_how_often_another_draw_is_an_alarm() -> None:
    rows = gate.there()
    alarms, pairs = gate.told(rows, 0.0, 1.0)
    assert f"Of {len(rows)} held-out models that train, {alarms} of {pairs} such pairs" in " ".join(PAGE.split())


def test_the_page_uses_the_action_with_inputs_that_it_has() -> None:
    (workflow,) = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.S))
    *_, used = workflow["jobs"]["depth"]["steps"]
    required = {name for name, entry in ACTION["inputs"].items() if entry.get("required")}
    assert required <= set(used["with"]) <= set(ACTION["inputs"])
    assert used["uses"] == f"OWNER/stabkit@v{__version__.partition('.')[0]}"
    given = used["with"]
    words = [given["factory"], "--depths", given["depths"], "--seeds", given["seeds"], "--baseline", given["baseline"]]
    assert AFTER == " ".join(("probe", *words, given["arguments"])), "the command that the page explains"
