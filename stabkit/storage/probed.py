"""Stored probes of a user's models. Never imports torch.

<out>/probes/<probe_id>/    facts.json records.npz environment.json manifest.json
<out>/probes/.logs/         what a user's code printed and raised where it failed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stabkit.results import records
from stabkit.results.own import cell
from stabkit.results.own.cell import PROBE_VERSION, ModelCell
from stabkit.storage import folder
from stabkit.storage.shelf import FolderKind

FILES = {"facts.json": folder.SMALL, "records.npz": folder.LARGEST, "environment.json": folder.SMALL}


def parse(path: Path, files: Mapping[str, bytes], digest: str) -> ModelCell:
    """A cell of the bytes of its files."""
    facts = cell.facts(json.loads(files["facts.json"]))
    held = ModelCell(facts, records.from_bytes(files["records.npz"], facts.room), digest)
    held.check()
    return held


def to_files(probed: ModelCell, environment: Mapping[str, Any]) -> dict[str, bytes]:
    """The bytes of a cell's files, by name."""
    return {
        "facts.json": folder.to_json(probed.facts.to_json()),
        "records.npz": records.to_bytes(probed.records),
        "environment.json": folder.to_json(environment),
    }


PROBE = FolderKind(folder="probes", noun="a probe", files=FILES, version=PROBE_VERSION, parse=parse)
