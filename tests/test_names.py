"""Names: one meaning a word. A public class stands once in the package, so that its name alone tells which is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "stabkit"
ADAPTERS = {"hf.py", "lightning.py"}
"""Each has the watch of its trainer, under the name that its users know: `stabkit.hf.Watch`."""


def test_a_public_class_name_exists_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and path.name not in ADAPTERS:
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
