"""docs/recipes.md: every recipe trains as printed, is watched and warned of, and trains to the bit as without."""

from __future__ import annotations

import dataclasses
import os
import re
import runpy
import shlex
import socket
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing

from stabkit import methods
from stabkit.model.transformer import Transformer
from stabkit.storage.watched import Watched, WatchShelf
from tests.commands import stabkit
from tests.conftest import need, tiny
from tests.own.page import MODEL

PAGE = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.S))
PROBED = re.findall(r"^\$ stabkit (probe .*)$", PAGE, re.M)
PACKAGES = {"hf": ("transformers", "accelerate"), "lit": ("lightning",), "accelerate": ("accelerate",)}
LOOPS = [
    pytest.param(name, marks=pytest.mark.libraries if name in PACKAGES else ())
    for name in ("hf", "lit", "accelerate", "titan", "nano")
]
MOST = 20
"""Lines of code of a recipe."""
RANKS, SCENES = 2, ("watched", "alone", "fast")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def without(text: str) -> str:
    """A recipe as it was before the lines `# here`."""
    assert "# here" in text
    return "".join(line for line in text.splitlines(keepends=True) if "# here" not in line)


def too_fast(text: str) -> str:
    """At rates a hundred times and more too high, for four updates of forty."""
    return re.sub(r"(range\(|max_steps=)40", r"\g<1>4", text.replace("1e-3", "0.3").replace("1e-2", "3.0"))


def write(folder: Path, changed: str = "", change=lambda text: text) -> None:
    """The page's files beside a model of a quarter of its width: Muon steps in bfloat16, which a CPU does slowly."""
    (folder / "model.py").write_text(MODEL.replace("width=64", "width=16"))
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(change(text) if name.startswith(changed) else text)


def trained(name: str, folder: Path) -> list[torch.Tensor]:
    """The weights that a recipe ends with, run as a script in this folder."""
    for module in ("model", *FILES):
        sys.modules.pop(module, None)
    torch.manual_seed(0)
    model = runpy.run_path(str(folder / f"{name}_train.py"), run_name="__main__")["model"]
    return [p.full_tensor() if hasattr(p, "full_tensor") else p.detach().clone() for p in model.parameters()]


def watched(folder: Path) -> Watched:
    (held,) = map(WatchShelf(folder / "out").load, WatchShelf(folder / "out").ids())
    return held


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, the current one, from which a script imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for module in ("model", *FILES):
        sys.modules.pop(module, None)
    if "accelerate" in sys.modules:  # transformers' Trainer leaves what the next Accelerator would take over
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()


def needs(name: str) -> None:
    for package in PACKAGES.get(name.partition("_")[0], ()):
        need("libraries", find_spec(package) is not None, package)


@pytest.mark.parametrize("name", LOOPS)
def test_a_recipe_is_watched_and_trains_to_the_bit_as_without(name: str, here: Path) -> None:
    needs(name)
    write(here)
    weights = trained(name, here)
    held = watched(here)
    assert held.ended == "closed" and held.alarms == () and held.cell.facts.steps == 40
    assert held.cell.records["gradient"].steps.tolist() == list(range(40))
    assert (held.cell.gradients("stack") > 0).all() and len(held.cell.facts.sublayers) == 12
    write(here, f"{name}_train", without)
    alone = trained(name, here)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(weights, alone, strict=True))
    assert len(WatchShelf(here / "out").ids()) == 1


@pytest.mark.parametrize("name", LOOPS)
def test_a_recipe_warns_of_a_rate_that_is_far_too_high(name: str, here: Path) -> None:
    needs(name)
    write(here, name, too_fast)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trained(name, here)
    assert [alarm.link for alarm in watched(here).alarms][:2] == ["rate", "step"]
    assert any("stabkit: update 1: one update moved" in str(warning.message) for warning in seen)


