"""Translations at rest: whole or refused, and never one run's for another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stabkit.quality.job import score
from stabkit.results import translation as specs
from stabkit.results.translation import TRANSLATION_VERSION, Search, TranslationSpec
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder, OldFolder
from stabkit.storage.shelf import Shelf
from stabkit.storage.translations import FILES, TRANSLATION, Translation, of_run, to_files
from tests.conftest import tiny

RUN = tiny().run_id
OTHER = tiny(seed=1).run_id
SPEC = TranslationSpec(run=RUN, digest="cd" * 32, search=Search(), sentences="ab" * 32)
LINES = ("ein Hund läuft .", "", 'a "b"\u2028c\t')


def made(spec: TranslationSpec = SPEC, **environment: Any) -> Translation:
    references = ("ein Hund schläft .", "zwei", "a b c")
    scored = score(LINES, references, "13a")
    return Translation(spec, LINES, references, "13a", scored, {"stabkit": "1", **environment})


def commit(shelf: Shelf[Translation], translation: Translation) -> None:
    shelf.commit(translation.spec.translation_id, to_files(translation))


def put(shelf: Shelf[Translation], change: Callable[[dict[str, Any]], Any], file: str = "translation.json") -> str:
    """A sound folder but for one file, whose checksum is right; returns its id."""
    name = SPEC.translation_id
    commit(shelf, made())
    files = {each: (shelf.root / name / each).read_bytes() for each in FILES}
    held = json.loads(files[file])
    changed = change(held)
    files[file] = json.dumps(held if changed is None else changed).encode()
    shelf.quarantine(name)
    partial = shelf.root / ".partial"
    folder.commit(shelf.root / name, partial, files, TRANSLATION_VERSION, lambda: False)
    return name


def of(out: Path, run_id: str) -> tuple[Translation, ...]:
    """What a run of SPEC's digest made."""
    run: Any = SimpleNamespace(path=out / "runs" / run_id, run_id=run_id, digest=SPEC.digest)
    return of_run(run)


def test_a_translation_comes_back_as_it_was_put(tmp_path: Path) -> None:
    shelf, found = Shelf(TRANSLATION, tmp_path), made()
    assert shelf.ids() == [] and of(shelf.out, RUN) == () and SPEC.translation_id not in shelf
    commit(shelf, found)
    assert SPEC.translation_id in shelf and shelf.load(SPEC.translation_id) == found
    assert of(shelf.out, RUN) == (found,) and of(shelf.out, OTHER) == ()
    folders = sorted(path.name for path in (tmp_path / "translations").iterdir())
    assert folders == [".partial", SPEC.translation_id]
    assert list((tmp_path / "translations" / ".partial").iterdir()) == []


def test_the_texts_are_readable_in_any_editor(tmp_path: Path) -> None:
    commit(Shelf(TRANSLATION, tmp_path), made())
    text = (tmp_path / "translations" / SPEC.translation_id / "translation.json").read_text(encoding="utf-8")
    assert "ein Hund läuft ." in text and "nrefs:1|case:mixed|eff:no|tok:13a" in text


def test_the_id_says_whose_it_is_and_every_part_of_the_spec_changes_it() -> None:
    assert SPEC.translation_id.startswith(f"{RUN}-beam4-")
    others = [
        replace(SPEC, run=OTHER),
        replace(SPEC, search=Search(beam=5)),
        replace(SPEC, search=Search(length_penalty=0.6)),
        replace(SPEC, sentences="cd" * 32),
        replace(SPEC, device="cuda"),
    ]
    assert len({spec.translation_id for spec in [SPEC, *others]}) == 6
    for spec in others:
        assert specs.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_translations_are_found_by_their_run(tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    wanted = [replace(SPEC, run=run, search=Search(beam=beam)) for run in (RUN, OTHER) for beam in (1, 4, 12)]
    for spec in wanted:
        commit(shelf, made(spec))
    (shelf.root / "a file").write_text("")
    assert shelf.ids() == sorted(spec.translation_id for spec in wanted)
    assert shelf.ids(OTHER) == sorted(spec.translation_id for spec in wanted[3:])
    assert {one.spec for one in of(shelf.out, RUN)} == set(wanted[:3])


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_a_changed_byte_is_found_and_the_translation_left_out(name: str, tmp_path: Path) -> None:
    shelf, other = Shelf(TRANSLATION, tmp_path), replace(SPEC, search=Search(beam=1))
    commit(shelf, made())
    commit(shelf, made(other))
    path = shelf.root / SPEC.translation_id / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFolder):
        shelf.load(SPEC.translation_id)
    assert [one.spec for one in of(shelf.out, RUN)] == [other]
    path.unlink()
    with pytest.raises(CorruptFolder):
        shelf.load(SPEC.translation_id)
    aside = shelf.quarantine(SPEC.translation_id)
    assert aside.is_dir() and shelf.ids() == [other.translation_id]


