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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit import spec
from stabkit.errors import StabkitError, StoreBusy, StoreError
from stabkit.results import outcome as outcomes
from stabkit.results import records
from stabkit.results.forecast import model as forecasts
from stabkit.results.forecast.measured import Measured, measure
from stabkit.results.forecast.model import Forecast
from stabkit.results.outcome import Outcome
from stabkit.results.profile import Profile, profile
from stabkit.results.records import Table
from stabkit.spec import ALGO_VERSION, RunSpec
from stabkit.storage import contents, folder, size
from stabkit.storage.folder import CorruptFolder, write_file
from stabkit.storage.translations import Translation, TranslationShelf


@dataclass(frozen=True)
class Run:
    """One finished run, read back."""

    path: Path
    spec: RunSpec
    kept: outcomes.Kept
    records: Mapping[str, Table]
    """Every table that today's probes can be compared with; others are left out (`lacks`)."""
    environment: Mapping[str, Any]
    digest: str
    texts: Mapping[str, str] = field(default_factory=dict)
    """{sha256: text} of its method's and probes' files, where they are the user's own: to be shown, never run."""

    @property
    def run_id(self) -> str:
        return self.path.name

    @cached_property
    def outcome(self) -> Outcome:
        """How it ended, by today's rule: judged from its records whenever it is read."""
        unigram = float(self.kept["unigram_loss"])
        return outcomes.judge(self.records, unigram=unigram, warmup=self.spec.train.warmup)

    @property
    def parameters(self) -> int:
        """How many its model holds."""
        return self.kept["parameters"]

    @cached_property
    def forecast(self) -> Forecast | None:
        """What its updates 0 to 16 say of how it ends; None where it has fewer or had diverged by then."""
        return forecasts.forecast(self.records, self.spec, float(self.kept["unigram_loss"]))

    @cached_property
    def measured(self) -> Measured | None:
        """The numbers of its updates 0 to 16; None where it has fewer or had diverged by then."""
        return measure(self.records, float(self.kept["unigram_loss"]))

    @cached_property
    def profile(self) -> Profile | None:
        """How it lies over its depth where it is judged; None where it ended before."""
        return profile(self.records, self.spec.expected_steps)

    @cached_property
    def lacks(self) -> tuple[str, ...]:
        """The probes that it was stored without, or with in a version that is not today's."""
        return tuple(name for name in records.expected(self.spec) if name not in self.records)

    @cached_property
    def translations(self) -> tuple[Translation, ...]:
        """What this run made of the held-out sentences, a search each; nothing where none was asked for."""
        return TranslationShelf(self.path.parent.parent).of(self.run_id, self.digest)

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
        """The ids of all runs, sorted, and whatever else stands in a run's place; dot-folders are ours."""
        if not self.runs.is_dir():
            return []
        names = [entry.name for entry in os.scandir(self.runs) if entry.name[0] != "."]
        return sorted(name for name in names if spec.RUN_ID.fullmatch(name) or os.path.isdir(self.runs / name))

    def load(self, run_id: str) -> Run:
        """One run, every checksum verified, its records read.

        Raises CorruptFolder on any difference, OldFolder on a run of another ALGO_VERSION, before anything else in its
        folder is read: what it says there may mean something else today.
        """
        path = self.runs / run_id
        try:
            folder.check_version(path, ALGO_VERSION)
            run_spec = spec.from_json(json.loads(folder.read(path / "spec.json", folder.SMALL)))
            files, digest = folder.load(path, contents.files_of(run_spec), ALGO_VERSION, _limits(run_spec))
            kept = json.loads(files["outcome.json"])
            environment = json.loads(files["environment.json"])
            outcomes.check(kept)
            held = records.current(records.from_bytes(files["records.npz"]), run_spec)
            texts = contents.texts(files[contents.OWN], run_spec) if contents.OWN in files else {}
            if not isinstance(environment, dict) or any(isinstance(v, (dict, list)) for v in environment.values()):
                raise ValueError("its environment.json is not a flat object")
        except records.UnreadableRecords as error:
            raise CorruptFolder(f"{path}: {folder.first_line(error)}") from error
        except StabkitError:
            raise
        except OSError as error:
            raise CorruptFolder(f"{error.filename or path}: {error.strerror or error}") from error
        except (ValueError, AttributeError, RecursionError, MemoryError) as error:
            raise CorruptFolder(f"{path}: not a run of stabkit ({folder.first_line(error)})") from error
        if run_spec.run_id != run_id:
            raise CorruptFolder(f"{path}: its spec.json belongs to {run_spec.run_id}")
        return Run(path, run_spec, kept, held, environment, digest, texts)

    def quarantine(self, run_id: str) -> Path:
        """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
        return folder.quarantine(self.runs, run_id)

    def remove(self, run_id: str) -> None:
        """Delete one run."""
        folder.remove(self.runs / run_id, self._partial())

    def commit(self, run_spec: RunSpec, files: Mapping[str, bytes]) -> None:
        """Write one run's folder, whole or not at all. `files` holds the bytes of every name in `contents.files_of`."""
        if set(files) != set(contents.files_of(run_spec)):
            raise ValueError(f"a run has {contents.files_of(run_spec)}, got {sorted(files)}")
        run_id = run_spec.run_id
        folder.commit(self.runs / run_id, self._partial(), files, ALGO_VERSION, lambda: self._whole(run_id))
        self.forget(run_id)

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
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:  # another name of it: not ours to write to
                os.close(handle)
                raise OSError(f"{lock} is not a regular file of its own; remove it")
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
            for name in (".partial", ".quarantine"):
                folder.own(self.runs, name)
            yield
        finally:
            os.close(handle)

    def sweep_partial(self) -> None:
        """Delete what interrupted writers left half-assembled; checkpoints and attempts stay. For the lock's holder."""
        folder.sweep(self._partial())

    def checkpoint(self, run_spec: RunSpec) -> dict[str, NDArray[Any]] | None:
        """The arrays that `save_checkpoint` wrote for this spec, or None; raises CorruptFolder on anything else."""
        path = self._partial() / run_spec.run_id / "checkpoint.npz"
        if not os.path.lexists(path):
            return None
        try:
            with np.load(io.BytesIO(folder.read(path, 64 * size.disk(run_spec) + FIXED)), allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            if str(arrays.pop("spec")) != _checkpoint_key(run_spec):
                raise ValueError("it belongs to another run")
            if str(arrays.pop("digest")) != _checksum(arrays):
                raise ValueError("it changed since it was written")
        except Exception as error:  # zip, npy header and memory errors alike: a file that is not ours
            told = "it holds Python objects" if "pickle" in str(error) else folder.first_line(error)
            raise CorruptFolder(f"{path}: {told}") from error
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
        known = {"spec": np.array(_checkpoint_key(run_spec)), "digest": np.array(_checksum(arrays))}
        np.savez(out, **known, **arrays)  # type: ignore[arg-type]  # as in records.py
        write_file(self._beside(run_spec.run_id) / "checkpoint.npz", out.getvalue())

    def attempts(self, run_id: str) -> list[str]:
        """Why every attempt at this run failed so far, over all commands."""
        try:
            data = folder.read(self._partial() / run_id / "attempts.jsonl", folder.SMALL)
            lines = data.decode(errors="replace").splitlines()
            return [str(json.loads(line)["reason"])[:1000] for line in lines if line.strip()]
        except (OSError, ValueError, KeyError, TypeError, RecursionError, StoreError):
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
        return folder.own(self._partial(), run_id)

    def forget(self, run_id: str) -> None:
        """Drop the checkpoint and the attempts of a run."""
        if not (self._partial() / run_id).is_symlink():
            shutil.rmtree(self._partial() / run_id, ignore_errors=True)

    def _partial(self) -> Path:
        return folder.own(self.runs, ".partial")


FIXED = 64_000_000
"""Bytes on top of what a file is expected to have before it is taken for one that is not ours."""


def _limits(run_spec: RunSpec) -> dict[str, int]:
    """How many bytes the large files of a run may have."""
    most = 4 * size.disk(run_spec) + FIXED
    return {"weights.safetensors": most, "records.npz": most}


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """sha256 over the arrays of a checkpoint, names, kinds and shapes included."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _checkpoint_key(run_spec: RunSpec) -> str:
    return f"{ALGO_VERSION} {spec.canonical(run_spec.stored())}"