def process(rank: int, port: int, folder: str) -> None:
    """One of `torchrun --nproc-per-node 2`: the recipe as printed, without its lines, and too fast."""
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank))
    sys.path.insert(0, folder)
    for number, scene in enumerate(SCENES):
        place = Path(folder, scene)
        os.chdir(place)
        os.environ["MASTER_PORT"] = str(port + number)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            kept: list[torch.Tensor] = []
            ending = dist.destroy_process_group

            def ended(kept=kept, ending=ending) -> None:
                """What is sharded is gathered while the processes still know of one another."""
                model = sys._getframe(1).f_globals["model"]
                kept += [p.full_tensor().detach().clone() for p in model.parameters()]
                ending()

            dist.destroy_process_group = ended
            for module in ("model", *FILES):
                sys.modules.pop(module, None)
            runpy.run_path("fsdp_train.py", run_name="__main__")
            dist.destroy_process_group = ending
        torch.save((kept, [str(warning.message) for warning in seen]), f"{rank}.pt")


@pytest.mark.skipif(not dist.is_available(), reason="torch without torch.distributed")
def test_the_recipe_of_two_processes_likewise(tmp_path: Path) -> None:
    write(tmp_path)
    for scene, change in zip(SCENES, (str, without, too_fast), strict=True):
        (tmp_path / scene).mkdir()
        (tmp_path / scene / "fsdp_train.py").write_text(change(FILES["fsdp_train"]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = min(free.getsockname()[1], 65_000)
    torch.multiprocessing.start_processes(process, (port, str(tmp_path)), RANKS, start_method="forkserver")
    said = {(scene, rank): torch.load(tmp_path / scene / f"{rank}.pt") for scene in SCENES for rank in range(RANKS)}
    for rank in range(RANKS):
        pairs = zip(said["watched", rank][0], said["alone", rank][0], strict=True)
        assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
    held = watched(tmp_path / "watched")
    assert held.ended == "closed" and held.alarms == () and held.cell.facts.steps == 8
    assert held.cell.records["gradient"].steps.tolist() == list(range(8))
    first, second = (sum("one update moved" in text for text in said["fast", rank][1]) for rank in range(RANKS))
    assert (first, second) == (1, 0) and watched(tmp_path / "fast").alarms[1].link == "step"


@pytest.mark.parametrize("line", [pytest.param(line, marks=pytest.mark.libraries) for line in PROBED])
def test_what_a_recipe_probes_can_be_probed(line: str, here: Path) -> None:
    needs(line.split()[1])
    write(here)
    words = shlex.split(line)
    words[words.index("--depths") + 1] = "1,2"
    done = stabkit(*words, "--seeds", "0", "--steps", "2", "--quiet", cwd=here)
    assert done.returncode == 0 and "report:" in done.stdout, done.stderr


@pytest.mark.parametrize("key", ["deepnorm", "admin"])
def test_a_folded_model_is_plain_post_ln_with_the_same_logits(key: str, here: Path) -> None:
    """Of three layers and two, with every weight moved and another ω at every sub-layer."""
    write(here)
    config = dataclasses.replace(tiny().model, encoder_layers=3, decoder_layers=2)
    tokens = torch.randint(1, 200, (2, 4, 9), generator=torch.Generator().manual_seed(1))
    built, plain = (
        Transformer(config, methods.build(name, {}), 200, 0, kernels="python").double().eval()
        for name in (key, "post-ln")
    )
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)))
    for site, residual in built.residuals.items():
        residual.set_omega(1.5 + 0.1 * site.index)
    plain.load({**built.arrays(), "omega": np.ones(len(built.residuals))})
    expected = built(*tokens)[1]
    assert (plain(*tokens)[1] - expected).abs().max() > 0.1 * expected.abs().max()
    stacks: dict[str, list[object]] = {"encoder": [], "decoder": []}
    for (site, own), (other, residual) in zip(built.residuals.items(), plain.residuals.items(), strict=True):
        assert site == other
        g = residual.g
        first, last = {"self": ("qkv", "out"), "cross": ("q", "out"), "ffn": ("up", "down")}[site.kind]
        stacks[site.stack].append((own.omega, [getattr(g, first).weight], getattr(g, last), residual.norm_out))
    fold = runpy.run_path("folding.py")["fold"]
    for sublayers in stacks.values():
        fold(sublayers)
    torch.testing.assert_close(plain(*tokens)[1], expected)


def test_no_recipe_has_more_than_twenty_lines_of_code() -> None:
    for name, text in FILES.items():
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", '"""'))]
        assert len(lines) <= MOST, (name, len(lines))
