"""A watch whose checksums are right and whose values are nobody's: one line, and no other page is lost."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import stabkit as library
from stabkit.results.own.cell import PROBE_VERSION, Sublayer
from stabkit.results.typed import typed
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.watched import FILES, WatchShelf
from tests.commands import stabkit
from tests.own import probe_models

Change = Callable[[dict[str, Any]], None]
ODD: dict[str, Change] = {
    "a width that is nothing": lambda facts: facts.update(width=None),
    "no sub-layers": lambda facts: facts.update(sublayers=[]),
    "a sub-layer without a layer": lambda facts: facts["sublayers"][0].pop("layer"),
    "a layer that is a word": lambda facts: facts["sublayers"][0].update(layer="one"),
    "parameters that are a fraction": lambda facts: facts.update(parameters=1.5),
    "notes that are a number": lambda facts: facts.update(notes=7),
    "updates that are true": lambda facts: facts.update(steps=True),
    "a field of tomorrow": lambda facts: facts.update(tomorrow=1),
    "a model that is a list": lambda facts: facts.update(model=["GPT"]),
    "nothing": lambda facts: facts.clear(),
}
LATER: dict[str, Change] = {
    "a stack that the records do not have": lambda facts: [one.update(stack="other") for one in facts["sublayers"]],
    "a hundred updates more": lambda facts: facts.update(steps=facts["steps"] + 100),
}
"""Of the right types: a page of it may be made or not, and nothing else suffers."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two watches."""
    out = tmp_path_factory.mktemp("watched")
    batch = torch.zeros(probe_models.SHAPE, dtype=torch.long)
    for name in ("first", "second"):
        torch.manual_seed(0)
        model = probe_models.Stack(2)
        optimizer = torch.optim.AdamW(model.parameters())
        with library.watch(model, optimizer, probe=batch, out=out, name=name, warn=False):
            for _ in range(2):
                model(batch).square().mean().backward()
                optimizer.step()
    return out


def altered(watched: Path, out: Path, change: Change) -> str:
    """The store with the first watch's facts changed, under right checksums; its id."""
    shutil.copytree(watched, out)
    first = next(name for name in WatchShelf(out).ids() if name.startswith("first"))
    for part in sorted((out / "own" / first).glob("0*")):
        files = {name: (part / name).read_bytes() for name in FILES}
        facts = json.loads(files["facts.json"])
        change(facts)
        files["facts.json"] = json.dumps(facts).encode()
        shutil.rmtree(part)
        folder.commit(part, out / "own" / ".partial", files, PROBE_VERSION, lambda: False)
    return first


@pytest.mark.parametrize("odd", ODD)
def test_values_of_other_types_are_corrupt_and_cost_one_line(odd: str, watched: Path, tmp_path: Path) -> None:
    first = altered(watched, tmp_path / "out", ODD[odd])
    with pytest.raises(CorruptFolder, match="not a watch of stabkit"):
        WatchShelf(tmp_path / "out").load(first)


def test_a_report_and_a_check_of_a_store_with_odd_watches(watched: Path, tmp_path: Path) -> None:
    first = altered(watched, tmp_path / "out", ODD["a width that is nothing"])
    reported = stabkit("report", "--store", tmp_path / "out")
    assert reported.returncode == 0 and "Traceback" not in reported.stderr, reported.stderr
    assert reported.stderr.count(first) == 1 and "own-second" in reported.stdout
    verified = stabkit("runs", "verify", "--out", tmp_path / "out")
    assert verified.returncode == 5 and "width is None" in verified.stdout


@pytest.mark.parametrize("odd", LATER)
def test_values_that_no_watch_has_cost_nobody_elses_page(odd: str, watched: Path, tmp_path: Path) -> None:
    altered(watched, tmp_path / "out", LATER[odd])
    reported = stabkit("report", "--store", tmp_path / "out")
    assert reported.returncode == 0 and "Traceback" not in reported.stderr, reported.stderr
    assert "own-second" in reported.stdout


@pytest.mark.slow
def test_records_that_unpack_to_more_than_a_watch_records_are_not_unpacked(watched: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = altered(watched, out, lambda facts: None)
    part = out / "own" / first / "000000"
    files = {name: (part / name).read_bytes() for name in FILES}
    zeros = io.BytesIO()
    rows = 50_000_000
    np.savez_compressed(zeros, **{"loss.steps": np.zeros(rows), "loss.values": np.zeros(1), "loss.sites": np.zeros(1)})
    files["records.npz"] = zeros.getvalue()
    shutil.rmtree(part)
    folder.commit(part, out / "own" / ".partial", files, PROBE_VERSION, lambda: False)
    assert len(files["records.npz"]) < 1_000_000
    with pytest.raises(CorruptFolder, match=r"it unpacks to 400,\d+,\d+ bytes"):
        WatchShelf(out).load(first)


def test_a_value_is_what_its_class_says() -> None:
    sound = Sublayer(stack="stack", layer=1, kind="ffn", parameters=2)
    assert typed(sound) is sound
    for wrong in ({"layer": True}, {"layer": 1.0}, {"stack": None}, {"parameters": "2"}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            typed(Sublayer(**{"stack": "stack", "layer": 1, "kind": "ffn", "parameters": 2, **wrong}))  # type: ignore[arg-type]
