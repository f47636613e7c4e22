"""Cutting sentences into batches and writing them with their marks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabkit.tasks.base import BOS, EOS, PAD
from stabkit.tasks.buckets import bracket, cut, full, spread


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=200), max_tokens=st.integers(30, 200))
def test_every_sentence_is_in_one_batch_within_its_size_and_no_batch_could_take_the_next(
    lengths: list[int], max_tokens: int
) -> None:
    batches = [batch.tolist() for batch in cut(np.array(lengths), max_tokens)]
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    in_order = [lengths[i] for batch in batches for i in batch]
    assert in_order == sorted(lengths, reverse=True)
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        assert len(batch) * longest <= max_tokens
        assert batch is batches[-1] or (len(batch) + 1) * longest > max_tokens


def test_sentences_of_one_length_keep_their_order() -> None:
    assert [batch.tolist() for batch in cut(np.array([2, 3, 2, 3, 2]), 6)] == [[1, 3], [0, 2, 4]]


def test_the_last_batch_is_full_only_where_it_is_all_there_is() -> None:
    batches = cut(np.array([5, 5, 4, 1]), 10)
    assert [batch.tolist() for batch in full(batches)] == [[0, 1]]
    assert [batch.tolist() for batch in full(batches[:1])] == [[0, 1]]


def test_spread_takes_the_middle_of_equal_parts() -> None:
    batches = [np.array([i]) for i in range(9)]
    for count, wanted in ((1, [4]), (2, [2, 6]), (3, [1, 4, 7]), (9, list(range(9))), (12, list(range(9)))):
        assert [int(batch[0]) for batch in spread(batches, count)] == wanted


def test_marks_stand_where_sentences_begin_and_end() -> None:
    batch = bracket(np.array([[7, 8], [9, PAD]]), np.array([[5, PAD, PAD], [6, 7, 8]]))
    assert batch.source.tolist() == [[7, 8, EOS], [9, EOS, PAD]]
    assert batch.target_in.tolist() == [[BOS, 5, PAD, PAD], [BOS, 6, 7, 8]]
    assert batch.target_out.tolist() == [[5, EOS, PAD, PAD], [6, 7, 8, EOS]]
