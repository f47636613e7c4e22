"""Names: one meaning a word. A public class stands once in the package, so that its name alone tells which is meant."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
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


WORN = {"told", "said", "held", "made", "seen", "given", "wanted", "kept"}
"""Words that name nothing in particular: what a thing is called says what it is."""
GONE = {"halt", "obituary", "looked_after", "Ruler", "Freed", "Strangers", "Made", "LIKE", "HEARD", "TOLD", "MOST"}
"""Names that an earlier version had for what has a name in the field."""


def test_functions_classes_and_constants_are_named_in_the_fields_words() -> None:
    """`held_out` is one of them."""
    found = []
    for top in ("stabkit", "studies"):
        for path in sorted((PACKAGE.parent / top).rglob("*.py")):
            for name in named(ast.parse(path.read_text(encoding="utf-8")).body):
                words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip("_").split("_")
                held_out = {"held", "out"} <= set(words)
                if name in GONE or (WORN & set(words) and not held_out):
                    found.append(f"{path.relative_to(PACKAGE.parent)}: {name}")
    assert found == []


def named(body: list[ast.stmt]) -> Iterator[str]:
    """Functions and classes at any depth, and the constants of modules and classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
            yield from (own.name for own in ast.walk(node) if isinstance(own, ast.FunctionDef) and own is not node)
        elif isinstance(node, ast.ClassDef):
            yield node.name
            yield from named(node.body)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                own.id
                for target in targets
                for own in ast.walk(target)
                if isinstance(own, ast.Name) and own.id.isupper()
            )
