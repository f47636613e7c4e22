"""Folders of files that are whole or absent, each with a manifest of checksums; and files replaced whole.

A folder is written aside, every file fsynced, and renamed into place, so a reader sees all of it or nothing.
`manifest.json` holds the sha256 of every other file; `digest` is the sha256 over that list without environment.json.
Never imports torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stabkit import outside, spec
from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.outside import LARGE, NotRead
from stabkit.results.records import jsonable


class CorruptFolder(StoreError):
    """A folder that is truncated, altered, foreign or half-written."""


class OldFolder(StoreError):
    """A sound folder of another version of the algorithm: its numbers are not comparable with today's."""


SMALL = 4_000_000
"""Bytes: what a JSON document may have."""
LARGEST = 1_000_000_000
"""Bytes: what records may have."""


def load(path: Path, names: Mapping[str, int], version: int) -> tuple[Mapping[str, bytes], str]:
    """(the bytes of every file, the digest), every checksum verified; raises CorruptFolder, OldFolder.

    `names`: how many bytes each file may have; a sparse file claims terabytes at no cost.
    """
    try:
        manifest = json.loads(read(path / "manifest.json", SMALL))
        files, sums = FolderFiles(path, names), dict[str, str]()
        for name in names:
            sums[name] = files.sum(name)
        if manifest != manifest_of(sums, manifest.get("algo_version")):
            wrong = [name for name in names if manifest.get("files", {}).get(name) != sums[name]]
            raise CorruptFolder(f"{path}: {', '.join(wrong) or 'manifest.json'} has changed since it was written")
    except StabkitError:
        raise
    except OSError as error:
        raise CorruptFolder(f"{error.filename or path}: {error.strerror or error}") from error
    except (ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise CorruptFolder(f"{path}: not a stabkit folder ({first_line(error)})") from error
    if manifest["algo_version"] != version:
        raise OldFolder(
            f"{path}: has version {manifest['algo_version']} of the algorithm; the current one is {version}"
        )
    return files, manifest["digest"]


class FolderFiles(Mapping[str, bytes]):
    """The bytes of a folder's files; a large one is read when it is asked for, and summed piece by piece."""

    def __init__(self, path: Path, names: Mapping[str, int]) -> None:
        self.path, self.names = path, names
        self._small: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        return self._small[name] if name in self._small else read(self.path / name, self.names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def sum(self, name: str) -> str:
        """sha256 of one."""
        path, most = self.path / name, self.names[name]
        if os.stat(path).st_size <= LARGE:
            self._small[name] = read(path, most)
            return hashlib.sha256(self._small[name]).hexdigest()
        with outside.opened(path, most) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def check_version(path: Path, version: int) -> None:
    """Raise OldFolder where the manifest names another version of the algorithm, CorruptFolder where there is none."""
    try:
        manifest = json.loads(read(path / "manifest.json", SMALL))
        there = manifest["algo_version"]
    except OSError as error:
        raise CorruptFolder(f"{error.filename or path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise CorruptFolder(f"{path}: not a stabkit folder ({first_line(error)})") from error
    if type(there) is int and there != version:
        raise OldFolder(f"{path}: has version {there} of the algorithm; the current one is {version}")


def commit(target: Path, partial: Path, files: Mapping[str, bytes], version: int, whole: Callable[[], bool]) -> None:
    """Write a folder, whole or not at all; assembled in `partial`. `whole`: whether a sound one is there already. What
    another swept away, who took us for gone, is assembled again."""
    for last in (False, False, True):
        try:
            _commit(target, partial, files, version, whole)
            return
        except OSError as error:
            if last or not isinstance(error, FileNotFoundError):
                raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


def _commit(target: Path, partial: Path, files: Mapping[str, bytes], version: int, whole: Callable[[], bool]) -> None:
    partial.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=partial))
    try:
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        manifest = json.dumps(manifest_of(sums, version), indent=1).encode()
        for name, data in {**files, "manifest.json": manifest}.items():
            _write(aside / name, data)
        _sync(aside)
        os.chmod(aside, 0o755)  # mkdtemp makes it private; the rest of the store is as readable as the umask says
        if whole():
            return  # the same was finished meanwhile; equal specs hold equal files
        try:
            os.rename(aside, target)
        except OSError:
            if not whole():  # unless another writer was there between the look and the move
                raise
        _sync(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # gone already when it was renamed


def to_json(value: Any) -> bytes:
    """A file's bytes: sorted, indented, no number that JSON does not have."""
    return (json.dumps(jsonable(value), indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n").encode(
        errors="backslashreplace"  # a lone surrogate as JSON spells it
    )


def first_line(error: BaseException) -> str:
    """What an error says, on one line; its kind where it says nothing."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def own(parent: Path, name: str) -> Path:
    """A directory of ours beside the runs; raises StoreError where a link or a file stands in its place.

    Whoever can write there could otherwise have us write and delete anywhere.
    """
    path = parent / name
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise StoreError(f"{path} is a link or a file; stabkit needs a directory there: remove it")
    return path


def reports(out: Path) -> Path:
    """Where a store's pages are; never through a link out of it."""
    return own(out, "reports")


def remove(path: Path, partial: Path) -> None:
    """Delete a folder: renamed away first, so that no half-deleted one is ever seen."""
    partial.mkdir(parents=True, exist_ok=True)
    grave = Path(tempfile.mkdtemp(prefix=f"{path.name}.", dir=partial))  # swept with what is half-written of it
    os.rename(path, grave / path.name)
    shutil.rmtree(grave, ignore_errors=True)  # another may be sweeping


def quarantine(parent: Path, name: str) -> Path:
    """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
    aside = own(parent, ".quarantine")
    try:
        aside.mkdir(exist_ok=True)
        target = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=aside)) / name
        with suppress(FileNotFoundError):  # another reader was there first
            os.rename(parent / name, target)
    except OSError as error:
        raise StoreError(f"cannot move {name} to {aside}: {error.strerror or error}") from error
    return target


def sweep(partial: Path, name: str) -> None:
    """Delete the folders that interrupted `commit`s of this name left half-assembled."""
    with suppress(OSError):  # nothing there, or out of reach: it costs room and nothing else
        for entry in list(os.scandir(partial)):
            if entry.name.startswith(f"{name}.") and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)


def write_file(path: Path, data: bytes) -> None:
    """Replace one file atomically: written beside it, fsynced, renamed over it."""
    if os.path.lexists(path) and not path.is_file():
        raise UsageError(f"{path} is not a regular file; name another file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            _write(Path(aside), data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(aside, 0o666 & ~mask)
            os.replace(aside, path)
        except BaseException:  # a signal too
            with suppress(OSError):
                os.unlink(aside)
            raise
        _sync(path.parent)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def manifest_of(sums: Mapping[str, str], algo_version: object) -> dict[str, object]:
    """What manifest.json holds."""
    return {"algo_version": algo_version, "files": dict(sums), "digest": _digest(sums)}


def _digest(sums: Mapping[str, str]) -> str:
    kept = {name: value for name, value in sums.items() if name != "environment.json"}
    return hashlib.sha256(spec.canonical(kept).encode()).hexdigest()


def read(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most `most`; raises CorruptFolder for others, OSError where there is none."""
    try:
        return outside.read(path, most)
    except NotRead as error:
        raise CorruptFolder(f"{path}: {error}") from error


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
