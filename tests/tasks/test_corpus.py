"""Parallel text in files: found or named, lines paired or refused with file and line."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from stabkit.errors import CorpusError, UsageError
from stabkit.tasks import corpus as files
from stabkit.tasks.corpus import Corpus, digest, find, read
from tests.conftest import examples

Said = Callable[..., str]


@pytest.mark.parametrize("stem", ["valid", "val", "dev"])
@pytest.mark.parametrize("end", ["", ".gz"])
def test_files_are_found_by_their_usual_names(tmp_path: Path, stem: str, end: str) -> None:
    for name in (f"train.de{end}", f"train.en{end}", f"{stem}.de", f"{stem}.en.gz", "test_2016.de", "test_2016.en"):
        (tmp_path / name).touch()
    assert find(tmp_path, "de", "en") == Corpus(
        directory=tmp_path,
        source="de",
        target="en",
        train=(tmp_path / f"train.de{end}", tmp_path / f"train.en{end}"),
        validation=(tmp_path / f"{stem}.de", tmp_path / f"{stem}.en.gz"),
    )


def test_the_plain_file_is_read_where_a_compressed_one_stands_beside_it(directory: Path) -> None:
    (directory / "train.de.gz").write_bytes(b"anything")
    assert find(directory, "de", "en").train[0] == directory / "train.de"


def test_a_link_to_a_regular_file_is_one(directory: Path) -> None:
    (directory / "train.de").rename(directory / "elsewhere")
    (directory / "train.de").symlink_to("elsewhere")
    assert len(read(find(directory, "de", "en").train).source) == 300


def test_a_missing_file_is_named_with_what_is_there(directory: Path, said: Said) -> None:
    (directory / "valid.en").rename(directory / "valid.fr")
    message = said(lambda: find(directory, "de", "en"))
    assert "needed valid.de with valid.en or val.de with val.en or dev.de with dev.en (or .gz)" in message
    assert message.endswith("found 'train.de', 'train.en', 'valid.de', 'valid.fr'")
    assert "needed train.de with train.nl (or .gz)" in said(lambda: find(directory, "de", "nl"))


def test_hostile_names_in_the_directory_are_shown_harmlessly(tmp_path: Path, said: Said) -> None:
    (tmp_path / "\x1b]0;x\x07\n[red]").touch()
    for i in range(20):
        (tmp_path / f"z{i:02}").touch()
    message = said(lambda: find(tmp_path, "de", "en"))
    assert r"'\x1b]0;x\x07\n[red]'" in message and message.endswith("and 9 more")
    odd = tmp_path / "a\nb"
    assert r"a\nb" in said(lambda: find(odd, "de", "en"))
    odd.mkdir()
    assert "found nothing" in said(lambda: find(odd, "de", "en"))


@pytest.mark.parametrize("language", ["", "../de", "de/en", "d e", "dé", "d" * 17, "de\n", "٣", "*", ".", "a\0b"])
def test_a_language_is_a_short_plain_name(directory: Path, language: str, said: Said) -> None:
    assert "a language has 1 to 16 characters" in said(lambda: find(directory, language, "en"), UsageError)
    assert "a language has 1 to 16 characters" in said(lambda: find(directory, "de", language), UsageError)


def test_a_language_is_not_translated_into_itself(directory: Path, said: Said) -> None:
    assert "two languages, got 'de' for both" in said(lambda: find(directory, "de", "de"), UsageError)


def test_a_directory_that_is_none_is_said_to_be_so(directory: Path, said: Said) -> None:
    assert "does not exist" in said(lambda: find(directory / "none", "de", "en"))
    assert "is a file" in said(lambda: find(directory / "train.de", "de", "en"))
    assert "cannot be read" in said(lambda: find(Path("a\0b"), "de", "en"))
    assert "cannot be read" in said(lambda: find(Path("a" * 300), "de", "en"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_said_to_be_so(directory: Path, said: Said) -> None:
    (directory / "train.de").chmod(0)
    assert "train.de cannot be read: Permission denied" in said(lambda: find(directory, "de", "en"))
    directory.chmod(0)
    message = said(lambda: find(directory, "de", "en"))
    directory.chmod(0o700)
    assert "cannot be read: Permission denied" in message


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_only_regular_files_are_read_and_none_is_waited_for(
    directory: Path, make: Callable[[Path], None], said: Said
) -> None:
    (directory / "train.de").unlink()
    make(directory / "train.de")
    assert "train.de is not a regular file" in said(lambda: find(directory, "de", "en"))


def test_a_dangling_link_cannot_be_read(directory: Path, said: Said) -> None:
    (directory / "train.de").unlink()
    (directory / "train.de").symlink_to("nothing")
    assert "train.de cannot be read: No such file" in said(lambda: find(directory, "de", "en"))


def pair(directory: Path, source: bytes, target: bytes) -> tuple[Path, Path]:
    paths = directory / "train.de", directory / "train.en"
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(content)
    return paths


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    odd = "a\x0bb\x0cc\x1cd\x1ee\x85f\u2028g\u2029h\ri"
    pairs = read(pair(tmp_path, f"{odd}\nzwei\r\ndrei\r\r\nvier".encode(), b"1\n2\n3\n4\n"))
    assert pairs.source == [odd, "zwei", "drei\r", "vier"]
    assert pairs.target == ["1", "2", "3", "4"]
    assert pairs.dropped == 0


def test_pairs_with_a_blank_side_are_dropped_together_and_counted(tmp_path: Path) -> None:
    pairs = read(pair(tmp_path, "a\n\nc\n \u00a0\t\ne\n\n".encode(), b"1\n2\n\r\n4\n5\n\n"))
    assert (pairs.source, pairs.target, pairs.dropped) == (["a", "e"], ["1", "5"], 4)


@pytest.mark.parametrize(("content", "what"), [(b"", "no line"), (b"\n \n", "only pairs with an empty side")])
def test_nothing_to_read_is_an_error(tmp_path: Path, content: bytes, what: str, said: Said) -> None:
    message = said(lambda: read(pair(tmp_path, content, content)))
    assert what in message and "train.de" in message and "train.en" in message


def test_unequal_counts_name_both_files_and_both_counts(tmp_path: Path, said: Said) -> None:
    message = said(lambda: read(pair(tmp_path, b"a\nb\nc", b"1\n2\n")))
    assert "train.de has 3 lines" in message and "train.en has 2" in message


def test_text_that_is_not_utf8_is_named_by_file_and_line(tmp_path: Path, said: Said) -> None:
    message = said(lambda: read(pair(tmp_path, b"a\nb\nc\n", b"1\n2\nf\xfcr\n")))
    assert message.endswith("train.en:3: not UTF-8 (byte 0xfc)")
    assert "train.de:1: not UTF-8" in said(lambda: read(pair(tmp_path, "a\n".encode("utf-16"), b"1\n")))


def test_a_line_may_not_be_a_book(tmp_path: Path, said: Said) -> None:
    fits = "ü" * (files.LONGEST_LINE // 2)
    assert read(pair(tmp_path, fits.encode(), b"1")).source == [fits]
    message = said(lambda: read(pair(tmp_path, b"a\n" + fits.encode() + b"x", b"1\n2")))
    assert message.endswith("train.de:2: a line of 16385 bytes, more than the 16384 allowed")


def test_a_file_may_not_have_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(files, "MOST_LINES", 3)
    assert len(read(pair(tmp_path, b"a\nb\nc", b"1\n2\n3\n")).source) == 3
    assert "has 4 lines; at most 3" in said(lambda: read(pair(tmp_path, b"a\n" * 4, b"1\n" * 4)))


@pytest.mark.parametrize("cut", [0, 5, 15, -1, -9])
def test_a_damaged_gzip_file_is_a_corpus_error(tmp_path: Path, cut: int, said: Said) -> None:
    whole = gzip.compress(b"a\nb\nc\n" * 100)
    path = tmp_path / "train.de.gz"
    for damaged in (whole[:cut] or b"plain text", whole[:cut] + b"\xff\x00\xff" + whole[cut:]):
        path.write_bytes(damaged)
        assert "train.de.gz is not a valid gzip file" in said(lambda: read((path, path)))


def test_a_gzip_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 3 * 2**20)
    path = tmp_path / "train.de.gz"
    path.write_bytes(gzip.compress(b"a" * (3 * 2**20 + 1), 1))
    assert "more than 3 MiB" in said(lambda: read((path, path)))


def test_a_name_with_control_characters_is_shown_harmlessly(tmp_path: Path, said: Said) -> None:
    (tmp_path / "a\n\x1b[31m").mkdir()
    message = said(lambda: read(pair(tmp_path / "a\n\x1b[31m", b"\xff", b"a")))
    assert r"a\n\x1b[31m" in message


TEXT = st.binary(max_size=40) | st.text(max_size=40).map(str.encode) | st.text("ab \n\r\x85\u2028").map(str.encode)


@given(source=TEXT, target=TEXT, compressed=st.booleans())
@examples(1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_are_paired_or_the_error_names_the_file(
    tmp_path: Path, source: bytes, target: bytes, compressed: bool
) -> None:
    end = ".gz" if compressed else ""
    sides = tmp_path / f"train.de{end}", tmp_path / f"train.en{end}"
    for path, content in zip(sides, (source, target), strict=True):
        path.write_bytes(gzip.compress(content, 1) if compressed else content)
    try:
        pairs = read(sides)
    except CorpusError as error:
        assert str(sides[0]) in str(error) or str(sides[1]) in str(error)
        if line := re.search(r"(\.en|\.de)(?:\.gz)?:(\d+): not UTF-8", str(error)):
            bad = (source if line[1] == ".de" else target).split(b"\n")[int(line[2]) - 1]
            with pytest.raises(UnicodeDecodeError):
                bad.decode()
        return
    # The slow way: line by line, in bytes.
    rows = [content.split(b"\n") for content in (source, target)]
    rows = [lines[:-1] if lines[-1] == b"" else lines for lines in rows]
    assert len(rows[0]) == len(rows[1]) == len(pairs.source) + pairs.dropped
    wanted = [tuple(line.removesuffix(b"\r").decode() for line in row) for row in zip(*rows, strict=True)]
    assert list(zip(pairs.source, pairs.target, strict=True)) == [(a, b) for a, b in wanted if a.strip() and b.strip()]


def test_the_digest_is_of_the_text_and_of_nothing_else(directory: Path) -> None:
    before = digest(find(directory, "de", "en"))
    for name in ("train.de", "valid.en"):
        path = directory / name
        (directory / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    (directory / "test.de").write_text("x")
    (directory / "test.en").write_text("x")
    assert digest(find(directory, "de", "en")) == before
    assert digest(find(directory, "en", "de")) != before
    text = (directory / "train.en").read_bytes()
    (directory / "train.en").write_bytes(text[:-1] + b"\n\n")
    longer = digest(find(directory, "de", "en"))
    (directory / "train.en").write_bytes(text.replace(b"dog", b"dig", 1))
    assert len({before, longer, digest(find(directory, "de", "en"))}) == 3
