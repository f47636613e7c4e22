"""The README: short enough to be read in three minutes, its commands parse, its factory and its loop run as printed."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from stabkit.methods import KEYS
from tests.commands import stabkit
from tests.conftest import MULTI30K, need
from tests.own import probe_models
from tests.own.test_watch import loss_of, tokens

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
(GPT, WATCH) = re.findall(r"```python\n(.*?)```", README, re.S)
PAGES = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("start.md", "evidence/results.md", "blocks.md"))]
COMMANDS = sorted(
    {
        command
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for command in [*re.findall(r"`stabkit ([a-z][^`\n]*)`", text), *re.findall(r"^\$ stabkit (.*)$", text, re.M)]
    }
)
BADGES = README.splitlines()[2]
"""The one line with addresses of the repository."""
ADDRESSES = re.findall(r"\((https://[^)]*OWNER[^)]*)\)", BADGES)
PROSE = re.sub(r"```.*?```|^\|.*?$|!\[.*?\]\(.*?\)|\]\([^)]*\)", "", README.replace(BADGES, ""), flags=re.S | re.M)
OUTSIDE = r"https://(arxiv\.org/abs|img\.shields\.io/pypi|pypi\.org|colab\.research\.google\.com/assets)/"


def test_the_readme_is_one_screen_and_a_bit() -> None:
    assert len(README.splitlines()) <= 100 and len(PROSE.split()) <= 700
    assert "Post-LN, Pre-LN, DeepNorm and twenty-nine other methods" in " ".join(README.split()) and len(KEYS) == 32


def test_no_sentence_of_the_readme_has_more_than_two_numbers() -> None:
    for sentence in re.split(r"(?<=[.!?])\s+", re.sub(r"`[^`]*`", "", PROSE)):
        numbers = re.findall(r"(?<![\w-])\d[\d.,e-]*", sentence)
        assert len(numbers) <= 2, sentence


def test_what_a_verdict_is_worth_is_what_its_page_counts() -> None:
    page = (ROOT / "docs" / "evidence" / "verdict.md").read_text(encoding="utf-8")
    trains, fails = (re.search(rf"`{one}`,\s+(\d+) of (\d+)\s+(?:trained|did)", README) for one in ("trains", "fails"))
    assert trains and fails
    row = f"{trains[1]} of {trains[2]} | {int(fails[2]) - int(fails[1])} of {fails[2]}"  # as of a user's own loss
    assert f"| forecast and loss, level known | {row} |" in page


def test_what_the_readme_leads_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        assert link in ADDRESSES or re.match(OUTSIDE, link) or (ROOT / link).exists(), link


def test_the_address_of_the_repository_stands_in_one_line_and_leads_to_what_is_there() -> None:
    place = r"https://(?:github\.com|colab\.research\.google\.com/github)/OWNER/stabkit/"
    paths = [re.sub(place, "", address) for address in ADDRESSES]
    assert README.count("OWNER") == len(paths) + 1, "and in the line that says what it is"
    for path in paths:
        file = path.removesuffix("/badge.svg").replace("actions/", ".github/").removeprefix("blob/main/")
        assert (ROOT / file).is_file(), path


def executed(block, **names):
    exec(block, names)  # our own README, not input
    return names


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_is_one(command: str, tmp_path: Path) -> None:
    words = shlex.split(
        command.replace("RUN…", "").replace(" RUN", "").replace("FILE.toml", "").replace("FILE", "x.html")
    )
    if "--data" in words and "DIR" not in words:
        need("multi30k", MULTI30K.is_dir(), f"{MULTI30K} (set STABKIT_MULTI30K)")
        words[words.index("--data") + 1] = str(MULTI30K)
    if (
        words[0] in ("sweep", "ablate", "landscape", "paper")
        and words[1:] != ["ls"]
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


def test_the_readmes_loop_is_watched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = probe_models.Stack(2)
    optimizer = torch.optim.AdamW(model.parameters())
    batches = [tokens(i) for i in range(3)]
    names = executed(WATCH, model=model, optimizer=optimizer, batches=batches, loss_of=loss_of)
    assert names["watch"].ended == "closed" and names["watch"].steps == 3
    done = stabkit("report", "--store", tmp_path / "out")
    assert done.returncode == 0 and names["watch"].id in done.stdout


@pytest.mark.libraries
def test_the_readmes_factory_can_be_probed(tmp_path):
    need("libraries", find_spec("transformers") is not None, "transformers")
    (tmp_path / "readme_model.py").write_text(GPT)
    done = stabkit(
        *"probe readme_model:gpt --depths 1,2,4 --seeds 0 --steps 1 --quiet --workers 1".split(),
        *("--out", tmp_path / "out"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
