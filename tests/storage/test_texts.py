"""Encoded texts in the store: made once, checked on reading, made again when they fail; no worker trains one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabkit.errors import CorpusError
from stabkit.running import texts
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.shelf import Shelf
from stabkit.storage.texts import FILES, kind
from stabkit.tasks import text
from stabkit.tasks.encoded import Prepared
from stabkit.tasks.text import ParallelText, find
from tests.commands import TINY, process, stabkit
from tests.tasks.conftest import write

Arrays = dict[str, Any]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    home = tmp_path / "data"
    home.mkdir()
    write(home)
    return home


def spec(data: Path, max_tokens: int = 64) -> RunSpec:
    corpus = find(data, "de", "en")
    task = TaskConfig(name="de-en", vocab=100, source="de", target="en", digest=text.digest(corpus))
    model = ModelConfig(encoder_layers=1, decoder_layers=1)
    return RunSpec(method="deepnorm", model=model, train=TrainConfig(max_tokens=max_tokens), task=task)


def kept(data: Path, out: Path, said: list[str]) -> tuple[Shelf[Prepared], str]:
    """The shelf after its text was wanted, and the text's digest there."""
    texts.keep([spec(data)], {"directory": str(data)}, out, said.append)
    shelf = Shelf(kind(100), out)
    (digest,) = (entry.name for entry in shelf.root.iterdir() if entry.name[0] != ".")
    return shelf, digest


def test_a_text_is_made_once_and_its_batches_are_those_of_the_files(data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    shelf, digest = kept(data, tmp_path / "out", said)
    kept(data, tmp_path / "out", said)
    assert len(said) == 1 and "de-en" in said[0]
    planned = spec(data)
    theirs = ParallelText(corpus=find(data, "de", "en"), vocab=100, max_tokens=64)
    assert digest == theirs.digest and shelf.load(digest).vocabulary == theirs.prepared.vocabulary
    (data / "train.de").write_text("changed later\n" * 3, encoding="utf-8")  # what was planned is what is read
    ours = texts.task(planned, {"directory": str(data)}, tmp_path / "out")
    assert ours.digest == theirs.digest and (ours.target_counts() == theirs.target_counts()).all()
    for one, other in [(ours.probe(), theirs.probe()), *((ours.train(0, t), theirs.train(0, t)) for t in range(40))]:
        assert all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("source", "target_in", "target_out"))


def test_a_text_that_changed_since_it_was_planned_is_not_kept(data: Path, tmp_path: Path) -> None:
    planned = spec(data)
    (data / "train.de").write_text((data / "train.de").read_text(encoding="utf-8") + "x\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="changed since the sweep was planned"):
        texts.keep([planned], {"directory": str(data)}, tmp_path / "out", lambda what: None)
    assert not list(Shelf(kind(100), tmp_path / "out").root.glob("[0-9a-f]*"))


HOSTILE: dict[str, Callable[[Arrays], Arrays]] = {
    "a part missing": lambda a: {n: v for n, v in a.items() if n != "train.lengths"},
    "another kind of number": lambda a: {**a, "train.source": a["train.source"].astype("f4")},
    "a word beyond the vocabulary": lambda a: {**a, "train.source": a["train.source"] * 0 + 100},
    "a word below it": lambda a: {**a, "validation.target": a["validation.target"] - 1000},
    "a sentence that begins elsewhere": lambda a: {**a, "train.source_start": a["train.source_start"] + 1},
    "other lengths": lambda a: {**a, "validation.lengths": a["validation.lengths"] + 1},
    "no sentence": lambda a: {n: v[:0] if v.ndim else v for n, v in a.items()},
    "a table": lambda a: {**a, "train.lengths": a["train.lengths"][None]},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_arrays_that_are_no_text_are_corrupt(case: str, data: Path, tmp_path: Path) -> None:
    shelf, digest = kept(data, tmp_path / "out", [])
    files = {name: (shelf.root / digest / name).read_bytes() for name in FILES}
    with np.load(io.BytesIO(files["text.npz"])) as held:
        arrays = HOSTILE[case]({name: held[name] for name in held.files})
    out = io.BytesIO()
    np.savez(out, **arrays)
    other = "0" * 64
    files["text.npz"] = out.getvalue()
    folder.commit(shelf.root / other, shelf.root / ".partial", files, text.VERSION, lambda: False)
    with pytest.raises(CorruptFolder, match="not an encoded text"):
        shelf.load(other)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_a_damaged_text_goes_to_quarantine_and_is_made_again(name: str, data: Path, tmp_path: Path) -> None:
    said: list[str] = []
    shelf, digest = kept(data, tmp_path / "out", said)
    path = shelf.root / digest / name
    path.write_bytes(path.read_bytes()[:-1])
    kept(data, tmp_path / "out", said)
    assert len(said) == 2 and shelf.load(digest).vocabulary
    assert list((shelf.root / ".quarantine").iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_second_sweep_and_its_workers_never_load_sentencepiece(data: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    sweep = [*("sweep", *TINY, "--vocab", "100"), "--data", data, "--source", "de", "--target", "en"]
    sweep += ["--out", tmp_path / "out", "--models", "deepnorm", "--json"]
    first = stabkit(*sweep)
    assert first.returncode == 0 and first.stderr.count("making the vocabulary of de-en") == 1
    (blocked / "sentencepiece.py").write_text("raise ImportError('nobody needs it')\n", encoding="utf-8")
    workers = ("--executor", "processes", "--workers", "1")
    again = process(*sweep, *workers, "--seeds", "1", env={"PYTHONPATH": str(blocked)})
    assert again.returncode == 0, again.stderr
    assert len(json.loads(again.stdout)["runs"]) == 1 and "making" not in again.stderr
