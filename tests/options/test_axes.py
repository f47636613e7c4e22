"""Batches and widths as lists: a grid for each, with a task of its own size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stabkit.errors import UsageError
from stabkit.options.requests import request_of
from stabkit.running.request import Request
from stabkit.spec import RunSpec
from stabkit.tasks.synthetic import Synthetic
from tests.commands import stabkit, strict
from tests.tasks.conftest import write

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.parametrize(
    ("name", "value"), [("device", "gpu"), ("workers", "0"), ("executor", "ray"), ("dtype", "float16")]
)
def test_a_slip_of_the_pen_is_named_before_any_file_is_read(name: str, value: str, tmp_path: Path) -> None:
    lost = {"data": str(tmp_path / "nowhere"), "source": "de", "target": "en"}
    with pytest.raises(UsageError, match=f"--{name}"):
        request(tmp_path, **lost, **{name: value})


def request(tmp_path: Path, **options: Any) -> Request:
    return request_of(
        "sweep", {"models": "deepnorm,pre-ln", "depths": "2", "warmup": "4000", "out": str(tmp_path), **options}
    )


def shape(spec: RunSpec) -> tuple[int, int, int]:
    return spec.model.hidden, spec.model.ffn, spec.train.max_tokens


def test_lists_of_widths_and_batches_make_a_grid_for_each_pair(tmp_path: Path) -> None:
    asked = request(tmp_path, max_tokens="256,512", hidden="32,64", ffn="2x", seeds="0,1")
    shapes = [(32, 64, 256), (32, 64, 512), (64, 128, 256), (64, 128, 512)]
    specs = asked.specs
    assert len(specs) == asked.budget.runs == 16
    assert [shape(spec) for spec in specs] == [each for each in shapes for _ in range(4)]
    assert len({spec.run_id for spec in specs}) == 16


def test_every_size_of_batch_has_its_own_synthetic_task_and_every_width_the_same(tmp_path: Path) -> None:
    asked = request(tmp_path, max_tokens="256,512", hidden="32,64", vocab="300")
    for spec in asked.specs:
        assert spec.task.digest == Synthetic(vocab=300, max_tokens=spec.train.max_tokens).digest
    assert len({spec.task.digest for spec in asked.specs}) == 2


def test_a_list_trains_the_very_runs_of_its_members(tmp_path: Path) -> None:
    together = {spec.run_id for spec in request(tmp_path, max_tokens="256,512", hidden="32,64", ffn="2x").specs}
    alone = {
        spec.run_id
        for max_tokens in ("256", "512")
        for hidden, ffn in (("32", "64"), ("64", "128"))
        for spec in request(tmp_path, max_tokens=max_tokens, hidden=hidden, ffn=ffn).specs
    }
    assert together == alone and len(alone) == 8


def test_text_is_the_same_corpus_at_every_size_of_batch(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    text = {"data": str(write(tmp_path / "data")), "source": "de", "target": "en", "vocab": "100"}
    asked = request(tmp_path / "out", max_tokens="64,128", **text)
    assert len({spec.train.max_tokens for spec in asked.specs}) == 2
    assert len({spec.task.digest for spec in asked.specs}) == 1


@pytest.mark.parametrize(("ffn", "wanted"), [("2x", [64, 128]), ("4x", [128, 256]), ("48", [48, 48])])
def test_the_inner_width_is_a_number_or_a_multiple_of_the_width(ffn: str, wanted: list[int], tmp_path: Path) -> None:
    specs = request(tmp_path, hidden="32,64", ffn=ffn, models="deepnorm", warmup="0").specs
    assert [spec.model.ffn for spec in specs] == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ffn": "x"}, "--ffn"),
        ({"ffn": "0x"}, "--ffn"),
        ({"ffn": "33x"}, "--ffn"),
        ({"ffn": "2.5x"}, "--ffn"),
        ({"ffn": "2x,4x"}, "--ffn"),
        ({"ffn": "-2x"}, "--ffn"),
        ({"hidden": "32,33"}, "--hidden 33 must be even"),
        ({"hidden": "32,,64"}, "--hidden"),
        ({"hidden": "12,16", "heads": "8"}, "--hidden 12 must be even and divide by --heads 8"),
        ({"max_tokens": "256,8"}, "--max-tokens"),
        ({"max_tokens": "256,32"}, "at least 64 tokens per batch, got 32"),
    ],
)
def test_every_member_of_a_list_is_checked(options: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        request(tmp_path, **options)
    assert said in str(caught.value)


def test_a_list_is_planned_from_the_command_line(tmp_path: Path) -> None:
    done = stabkit(
        *("sweep", "--depths", "1", "--models", "deepnorm", "--max-tokens", "256,512", "--hidden", "32,64"),
        *("--ffn", "2x", "--warmup", "0", "--dry-run", "--json", "--out", tmp_path / "none"),
    )
    assert done.returncode == 0, done.stderr
    runs = [run["spec"] for run in strict(done.stdout)["runs"]]
    shapes = [(run["model"]["hidden"], run["model"]["ffn"], run["train"]["max_tokens"]) for run in runs]
    assert shapes == [(32, 64, 256), (32, 64, 512), (64, 128, 256), (64, 128, 512)]


@pytest.mark.parametrize("options", [("--hidden", "32,64"), ("--max-tokens", "256,512")])
@pytest.mark.parametrize(("command", "what"), [("ablate", "an ablation"), ("landscape", "a landscape")])
def test_an_ablation_and_a_landscape_are_of_one_width_and_one_batch(
    command: str, what: str, options: tuple[str, str], tmp_path: Path
) -> None:
    done = stabkit(command, *options, "--out", tmp_path / "none")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"{what} takes one --hidden and one --max-tokens" in done.stderr and not (tmp_path / "none").exists()
