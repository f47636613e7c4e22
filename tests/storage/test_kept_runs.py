"""Runs stored once are read by what is written later: `kept/` holds a store of ALGO_VERSION 5's first commit, made by

    stabkit sweep COMMAND --out tests/storage/kept

and a copy of today's package grows a probe, a spec field and an outcome word, and gives another probe a new version.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import commands

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "kept"
COMMAND = (
    *("--depths", "1", "--models", "deepnorm", "--steps", "3", "--warmup", "4000", "--executor", "inline"),
    *("--hidden", "4", "--ffn", "4", "--heads", "1", "--vocab", "128", "--max-tokens", "64"),
)
LATER = ["token_cosine", "weight_grad", "stream", "cosine", "attention_logit"]
"""Probes that came after the kept run."""
LN_INPUT = 'lambda at: (*at.sublayers, *(f"{name}@omega" for name in at.sublayers))'
EDITS = {
    "spec.py": [
        ("    seed: int = 0\n", '    seed: int = 0\n    block: str = "classic"\n'),
        ("    heads: int = 2\n", '    heads: int = 2\n    attention: str = "softmax"\n'),
    ],
    "results/outcome.py": [
        ('"early", "failed"]', '"early", "tomorrow", "failed"]'),
        (
            '    elif steps < SHORTEST_JUDGED:\n        word = "early"',
            '    elif steps < 40:\n        word = "tomorrow"',
        ),
    ],
    "results/sites.py": [
        (f'    TableSites("ln_input", {LN_INPUT}),\n', f'    TableSites("ln_input", {LN_INPUT}, version=2),\n'),
        ('    TableSites("stream"', '    TableSites("drift", lambda at: ("mean",)),\n    TableSites("stream"'),
    ],
}
DRIFT = """
import torch
from stabkit.probes.base import Pass, Probe
class Drift(Probe):
    name = "drift"
    watches = "probe"
    def __init__(self, model, flat):
        self.flat, self.sites = flat, ("mean",)
    def read(self, seen):
        return self.flat.theta.mean().double()[None]
"""


@pytest.fixture(scope="module")
def tomorrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose stabkit is today's with the edits."""
    home = tmp_path_factory.mktemp("tomorrow")
    shutil.copytree(ROOT / "stabkit", home / "stabkit", ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in EDITS.items():
        text = (home / "stabkit" / name).read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (home / "stabkit" / name).write_text(text, encoding="utf-8")
    (home / "stabkit" / "probes" / "drift.py").write_text(DRIFT, encoding="utf-8")
    return home


def stabkit(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of that directory's stabkit."""
    return subprocess.run(
        [sys.executable, "-m", "stabkit", *words],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_run_stored_by_this_version_gets_tomorrows_words_and_page_and_is_not_trained_again(
    tomorrow: Path, tmp_path: Path
) -> None:
    shutil.copytree(KEPT / "runs", tmp_path / "runs")
    (stored,) = [entry.name for entry in KEPT.joinpath("runs").iterdir() if entry.name[0] != "."]
    listed = json.loads(stabkit(tomorrow, "runs", "ls", "--json", "--out", str(tmp_path)).stdout)["runs"]
    assert [(one["run_id"], one["outcome"]) for one in listed] == [(stored, "tomorrow")], "a new word on reading"
    assert listed[0]["spec"]["block"] == "classic" and listed[0]["spec"]["model"]["attention"] == "softmax"

    swept = stabkit(tomorrow, "sweep", *COMMAND, "--seeds", "0,1", "--json", "--out", str(tmp_path))
    assert "reused 1, new 1" in swept.stderr, "a new field at its default makes no other run"
    told = "no token_cosine, ln_input, weight_grad, drift, stream, cosine or attention_logit of the current version"
    assert told in swept.stderr, "what an older run lacks is said"
    run, other = json.loads(swept.stdout)["runs"]
    assert (
        set(run["lacks"]) == {"ln_input", "drift", *LATER}
        and run["update"][-1] > 0
        and run["chain"]["ln_input_growth"] == "nan"
    )
    assert run["chain"]["gradient_ratio_lowest"] > 0
    (page,) = (tmp_path / "reports").glob("*.html")
    assert told in html.unescape(page.read_text(encoding="utf-8"))
    assert other["lacks"] == [], "a run of tomorrow has them"


@pytest.mark.usefixtures("undrawn")
def test_todays_package_reads_it_and_reuses_it(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "runs", tmp_path / "runs")
    swept = commands.stabkit("sweep", *COMMAND, "--json", "--out", tmp_path)
    assert "reused 1, new 0" in swept.stderr
    lacks = json.loads(swept.stdout)["runs"][0]["lacks"]
    assert lacks == LATER, "probes that came later: said, and nothing is trained again for it"
