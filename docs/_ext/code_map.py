"""docs/architecture.md, made from the package: the picture of the rooms from the order that import-linter holds, a line
a room from its docstring, and the questions of `code_map.toml`, whose every path is checked.

`python3 docs/_ext/code_map.py` writes it; a test compares.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "stabkit"
PAGE = ROOT / "docs" / "architecture.md"

LEAD = """\
# Architecture

Made from the package by `python3 docs/_ext/code_map.py`; a test compares, so that it is never stale.

One direction: a command makes specs, the missing ones are trained, the store keeps everything, figures and claims
read it, a page shows them. Only JSON crosses a process border. Each room imports only from rooms below it
(`python3 dev.py lint` holds the order); read down each column and on to the right, this is also the
way from the screen to the numbers.
"""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "what people see": ("hf | lightning", "cli", "api", "options", "paper", "report"),
    "what it says": ("claims", "figures"),
    "what is run": ("running", "surface", "own"),
    "what is measured and kept": ("training", "probes", "storage", "wording", "results"),
    "what is trained": (
        "model",
        "kernels",
        "methods",
        "tasks",
        "spec",
        "streams | outside | version | words",
        "errors",
    ),
}
"""The columns of the picture; a room that is not there (any more, or yet) is left out."""
WIDEST = 90
"""Characters of a box."""
AFTER = """\
`storage`, `results`, `wording`, `figures`, `claims`, `report` never import torch; `stabkit --help` imports no pandas.
Studies that only maintainers rerun stand beside the package, in `studies/`, and are not in the wheel.
"""


def page() -> str:
    """The whole page; raises where a question names a path that is not there, or a name that no file defines."""
    return "\n".join(
        [LEAD, "```mermaid", *picture(), "```", "", AFTER, *rooms(), "## Where would I change …?", "", *table(), ""]
    )


def picture() -> Iterator[str]:
    """The rooms as boxes, from the top of the order to its bottom."""
    rooms = order()
    missing = set(rooms) - {room for group in GROUPS.values() for room in group}
    if missing:
        raise LookupError(f"rooms without a column in the picture: {', '.join(sorted(missing))}")
    yield "flowchart LR"
    for i, (title, members) in enumerate(GROUPS.items()):
        yield f'  subgraph g{i}["{title}"]'
        yield "    direction TB"
        shown = [room for room in rooms if room in members]
        for room in shown:
            names = room.split(" | ")
            bold = " · ".join(f"<b>{name}</b>" for name in names)
            yield f'    {names[0]}["{bold}<br>{"; ".join(summary(name) for name in names[:1])}"]'
        if len(shown) > 1:
            yield f"    {' --> '.join(room.split(' | ')[0] for room in shown)}"
        yield "  end"
    yield f"  {' --> '.join(f'g{i}' for i in range(len(GROUPS)))}"


def order() -> list[str]:
    """The rooms, each importing only from those behind it, as pyproject.toml has them."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (
        c["layers"] for c in linter["contracts"] if c["type"] == "layers" and c.get("containers") == ["stabkit"]
    )
    return list(layers)


def summary(room: str) -> str:
    """The first words of a room's docstring, for a box."""
    path = PACKAGE / room / "__init__.py"
    text = sentence(path if path.exists() else PACKAGE / f"{room}.py")
    text = re.split(r" \(|;|\. |\.$|, from ", re.sub(r"[`\"\[\]]", "", text))[0].strip()
    return text if len(text) <= WIDEST else text.partition(":")[0]


def table() -> Iterator[str]:
    """Questions and the file to open first."""
    yield "| … | open first |"
    yield "|---|---|"
    questions = tomllib.loads((Path(__file__).with_suffix(".toml")).read_text(encoding="utf-8"))
    for question, answer in questions.items():
        for path in re.findall(r"`((?:stabkit|studies|benchmarks|docs)/[^`]*)`", answer):
            if not (ROOT / path).exists():
                raise FileNotFoundError(f"{question}: {path} is not there")
        for name, path in re.findall(r"`(\w+)` in `([^`]+\.py)`", answer):
            if not re.search(rf"(?m)^(def |class )?{name}\b", (ROOT / path).read_text(encoding="utf-8")):
                raise LookupError(f"{question}: {path} does not define {name}")
        yield f"| {question} | {answer} |"


def rooms() -> Iterator[str]:
    """A line a room; what a file is, its docstring says."""
    for room in order():
        for name in room.split(" | "):
            folder = PACKAGE / name
            path = folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{name}.py"
            yield f"- **{name}**: {sentence(path)}"
    yield ""


def sentence(path: Path) -> str:
    """The first sentence of a file's docstring, on one line."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z‖`])", text)[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
