"""What a person meets first: help in panels, a word that is no command, completion, the page in a browser."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

from stabkit.cli.help import EXAMPLES, GROUPED, MEANT, PANEL
from stabkit.options.commands import COMMANDS, PaperOptions
from stabkit.paper.items import BY_KEY
from tests.commands import TINY, stabkit, strict

pytestmark = pytest.mark.usefixtures("undrawn")
WORDS = "sweep ablate transfer landscape paper report export methods schema probe".split()
ONE_STEP = ("--optimizer", "sgd", "--steps", "1", "--warmup", "0", "--lr", "1e-5", "--dtype", "float64")
ROWS = [*([word] for word in WORDS), ["audit"], ["log"], *(["runs", word] for word in ("ls", "show", "verify", "rm"))]


def helped(*words: str) -> str:
    done = stabkit(*words, "--help", env={"COLUMNS": "120"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", ROWS, ids=" ".join)
def test_the_help_of_a_command_fits_two_screens_and_ends_with_two_examples(words: list[str]) -> None:
    text = helped(*words)
    assert len(text.splitlines()) <= 100 and "env var" not in text and "<str>" not in text
    for example in EXAMPLES[words[-1]]:
        assert example in text and set(re.findall(r"--[a-z-]+", example)) <= set(re.findall(r"--[a-z-]+", text))


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name in (*COMMANDS, "paper") and name != "probe"])
def test_the_examples_of_what_trains_are_understood(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for example in EXAMPLES[name]:
        words = [word for word in shlex.split(example)[1:] if word != "--dry-run"]
        done = stabkit(*words, "--dry-run", "--out", tmp_path / "none", cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_every_command_has_its_panel_and_the_users_model_stands_first() -> None:
    assert set(PANEL) == {row[0] for row in ROWS}
    text = helped()
    assert [text.index(panel) for panel in GROUPED] == sorted(text.index(panel) for panel in GROUPED)
    assert "─ Commands ─" not in text


@pytest.mark.slow
def test_options_stand_in_panels_and_none_is_forgotten() -> None:
    text = helped("sweep")
    places = [text.index(f"─ {panel} ─") for panel in ("What to train", "On what", "How it is trained, and how long")]
    assert places == sorted(places) and "Where it runs" in text
    for name in COMMANDS["sweep"]:
        assert f"--{name.replace('_', '-')}" in text
    for name in signature(PaperOptions).parameters.keys() - {"items"}:
        assert f"--{name.replace('_', '-')}" in helped("paper")
    alone = re.search(r"─ Options ─.*?╰", text, re.S)
    assert alone and "--help" in alone[0] and alone[0].count("--") == 1, "every other option has its panel"


def test_alone_it_says_what_to_try_first_and_no_error() -> None:
    done = stabkit()
    assert "Start here:" in done.stdout and "stabkit sweep" in done.stdout and "stabkit probe" in done.stdout
    assert "error" not in done.stderr
    assert "error" not in stabkit("runs").stderr


@pytest.mark.parametrize("word", MEANT)
def test_a_word_that_people_try_is_answered_with_the_command_that_does_it(word: str) -> None:
    done = stabkit(word, "a", "b")
    assert done.returncode == 2 and f"no command '{word}': use `stabkit {MEANT[word]}`" in done.stderr
    meant = MEANT[word].split()[0]
    assert meant in (*WORDS, "runs") or meant.startswith("--"), "which is a command"


def test_any_other_word_gets_the_nearest_or_all() -> None:
    assert "did you mean 'sweep'?" in stabkit("swep").stderr
    assert "the commands are probe, audit" in stabkit("qqqq").stderr
    assert "did you mean 'verify'?" in stabkit("runs", "verfy").stderr


def test_model_and_models_are_both_understood(tmp_path: Path) -> None:
    for command, option in (("sweep", "--model"), ("ablate", "--models"), ("landscape", "--models")):
        done = stabkit(command, option, "deepnorm", "--depths", "2", "--dry-run", "--out", tmp_path)
        assert done.returncode == 0, done.stderr
    (tmp_path / "c.toml").write_text('model = "deepnorm"\ndepths = 2\n')
    done = stabkit("sweep", "--config", str(tmp_path / "c.toml"), "--print-config")
    assert done.returncode == 0 and 'models = "deepnorm"' in done.stdout, done.stderr
    (tmp_path / "c.toml").write_text('model = "deepnorm"\nmodels = "admin"\n')
    done = stabkit("sweep", "--config", str(tmp_path / "c.toml"), "--print-config")
    assert done.returncode == 2 and "'model' and 'models', which are one option" in done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("stabkit swe", ["sweep"]),
        ("stabkit sweep --models post-ln,dee", ["post-ln,deepnorm"]),
        ("stabkit sweep --models 20", ["2026"]),
        ("stabkit landscape --model adm", ["admin"]),
        ("stabkit paper fig", [key for key in BY_KEY if key.startswith("fig")]),
    ],
)
def test_a_shell_completes_commands_methods_and_items(words: str, offered: list[str]) -> None:
    shell = {"_STABKIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    program = Path(sys.executable).with_name("stabkit")
    done = subprocess.run([program], env={**os.environ, **shell}, capture_output=True, text=True)
    assert done.stdout.split() == offered


def test_a_block_that_is_asked_for_as_a_method_is_named_as_the_option_it_is() -> None:
    done = stabkit("sweep", "--models", "rmsnorm", "--dry-run")
    assert done.returncode == 2 and "`--norm rms`" in done.stderr and "did you mean" not in done.stderr


@pytest.mark.slow
def test_the_last_lines_are_the_answer_the_page_and_the_next_command(tmp_path: Path) -> None:
    words = ["--models", "deepnorm,post-ln", *TINY, "--steps", "16", "--out", str(tmp_path)]
    done = stabkit("sweep", *words)
    answer, page, following = done.stdout.rstrip().splitlines()[-3:]
    assert answer.endswith(".") and page.startswith("report: ") and following.startswith("next: stabkit sweep ")
    (headline,) = re.findall('<p class="headline">(.*?)</p>', Path(page.removeprefix("report: ")).read_text())
    said = strict(stabkit("sweep", *words, "--json").stdout)["answer"]
    assert said.startswith(re.sub("</?code>", "`", headline).removesuffix(".")) and said in " ".join(
        done.stdout.split()
    )
    told = shlex.split(following.removeprefix("next: stabkit "))
    assert told[told.index("--steps") + 1] == "400" and "--warmup" not in told, "that is the default"
    assert stabkit(*told, "--dry-run").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "more", "then"),
    [
        ("sweep", ("--models", "deepnorm", *ONE_STEP), "stabkit sweep --models deepnorm --depths 2"),
        ("ablate", ("--alpha-scale", "1", "--steps", "2", "--warmup", "0"), "stabkit landscape --depths 2"),
        (
            "landscape",
            *(("--points", "3", "--cut-points", "3", "--direction-seeds", "0", "--path", "none", "--steps", "2"),),
            "stabkit ablate --depths 2",
        ),
    ],
)
def test_each_command_goes_on_to_another(command: str, more: tuple[str, ...], then: str, tmp_path: Path) -> None:
    small = ("--depths", "2", "--hidden", "16", "--ffn", "24", "--vocab", "200", "--max-tokens", "128")
    done = stabkit(command, *small, *more, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    following = done.stdout.rstrip().splitlines()[-1].removeprefix("next: ")
    assert following.startswith(then)
    assert stabkit(*shlex.split(following)[1:], "--dry-run").returncode == 0
