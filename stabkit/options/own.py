"""`models="./my.py:peri_ln"` and `probes="./mine.py:TokenSpread"`: the files that options name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stabkit import methods, outside
from stabkit.errors import UsageError
from stabkit.methods import formula, output_norm, own, validate
from stabkit.methods.base import Method
from stabkit.methods.groups import group_of
from stabkit.spec import Chosen, ModelConfig, Own


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
    lines = []
    for path, digest in read.items():
        try:
            now = own.digest(outside.read(path, own.LARGEST).decode())
        except (OSError, ValueError):
            now = ""
        if now != digest:
            lines.append(f"{path} has changed since it was read: these runs use its text from the start of the command")
    return lines


def method(
    item: str, files: Files, config: ModelConfig = formula.PLAIN, depths: Sequence[tuple[int, int]] = ((6, 6),)
) -> tuple[Chosen, Method] | None:
    """The method of a file in a block and at depths; None where the text names none. Raises UsageError in one line for
    whatever is wrong."""
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
    made = own.method_from(make, place, options)
    taken = dict(zip(methods.KEYS, (each.label for each in methods.DEFAULTS), strict=True))
    key = own.key_of(made, place, taken)
    for n, m in depths:
        sound(made, place, n, m)
    n, m = next((depth for depth in depths if not made.undefined(*depth)), depths[0])
    shape = replace(config, encoder_layers=n, decoder_layers=m)
    source = Own(
        file=path.name,
        name=name,
        digest=own.digest(text),
        label=made.label.strip(),
        says="; ".join(formula.lines(made, n, m, config)),
        group=group_of(made),
        norm_after_sum=output_norm.sums_in_norm(made, shape),
        ends_in_norm=output_norm.in_norm(made, shape),
        assumes=made.assumes,
        scaled=made.scaled,
        chained=made.wiring == "chain",
    )
    return Chosen(key=key, options=options, own=source), made


def row(source: Own, files: Files) -> Callable[..., Method]:
    """The function that makes a method of these files."""
    return own.row(own.text_of(source, files.texts), source.file, source.name)


def sound(made: Method, place: str, n: int, m: int) -> None:
    """Raises UsageError, in one line, if a slot of the method returns an invalid value at this depth."""
    try:
        fault = next(validate.faults(made, n, m), "")
    except Exception as error:  # whatever a user's slot raises
        raise UsageError(own.located(error, place.rpartition(":")[0])) from error
    if fault:
        raise UsageError(f"{place}: {fault}")


def probes(names: Sequence[str], files: Files, depth: tuple[int, int]) -> tuple[Own, ...]:
    """The probes of `--probes`, each tried on a tiny model with the stacks of (N, M); raises UsageError in one line for
    whatever is wrong."""
    by_label: dict[str, Own] = {}
    for item in filter(None, map(str.strip, names)):
        named = own.parts(item)
        if named is None or named[2]:
            raise UsageError(f"--probes: {item!r} is not FILE.py:CLASS, like ./mine.py:TokenSpread")
        path, name, _ = named
        source = files.text(path)
        from stabkit.training import contract  # torch: only where a probe is to be tried

        one = contract.probe(Own(file=path.name, name=name, digest=own.digest(source), label=""), files.texts, *depth)
        if one.label in by_label:
            raise UsageError(f"--probes: {path}:{name} and {by_label[one.label].name} are both called {one.label!r}")
        by_label[one.label] = one
    return tuple(by_label[name] for name in sorted(by_label))
