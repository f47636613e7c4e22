"""Parallel text as a task: batches bounded, complete and the same every time; vocabularies that fit or are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from stabkit.errors import UsageError
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch
from stabkit.tasks.text import ParallelText, find, read
from tests.conftest import examples
from tests.tasks.conftest import decode, encode

Said = Callable[..., str]


def build(directory: Path, vocab: int = 100, max_tokens: int = 64) -> ParallelText:
    return ParallelText(corpus=find(directory, "de", "en"), vocab=vocab, max_tokens=max_tokens)


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("source", "target_in", "target_out"))


@pytest.fixture(scope="module")
def shared(unchanged: Path) -> tuple[ParallelText, ParallelText]:
    """One corpus, loaded twice."""
    return build(unchanged), build(unchanged)


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
                said_source.append(decode(task, source))
                said_target.append(decode(task, target))
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
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_batch_is_a_function_of_seed_and_step(
    shared: tuple[ParallelText, ParallelText], seed: int, step: int
) -> None:
    task, again = shared
    wanted = task.train(seed, step)
    task.train(seed + 1, step + task.epoch)
    assert same(wanted, task.train(seed, step)) and same(wanted, again.train(seed, step))


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
    assert len(validation) == 2 and all(same(a, b) for a, b in zip(validation, again.validation(), strict=True))
    sizes = [batch.source.shape[1] for batch in validation]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
    held_out = read(task.corpus.validation)
    drawn = [decode(task, row) for batch in (probe, *validation) for row in batch.target_out.tolist()]
    assert all(sentence in held_out.target for sentence in drawn)
    assert len(drawn) <= len(held_out.target)


def test_few_validation_pairs_serve_as_the_probe_too(directory: Path) -> None:
    for name in ("valid.de", "valid.en"):
        (directory / name).write_text("park\n")
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
    ids = encode(task, "die katze schläft im park")
    assert UNK not in ids and decode(task, ids) == "die katze schläft im park"
    assert decode(task, [BOS, *ids, EOS, *ids, PAD]) == "die katze schläft im park"
    assert decode(task, []) == decode(task, [EOS]) == decode(task, [BOS]) == ""
    assert not {PAD, BOS, EOS} & set(encode(task, "<s> </s> <pad> <unk>"))


def test_pairs_without_words_and_pairs_too_long_are_counted(directory: Path) -> None:
    for language, extra in (("de", "\u200b\nhund\n" + "hund " * 70), ("en", "dog\n\ndog")):
        with (directory / f"train.{language}").open("a", encoding="utf-8", newline="\n") as file:
            file.write(extra)
    task = build(directory, max_tokens=64)
    assert (task.prepared.dropped, task.prepared.left_out) == (2, 1)
    assert task.target_counts()[EOS] == 300
    assert build(directory, max_tokens=300).prepared.left_out == 0


def test_a_corpus_of_which_nothing_fits_is_an_error(directory: Path, said: Said) -> None:
    for name in ("valid.de", "valid.en"):
        (directory / name).write_text("hund " * 70)
    message = said(lambda: build(directory))
    assert "valid.de" in message and "has an empty side or more than 64 tokens" in message
    for name in ("train.de", "train.en"):
        (directory / name).write_text("\u200b\n\u200b\n")
    assert "once normalised it has no characters" in said(lambda: build(directory))


def test_a_vocabulary_that_the_text_cannot_fill_is_a_usage_error(
    directory: Path, capfd: pytest.CaptureFixture[str], said: Said
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


@pytest.mark.slow
def test_multi30k_is_read_whole(multi30k: Path) -> None:
    corpus = find(multi30k, "de", "en")
    assert corpus.validation[0].name == "val.de.gz"
    assert [len(read(sides).source) for sides in (corpus.train, corpus.validation)] == [29_000, 1014]
    task = ParallelText(corpus=corpus, vocab=2000, max_tokens=512)
    assert (task.prepared.dropped, task.prepared.left_out) == (0, 0)
    assert task.target_counts()[EOS] == 29_000
    batches = [task.train(0, step) for step in range(500)]
    filled = np.mean([np.count_nonzero(batch.source) + np.count_nonzero(batch.target_out) for batch in batches])
    assert filled > 0.85 * 2 * 512
    assert [len(task.validation()), task.vocab] == [2, 2000]
    sentence = "Ein Mann schläft in einem grünen Raum auf einem Sofa."
    assert decode(task, encode(task, sentence)) == sentence
