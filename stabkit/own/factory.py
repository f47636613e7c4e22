"""A user's own model by name: `package.module:function`. It is the user's code: it runs."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import os
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from stabkit.errors import UsageError, nearest
from stabkit.words import plain

LOOKED = "looked on Python's path and in this folder"


def function(option: str, text: str) -> Callable[..., Any]:
    """The function of that name; raises UsageError, in one line, for whatever goes wrong on the way.

    Modules are found where Python finds them, and in the current directory.
    """
    module, name = module_of(text), text.partition(":")[2]
    refuse_missing(option, text)
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise UsageError(f"{option}: {module} imports {error.name!r}, which is not installed") from error
        missing = f"no module {error.name!r}" if error.name else one_line(error)
        raise UsageError(f"{option}: {missing}; {LOOKED}") from error
    except SystemExit as error:
        guard = 'put script code under if __name__ == "__main__"'
        raise UsageError(f"{option}: importing {module} ended with {one_line(error)}; {guard}") from error
    except Exception as error:  # the user's own
        raise UsageError(f"{option}: importing {module} raised {one_line(error)}") from error
    attribute = getattr(imported, name, None)
    if attribute is None:
        near = difflib.get_close_matches(name, dir(imported), 1)
        raise UsageError(f"{option}: {module} has no {name!r}" + "".join(f"; is it {one!r}?" for one in near))
    if not callable(attribute):
        raise UsageError(f"{option}: {text} is not a function")
    return cast("Callable[..., Any]", attribute)


def refuse_missing(option: str, text: str) -> None:
    """Raises UsageError for a name that is none, or whose module or package is in no place: nothing is imported."""
    module, (_, colon, name) = module_of(text), text.partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")) or not name.isidentifier():
        meant = f"; did you mean {known}?" if (known := _functions(module)) and not name else ""
        raise UsageError(f"{option} is package.module:function or file.py:function in this folder, got {text!r}{meant}")
    first = module.partition(".")[0]
    try:
        there = first in sys.modules or find_spec(first) or PathFinder.find_spec(first, [os.getcwd()])
    except (ImportError, ValueError):  # a finder of another's: importing will tell
        return
    if not there:
        file = text.partition(":")[0]
        near = nearest(first, [path.stem for path in Path().glob("*.py")])
        raise UsageError(f"{option}: no {'file' if file.endswith('.py') else 'module'} {file!r}; {LOOKED}{near}")


def _functions(module: str) -> str:
    """`my.py:gpt or my.py:bert` of a file in this folder; "" without one, or without a function."""
    path = Path(*module.split(".")).with_suffix(".py")
    with suppress(OSError, SyntaxError, ValueError):
        tree = ast.parse(path.read_bytes())
        return " or ".join([f"{path}:{n.name}" for n in tree.body if isinstance(n, ast.FunctionDef)][:3])
    return ""


def imports(function: Callable[..., Any]) -> None:
    """Import what a function's body imports whenever it is called (not under an `if` or a `try`): what is imported
    once is shared by all that is forked. Whatever goes wrong, the call itself will tell."""
    with suppress(Exception, SystemExit):
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
        body = next(node.body for node in tree.body if isinstance(node, ast.FunctionDef))
        wanted: list[ast.stmt] = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(wanted, []), "<imports>", "exec"), dict(function.__globals__))


def module_of(text: str) -> str:
    """`package.module:function` or `package/module.py:function` → `package.module`."""
    module = text.partition(":")[0]
    return ".".join(Path(module).with_suffix("").parts) if module.endswith(".py") else module


def call(option: str, text: str, depth: int | None = None) -> Any:
    """What the function returns, called with the depth where it needs one, else with nothing; raises UsageError."""
    made = function(option, text)
    needs = needed(made)
    if needs and depth is None:
        raise UsageError(f"{option}: {text} takes {needs[0]!r}, but no depth was given")
    try:
        return made(depth) if needs else made()
    except (Exception, SystemExit) as error:
        raise UsageError(f"{option}: {text} raised {one_line(error)}") from error


def needed(function: Callable[..., Any]) -> list[str]:
    """The parameters that it cannot be called without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin: calling it will tell
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


LONGEST = 10_000
"""Characters of a message that are looked at."""


def one_line(error: BaseException) -> str:
    """An exception in one line, at most three hundred characters of it."""
    try:
        words = plain(" ".join(str(error)[:LONGEST].split()))
    except Exception:  # its own __str__ raises
        words = "(it has no message)"
    short = words if len(words) <= 300 else words[:300].rsplit(" ", 1)[0] + " …"
    return f"{plain(type(error).__name__)}: {short}"
