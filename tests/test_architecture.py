"""The house: small rooms, and what importing each of them loads. The order of the rooms is `python3 dev.py lint`'s."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "stabkit"
ROOMS = [folder for folder in (PACKAGE, *PACKAGE.rglob("*/")) if folder.name != "__pycache__"]

LOADED = """
import importlib, json, pkgutil, sys
HEAVY = {"torch", "pandas", "matplotlib", "matplotlib.pyplot", "sentencepiece", "sacrebleu", "numpy"}
told = {}
def load(stage, *rooms):
    for room in rooms:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(getattr(package, "__path__", []), room + "."):
            importlib.import_module(module.name)
    told[stage] = sorted(HEAVY & set(sys.modules))
load("the door", "stabkit.__main__")
load("help", "stabkit.cli.entry")
load("tasks", "stabkit.tasks")
load("storage and results", "stabkit.storage", "stabkit.results", "stabkit.quality.bleu")
load("claims", "stabkit.claims")
load("figures and report", "stabkit.figures", "stabkit.report")
import stabkit
stabkit.loss_surface
load("the library's function")
print(json.dumps(told))
"""


def test_what_reads_results_never_imports_torch_and_help_imports_nothing_heavy() -> None:
    """One process, room after room: what each loads is there from then on."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = {stage: set(heavy) for stage, heavy in json.loads(done.stdout).items()}
    assert loaded["the door"] == loaded["help"] == set()
    assert loaded["tasks"] == loaded["storage and results"] == {"numpy"}
    assert not loaded["claims"] & {"torch", "matplotlib.pyplot", "sacrebleu"}
    assert not loaded["figures and report"] & {"torch", "matplotlib.pyplot", "sacrebleu", "sentencepiece"}
    assert "torch" in loaded["the library's function"]


def test_rooms_are_small_and_files_are_short() -> None:
    def own(folder: Path) -> list[Path]:
        return [path for path in folder.iterdir() if path.name != "__pycache__"]

    assert len(own(PACKAGE)) <= 25 and sum(path.is_file() for path in own(PACKAGE)) <= 8
    crowded = {str(room): len(own(room)) for room in ROOMS if room != PACKAGE and len(own(room)) > 15}
    assert crowded == {}
    long = {str(file): n for file in PACKAGE.rglob("*.py") if (n := len(file.read_text().splitlines())) > 300}
    assert long == {}


def test_only_the_command_lines_room_prints() -> None:
    for file in PACKAGE.rglob("*.py"):
        if "cli" not in file.relative_to(PACKAGE).parts:
            assert "print(" not in file.read_text().replace("_print(", ""), file
