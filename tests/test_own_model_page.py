"""docs/own_model.md: its model is probed, its change is caught, the steps of its workflow run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.commands import stabkit
from tests.own.page import CHANGE, MODEL, PAGE

STEPS = re.findall(r"- run: (.*)", PAGE)
(CONSOLE,) = re.findall(r"^\$ stabkit (.*)$", PAGE, re.M)


def changed(model: str) -> str:
    """The page's model after the page's change: the block's forward replaced, the scaling gone."""
    before = model[model.index("    def forward(self, x):") : model.index("\n\nclass GPT")]
    scaling = model[model.index("        for block in self.blocks:  #") : model.index("    def forward(self, tokens)")]
    return model.replace(before, CHANGE).replace(scaling, "\n")


def run(command: str, folder: Path):
    words = shlex.split(command)
    assert words[0] == "stabkit"
    return stabkit(*words[1:], cwd=folder)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_workflows_steps_pass_on_the_pages_model_and_fail_on_the_pages_change(tmp_path):
    steps = [step for step in STEPS if not step.startswith("pip install")]  # what tests run in is installed
    assert len(STEPS) - len(steps) == 2 and steps
    for name, text, code in (("as it is", MODEL, 0), ("changed", changed(MODEL), 7)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.py").write_text(text)
        for step in steps:
            done = run(step, folder)
            assert done.returncode == code, done.stdout + done.stderr
    said = " ".join(re.findall(r"\*(The lowest .*?)\* next to nothing\s\*(of .*?)\*", PAGE)[0])
    assert re.search(said.replace("receives ", r"receives \S+e-\d+ "), " ".join(done.stdout.split()))


def test_the_pages_command_is_that_of_its_workflow():
    (probe,) = [step for step in STEPS if "probe" in step]
    assert probe.startswith(f"stabkit {CONSOLE}")
