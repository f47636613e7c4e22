"""One store for every kind of folder: `<out>/<kind>/<id>/`, each whole or absent. Never imports torch.

    <out>/<kind>/<id>/            the kind's files and manifest.json
    <out>/<kind>/.partial/        folders being assembled; may be deleted when nothing runs
    <out>/<kind>/.locks/         who is at work on which (`locks.py`)
    <out>/<kind>/.quarantine/     folders that failed their check, kept

A `FolderKind` says what a folder holds and how its bytes become a value; a `Shelf` is the folders of one kind under one
output directory. Runs, surfaces, probes, parts of watches and encoded texts are the kinds there are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from stabkit.errors import StabkitError, StoreError
from stabkit.results.records import UnreadableRecords
from stabkit.storage import folder, locks
from stabkit.storage.folder import CorruptFolder

T = TypeVar("T")
Parse = Callable[[Path, Mapping[str, bytes], str], T]
"""(folder, {file name: bytes}, digest) → value; raises whatever it likes for what is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderKind(Generic[T]):
    """What a folder of this kind holds."""

    folder: str
    """Under the output directory."""
    noun: str
    """`a surface`."""
    files: Mapping[str, int] | Callable[[Path], Mapping[str, int]]
    """{file name: the most bytes that it can have}: a sparse file claims terabytes at no cost. A function of the folder
    where that depends on what stands in it."""
    version: int
    """Of what is written today; a folder of another is an OldFolder."""
    parse: Parse[T]


@dataclass(frozen=True, slots=True)
class Shelf(Generic[T]):
    """The folders of one kind under one output directory."""

    kind: FolderKind[T]
    out: Path

    @property
    def root(self) -> Path:
        """Where the folders stand."""
        return self.out / self.kind.folder

    def __contains__(self, name: str) -> bool:
        return os.path.lexists(self.root / name)  # whole or not: `load` tells

    def ids(self, prefix: str = "") -> list[str]:
        """The folders whose name begins so, sorted; those with a dot before are ours."""
        if not self.root.is_dir():
            return []
        names = [entry.name for entry in os.scandir(self.root) if entry.name[0] != "."]
        return sorted(name for name in names if name.startswith(prefix) and os.path.isdir(self.root / name))

    def load(self, name: str) -> T:
        """The value of one folder, every checksum verified; raises CorruptFolder, OldFolder."""
        path = self.root / name
        try:
            names = self.kind.files(path) if callable(self.kind.files) else self.kind.files
            files, digest = folder.load(path, names, self.kind.version)
            return self.kind.parse(path, files, digest)
        except UnreadableRecords as error:
            raise CorruptFolder(f"{path}: {folder.first_line(error)}") from error
        except StabkitError:
            raise
        except OSError as error:
            raise CorruptFolder(f"{error.filename or path}: {error.strerror or error}") from error
        except Exception as error:  # JSON, zip, npy header and memory errors alike: a folder that is not ours
            raise CorruptFolder(f"{path}: not {self.kind.noun} of stabkit ({folder.first_line(error)})") from error

    def environment(self, name: str) -> Mapping[str, Any]:
        """What environment.json of a sound folder says."""
        return dict(json.loads(folder.read(self.root / name / "environment.json", folder.SMALL)))

    def load_if_sound(self, name: str) -> T | None:
        """The same; None where there is none, and where it fails its check: then it goes to quarantine."""
        try:
            return self.load(name) if name in self else None
        except StoreError:
            self.quarantine(name)
            return None

    def commit(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write one folder, whole or not at all, unless a sound one is there: the same name means the same bytes."""
        folder.commit(
            self.root / name, self.partial(), files, self.kind.version, lambda: self.load_if_sound(name) is not None
        )

    def quarantine(self, name: str) -> Path:
        """Move a folder out of the way, keeping it; returns where it is now."""
        return folder.quarantine(self.root, name)

    def remove(self, name: str) -> None:
        """Delete one folder."""
        folder.remove(self.root / name, self.partial())

    @contextmanager
    def hold(self, name: str, over: str = "") -> Iterator[None]:
        """The lock on a name, while this lasts (`locks.hold`): what a holder before left half-written is deleted, its
        checkpoint or its tiles stay. Raises Locked."""
        with locks.hold(self.root, name.replace("/", "~"), over):
            folder.sweep(self.partial(), name)
            yield

    @contextmanager
    def awaited(self, name: str) -> Iterator[None]:
        """The same, for what takes seconds: waits until nobody else holds it."""
        with locks.awaited(self.root, name):
            folder.sweep(self.partial(), name)
            yield

    def partial(self) -> Path:
        """Where folders are assembled."""
        return folder.own(self.root, ".partial")

    def log(self, name: str) -> Path:
        """Where what a user's code printed and raised goes, where it failed."""
        return folder.own(self.root, ".logs") / f"{re.sub('[^A-Za-z0-9._-]', '-', name)[:120]}.log"

    def size(self, name: str) -> int:
        """Bytes of its files."""
        return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(self.root / name))


def check_name(path: Path, name: str) -> None:
    """Raise CorruptFolder unless a folder's spec.json hashes to the folder's name."""
    if name != path.name:
        raise CorruptFolder(f"{path}: its spec.json belongs to {name}")
