"""One grammar: lists with commas or spaces, files or modules, options that are nearly there."""

from __future__ import annotations

import pytest

from stabkit.cli.entry import joined, meant
from stabkit.methods import own
from stabkit.own import factory
from tests.commands import stabkit


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("sweep --depths 6 18 50 --seeds 0..2", "sweep --depths 6,18,50 --seeds 0..2"),
        ("sweep --depths 6, 18 --yes", "sweep --depths 6,18 --yes"),
        ("sweep --models post-ln DeepNorm mhc:start=identity", "sweep --models post-ln,DeepNorm,mhc:start=identity"),
        ("sweep --lr 1e-3 2e-3 --models pre-ln", "sweep --lr 1e-3,2e-3 --models pre-ln"),
        ("probe --depths 6 12 model:gpt", "probe --depths 6,12 model:gpt"),
        ("sweep --depths 60x12 6 --out 7", "sweep --depths 60x12,6 --out 7"),
        ("paper fig9 table1 --seeds 0 1", "paper fig9 table1 --seeds 0,1"),
        ("ablate --alpha-scale 0.25..4", "ablate --alpha-scale 0.25..4"),
    ],
)
def test_lists_take_commas_and_spaces(typed, read):
    assert joined(typed.split()) == read.split()
    assert joined(read.split()) == read.split(), "what is joined stays"


def test_an_option_that_is_nearly_there_is_named():
    typed = "No such option: --depth (Possible options: --data, --depths, --dropout)"
    assert meant(typed) == "no option --depth; did you mean --depths?"
    assert meant("No such option: --seed (Possible options: --seeds, --shard, --steps)").endswith("--seeds?")
    assert (
        meant("No such option: --xyz") == "no option --xyz; --help lists what there is"
        and meant("Missing argument") == "Missing argument"
    )


def test_a_factory_is_a_module_or_a_file():
    assert factory.module_of("model:gpt") == factory.module_of("model.py:gpt") == "model"
    assert factory.module_of("models/small.py:gpt") == "models.small"


def test_a_method_of_ones_own_is_a_file_or_its_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert own.parts("mine:peri") is None, "there is no such file"
    (tmp_path / "mine.py").write_text("")
    assert own.parts("mine:peri:norm=rms") == own.parts("mine.py:peri:norm=rms")


def test_watch_is_answered_with_its_two_lines(tmp_path):
    done = stabkit("watch", cwd=tmp_path)
    assert done.returncode == 2 and "stabkit.watch(model, optimizer)" in done.stderr
