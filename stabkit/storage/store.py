"""Stored runs: a folder a run, whole or absent. Never imports torch.

    <out>/runs/<run_id>/       spec.json outcome.json records.npz weights.safetensors environment.json manifest.json,
                               and own.json where it was made by files of the user's own
    <out>/runs/.partial/       <run_id>/: checkpoint.npz and attempts.jsonl of a run that is not finished;
                               <run_id>.…/: a folder being assembled. May be deleted when nothing runs
    <out>/runs/.quarantine/    folders that failed their check, moved here with one warning
    <out>/runs/.locks/        <run_id>.…: who trains it (`locks.py`); any number of commands may share a store

A folder is written aside, every file fsynced, and renamed into place, so a reader sees all of it or nothing.
`manifest.json` holds the sha256 of every other file; `digest` is the sha256 over that list without environment.json:
equal specs on equal machines give equal digests.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit import methods, spec
from stabkit.errors import StoreError
from stabkit.results import outcome as outcomes
from stabkit.results import records
from stabkit.results.records import Table
from stabkit.results.run import Run
from stabkit.spec import ALGO_VERSION, RunSpec, recorded_steps, snapshot_steps
from stabkit.storage import folder, locks
from stabkit.storage.folder import CorruptFolder, write_file
from stabkit.storage.shelf import FolderKind, Shelf, check_name

FILES = ("spec.json", "outcome.json", "records.npz", "weights.safetensors", "environment.json")
OWN = "own.json"
"""{sha256: text} of the files of methods and probes of the user's own, in the folder of a run that has any."""
FIXED = 64_000_000
"""Bytes on top of what a file is expected to have before it is taken for one that is not ours."""


def disk(run_spec: RunSpec) -> int:
    """Bytes of a run's folder, roughly: weights, snapshots, records; and while it trains, of its checkpoint."""
    width = 8 if run_spec.dtype == "float64" else 4
    sublayers = len(methods.sites_of(run_spec))
    weights = width * methods.parameters(run_spec) * (1 + len(snapshot_steps(run_spec)))
    return weights + 8 * 7 * sublayers * len(recorded_steps(run_spec))


def names(run_spec: RunSpec) -> tuple[str, ...]:
    """The names of the files in a run's folder."""
    return (*FILES, OWN) if run_spec.files() else FILES


def contents(path: Path) -> dict[str, int]:
    """{file name: the most bytes that it can have} of the run in a folder. Its version is checked before its spec.json
    is read: what an older one says may mean something else today."""
    folder.check_version(path, ALGO_VERSION)
    run_spec = spec.from_json(json.loads(folder.read(path / "spec.json", folder.SMALL)))
    limits = dict.fromkeys(("weights.safetensors", "records.npz"), largest(run_spec))
    return {name: limits.get(name, folder.SMALL) for name in names(run_spec)}


def largest(run_spec: RunSpec) -> int:
    """Bytes that the weights or the records of a run can have at most."""
    return 4 * disk(run_spec) + FIXED


def parse(path: Path, files: Mapping[str, bytes], digest: str) -> Run:
    """A run of the bytes of its files."""
    run_spec = spec.from_json(json.loads(files["spec.json"]))
    kept, environment = json.loads(files["outcome.json"]), json.loads(files["environment.json"])
    outcomes.check(kept)
    tables = records.current(records.from_bytes(files["records.npz"], largest(run_spec)), run_spec)
    texts = own_texts(files[OWN], run_spec) if OWN in files else {}
    if not isinstance(environment, dict) or any(isinstance(v, (dict, list)) for v in environment.values()):
        raise ValueError("its environment.json is not a flat object")
    check_name(path, run_spec.run_id)
    return Run(path, run_spec, kept, tables, environment, digest, texts)


def own_texts(data: bytes, run_spec: RunSpec) -> dict[str, str]:
    """The texts of OWN; raises ValueError unless they are those that the spec names."""
    texts = json.loads(data)
    if not isinstance(texts, dict) or set(texts) != {file.digest for file in run_spec.files()}:
        raise ValueError(f"its {OWN} lacks files that its spec names")
    for digest, text in texts.items():
        if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != digest:
            raise ValueError(f"its {OWN} has another text than its spec names")
    return texts


