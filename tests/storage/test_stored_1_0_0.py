"""A store written before is read after, bit for bit: `stored_1_0_0/` was written by version 1.0.0 (commit ffcc4d4), and
`hashes.json` by the same code from what it then loaded.

    stabkit sweep --models post-ln,deepnorm --depths 2 --steps 3 --warmup 0 --hidden 8 --ffn 16 --vocab 128 \\
        --max-tokens 64, with three snapshots of deepnorm; the same of a small text with --bleu; a surface in the plane
        of deepnorm's path; a user's model of two blocks, probed; and one watched.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabkit.figures.own_losses import LOSSES
from stabkit.report.json_document import ended
from stabkit.results.forecast.logistic import WORDS
from stabkit.results.own.judged import judged
from stabkit.results.records import Table, jsonable
from stabkit.spec import RunSpec
from stabkit.storage import probed, surfaces, watched, weights
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store, to_files
from stabkit.storage.surfaces import SURFACE
from stabkit.storage.watched import WatchShelf
from stabkit.wording import links
from tests.commands import stabkit, strict

STORED = Path(__file__).parent / "stored_1_0_0"
LEFT = STORED / "translations" / "deepnorm-2L-2L-s0-f7993064afad-beam4-2a0b80ac"
"""What `sweep --bleu` left, which no version reads any more."""
HASHES: Mapping[str, Mapping[str, str]] = json.loads((STORED / "hashes.json").read_text(encoding="utf-8"))


def of_array(array: np.ndarray) -> str:
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype.str} {array.shape}\n".encode() + array.tobytes()).hexdigest()


def of_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def of_tables(records: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    for name, table in records.items():
        yield f"{name}.steps", of_array(table.steps)
        yield f"{name}.sites", hashlib.sha256("\n".join(table.sites).encode()).hexdigest()
        yield f"{name}.values", of_array(table.values)
        yield f"{name}.version", str(table.version)


LATER = {"weight_decay": 0.0, "momentum": 0.0}
"""What `train` of a run has since, at its defaults."""


def as_of_1_0_0(spec: RunSpec) -> dict[str, Any]:
    """A spec as plain JSON without the fields that came later."""
    body = spec.to_json()
    assert {name: body["train"].pop(name) for name in LATER} == LATER
    return body


def run(name: str) -> dict[str, str]:
    stored = Store(STORED).load(name)
    return {
        "digest": stored.digest,
        "spec": of_json(as_of_1_0_0(stored.spec)),
        "kept": of_json(dict(stored.kept)),
        "outcome": of_json({**jsonable(ended(stored)), "outcome": stored.outcome.word}),
        "environment": of_json(dict(stored.environment)),
        **dict(of_tables(stored.records)),
        **{f"weights.{key}": of_array(array) for key, array in weights.arrays(stored).items()},
    }


def surface(name: str) -> dict[str, str]:
    stored = Shelf(SURFACE, STORED).load(name)
    return {
        "digest": stored.digest,
        "spec": of_json(stored.spec.to_json()),
        "loss": of_array(stored.loss),
        "facts": of_json(dict(stored.facts)),
        **{f"path.{key}": of_array(column) for key, column in stored.path.items()},
    }


def probe(name: str) -> dict[str, str]:
    stored = Shelf(PROBE, STORED).load(name)
    return {"digest": stored.digest, "facts": of_json(stored.facts.to_json()), **dict(of_tables(stored.records))}


def watch(name: str) -> dict[str, str]:
    stored = WatchShelf(STORED).load(name)
    return {
        "digest": stored.cell.digest,
        "facts": of_json(stored.cell.facts.to_json()),
        "ended": stored.ended,
        "alarms": of_json([alarm.to_json() for alarm in stored.alarms]),
        **dict(of_tables(stored.records)),
    }


KINDS: Mapping[str, Callable[[str], dict[str, str]]] = {
    "runs": run,
    "surfaces": surface,
    "probes": probe,
    "own": watch,
}


@pytest.mark.parametrize("folder", HASHES)
def test_what_is_loaded_is_what_1_0_0_loaded(folder: str) -> None:
    kind, _, name = folder.partition("/")
    assert KINDS[kind](name) == HASHES[folder]


def test_every_stored_folder_is_listed() -> None:
    names = {
        "runs": Store(STORED).ids(),
        "surfaces": Shelf(SURFACE, STORED).ids(),
        "probes": Shelf(PROBE, STORED).ids(),
        "own": WatchShelf(STORED).ids(),
    }
    assert {f"{kind}/{name}" for kind in names for name in names[kind]} == set(HASHES)


def test_a_stored_probe_has_a_word_a_sentence_and_a_picture_of_its_losses() -> None:
    cells = [Shelf(PROBE, STORED).load(name) for name in Shelf(PROBE, STORED).ids()]
    found = judged(cells)
    assert found.worst.word in WORDS and found.worst.decision.basis == "forecast" and "trained" not in cells[0].records
    assert links.answer(found) and len(LOSSES.select(found)) == len(cells[0].records["loss"].steps) - 1


def environment(folder: Path) -> Any:
    return json.loads((folder / "environment.json").read_text(encoding="utf-8"))


def test_what_was_loaded_is_written_as_the_same_bytes(tmp_path: Path) -> None:
    store, written = Store(STORED), Store(tmp_path)
    for name in store.ids():
        stored = store.load(name)
        arrays = weights.arrays(stored)
        written.commit(
            stored.spec,
            to_files(stored.spec, stored.kept, stored.records, arrays, stored.environment, stored.texts),
        )
    for name in Shelf(SURFACE, STORED).ids():
        shelf, drawn = Shelf(SURFACE, STORED), Shelf(SURFACE, STORED).load(name)
        about = environment(shelf.root / name)
        files = surfaces.to_files(drawn.spec, drawn.loss, dict(drawn.path), drawn.facts, about)
        Shelf(SURFACE, tmp_path).commit(name, files)
    for name in (cells := Shelf(PROBE, STORED)).ids():
        files = probed.to_files(cells.load(name), environment(cells.root / name))
        Shelf(PROBE, tmp_path).commit(name, files)
    for name in (watches := WatchShelf(STORED)).ids():
        for part in (parts := watches.parts(name)).ids():
            loaded = parts.load(part)
            files = watched.to_files(loaded.cell.facts, loaded.records, loaded.alarms, environment(parts.root / part))
            WatchShelf(tmp_path).append(name, files)
    paths = [path.relative_to(STORED) for path in STORED.glob("*/**/*") if path.is_file() and LEFT not in path.parents]
    assert len(paths) > 30
    for path in paths:
        assert (tmp_path / path).read_bytes() == (STORED / path).read_bytes(), path


@pytest.mark.usefixtures("undrawn")
def test_translations_of_1_1_0_are_left_alone_by_every_command(tmp_path: Path) -> None:
    out = tmp_path / "store"
    shutil.copytree(STORED, out)
    listed, verified = stabkit("runs", "ls", "--out", out), stabkit("runs", "verify", "--out", out, "--json")
    assert listed.returncode == 0 and "3 runs" in listed.stdout, listed.stderr
    assert verified.returncode == 0 and len(strict(verified.stdout)["runs"]) == 3, verified.stderr
    for words in (
        ("runs", "show", LEFT.name.partition("-beam")[0], "--out"),
        ("report", "--store"),
        ("export", "--store"),
    ):
        done = stabkit(*words, out)
        assert done.returncode == 0 and "corrupt" not in done.stderr, done.stderr
    (there,) = (out / "translations").iterdir()
    assert {path.name: path.read_bytes() for path in there.iterdir()} == {
        path.name: path.read_bytes() for path in LEFT.iterdir()
    }
