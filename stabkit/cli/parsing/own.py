"""`--models ./my.py:peri_ln` and `--probes ./mine.py:TokenSpread`: the files that a command line names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import own, valid
from stabkit.methods.base import Method
from stabkit.spec import Chosen, Own


@dataclass(slots=True)
class Files:
    """The files named so far, read once: what runs is what was read, whatever happens to the file."""

    texts: dict[str, str] = field(default_factory=dict)
    """{sha256: text}."""
    read: dict[str, str] = field(default_factory=dict)
    """{path: sha256}."""

    def text(self, file: Path) -> str:
        """The text of a file; raises UsageError for one that may not be executed."""
        if str(file) not in self.read:
            text = own.read(file)
            self.read[str(file)] = own.digest(text)
            self.texts[own.digest(text)] = text
        return self.texts[self.read[str(file)]]


def changed(read: Mapping[str, str]) -> list[str]:
    """A line for each file that is no longer what was read."""
    told = []
    for path, digest in read.items():
        try:
            now = own.digest(Path(path).read_bytes().decode())
        except (OSError, UnicodeDecodeError):
            now = ""
        if now != digest:
            told.append(f"{path} changed since it was read: these runs are of what it said when the command began")
    return told


def method(item: str, files: Files) -> tuple[Chosen, Method] | None:
    """The method of a file; None where the text names none. Raises UsageError in one line for whatever is wrong."""
    named = own.parts(item)
    if named is None:
        return None
    path, name, settings = named
    place = f"{path}:{name}"
    text = files.text(path)
    make = own.row(text, path.name, name)
    try:
        options = methods.settled(f"method {place}", methods.options_of(make), settings)
    except (NameError, TypeError, ValueError, KeyError) as error:
        raise UsageError(f"{place}: options are keyword arguments of type Literal with a default: {error}") from error
    made = own.made(make, place, options)
    taken = dict(zip(methods.KEYS, (each.label for each in methods.DEFAULTS), strict=True))
    key = own.key_of(made, place, taken)
    source = Own(file=path.name, name=name, digest=own.digest(text), label=made.label)
    return Chosen(key=key, options=options, own=source), made


def row(one: Own, files: Files) -> Callable[..., Method]:
    """The function that makes a method of these files."""
    return own.row(own.text_of(one, files.texts), one.file, one.name)


def sound(made: Method, place: str, n: int, m: int) -> None:
    """Raises UsageError, in one line, where a slot says what no slot may at this depth."""
    try:
        found = next(valid.faults(made, n, m), "")
    except Exception as error:  # whatever a user's slot raises
        raise UsageError(own.said(error, place.rpartition(":")[0])) from error
    if found:
        raise UsageError(f"{place}: {found}")


def probes(text: str, files: Files) -> tuple[Own, ...]:
    """The probes of `--probes`, each tried on a tiny model; raises UsageError in one line for whatever is wrong."""
    found: dict[str, Own] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        named = own.parts(item)
        if named is None or named[2]:
            raise UsageError(f"--probes: {item!r} is not FILE.py:CLASS, as ./mine.py:TokenSpread")
        path, name, _ = named
        source = files.text(path)
        from stabkit.training import contract  # torch: only where a probe is to be tried

        one = Own(file=path.name, name=name, digest=own.digest(source), label=name)
        recorded = contract.probe(one, files.texts)
        if recorded in found:
            raise UsageError(f"--probes: {path}:{name} and {found[recorded].name} are both called {recorded[4:]!r}")
        found[recorded] = one
    return tuple(found[name] for name in sorted(found))