def to_files(
    run_spec: RunSpec,
    kept: Mapping[str, Any],
    tables: Mapping[str, Table],
    weights: Mapping[str, np.ndarray],
    environment: Mapping[str, Any],
    texts: Mapping[str, str],
) -> dict[str, bytes]:
    """The bytes of a run's files, by name; of `texts` those that the spec names."""
    from safetensors.numpy import save

    # contiguous copies: safetensors 0.8.0 scrambles others; numpy's function makes a single number a row of one
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in weights.items()}
    kept_texts = {file.digest: texts[file.digest] for file in run_spec.files()}
    return {
        "spec.json": _json(run_spec.stored()),
        "outcome.json": _json(records.jsonable(kept)),
        "records.npz": records.to_bytes(tables),
        "weights.safetensors": save(arrays),
        "environment.json": _json(environment),
        **({OWN: _json(kept_texts)} if kept_texts else {}),
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


RUN = FolderKind(folder="runs", noun="a run", files=contents, version=ALGO_VERSION, parse=parse)


class Store:
    """The runs under one output directory: their shelf, and what unfinished runs left."""

    def __init__(self, out: Path, runs: Path | None = None) -> None:
        """`runs` only where a run's folder was copied elsewhere: it is then read from there."""
        self.out = out.absolute()  # workers start elsewhere
        self.shelf = Shelf(RUN, self.out) if runs is None else Shelf(replace(RUN, folder=""), runs)
        self.runs = self.shelf.root

    def __contains__(self, run_id: str) -> bool:
        return run_id in self.shelf

    def ids(self) -> list[str]:
        """The ids of all runs, sorted, and whatever else stands in a run's place; dot-folders are ours."""
        if not self.runs.is_dir():
            return []
        entries = [entry.name for entry in os.scandir(self.runs) if entry.name[0] != "."]
        return sorted(name for name in entries if spec.RUN_ID.fullmatch(name) or os.path.isdir(self.runs / name))

    def load(self, run_id: str) -> Run:
        """One run, every checksum verified, its records read; raises CorruptFolder, OldFolder."""
        return self.shelf.load(run_id)

    def quarantine(self, run_id: str) -> Path:
        """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
        return self.shelf.quarantine(run_id)

    def remove(self, run_id: str) -> None:
        """Delete one run."""
        self.shelf.remove(run_id)

    def commit(self, run_spec: RunSpec, files: Mapping[str, bytes]) -> None:
        """Write one run's folder, whole or not at all, and forget what it left while it was unfinished."""
        if set(files) != set(names(run_spec)):
            raise ValueError(f"a run has {names(run_spec)}, got {sorted(files)}")
        self.shelf.commit(run_spec.run_id, files)
        self.forget(run_spec.run_id)

    def writable(self) -> None:
        """Make the directories; raise StoreError where they cannot be written to, before anything is trained."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            for name in (".partial", ".quarantine", locks.FOLDER):
                folder.own(self.runs, name)
            os.rmdir(tempfile.mkdtemp(prefix=".writable-", dir=self.runs))
            locks.clear(self.runs)
        except OSError as error:
            raise StoreError(f"cannot write to {self.out}: {error.strerror or error}") from error

    def checkpoint(self, run_spec: RunSpec) -> dict[str, NDArray[Any]] | None:
        """The arrays that `save_checkpoint` wrote for this spec, or None; raises CorruptFolder on anything else."""
        path = self.shelf.partial() / run_spec.run_id / "checkpoint.npz"
        if not os.path.lexists(path):
            return None
        try:
            data = folder.read(path, 64 * disk(run_spec) + FIXED)
            arrays = records.unpacked(data, len(data))  # it is written as it is
            if str(arrays.pop("spec")) != _checkpoint_key(run_spec):
                raise ValueError("it belongs to another run")
            if str(arrays.pop("digest")) != _checksum(arrays):
                raise ValueError("it has changed since it was written")
        except Exception as error:  # zip, npy header and memory errors alike: a file that is not ours
            reason = "it holds Python objects" if "pickle" in str(error) else folder.first_line(error)
            raise CorruptFolder(f"{path}: {reason}") from error
        return arrays

    def forget_checkpoint(self, run_id: str) -> None:
        """Drop the checkpoint of a run, whatever stands in its place."""
        path = self.shelf.partial() / run_id / "checkpoint.npz"
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
            data = folder.read(self.shelf.partial() / run_id / "attempts.jsonl", folder.SMALL)
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
            os.unlink(self.shelf.partial() / run_id / "attempts.jsonl")

    def _beside(self, run_id: str) -> Path:
        """Where an unfinished run's files go; never through a link that someone planted."""
        return folder.own(self.shelf.partial(), run_id)

    def forget(self, run_id: str) -> None:
        """Drop the checkpoint and the attempts of a run."""
        if not (self.shelf.partial() / run_id).is_symlink():
            shutil.rmtree(self.shelf.partial() / run_id, ignore_errors=True)


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """sha256 over the arrays of a checkpoint, names, kinds and shapes included."""
    checksum = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        checksum.update(f"{name} {array.dtype} {array.shape}\n".encode())
        checksum.update(np.ascontiguousarray(array).tobytes())
    return checksum.hexdigest()


def _checkpoint_key(run_spec: RunSpec) -> str:
    return f"{ALGO_VERSION} {spec.canonical(run_spec.stored())}"
