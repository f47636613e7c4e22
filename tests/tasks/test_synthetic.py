"""The synthetic task: batches bounded, full and the same every time; what is too small is refused."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.errors import UsageError
from stabkit.tasks import language
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch
from stabkit.tasks.language import FULL_STOP, SMALLEST_VOCAB
from stabkit.tasks.synthetic import SMALLEST_BATCH, Synthetic
from tests.conftest import examples


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("source", "target_in", "target_out"))


def test_a_batch_has_its_marks_and_stays_within_its_size() -> None:
    for max_tokens in (SMALLEST_BATCH, 512, 1000):
        task = Synthetic(max_tokens=max_tokens)
        batches = [task.train(3, step) for step in range(50)] + [task.probe(), *task.validation()]
        for batch in batches:
            sentences = len(batch.source)
            assert batch.source.dtype == batch.target_in.dtype == batch.target_out.dtype == np.int64
            assert batch.target_in.shape == batch.target_out.shape
            assert 0 < sentences * max(batch.source.shape[1], batch.target_in.shape[1]) <= max_tokens
            assert (batch.target_in[:, 0] == BOS).all()
            assert ((batch.source == EOS).sum(axis=1) == 1).all() and ((batch.target_out == EOS).sum(axis=1) == 1).all()
            for row in np.concatenate([batch.source.ravel(), batch.target_out.ravel()])[None]:
                assert row.min() >= 0 and row.max() < task.vocab and UNK not in row and BOS not in row
            shifted = np.where(batch.target_out[:, :-1] == EOS, PAD, batch.target_out[:, :-1])
            assert np.array_equal(batch.target_in[:, 1:], shifted)
            for padded in (batch.source, batch.target_out):
                assert (np.diff((padded == PAD).astype(int), axis=1) >= 0).all(), "PAD stands on the right only"


def test_the_longest_sentence_fits_the_smallest_batch() -> None:
    both = Synthetic(vocab=SMALLEST_VOCAB).language
    everything = np.ones((1, 2, language.SLOTS), dtype=bool)
    everything[:, 0, language.CONJUNCTION] = False
    everything[..., [language.SUBJECT + language.ADPOSITION, language.OBJECT + language.ADPOSITION]] = False
    source, target = both.say(np.random.default_rng(0), everything)
    assert source.shape == (1, 38) and target.shape == (1, 36)


def test_batches_are_full_and_lengths_mixed() -> None:
    task = Synthetic()
    batches = [task.train(0, step) for step in range(200)]
    assert np.mean([np.count_nonzero(batch.source) for batch in batches]) > 0.88 * 512
    longest = [batch.source.shape[1] for batch in batches]
    assert min(longest) <= 10 and max(longest) >= 22


@given(seed=st.integers(0, 2**63), step=st.integers(0, 10**9))
@examples(50)
def test_a_batch_is_a_function_of_seed_and_step(seed: int, step: int) -> None:
    task = Synthetic(vocab=500, max_tokens=128)
    wanted = task.train(seed, step)
    task.train(seed, step + 1)
    assert same(wanted, task.train(seed, step))
    assert same(wanted, Synthetic(vocab=500, max_tokens=128).train(seed, step))
    assert not same(wanted, task.train(seed, step + 1)) and not same(wanted, task.train(seed + 1, step))


def test_the_batches_are_those_of_version_1() -> None:
    """A change here changes every run: raise VERSION with it."""
    assert language.VERSION == 1
    batch = Synthetic(vocab=200, max_tokens=64).train(0, 0)
    assert batch.source[0].tolist() == [19, 71, 17, 66, 37, 18, 87, 15, 132, 4, 2]
    assert batch.target_out[0].tolist() == [29, 105, 148, 27, 121, 46, 22, 100, 4, 2]
    task = Synthetic()
    total = hashlib.sha256()
    for batch in (task.train(0, 0), task.train(1, 1000), task.probe(), *task.validation(), task.calibration(0)):
        for rows_ in (batch.source, batch.target_in, batch.target_out):
            total.update(rows_.astype("<i8").tobytes())
    assert total.hexdigest() == "155d1a1c7d8297454ae2d2f4e1a7b1b5fc6a8a378a7614d6aa67b9e29bd03946"


def test_the_measuring_batches_are_fixed_and_held_out() -> None:
    task, again = Synthetic(), Synthetic()
    assert same(task.probe(), again.probe()) and same(task.calibration(5), again.calibration(5))
    assert not same(task.calibration(5), task.calibration(6))
    assert all(same(a, b) for a, b in zip(task.validation(), again.validation(), strict=True))
    long, short = task.validation()
    assert long.source.shape[1] > task.probe().source.shape[1] > short.source.shape[1]
    held_out = {tuple(row[row != PAD]) for batch in (long, short) for row in batch.source}
    trained = [tuple(row[row != PAD]) for step in range(100) for row in task.train(0, step).source]
    assert sum(source in held_out for source in trained) < 0.01 * len(trained)
    assert 3500 < task.calibration(5).source.size <= 4096


def test_target_counts_are_those_of_the_training_batches() -> None:
    task = Synthetic()
    counts = task.target_counts()
    assert counts.shape == (2000,) and counts.dtype == np.int64
    assert counts[PAD] == counts[BOS] == counts[UNK] == 0 and counts[EOS] == counts[FULL_STOP] > 0
    drawn = np.zeros(2000)
    for step in range(400):
        drawn += np.bincount(task.train(0, step).target_out.ravel(), minlength=2000)
    drawn[PAD] = 0
    assert drawn[counts == 0].sum() == 0
    seen = counts > 0
    expected = counts[seen] / counts.sum() * drawn.sum()
    assert 0.9 < np.mean((drawn[seen] - expected) ** 2 / expected) < 1.1, "chi-square: 1 for words drawn one by one"
    assert np.abs(drawn[seen] / expected - 1)[expected > 1000].max() < 0.1


def test_the_digest_names_the_language_and_its_size() -> None:
    digests = {Synthetic(vocab=v, max_tokens=m).digest for v in (500, 2000) for m in (512, 1024)}
    assert len(digests) == 4 and all(len(digest) == 64 for digest in digests)
    assert Synthetic().digest in digests


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"vocab": SMALLEST_VOCAB - 1}, "vocabulary of at least 128, got 127"),
        ({"vocab": -1}, "vocabulary of at least 128, got -1"),
        ({"max_tokens": SMALLEST_BATCH - 1}, "at least 64 tokens per batch, got 63"),
    ],
)
def test_too_small_a_task_is_a_usage_error(arguments: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Synthetic(**arguments)
