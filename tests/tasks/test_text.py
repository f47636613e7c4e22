"""Parallel text: files found or named, lines paired or refused, batches bounded and the same every time."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stabkit.errors import CorpusError, StabkitError, UsageError
from stabkit.tasks import corpus as files
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch
from stabkit.tasks.text import Corpus, ParallelText, digest, find, read

MULTI30K = Path(
    os.environ.get("STABKIT_MULTI30K", Path(__file__).resolve().parents[2].parent / "shared" / "data" / "multi30k")
)
multi30k = pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"needs Multi30k in {MULTI30K} (set STABKIT_MULTI30K)")

DE = "ein die der hund katze läuft schläft über wiese straße rot klein groß und mann frau sieht im park".split()
EN = "a the one dog cat runs sleeps over meadow street red small big and man woman sees in park".split()


def sentences(count: int, seed: int = 0) -> tuple[str, str]:
    """Text of `count` lines in two made-up languages that are word for word the same."""
    rng = np.random.default_rng(seed)
    lines = [rng.integers(len(DE), size=rng.integers(1, 15)) for _ in range(count)]
    return tuple("".join(" ".join(words[i] for i in line) + "\n" for line in lines) for words in (DE, EN))  # type: ignore[return-value]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A sound corpus of 300 and 60 pairs."""
    for stem, count, seed in (("train", 300, 0), ("valid", 60, 1)):
        for language, text in zip(("de", "en"), sentences(count, seed), strict=True):
            (tmp_path / f"{stem}.{language}").write_text(text, encoding="utf-8")
    return tmp_path


def build(directory: Path, vocab: int = 100, max_tokens: int = 64) -> ParallelText:
    return ParallelText(corpus=find(directory, "de", "en"), vocab=vocab, max_tokens=max_tokens)


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("source", "target_in", "target_out"))


