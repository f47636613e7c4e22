"""Probes of a user's models at rest, beside the runs: whole or absent. Never imports torch.

<out>/probes/<probe_id>/    facts.json records.npz environment.json manifest.json
<out>/probes/.logs/         what a user's code printed and raised where it failed
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stabkit.errors import StabkitError
from stabkit.results import records
from stabkit.results.own import cell
from stabkit.results.own.cell import PROBE_VERSION, Cell
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder

FILES = ("facts.json", "records.npz", "environment.json")


class ProbeShelf:
    """The probes under one output directory."""

    def __init__(self, out: Path) -> None:
        self.probes = out / "probes"

    def __contains__(self, probe_id: str) -> bool:
        return os.path.lexists(self.probes / probe_id)

    def load(self, probe_id: str) -> Cell:
        """One cell, every checksum verified; raises CorruptFolder, OldFolder."""
        path = self.probes / probe_id
        files, digest = folder.load(path, FILES, PROBE_VERSION, {"records.npz": folder.LARGEST})
        try:
            return Cell(cell.facts(json.loads(files["facts.json"])), records.from_bytes(files["records.npz"]), digest)
        except StabkitError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
            raise CorruptFolder(f"{path}: not a probe of stabkit ({folder.first_line(error)})") from error

    def sound(self, probe_id: str) -> bool:
        """Whether it is there and whole; one that fails its check goes to quarantine, kept."""
        if probe_id not in self:
            return False
        try:
            self.load(probe_id)
        except StabkitError:
            folder.quarantine(self.probes, probe_id)
            return False
        return True

    def remove(self, probe_id: str) -> None:
        """Out of the way, kept: what is made afresh takes its place."""
        if probe_id in self:
            folder.quarantine(self.probes, probe_id)

    def commit(self, probe_id: str, found: Cell, environment: Mapping[str, Any]) -> None:
        """Put a cell on the shelf, whole or not at all."""
        files = {
            "facts.json": folder.to_json(found.facts.to_json()),
            "records.npz": records.to_bytes(found.records),
            "environment.json": folder.to_json(environment),
        }
        partial = folder.own(self.probes, ".partial")
        folder.commit(self.probes / probe_id, partial, files, PROBE_VERSION, lambda: probe_id in self)

    def sweep_partial(self) -> None:
        """Delete what interrupted writers left half-assembled. For the lock's holder."""
        folder.sweep(folder.own(self.probes, ".partial"))

    def log(self, name: str) -> Path:
        """Where the log of a cell goes."""
        return folder.own(self.probes, ".logs") / f"{re.sub('[^A-Za-z0-9._-]', '-', name)[:120]}.log"
