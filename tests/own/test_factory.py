"""`stabkit landscape --factory`: a user's own model from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.commands import Done, stabkit

GOOD = """
import torch
from torch import nn
def make():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    x, y = torch.randn(16, 4), torch.randn(16, 2)
    return net, lambda m: nn.functional.mse_loss(m(x), y)
def none(): return None
def broken(): raise RuntimeError("no data\\nhere")
def bad_loss():
    net, _ = make()
    def loss(m): raise KeyError("label")
    return net, loss
NUMBER = 3
"""
SMALL = ["--points", "5", "--cut-points", "7", "--direction-seeds", "0,1"]


def run(folder: Path, *options: str) -> Done:
    (folder / "mine.py").write_text(GOOD)
    return stabkit("landscape", *SMALL, *options, cwd=folder)


def test_a_model_of_ones_own_is_drawn_by_either_engine(tmp_path: Path) -> None:
    done = run(tmp_path, "--factory", "mine:make")
    assert done.returncode == 0, done.stderr
    assert "roughness of cuts" in done.stdout and "negative curvature" in done.stdout
    ours = np.load(tmp_path / "reports" / "mine-make.npz")
    assert ours["loss"].shape == (5, 5) and ours["cuts"].shape == (2, 7) and ours["a"][2] == 0.0
    assert (tmp_path / "reports" / "mine-make.svg").stat().st_size > 1000
    held = {name: ours[name] for name in ours.files}
    assert run(tmp_path, "--factory", "mine:make", "--engine", "loss-landscapes").returncode == 0
    np.testing.assert_allclose(np.load(tmp_path / "reports" / "mine-make.npz")["loss"], held["loss"], rtol=1e-4)


def test_weights_are_loaded_and_those_of_another_shape_name_the_first_that_differs(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    save_file(net.state_dict(), tmp_path / "w.safetensors")
    assert run(tmp_path, "--factory", "mine:make", "--weights", "w.safetensors").returncode == 0
    save_file({**net.state_dict(), "2.weight": torch.zeros(3, 8)}, tmp_path / "w.safetensors")
    done = run(tmp_path, "--factory", "mine:make", "--weights", "w.safetensors")
    assert done.returncode == 2 and "2.weight is [3, 8]" in done.stderr and "[2, 8] in the model" in done.stderr
    (tmp_path / "w.safetensors").write_bytes(b"junk")
    assert "cannot read" in run(tmp_path, "--factory", "mine:make", "--weights", "w.safetensors").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--factory", "mine"], "is package.module:function"),
        (["--factory", "nowhere:make"], "no module 'nowhere'"),
        (["--factory", "mine:nothing"], "has no 'nothing'"),
        (["--factory", "mine:NUMBER"], "is not a function"),
        (["--factory", "mine:none"], "must return model, (model, loss)"),
        (["--factory", "mine:broken"], "raised RuntimeError: no data here"),
        (["--factory", "mine:bad_loss"], "its loss raised KeyError"),
        (["--factory", "mine:make", "--points", "6"], "must be odd"),
        (["--weights", "w.safetensors"], "is for the model of --factory"),
    ],
)
def test_bad_input_is_one_clear_line(options: list[str], said: str, tmp_path: Path) -> None:
    done = run(tmp_path, *options)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "reports").exists()
