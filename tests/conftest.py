"""Shared by all tests: one torch thread, tiny specs, and what a test may need from the machine."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from stabkit.running import work
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig, from_json
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

torch.set_num_threads(1)
settings.register_profile("suite", derandomize=True)  # the same examples each time; STABKIT_EXPLORE=1 looks for others
if not os.environ.get("STABKIT_EXPLORE"):
    settings.load_profile("suite")

MULTI30K = Path(os.environ.get("STABKIT_MULTI30K", Path(__file__).parents[2] / "shared" / "data" / "multi30k"))


def need(what: str, there: bool, where: str) -> None:
    """Skip a test whose means are missing; fail it where STABKIT_REQUIRE names them (CI)."""
    if there:
        return
    if what in os.environ.get("STABKIT_REQUIRE", "").split(","):
        pytest.fail(f"{what} is required here and missing: {where}")
    pytest.skip(f"needs {what}: {where}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: begun last, one of them keeps a single core busy when all else is done."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def multi30k() -> Path:
    need("multi30k", (MULTI30K / "train.de.gz").is_file(), f"{MULTI30K} (set STABKIT_MULTI30K)")
    return MULTI30K


def tiny(method: str = "deepnorm", layers: int = 2, steps: int = 3, **changes: object) -> RunSpec:
    """A run of a second: 2 layers of width 16 on a vocabulary of 200."""
    model = ModelConfig(encoder_layers=layers, decoder_layers=layers, hidden=16, ffn=24, heads=2)
    train = {k: changes.pop(k) for k in list(changes) if k in TrainConfig.__slots__}
    return RunSpec(
        method=method,
        model=model,
        train=TrainConfig(steps=steps, max_tokens=128, **train),  # type: ignore[arg-type]
        task=TaskConfig(vocab=200),
        **changes,  # type: ignore[arg-type]
    )


@cache
def _trained(run_id: str, spec_json: str) -> dict[str, bytes]:
    spec = from_json(json.loads(spec_json))
    result = train.run(spec, Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens))
    return work.files(spec, result, {})


def files_of(spec: RunSpec, **outcome: object) -> dict[str, bytes]:
    """What the folder of this run holds, really trained; parts of its outcome replaced."""
    files = dict(_trained(spec.run_id, json.dumps(spec.to_json())))
    files["outcome.json"] = json.dumps({**json.loads(files["outcome.json"]), **outcome}).encode()
    return files
