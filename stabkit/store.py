"""Where runs rest: a folder a run, whole or absent. Never imports torch.

    <out>/runs/<run_id>/       spec.json outcome.json records.npz weights.safetensors environment.json manifest.json
    <out>/runs/.partial/       <run_id>/: checkpoint.npz and attempts.jsonl of a run that is not finished;
                               <run_id>.…/: a folder being assembled. May be deleted when nothing runs
    <out>/runs/.quarantine/    folders that failed their check, moved here with one warning
    <out>/runs/.lock           held (flock) by the one process that writes

A folder is written aside, every file fsynced, and renamed into place, so a reader sees all of it or nothing.
`manifest.json` holds the sha256 of every other file; `digest` is the sha256 over that list without environment.json:
equal specs on equal machines give equal digests.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit import records, spec
from stabkit.errors import StabkitError, StoreBusy, StoreError, UsageError
from stabkit.records import Table
from stabkit.spec import ALGO_VERSION, RunSpec

FILES = ("spec.json", "outcome.json", "records.npz", "weights.safetensors", "environment.json")


class CorruptRun(StoreError):
    """A run folder that is truncated, altered, foreign or half-written."""


class OldRun(StoreError):
    """A sound run of another ALGO_VERSION: its numbers are not comparable with today's."""


@dataclass(frozen=True)
class Run:
    """One finished run, read back. Records are loaded when first asked for."""

    path: Path
    spec: RunSpec
    outcome: Mapping[str, Any]
    environment: Mapping[str, Any]
    digest: str

    @property
    def run_id(self) -> str:
        return self.path.name

    @cached_property
    def records(self) -> dict[str, Table]:
        """Every probe's table."""
        return records.from_bytes(_read(self.path / "records.npz"))

    @property
    def weights_path(self) -> Path:
        return self.path / "weights.safetensors"


