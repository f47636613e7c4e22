"""Methods and probes from a file of the user's own: `./my.py:peri_ln`, a function that returns a Method.

Only a file that this command line names is executed. What runs is its text as it was read once: its sha256 is in the
run's spec, its bytes travel with every job and rest beside the run, where they are shown and never run. So the file may
import nothing whose bytes are not in the id: the standard library (Python's own, not a file that is called like a part
of it), torch, numpy and stabkit. This guards against slips, not against malice: what a file reads while it runs is its
own affair, but for `open`, which is refused.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from stabkit import outside
from stabkit.errors import UsageError, nearest
from stabkit.methods.base import Method
from stabkit.outside import NotRead
from stabkit.spec import Own

Texts = Mapping[str, str]
"""{sha256: the text of a file}."""
ALLOWED = ("torch", "numpy", "stabkit")
"""What a file may import beside the standard library."""
BY_NAME = ("importlib", "imp", "runpy", "pkgutil", "zipimport")
"""Of the standard library what imports by a name that is made while running."""
LARGEST = 1_000_000
"""Bytes of a file that is read as one."""
NAMED = re.compile(r"(?P<file>.+?\.py):(?P<name>[A-Za-z_]\w*)(?P<options>(:[^:]*)*)")

MODULE = re.compile(r"(?P<name>[A-Za-z_]\w*):(?P<rest>[A-Za-z_]\w*(:[^:]*)*)")


def parts(item: str) -> tuple[Path, str, list[str]] | None:
    """`./my.py:peri_ln:norm=rms`, or `my:peri_ln` where my.py is here → (file, function, options); None for what names
    no file."""
    match = NAMED.fullmatch(item.strip())
    if match is None and (module := MODULE.fullmatch(item.strip())) and Path(f"{module['name']}.py").is_file():
        match = NAMED.fullmatch(f"{module['name']}.py:{module['rest']}")
    return (Path(match["file"]), match["name"], match["options"].split(":")[1:]) if match else None


def digest(text: str) -> str:
    """sha256 of a file's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def read(file: Path) -> str:
    """The text of a file that may be executed. Raises UsageError for one that cannot be read, is no Python, or imports
    something whose bytes would not be in the run's id."""
    try:
        data = outside.read(file, LARGEST)
        text = data.decode()
        tree = ast.parse(data)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text in UTF-8") from error
    except NotRead as error:
        raise UsageError(f"{file}: {error}: no file of a method or a probe") from error
    except (SyntaxError, ValueError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{file}{where} is not Python: {getattr(error, 'msg', error)}") from error
    if text.encode() != data:
        raise UsageError(f"{file} is not text in UTF-8")
    for node in ast.walk(tree):
        if name := _foreign(node):
            raise UsageError(
                f"{file}, line {getattr(node, 'lineno', 0)}: {name} is not allowed: run ids do not cover its content; "
                f"a file may import the standard library, {', '.join(ALLOWED[:-1])} and {ALLOWED[-1]}"
            )
    return text


def _foreign(node: ast.AST) -> str:
    """What a node imports that a file may not; "" for nothing."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = ["." * node.level + (node.module or "")]
    elif isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval", "compile", "open"):
        return node.id
    for name in names:
        root = name.partition(".")[0]
        if root in BY_NAME or not (root in ALLOWED or _of_python(root)):
            return f"import {name}"
    return ""


@cache
def _of_python(root: str) -> bool:
    """Whether a name is of the standard library, and what would be imported by it is that."""
    if root not in sys.stdlib_module_names:
        return False
    spec = importlib.util.find_spec(root)
    origin = (spec and spec.origin) or "built-in"
    return origin in ("built-in", "frozen") or Path(origin).is_relative_to(sysconfig.get_paths()["stdlib"])


@lru_cache(maxsize=32)
def executed(text: str, file: str) -> Mapping[str, Any]:
    """The names that a file's text defines, once for each text. Raises UsageError with its line where it fails."""
    name = f"stabkit_own_{digest(text)[:16]}"
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(compile(text.encode(), file, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        raise UsageError(f"{located(error, file)}") from error
    return module.__dict__


def located(error: BaseException, file: str) -> str:
    """`my.py, line 3: NameError: name 'x' is not defined`, the deepest line of that file."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == file else line
        trace = trace.tb_next
    parts = str(error).strip().splitlines()
    return f"{file}{f', line {line}' if line else ''}: {type(error).__name__}{f': {parts[0]}' if parts else ''}"


def named(text: str, file: str, name: str, *, kind: str, of: Callable[[str, Any], bool]) -> Any:
    """What a file calls `name`; raises UsageError that names what it has of the like (`of`)."""
    names = executed(text, file)
    if name not in names:
        has = [key for key, value in names.items() if not key.startswith("_") and of(key, value)]
        listed = f"it has {', '.join(has)}" if has else f"it has no {kind}"
        raise UsageError(f"{file} has no {kind} {name!r}{nearest(name, has) or ';'} {listed}")
    return names[name]


def row(text: str, file: str, name: str) -> Callable[..., Method]:
    """The function of a file that makes a method, as a row of METHODS is."""
    module = f"stabkit_own_{digest(text)[:16]}"
    found: Any = named(
        text,
        file,
        name,
        kind="function",
        of=lambda key, value: callable(value) and getattr(value, "__module__", "") == module,
    )
    if not callable(found) or isinstance(found, type):
        what = "a class" if isinstance(found, type) else type(found).__name__
        raise UsageError(f"{file}:{name} is {what}, not a function that returns a Method")
    return found  # type: ignore[no-any-return]  # what it returns is checked by `method_from`


def method_from(make: Callable[..., Method], place: str, settings: Mapping[str, Any]) -> Method:
    """The method that a function makes; raises UsageError for anything else."""
    try:
        method = make(**settings)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(located(error, Path(place.rpartition(":")[0]).name)) from error
    if not isinstance(method, Method):
        raise UsageError(
            f"{place} returns {type(method).__name__}, not a Method, as this would: from stabkit.methods import "
            f"METHODS; "
            'METHODS["pre-ln"]() with another key and label (dataclasses.replace)'
        )
    return method


def key_of(method: Method, place: str, taken: Mapping[str, str]) -> str:
    """`own-peri-ln`, which begins the runs' ids; raises UsageError for a key or a label that is a built-in's.
    `taken`: {key: label} of those."""
    plain = re.sub(r"[^a-z0-9]+", "-", method.key.lower()).strip("-")[:40]
    if not plain:
        raise UsageError(f"{place}: the key {method.key!r} has no letter or digit")
    labels = {label.casefold() for label in taken.values()}
    for name, said_to_be in (("key", method.key in taken), ("label", method.label.strip().casefold() in labels)):
        if said_to_be:
            raise UsageError(f"{place}: the {name} {getattr(method, name)!r} is a built-in method's; give it another")
    return f"own-{plain}"


def text_of(source: Own, texts: Texts) -> str:
    """The text that a spec names, of those that came with the command; raises UsageError without it."""
    text = texts.get(source.digest)
    if text is None:
        raise UsageError(
            f"{source.file}:{source.name} is a user's file that was not given: a stored copy is shown and never run"
        )
    if digest(text) != source.digest:
        raise UsageError(f"{source.file}: this is not the text whose sha256 is {source.digest[:12]}")
    return text
