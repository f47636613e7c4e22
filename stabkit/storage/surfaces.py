"""Surfaces at rest, beside the runs: whole or absent, and the tiles of one that is growing. Never imports torch.

<out>/surfaces/<surface_id>/     spec.json surface.npz environment.json manifest.json
<out>/surfaces/.partial/<surface_id>/rows-0-1.npz, path.npz     finished tiles; a crash loses none of them
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import StabkitError, StoreError
from stabkit.results import surface as specs
from stabkit.results.surface import SURFACE_VERSION, SurfaceSpec
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder

FILES = ("spec.json", "surface.npz", "environment.json")
PATH = ("step", "a", "b", "outside", "loss", "projected")
"""The path's columns: updates done, coordinates in the plane, share of the displacement outside it, loss at the
snapshot's own weights, loss at its projection."""

LIMIT = 1_000_000_000
"""Bytes of a surface; of one of a million points they are eight million."""

Arrays = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Surface:
    """One finished surface."""

    spec: SurfaceSpec
    loss: NDArray[np.float64]
    """(b, a)."""
    path: Mapping[str, NDArray[np.float64]]
    """PATH's columns; empty where the path was not asked for."""
    facts: Mapping[str, float]
    """`explained_1`, `explained_2` of a path's plane; of another nothing."""
    digest: str

    @property
    def surface_id(self) -> str:
        return self.spec.surface_id


class SurfaceShelf:
    """The surfaces under one output directory."""

    def __init__(self, out: Path) -> None:
        self.surfaces = out / "surfaces"

    def __contains__(self, surface_id: str) -> bool:
        return os.path.lexists(self.surfaces / surface_id)

    def ids(self) -> list[str]:
        """All surfaces, sorted."""
        if not self.surfaces.is_dir():
            return []
        names = [entry.name for entry in os.scandir(self.surfaces) if entry.name[0] != "."]
        return sorted(name for name in names if os.path.isdir(self.surfaces / name))  # a looped link is none

    def load(self, surface_id: str) -> Surface:
        """One surface, every checksum verified; raises CorruptFolder, OldFolder."""
        path = self.surfaces / surface_id
        files, digest = folder.load(path, FILES, SURFACE_VERSION, {"surface.npz": LIMIT})
        try:
            spec = specs.from_json(json.loads(files["spec.json"]))
            arrays = _arrays(files["surface.npz"])
            facts = {name.removeprefix("fact."): float(a) for name, a in arrays.items() if name.startswith("fact.")}
            along = {name.removeprefix("path."): a for name, a in arrays.items() if name.startswith("path.")}
            loss = arrays["loss"]
        except StabkitError:
            raise
        except Exception as error:  # zip, npy header and memory errors alike: a file that is not ours
            raise CorruptFolder(f"{path}: not a surface of stabkit ({str(error).partition(chr(10))[0]})") from error
        if spec.surface_id != surface_id:
            raise CorruptFolder(f"{path}: its spec.json belongs to {spec.surface_id}")
        wrong = loss.shape != (len(spec.b), len(spec.a)) or bool(along) != spec.path
        if wrong or (along and (set(along) != set(PATH) or len({len(column) for column in along.values()}) != 1)):
            raise CorruptFolder(f"{path}: surface.npz does not hold what its spec.json says")
        return Surface(spec, loss, along, facts, digest)

    def quarantine(self, surface_id: str) -> Path:
        """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
        return folder.quarantine(self.surfaces, surface_id)

    def sweep_partial(self) -> None:
        """Delete what interrupted writers left half-assembled; tiles stay. For the lock's holder."""
        folder.sweep(folder.own(self.surfaces, ".partial"))

    def tile(self, spec: SurfaceSpec, name: str, first: int, last: int) -> Arrays | None:
        """What the finished tile of these rows holds (of none: the path's); None where there is none that is sound."""
        try:
            held = _arrays(folder.read(self._own(spec.surface_id) / f"{name}.npz", LIMIT))
        except Exception:  # whatever is wrong with it: it is computed again
            return None
        if first == last:
            return held if {f"path.{column}" for column in PATH} <= set(held) else None
        sound = set(held) == {"first", "loss"} and held["loss"].shape == (last - first, len(spec.a))
        return held if sound and held["first"].shape == () and held["first"] == first else None

    def save_tile(self, surface_id: str, name: str, arrays: Arrays) -> None:
        """Keep a finished tile, whole or not at all."""
        folder.write_file(self._own(surface_id) / f"{name}.npz", _bytes(arrays))

    def commit(self, spec: SurfaceSpec, tiles: Sequence[tuple[str, int, int]], environment: Mapping[str, Any]) -> None:
        """Put the tiles together. Raises StoreError when one of them is missing."""
        loss = np.full((len(spec.b), len(spec.a)), np.nan)
        whole: Arrays = {}
        for name, begin, end in tiles:
            held = self.tile(spec, name, begin, end)
            if held is None:
                raise StoreError(f"{self._own(spec.surface_id)}: the tile {name} is gone; run it again")
            if end > begin:
                loss[begin:end] = held["loss"]
            else:
                whole |= held
        files = {
            "spec.json": folder.to_json(spec.stored()),
            "surface.npz": _bytes({"loss": loss, **whole}),
            "environment.json": folder.to_json(environment),
        }
        target = self.surfaces / spec.surface_id
        folder.commit(
            target, folder.own(self.surfaces, ".partial"), files, SURFACE_VERSION, lambda: spec.surface_id in self
        )
        shutil.rmtree(self._own(spec.surface_id), ignore_errors=True)

    def _own(self, surface_id: str) -> Path:
        return folder.own(folder.own(self.surfaces, ".partial"), surface_id)


def _arrays(data: bytes) -> Arrays:
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise ValueError("an array is not float64")
    return arrays


def _bytes(arrays: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **{name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()})  # type: ignore[arg-type]  # numpy types the keywords as bool
    return out.getvalue()