class Store:
    """The runs under one output directory."""

    def __init__(self, out: Path, runs: Path | None = None) -> None:
        """`runs` only where a run's folder was copied elsewhere: it is then read from there."""
        self.out = out
        self.runs = runs or out / "runs"

    def __contains__(self, run_id: str) -> bool:
        return os.path.lexists(self.runs / run_id)  # whole or not: `load` tells

    def ids(self) -> list[str]:
        """The ids of all runs, sorted; dot-folders are ours and are left out."""
        if not self.runs.is_dir():
            return []
        return sorted(entry.name for entry in os.scandir(self.runs) if entry.is_dir() and entry.name[0] != ".")

    def load(self, run_id: str) -> Run:
        """One run, every checksum verified.

        Raises CorruptRun on any difference, OldRun on a sound run of another ALGO_VERSION.
        """
        path = self.runs / run_id
        try:
            manifest = json.loads(_read(path / "manifest.json"))
            sums = {name: hashlib.sha256(_read(path / name)).hexdigest() for name in FILES}
            if manifest != _manifest(sums, manifest.get("algo_version")):
                wrong = [name for name in FILES if manifest.get("files", {}).get(name) != sums[name]]
                raise CorruptRun(f"{path}: {', '.join(wrong) or 'manifest.json'} changed since it was written")
            run_spec = spec.from_json(json.loads(_read(path / "spec.json")))
            outcome = json.loads(_read(path / "outcome.json"))
            environment = json.loads(_read(path / "environment.json"))
            if not (isinstance(outcome, dict) and isinstance(outcome.get("chain"), dict) and "outcome" in outcome):
                raise CorruptRun(f"{path}: its outcome.json is not an outcome")
            if not isinstance(environment, dict):
                raise CorruptRun(f"{path}: its environment.json is not an object")
        except StabkitError:
            raise
        except OSError as error:
            raise CorruptRun(f"{path}: {error.strerror or error}") from error
        except (ValueError, AttributeError, RecursionError) as error:
            raise CorruptRun(f"{path}: not a run of stabkit ({str(error).splitlines()[0]})") from error
        if manifest["algo_version"] != ALGO_VERSION:
            raise OldRun(f"{path}: of version {manifest['algo_version']} of the algorithm; today's is {ALGO_VERSION}")
        if run_spec.run_id != run_id:
            raise CorruptRun(f"{path}: its spec.json belongs to {run_spec.run_id}")
        return Run(path, run_spec, outcome, environment, manifest["digest"])

    def quarantine(self, run_id: str) -> Path:
        """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
        aside = self.runs / ".quarantine"
        try:
            aside.mkdir(exist_ok=True)
            target = Path(tempfile.mkdtemp(prefix=f"{run_id}.", dir=aside)) / run_id
            os.rename(self.runs / run_id, target)
        except OSError as error:
            raise StoreError(f"cannot move {run_id} to {aside}: {error.strerror or error}") from error
        return target

    def remove(self, run_id: str) -> None:
        """Delete one run: renamed away first, so that no half-deleted folder is ever seen."""
        self._partial().mkdir(parents=True, exist_ok=True)
        grave = Path(tempfile.mkdtemp(prefix="removed.", dir=self._partial()))
        os.rename(self.runs / run_id, grave / run_id)
        shutil.rmtree(grave)

    def commit(self, run_spec: RunSpec, files: Mapping[str, bytes]) -> None:
        """Write one run's folder, whole or not at all. `files` holds the bytes of every name in FILES."""
        if set(files) != set(FILES):
            raise ValueError(f"a run has {FILES}, got {sorted(files)}")
        target = self.runs / run_spec.run_id
        try:
            self._partial().mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f"{run_spec.run_id}.", dir=self._partial()))
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror or error}") from error
        try:
            sums = {name: hashlib.sha256(files[name]).hexdigest() for name in FILES}
            manifest = json.dumps(_manifest(sums, ALGO_VERSION), indent=1).encode()
            for name, data in {**files, "manifest.json": manifest}.items():
                _write(aside / name, data)
            _sync(aside)
            os.chmod(aside, 0o755)  # mkdtemp makes it private; the rest of the store is as readable as the umask says
            if self._whole(run_spec.run_id):
                return  # the same spec was finished meanwhile; equal specs hold equal records
            os.rename(aside, target)
            _sync(self.runs)
            self.forget(run_spec.run_id)
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)  # gone already when it was renamed

    def _whole(self, run_id: str) -> bool:
        try:
            return run_id in self and bool(self.load(run_id))
        except StoreError:
            self.quarantine(run_id)
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store's one writer's lock; raises StoreBusy at once when another process holds it, StoreError when
        the directory cannot be written. The lock goes with the process, however it ends."""
        lock = self.runs / ".lock"
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise OSError(f"{lock} is not a regular file")
        except OSError as error:
            raise StoreError(f"cannot write to {self.out}: {error.strerror or error}") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(handle, 64, 0).decode(errors="replace").strip()
                raise StoreBusy(
                    f"{self.out} is in use by process {holder or 'unknown'}; wait for it, or use another --out"
                ) from error
            os.pwrite(handle, f"{os.getpid():<20}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    def sweep_partial(self) -> None:
        """Delete what interrupted writers left half-assembled; checkpoints and attempts stay. For the lock's holder."""
        if self._partial().is_dir():
            for entry in list(os.scandir(self._partial())):
                if "." in entry.name:
                    shutil.rmtree(entry.path, ignore_errors=True)

    def checkpoint(self, run_spec: RunSpec) -> dict[str, NDArray[Any]] | None:
        """The arrays that `save_checkpoint` wrote for this very spec, or None. Raises CorruptRun on anything else."""
        path = self._partial() / run_spec.run_id / "checkpoint.npz"
        if not os.path.lexists(path):
            return None
        try:
            with np.load(io.BytesIO(_read(path)), allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            if str(arrays.pop("spec")) != _checkpoint_key(run_spec):
                raise ValueError("it belongs to another run")
        except Exception as error:  # zip, npy header and memory errors alike: a file that is not ours
            raise CorruptRun(f"{path}: {str(error).partition(chr(10))[0] or type(error).__name__}") from error
        return arrays

    def forget_checkpoint(self, run_id: str) -> None:
        """Drop the checkpoint of a run, whatever stands in its place."""
        path = self._partial() / run_id / "checkpoint.npz"
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def save_checkpoint(self, run_spec: RunSpec, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace this run's checkpoint, whole or not at all."""
        out = io.BytesIO()
        np.savez(out, spec=np.array(_checkpoint_key(run_spec)), **arrays)  # type: ignore[arg-type]  # as in records.py
        write_file(self._beside(run_spec.run_id) / "checkpoint.npz", out.getvalue())

    def attempts(self, run_id: str) -> list[str]:
        """Why every attempt at this run failed so far, over all commands."""
        try:
            lines = _read(self._partial() / run_id / "attempts.jsonl").decode(errors="replace").splitlines()
            return [str(json.loads(line)["reason"]) for line in lines if line.strip()]
        except (OSError, ValueError, KeyError, TypeError, StoreError):
            return []  # none, or a file that is not ours: the count starts afresh

    def note_attempt(self, run_id: str, reason: str) -> int:
        """Remember one more failed attempt; returns how many there are now."""
        reasons = [*self.attempts(run_id), reason]
        text = "".join(json.dumps({"attempt": i, "reason": why}) + "\n" for i, why in enumerate(reasons, 1))
        write_file(self._beside(run_id) / "attempts.jsonl", text.encode())
        return len(reasons)

    def forget_attempts(self, run_id: str) -> None:
        """Count this run's attempts afresh; its checkpoint stays."""
        with suppress(FileNotFoundError):
            os.unlink(self._partial() / run_id / "attempts.jsonl")

    def _beside(self, run_id: str) -> Path:
        """Where an unfinished run's files go; never through a link that someone planted."""
        folder = self._partial() / run_id
        for path in (self._partial(), folder):
            if path.is_symlink():
                raise StoreError(f"{path} is a link; stabkit writes nothing through it: remove it")
        return folder

    def forget(self, run_id: str) -> None:
        """Drop the checkpoint and the attempts of a run."""
        shutil.rmtree(self._partial() / run_id, ignore_errors=True)

    def _partial(self) -> Path:
        return self.runs / ".partial"


def write_file(path: Path, data: bytes) -> None:
    """Replace one file atomically: written beside it, fsynced, renamed over it."""
    if os.path.lexists(path) and not path.is_file():
        raise UsageError(f"{path} is not a regular file; name another to write to")
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
        except OSError:
            os.unlink(aside)
            raise
        _sync(path.parent)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def _checkpoint_key(run_spec: RunSpec) -> str:
    return f"{ALGO_VERSION} {spec.canonical(run_spec.to_json())}"


def _manifest(sums: Mapping[str, str], algo_version: object) -> dict[str, object]:
    return {"algo_version": algo_version, "files": dict(sums), "digest": _digest(sums)}


def _digest(sums: Mapping[str, str]) -> str:
    kept = {name: value for name, value in sums.items() if name != "environment.json"}
    return hashlib.sha256(spec.canonical(kept).encode()).hexdigest()


def _read(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not hold us
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise CorruptRun(f"{path}: not a regular file")
        return file.read()


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
