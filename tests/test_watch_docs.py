"""docs/watch.md: its script trains, warns where the page says so, and its store has a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stabkit.report.own import watch
from stabkit.results.own import alarm
from tests.commands import stabkit
from tests.own.page import MODEL

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
(SCRIPT,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.slow
def test_the_pages_script_is_warned_of_at_its_rate_and_not_at_a_good_one(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(SCRIPT)
    good, bad = (
        subprocess.run(
            [sys.executable, *command.split()[1:]], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for command in re.findall(r"^\$ (python .*train.py .*)$", PAGE, re.M)
    )  # fmt: skip
    assert "StabilityWarning" not in good.stderr and "stabkit: no warning; stabkit report GPT-" in good.stderr
    (said,) = re.findall(r"^StabilityWarning.*$", PAGE, re.M)
    line = SCRIPT.splitlines().index("    optimizer.step()") + 1
    assert f"train.py:{line}: {said}" in bad.stderr, "at the script's own line"
    done = stabkit("report", "--store", "out", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.count("own-GPT-") == 2


def test_the_pages_links_are_those_that_are_warned_of():
    links = re.findall(r"^\| `(\w+)` \| (?:one|the|a) ", PAGE, re.M)
    assert sorted(links) == sorted(re.findall(r"^    (\w+)  ", alarm.__doc__, re.M))


def test_every_link_that_is_warned_of_has_its_words_on_the_page():
    links = re.findall(r"^    (\w+)  ", alarm.__doc__, re.M)
    assert set(links) <= set(watch.WHAT)
