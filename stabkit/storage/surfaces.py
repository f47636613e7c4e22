"""Stored surfaces, and the tiles of one that is growing. Never imports torch.

<out>/surfaces/<surface_id>/     spec.json surface.npz environment.json manifest.json
<out>/surfaces/.partial/<surface_id>/rows-0-1.npz, path.npz     finished tiles; a crash loses none of them
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import StoreError
from stabkit.results import surface as specs
from stabkit.results.records import unpacked
from stabkit.results.surface import PATH, SURFACE_VERSION, Surface, SurfaceSpec
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.shelf import FolderKind, Shelf, check_name

FILES = {"spec.json": folder.SMALL, "surface.npz": folder.LARGEST, "environment.json": folder.SMALL}
"""Of a surface of a million points surface.npz takes eight million bytes."""

Arrays = dict[str, NDArray[np.float64]]


def parse(path: Path, files: Mapping[str, bytes], digest: str) -> Surface:
    """A surface of the bytes of its files."""
    spec = specs.from_json(json.loads(files["spec.json"]))
    check_name(path, spec.surface_id)
    arrays = _arrays(files["surface.npz"], room(spec))
    facts = {name.removeprefix("fact."): float(a) for name, a in arrays.items() if name.startswith("fact.")}
    columns = {name.removeprefix("path."): a for name, a in arrays.items() if name.startswith("path.")}
    loss = arrays["loss"]
    wrong = loss.shape != (len(spec.b), len(spec.a)) or bool(columns) != spec.path
    if wrong or (columns and (set(columns) != set(PATH) or len({len(column) for column in columns.values()}) != 1)):
        raise CorruptFolder(f"{path}: surface.npz does not match its spec.json")
    return Surface(spec, loss, columns, facts, digest)


def to_files(
    spec: SurfaceSpec,
    loss: NDArray[np.float64],
    path: Arrays,
    facts: Mapping[str, float],
    environment: Mapping[str, Any],
) -> dict[str, bytes]:
    """The bytes of a surface's files, by name."""
    columns = {f"path.{name}": column for name, column in path.items()}
    arrays = {"loss": loss, **columns, **{f"fact.{name}": np.array(fact) for name, fact in facts.items()}}
    return {
        "spec.json": folder.to_json(spec.stored()),
        "surface.npz": _bytes(arrays),
        "environment.json": folder.to_json(environment),
    }


SURFACE = FolderKind(folder="surfaces", noun="a surface", files=FILES, version=SURFACE_VERSION, parse=parse)


@dataclass(frozen=True, slots=True)
class Tiles:
    """The finished tiles of one surface, until all are there."""

    shelf: Shelf[Surface]
    spec: SurfaceSpec

    def read(self, name: str, first: int, last: int) -> Arrays | None:
        """What the finished tile of these rows holds (of none: the path's); None where there is none that is sound."""
        try:
            arrays = _arrays(folder.read(self.folder() / f"{name}.npz", folder.LARGEST), room(self.spec))
        except Exception:  # whatever is wrong with it: it is computed again
            return None
        if first == last:
            return arrays if {f"path.{column}" for column in PATH} <= set(arrays) else None
        sound = set(arrays) == {"first", "loss"} and arrays["loss"].shape == (last - first, len(self.spec.a))
        return arrays if sound and arrays["first"].shape == () and arrays["first"] == first else None

    def save(self, name: str, arrays: Mapping[str, Any]) -> None:
        """Keep a finished tile, whole or not at all."""
        folder.write_file(self.folder() / f"{name}.npz", _bytes(arrays))

    def commit(self, tiles: Sequence[tuple[str, int, int]], environment: Mapping[str, Any]) -> None:
        """Put the tiles together as a surface. Raises StoreError when one of them is missing."""
        spec = self.spec
        loss = np.full((len(spec.b), len(spec.a)), np.nan)
        path: Arrays = {}
        facts: dict[str, float] = {}
        for name, begin, end in tiles:
            arrays = self.read(name, begin, end)
            if arrays is None:
                raise StoreError(f"{self.folder()}: the tile {name} is missing; run the command again")
            if end > begin:
                loss[begin:end] = arrays["loss"]
            else:
                path = {n.removeprefix("path."): a for n, a in arrays.items() if n.startswith("path.")}
                facts = {n.removeprefix("fact."): float(a) for n, a in arrays.items() if n.startswith("fact.")}
        self.shelf.commit(spec.surface_id, to_files(spec, loss, path, facts, environment))
        shutil.rmtree(self.folder(), ignore_errors=True)

    def folder(self) -> Path:
        """Where they stand."""
        return folder.own(self.shelf.partial(), self.spec.surface_id)


def room(spec: SurfaceSpec) -> int:
    """Bytes that a surface's arrays can have: its grid's, and what a path and a header take."""
    return 8 * len(spec.a) * len(spec.b) + 16_000_000


def _arrays(data: bytes, most: int) -> Arrays:
    arrays = unpacked(data, most)
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise ValueError("an array is not float64")
    return arrays


def _bytes(arrays: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **{name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()})  # type: ignore[arg-type]  # numpy types the keywords as bool
    return out.getvalue()