def said(call: Callable[[], object], kind: type[StabkitError] = CorpusError) -> str:
    """The one line of the error that the call must raise."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert message.isprintable(), "one line, no control characters"
    return message


# --- finding the files ------------------------------------------------------------------------------------------------


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
        test=(tmp_path / "test_2016.de", tmp_path / "test_2016.en"),
    )


def test_a_test_set_is_optional_and_needs_both_sides(directory: Path) -> None:
    assert find(directory, "de", "en").test is None
    (directory / "test_a.de").touch()
    assert find(directory, "de", "en").test is None
    for name in ("test_c.de", "test_c.en", "test_b.2.de.gz", "test_b.2.en"):
        (directory / name).touch()
    assert find(directory, "de", "en").test == (directory / "test_b.2.de.gz", directory / "test_b.2.en")


def test_the_plain_file_is_read_where_a_compressed_one_stands_beside_it(directory: Path) -> None:
    (directory / "train.de.gz").write_bytes(b"anything")
    assert find(directory, "de", "en").train[0] == directory / "train.de"


def test_a_link_to_a_regular_file_is_one(directory: Path) -> None:
    (directory / "train.de").rename(directory / "elsewhere")
    (directory / "train.de").symlink_to("elsewhere")
    assert len(read(find(directory, "de", "en").train).source) == 300


def test_a_missing_file_is_named_with_what_is_there(directory: Path) -> None:
    (directory / "valid.en").rename(directory / "valid.fr")
    message = said(lambda: find(directory, "de", "en"))
    assert "needed valid.de with valid.en or val.de with val.en or dev.de with dev.en (or .gz)" in message
    assert message.endswith("found 'train.de', 'train.en', 'valid.de', 'valid.fr'")
    assert "needed train.de with train.nl (or .gz)" in said(lambda: find(directory, "de", "nl"))


def test_hostile_names_in_the_directory_are_shown_harmlessly(tmp_path: Path) -> None:
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
def test_a_language_is_a_short_plain_name(directory: Path, language: str) -> None:
    assert "a language is 1 to 16 of" in said(lambda: find(directory, language, "en"), UsageError)
    assert "a language is 1 to 16 of" in said(lambda: find(directory, "de", language), UsageError)


def test_a_language_is_not_translated_into_itself(directory: Path) -> None:
    assert "two languages, got 'de' for both" in said(lambda: find(directory, "de", "de"), UsageError)


def test_a_directory_that_is_none_is_said_to_be_so(directory: Path) -> None:
    assert "does not exist" in said(lambda: find(directory / "none", "de", "en"))
    assert "is a file" in said(lambda: find(directory / "train.de", "de", "en"))
    assert "cannot be read" in said(lambda: find(Path("a\0b"), "de", "en"))
    assert "cannot be read" in said(lambda: find(Path("a" * 300), "de", "en"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_said_to_be_so(directory: Path) -> None:
    (directory / "train.de").chmod(0)
    assert "train.de cannot be read: Permission denied" in said(lambda: find(directory, "de", "en"))
    directory.chmod(0)
    message = said(lambda: find(directory, "de", "en"))
    directory.chmod(0o700)
    assert "cannot be read: Permission denied" in message


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_only_regular_files_are_read_and_none_is_waited_for(directory: Path, make: Callable[[Path], None]) -> None:
    (directory / "train.de").unlink()
    make(directory / "train.de")
    assert "train.de is not a regular file" in said(lambda: find(directory, "de", "en"))


def test_a_dangling_link_cannot_be_read(directory: Path) -> None:
    (directory / "train.de").unlink()
    (directory / "train.de").symlink_to("nothing")
    assert "train.de cannot be read: No such file" in said(lambda: find(directory, "de", "en"))


# --- reading the lines ------------------------------------------------------------------------------------------------


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
def test_nothing_to_read_is_an_error(tmp_path: Path, content: bytes, what: str) -> None:
    message = said(lambda: read(pair(tmp_path, content, content)))
    assert what in message and "train.de" in message and "train.en" in message


def test_unequal_counts_name_both_files_and_both_counts(tmp_path: Path) -> None:
    message = said(lambda: read(pair(tmp_path, b"a\nb\nc", b"1\n2\n")))
    assert "train.de has 3 lines" in message and "train.en has 2" in message


def test_text_that_is_not_utf8_is_named_by_file_and_line(tmp_path: Path) -> None:
    message = said(lambda: read(pair(tmp_path, b"a\nb\nc\n", b"1\n2\nf\xfcr\n")))
    assert message.endswith("train.en:3: not UTF-8 (byte 0xfc)")
    assert "train.de:1: not UTF-8" in said(lambda: read(pair(tmp_path, "a\n".encode("utf-16"), b"1\n")))


def test_a_line_may_not_be_a_book(tmp_path: Path) -> None:
    fits = "ü" * (files.LONGEST_LINE // 2)
    assert read(pair(tmp_path, fits.encode(), b"1")).source == [fits]
    message = said(lambda: read(pair(tmp_path, b"a\n" + fits.encode() + b"x", b"1\n2")))
    assert message.endswith("train.de:2: a line of 16385 bytes, more than the 16384 allowed")


def test_a_file_may_not_have_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LINES", 3)
    assert len(read(pair(tmp_path, b"a\nb\nc", b"1\n2\n3\n")).source) == 3
    assert "has 4 lines; at most 3" in said(lambda: read(pair(tmp_path, b"a\n" * 4, b"1\n" * 4)))


@pytest.mark.parametrize("cut", [0, 5, 15, -1, -9])
def test_a_damaged_gzip_file_is_a_corpus_error(tmp_path: Path, cut: int) -> None:
    whole = gzip.compress(b"a\nb\nc\n" * 100)
    path = tmp_path / "train.de.gz"
    for damaged in (whole[:cut] or b"plain text", whole[:cut] + b"\xff\x00\xff" + whole[cut:]):
        path.write_bytes(damaged)
        assert "train.de.gz is not a sound gzip file" in said(lambda: read((path, path)))


def test_a_gzip_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 3 * 2**20)
    path = tmp_path / "train.de.gz"
    path.write_bytes(gzip.compress(b"a" * (3 * 2**20 + 1), 1))
    assert "more than 3 MiB" in said(lambda: read((path, path)))


def test_a_name_with_control_characters_is_shown_harmlessly(tmp_path: Path) -> None:
    (tmp_path / "a\n\x1b[31m").mkdir()
    message = said(lambda: read(pair(tmp_path / "a\n\x1b[31m", b"\xff", b"a")))
    assert r"a\n\x1b[31m" in message


TEXT = st.binary(max_size=40) | st.text(max_size=40).map(str.encode) | st.text("ab \n\r\x85\u2028").map(str.encode)


@given(source=TEXT, target=TEXT, compressed=st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# --- the task ---------------------------------------------------------------------------------------------------------


def test_importing_the_package_loads_neither_torch_nor_sentencepiece() -> None:
    code = "import sys, stabkit.tasks, stabkit.tasks.text; assert not {'torch', 'sentencepiece'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_epoch_holds_every_pair_once_in_batches_within_their_size(directory: Path) -> None:
    task = build(directory, max_tokens=64)
    wanted = read(task.corpus.train)
    for epoch in (0, 1):
        said_source, said_target, step = [], [], epoch * task.epoch
        for step in range(epoch * task.epoch, (epoch + 1) * task.epoch):
            batch = task.train(0, step)
            assert len(batch.source) * max(batch.source.shape[1], batch.target_in.shape[1]) <= 64
            assert batch.target_in.shape == batch.target_out.shape
            assert (batch.target_in[:, 0] == BOS).all()
            assert np.array_equal(
                batch.target_in[:, 1:], np.where(batch.target_out[:, :-1] == EOS, PAD, batch.target_out[:, :-1])
            )
            for source, target in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True):
                assert source.count(EOS) == target.count(EOS) == 1
                said_source.append(task.decode(source))
                said_target.append(task.decode(target))
        assert sorted(zip(said_source, said_target, strict=True)) == sorted(
            zip(wanted.source, wanted.target, strict=True)
        )


def test_sentences_of_a_batch_are_of_similar_length(directory: Path) -> None:
    task = build(directory, max_tokens=128)
    batches = [task.train(0, step) for step in range(task.epoch)]
    longest = [max(batch.source.shape[1], batch.target_in.shape[1]) for batch in batches]
    assert len(set(longest)) > 5 and longest != sorted(longest) and longest != sorted(longest, reverse=True)
    filled = sum(np.count_nonzero(b.source) + np.count_nonzero(b.target_out) for b in batches)
    assert filled / sum(b.source.size + b.target_out.size for b in batches) > 0.85


@given(seed=st.integers(0, 2**63), step=st.integers(0, 10**9))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_batch_is_a_function_of_seed_and_step(
    shared: tuple[ParallelText, ParallelText], seed: int, step: int
) -> None:
    task, again = shared
    wanted = task.train(seed, step)
    task.train(seed + 1, step + task.epoch)
    assert same(wanted, task.train(seed, step)) and same(wanted, again.train(seed, step))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[ParallelText, ParallelText]:
    """One corpus, loaded twice."""
    directory = tmp_path_factory.mktemp("corpus")
    for stem, count, seed in (("train", 300, 0), ("dev", 60, 1)):
        for language, text in zip(("de", "en"), sentences(count, seed), strict=True):
            (directory / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return build(directory), build(directory)


def test_every_epoch_and_every_seed_has_an_order_of_its_own(shared: tuple[ParallelText, ParallelText]) -> None:
    task, _ = shared
    first = [[task.train(seed, step).source.tolist() for step in range(task.epoch)] for seed in (0, 1)]
    second = [task.train(0, task.epoch + step).source.tolist() for step in range(task.epoch)]
    assert first[0] != first[1] and first[0] != second


def test_the_measuring_batches_are_fixed_and_held_out(shared: tuple[ParallelText, ParallelText]) -> None:
    task, again = shared
    probe, validation = task.probe(), task.validation()
    assert same(probe, again.probe()) and same(task.calibration(3), again.calibration(3))
    assert not same(task.calibration(3), task.calibration(4))
    assert len(validation) == 3 and all(same(a, b) for a, b in zip(validation, again.validation(), strict=True))
    sizes = [batch.source.shape[1] for batch in validation]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
    held_out = read(task.corpus.validation)
    drawn = [task.decode(row) for batch in (probe, *validation) for row in batch.target_out.tolist()]
    assert all(sentence in held_out.target for sentence in drawn)
    assert len(drawn) <= len(held_out.target)


def test_few_validation_pairs_serve_as_the_probe_too(directory: Path) -> None:
    for language, text in zip(("de", "en"), sentences(1, seed=5), strict=True):
        (directory / f"valid.{language}").write_text(text, encoding="utf-8")
    task = build(directory)
    assert len(task.validation()) == 1 and same(task.probe(), task.validation()[0])


def test_target_counts_are_of_one_epoch(shared: tuple[ParallelText, ParallelText]) -> None:
    task, _ = shared
    counted = np.zeros(task.vocab, dtype=np.int64)
    for step in range(task.epoch):
        for row in task.train(0, step).target_out.tolist():
            for token in row:
                counted[token] += token != PAD
    assert np.array_equal(task.target_counts(), counted)
    assert counted[EOS] == 300 and counted[PAD] == counted[BOS] == 0


def test_a_sentence_encoded_and_decoded_is_itself(shared: tuple[ParallelText, ParallelText]) -> None:
    task, _ = shared
    ids = task.encode("die katze schläft im park")
    assert UNK not in ids and task.decode(ids) == "die katze schläft im park"
    assert task.decode([BOS, *ids, EOS, *ids, PAD]) == "die katze schläft im park"
    assert task.decode([]) == task.decode([EOS]) == task.decode([BOS]) == ""
    assert not {PAD, BOS, EOS} & set(task.encode("<s> </s> <pad> <unk>"))


def test_pairs_without_words_and_pairs_too_long_are_counted(directory: Path) -> None:
    for language, extra in (("de", "\u200b\nhund\n" + "hund " * 70), ("en", "dog\n\ndog")):
        with (directory / f"train.{language}").open("a", encoding="utf-8", newline="\n") as file:
            file.write(extra)
    task = build(directory, max_tokens=64)
    assert (task.dropped, task.left_out) == (2, 1)
    assert task.target_counts()[EOS] == 300
    assert build(directory, max_tokens=300).left_out == 0


def test_a_corpus_of_which_nothing_fits_is_an_error(directory: Path) -> None:
    for name in ("valid.de", "valid.en"):
        (directory / name).write_text("hund " * 70)
    message = said(lambda: build(directory))
    assert "valid.de" in message and "blank on a side or longer than 64 tokens" in message
    for name in ("train.de", "train.en"):
        (directory / name).write_text("\u200b\n\u200b\n")
    assert "once normalised it has no characters" in said(lambda: build(directory))


def test_a_vocabulary_that_the_text_cannot_fill_is_a_usage_error(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    least = re.search(
        r"at least (\d+) subwords \(its characters\), got 20", said(lambda: build(directory, 20), UsageError)
    )
    most = re.search(r"at most (\d+) subwords, got 5000", said(lambda: build(directory, 5000), UsageError))
    assert least and most
    for vocab in (int(least[1]), int(most[1])):
        assert build(directory, vocab).vocab == vocab
    for vocab in (int(least[1]) - 1, int(most[1]) + 1, 4, 0, -1, 10**30):
        said(lambda vocab=vocab: build(directory, vocab), UsageError)  # type: ignore[misc]
    assert "at least 2 tokens" in said(lambda: build(directory, max_tokens=1), UsageError)
    assert capfd.readouterr() == ("", "")


def test_the_digest_covers_text_vocabulary_and_batch_size(directory: Path) -> None:
    tasks = [build(directory), build(directory, vocab=101), build(directory, max_tokens=65)]
    (directory / "valid.de").write_text((directory / "valid.de").read_text(encoding="utf-8") + "x\n", encoding="utf-8")
    (directory / "valid.en").write_text((directory / "valid.en").read_text() + "x\n")
    tasks.append(build(directory))
    assert len({task.digest for task in tasks}) == 4


@multi30k
def test_multi30k_is_read_whole_and_quickly() -> None:
    corpus = find(MULTI30K, "de", "en")
    assert corpus.validation[0].name == "val.de.gz" and corpus.test is not None
    assert [len(read(sides).source) for sides in (corpus.train, corpus.validation, corpus.test)] == [29_000, 1014, 1000]
    start = time.perf_counter()
    task = ParallelText(corpus=corpus, vocab=2000, max_tokens=512)
    assert time.perf_counter() - start < 5  # 1.0 s on an idle core
    assert (task.dropped, task.left_out) == (0, 0)
    assert task.target_counts()[EOS] == 29_000
    start = time.perf_counter()
    batches = [task.train(0, step) for step in range(500)]
    assert (time.perf_counter() - start) / 500 < 1e-3
    filled = np.mean([np.count_nonzero(batch.source) + np.count_nonzero(batch.target_out) for batch in batches])
    assert filled > 0.85 * 2 * 512
    assert [len(task.validation()), task.vocab] == [3, 2000]
    sentence = "Ein Mann schläft in einem grünen Raum auf einem Sofa."
    assert task.decode(task.encode(sentence)) == sentence
