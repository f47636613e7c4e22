"""Cells of a factory of `probe_models`, made in this process as a worker makes them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from stabkit.own.probe import job
from stabkit.results.own.cell import ModelCell
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf

MODULE = "tests.own.probe_models"
ROOT = str(Path(__file__).parents[2])


def told(name: str, out: Path, depth: int | None = 4, **asked: object) -> dict[str, str]:
    """A worker's answer; raises what it refuses."""
    body = {
        "id": f"{name}-{depth}",
        "factory": f"{MODULE}:{name}",
        "here": ROOT,
        "depth": depth,
        "width": None,
        "seed": 0,
        "lr": 0.0,
        "warmup": None,
        "steps": 2,
        "blocks": "",
        "change": "",
        "ramped": False,
        "train": "no",
        "until": 4e9,
        "seconds": 120.0,
        "times": 1.0,
        "out": str(out),
        "fresh": False,
        **asked,
    }
    return json.loads(job.probe(body, lambda event: json.dumps(event, allow_nan=False) and None)[1])


@cache
def cell(
    name: str, depth: int | None, seed: int = 0, steps: int = 16, lr: float = 0.0, ramped: bool = False
) -> ModelCell:
    """One cell, really probed."""
    out = Path(mkdtemp())
    return Shelf(PROBE, out).load(told(name, out, depth, seed=seed, steps=steps, lr=lr, ramped=ramped)["folder"])