def test_a_translation_of_another_version_is_old_and_not_corrupt(tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    commit(shelf, made())
    name = SPEC.translation_id
    files = {each: (shelf.root / name / each).read_bytes() for each in FILES}
    shelf.quarantine(name)
    partial = shelf.root / ".partial"
    folder.commit(shelf.root / name, partial, files, TRANSLATION_VERSION + 1, lambda: False)
    with pytest.raises(OldFolder):
        shelf.load(name)
    assert of(shelf.out, RUN) == ()


def test_a_second_commit_of_the_same_leaves_the_first(tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    commit(shelf, made(wall_seconds=1.0))
    inode = (shelf.root / SPEC.translation_id).stat().st_ino
    commit(shelf, made(wall_seconds=2.0))
    assert shelf.load(SPEC.translation_id).environment["wall_seconds"] == 1.0
    assert (shelf.root / SPEC.translation_id).stat().st_ino == inode
    assert list((shelf.root / ".partial").iterdir()) == []


def test_what_an_interrupted_writer_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    commit(shelf, made())
    (shelf.root / ".partial" / f"{SPEC.translation_id}.x1").mkdir()
    with shelf.hold(SPEC.translation_id):
        pass
    assert list((shelf.root / ".partial").iterdir()) == [] and shelf.ids() == [SPEC.translation_id]


def sets(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda held: held.__setitem__(key, value)


TEXTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "one key more": sets("extra", 1),
    "one key less": lambda held: held.pop("length_ratio") and None,
    "a list": lambda held: [held],
    "sentences that are numbers": sets("hypotheses", ["a", 1, "b"]),
    "references that are one text": sets("references", "abc"),
    "sides of two lengths": sets("hypotheses", ["a", "b"]),
    "no sentence": lambda held: held.update(hypotheses=[], references=[]),
    "another tokenizer": sets("tokenize", "zh"),
    "a tokenizer that is a list": sets("tokenize", ["13a"]),
    "a signature that is none": sets("signature", None),
    "a signature without end": sets("signature", "x" * 201),
    "BLEU that is no number": sets("bleu", float("nan")),
    "BLEU without end": sets("bleu", float("inf")),
    "BLEU beyond a float": sets("bleu", 10**400),
    "BLEU in words": sets("bleu", "30"),
    "BLEU that is a truth": sets("bleu", True),
    "BLEU below nothing": sets("bleu", -1.0),
    "a length ratio that is no number": sets("length_ratio", float("nan")),
}


@pytest.mark.parametrize("change", TEXTS.values(), ids=TEXTS)
def test_what_is_no_translation_is_refused_although_its_checksums_are_right(
    change: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    name = put(shelf, change)
    with pytest.raises(CorruptFolder, match="not a translation of stabkit"):
        shelf.load(name)
    assert of(shelf.out, RUN) == ()


SPECS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "one key more": sets("extra", 1),
    "one key less": lambda held: held.pop("sentences") and None,
    "a run that is a path": sets("run", "../" + RUN),
    "no beam": sets("search", {"beam": 0, "length_penalty": 1.0}),
    "too many beams": sets("search", {"beam": 65, "length_penalty": 1.0}),
    "beams in words": sets("search", {"beam": "4", "length_penalty": 1.0}),
    "a penalty that is no number": sets("search", {"beam": 4, "length_penalty": float("nan")}),
    "a reward": sets("search", {"beam": 4, "length_penalty": -1.0}),
    "a list": lambda held: [held],
}


@pytest.mark.parametrize("change", SPECS.values(), ids=SPECS)
def test_what_is_no_spec_is_refused(change: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    name = put(shelf, change, "spec.json")
    with pytest.raises(CorruptFolder, match="not a translation of stabkit"):
        shelf.load(name)
    assert of(shelf.out, RUN) == ()


def test_an_environment_is_an_object(tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    with pytest.raises(CorruptFolder):
        shelf.load(put(shelf, lambda held: [held], "environment.json"))


def test_the_spec_of_another_translation_is_refused_and_named(tmp_path: Path) -> None:
    shelf, other = Shelf(TRANSLATION, tmp_path), replace(SPEC, search=Search(beam=9))
    name = put(shelf, lambda held: other.to_json(), "spec.json")
    with pytest.raises(CorruptFolder, match=f"belongs to {other.translation_id}"):
        shelf.load(name)
    assert of(shelf.out, RUN) == ()


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"null"])
def test_a_file_that_is_no_json_is_refused(text: bytes, tmp_path: Path) -> None:
    shelf = Shelf(TRANSLATION, tmp_path)
    name = put(shelf, lambda held: None)
    files = {each: (shelf.root / name / each).read_bytes() for each in FILES} | {"translation.json": text}
    shelf.quarantine(name)
    partial = shelf.root / ".partial"
    folder.commit(shelf.root / name, partial, files, TRANSLATION_VERSION, lambda: False)
    with pytest.raises(CorruptFolder):
        shelf.load(name)
