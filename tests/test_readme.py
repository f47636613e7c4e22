"""The README's commands parse, and its two recipes work as printed."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from tests.commands import stabkit
from tests.conftest import MULTI30K, need
from tests.own import probe_models
from tests.own.test_watch import loss_of, tokens

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EVERY = re.findall(r"```python\n(.*?)```", README, re.S)
(GPT,) = [block for block in EVERY if "def gpt(" in block]
(WATCH,) = [block for block in EVERY if "stabkit.watch(" in block]
BLOCKS = [block for block in EVERY if block not in (GPT, WATCH)]
COMMANDS = sorted(
    set(re.findall(r"`stabkit ([a-z][^`\n]*)`", README)) | set(re.findall(r"^\$ stabkit (.*)$", README, re.M))
)


def executed(block, **names):
    exec(block, names)  # our own README, not input
    return names


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_is_one(command, tmp_path):
    if " ./" in command:  # a recipe's own file: run whole below
        return
    words = shlex.split(
        command.replace("RUN…", "").replace(" RUN", "").replace("FILE.toml", "").replace("FILE", "x.html")
    )
    if "--data" in words and "DIR" not in words:
        need("multi30k", MULTI30K.is_dir(), f"{MULTI30K} (set STABKIT_MULTI30K)")
        words[words.index("--data") + 1] = str(MULTI30K)
    if (
        words[0] in ("sweep", "ablate", "landscape", "paper")
        and words[1:] != ["ls"]
        and "--factory" not in words
        and "DIR" not in words
        and "--help" not in words
    ):
        done = stabkit(*words, "--dry-run", "--out", tmp_path / "none")
        assert done.returncode == 0, done.stderr
    else:
        sub = [word for word in words[:2] if not word.startswith("-") and word.islower()]
        done = stabkit(*(sub if words[0] == "runs" else sub[:1]), "--help")
        assert done.returncode == 0, done.stderr
        options = {word for word in words if word.startswith("--")} - {"--help"}
        assert all(option in done.stdout for option in options)


@pytest.fixture
def recipes(tmp_path):
    """A directory with the files of the two recipes, as their reader has it."""
    (tmp_path / "my.py").write_text(BLOCKS[0], encoding="utf-8")
    (tmp_path / "mine.py").write_text(BLOCKS[1], encoding="utf-8")
    return tmp_path


def printed(part):
    """The commands of the README that name a file of one's own, with this in them."""
    return [command for command in COMMANDS if " ./" in command and part in command]


def test_the_readmes_method_keeps_the_contract(recipes):
    """As printed, whole: the models of 100 layers too."""
    ((command,),) = [printed("check")]
    done = stabkit(*shlex.split(command), cwd=recipes)
    assert done.returncode == 0, done.stderr
    assert "Pre-LN × √½ keeps the contract: x ← ω·x + γ·f(LN(x)); after each stack LN(x)" in done.stdout
    assert "breaks" not in done.stdout


def test_the_readmes_recipes_are_swept_and_seen(recipes):
    """The printed commands in one, at a size for a test."""
    (method,), (probe,) = printed("--models"), printed("--probes")
    words = [*shlex.split(method), *shlex.split(probe)[1:3]]
    words[words.index("--depths") + 1] = "2,3"
    small = ("--steps", "2", "--hidden", "16", "--ffn", "24", "--vocab", "200", "--max-tokens", "128")
    done = stabkit(*words, *small, "--warmup", "4000", "--quiet", "--out", recipes / "out", cwd=recipes)
    assert done.returncode == 0, done.stderr
    runs = sorted(path.name for path in (recipes / "out" / "runs").glob("[a-z]*"))
    assert [name.partition("-2L")[0] for name in runs if "-2L-" in name] == ["deepnorm", "own-halved", "pre-ln"]
    (page,) = (recipes / "out" / "reports").glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "Pre-LN × √½" in text and "probe-own-spikes-step" in text and "class Spikes(Probe)" in text
    rows = stabkit("export", "--store", recipes / "out", "--to", "csv").stdout.splitlines()
    assert sum(",own-spikes,state," in row for row in rows) == 6 * 3


def test_the_readmes_surface_is_drawn_and_its_middle_is_the_models_loss(capsys):
    names = executed(BLOCKS[2])
    loss = float(((names["model"](names["x"]) - names["y"]) ** 2).mean().detach())
    assert names["surface"].loss[5, 5] == pytest.approx(loss, rel=1e-6) and capsys.readouterr().out


def test_the_page_of_methods_is_what_the_command_writes():
    page = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")
    made = stabkit("methods", "--markdown", "--depths", "18,100").stdout
    assert page == made, "write it anew: stabkit methods --markdown --depths 18,100 > docs/methods.md"


def test_the_readmes_loop_is_watched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = probe_models.Stack(2)
    optimizer = torch.optim.AdamW(model.parameters())

    def update(model, optimizer, batch):
        loss = loss_of(model, batch)
        optimizer.zero_grad(), loss.backward(), optimizer.step()
        return loss

    names = executed(WATCH, model=model, optimizer=optimizer, batches=[tokens(i) for i in range(3)], update=update)
    assert names["watch"].ended == "closed" and names["watch"].steps == 3
    done = stabkit("report", "--store", tmp_path / "out")
    assert done.returncode == 0 and names["watch"].id in done.stdout


@pytest.mark.libraries
def test_the_readmes_factory_can_be_probed(tmp_path):
    need("libraries", find_spec("transformers") is not None, "transformers")
    (tmp_path / "readme_model.py").write_text(GPT)
    done = stabkit(
        *(
            "probe",
            "readme_model:gpt",
            "--depths",
            "1,2,4",
            "--seeds",
            "0",
            "--steps",
            "1",
            "--quiet",
            "--workers",
            "1",
        ),
        *("--out", tmp_path / "out"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
