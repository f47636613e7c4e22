"""The house: small rooms, and what importing each of them loads. The order of the rooms is `python3 dev.py lint`'s."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import stabkit
from stabkit.version import __version__

PACKAGE = Path(__file__).parents[1] / "stabkit"

LOADED = """
import contextlib, importlib, io, json, pkgutil, sys
HEAVY = {"torch", "pandas", "matplotlib", "matplotlib.pyplot", "sentencepiece", "numpy"}
told = {}
def load(stage, *rooms):
    for room in rooms:
        package = importlib.import_module(room)
        for module in pkgutil.walk_packages(getattr(package, "__path__", []), room + "."):
            importlib.import_module(module.name)
    told[stage] = sorted(HEAVY & set(sys.modules))
load("the door", "stabkit.__main__")
from stabkit.cli.entry import main
sys.argv = ["stabkit", "--help"]
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    main()
assert "sweep" in shown.getvalue()
load("help")
load("tasks", "stabkit.tasks")
load("storage", "stabkit.storage", "stabkit.wording.chain", "stabkit.results.own")
load("plans", "stabkit.running.execute", "stabkit.options.landscape", "stabkit.surface.directions")
load("claims", "stabkit.results", "stabkit.claims")
load("figures and report", "stabkit.figures", "stabkit.report")
import stabkit
stabkit.loss_surface
load("a function")
print(json.dumps(told))
"""


@pytest.mark.slow
def test_what_reads_results_never_imports_torch_and_help_imports_nothing_heavy() -> None:
    """One process, room after room: what each loads is there from then on."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = {stage: set(heavy) for stage, heavy in json.loads(done.stdout).items()}
    assert loaded["the door"] == loaded["help"] == set()
    assert loaded["tasks"] == loaded["storage"] == {"numpy"}
    assert loaded["plans"] == {"numpy"}
    assert not loaded["claims"] & {"torch", "matplotlib.pyplot"}
    assert not loaded["figures and report"] & {"torch", "matplotlib.pyplot", "sentencepiece"}
    assert "torch" in loaded["a function"]


def test_lint_fails_above_a_rooms_budget_and_for_a_long_file_without_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("dev", PACKAGE.parent / "dev.py")
    assert spec is not None and spec.loader is not None
    dev = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dev)
    monkeypatch.setattr(dev, "HERE", tmp_path)
    (tmp_path / "stabkit" / "own").mkdir(parents=True)
    (tmp_path / "stabkit" / "own" / "trace.py").write_text("x = 1\n" * 7)

    def table(room: int, longest: int, longer: str = "") -> int:
        limits = f"[tool.stabkit.budget]\nfile = {longest}\n[tool.stabkit.budget.longer]\n{longer}\n"
        rooms = f'[tool.stabkit.budget.rooms]\n"stabkit/own" = {room}\n'
        (tmp_path / "pyproject.toml").write_text(limits + rooms)
        return int(dev.budget())

    assert table(7, 7) == 0 and table(6, 7) == 1 and "over its budget" in capsys.readouterr().out
    assert table(7, 6) == 1 and table(7, 6, '"stabkit/own/trace.py" = "one table"') == 0


@pytest.mark.slow
def test_only_the_command_lines_room_prints() -> None:
    """Nothing else calls `print` or knows the standard streams; `__main__` answers a Ctrl-C before there is a room."""
    said = []
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] in ("cli", "__main__.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            streams = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr")
            if streams and isinstance(node.value, ast.Name) and node.value.id == "sys":
                said.append(f"{file}:{node.lineno}")
            if isinstance(node, ast.Name) and node.id == "print":
                said.append(f"{file}:{node.lineno}")
    assert said == []


def test_a_command_is_short() -> None:
    """Parse, call one function, print: no function of the command line has 80 lines."""
    long = [
        f"{file}:{node.name}"
        for file in (PACKAGE / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 80
    ]
    assert long == []


def test_all_public_names_are_there() -> None:
    assert all(getattr(stabkit, name) for name in stabkit.__all__) and stabkit.__version__ == __version__


def test_every_benchmark_finds_what_it_imports() -> None:
    """They are run by hand, seldom: a name that moved would be noticed too late."""
    for script in sorted((PACKAGE.parent / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("stabkit", "studies")):
                module = importlib.import_module(str(node.module))
                for name in (alias.name for alias in node.names):
                    found = hasattr(module, name) or importlib.util.find_spec(f"{node.module}.{name}")
                    assert found, f"{script.name}: {node.module}.{name}"


def test_a_small_module_that_one_neighbour_alone_imports_is_part_of_that_one() -> None:
    """Below 60 lines, one importer, in its own folder; the rows of a table (`executors/inline.py`) stay files."""
    modules = {
        ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for file in PACKAGE.rglob("*.py")
    }
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for folder in (PACKAGE, PACKAGE.parent / "studies"):
        for file in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                        if name in importers:
                            importers[name].add(str(file))
    small = [
        name
        for name, file in modules.items()
        if file.name != "__init__.py" and len(importers[name]) == 1 and len(file.read_text().splitlines()) < 60
        for importer in map(Path, importers[name])
        if importer.parent == file.parent and importer.name != "__init__.py"
    ]
    assert small == []
