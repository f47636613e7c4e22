"""Stored trials of rates on a user's models. Never imports torch.

<out>/trials/<trial_id>/    trial.json environment.json manifest.json
<out>/trials/.logs/         what a user's code printed and raised where it failed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stabkit.results.own.trial import TRIAL_VERSION, ModelTrial
from stabkit.results.typed import read
from stabkit.storage import folder
from stabkit.storage.shelf import FolderKind

FILES = {"trial.json": folder.SMALL, "environment.json": folder.SMALL}


def parse(path: Path, files: Mapping[str, bytes], digest: str) -> ModelTrial:
    """A trial of the bytes of its files."""
    return read(ModelTrial, json.loads(files["trial.json"]))


def to_files(made: ModelTrial, environment: Mapping[str, Any]) -> dict[str, bytes]:
    """The bytes of a trial's files, by name."""
    return {"trial.json": folder.to_json(made.to_json()), "environment.json": folder.to_json(environment)}


TRIAL = FolderKind(folder="trials", noun="a trial", files=FILES, version=TRIAL_VERSION, parse=parse)
