"""What one stack alone learns: which words are asked of the masked model, and what stays as the task has it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from stabkit.tasks import objective
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch, Tokens, unigram_loss
from stabkit.tasks.objective import MASK, LanguageModel
from stabkit.tasks.synthetic import Synthetic

TASK = Synthetic(vocab=500, max_tokens=1024)
MASKED = objective.of(TASK, 6, 0)
CAUSAL = objective.of(TASK, 0, 6)
LARGE = Synthetic(vocab=500, max_tokens=60_000)


def same(one: Batch, other: Batch) -> bool:
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("source", "target_in", "target_out"))


def words_of(batch: Batch) -> Tokens:
    """(B, T) the sentence of a translation that the masked model reads: its target side with end marks."""
    return batch.target_out


def every(task: LanguageModel | Synthetic) -> list[Batch]:
    return [task.train(3, 7), task.probe(), *task.validation(), task.calibration(3)]


def test_an_encoder_and_a_decoder_learn_the_task_itself() -> None:
    assert objective.of(TASK, 6, 6) is TASK and objective.of(TASK, 1, 2) is TASK
    assert MASKED == LanguageModel(TASK, masked=True) and CAUSAL == LanguageModel(TASK, masked=False)


def test_exactly_fifteen_percent_of_the_words_are_asked_and_no_mark_is() -> None:
    for plain, batch in zip(every(TASK), every(MASKED), strict=True):
        words, asked = words_of(plain), batch.target_out != PAD
        is_word = (words != PAD) & (words != EOS)
        assert asked.sum() == round(0.15 * is_word.sum()) and not (asked & ~is_word).any()
        assert (batch.target_out[asked] == words[asked]).all()


def test_of_a_single_word_one_is_asked() -> None:
    one = Batch(np.array([[5, EOS]]), np.array([[BOS, 9]]), np.array([[9, EOS]]))
    batch = LanguageModel(TASK, masked=True)._alone(one, 0, "train", 0)
    assert batch.target_out.tolist() == [[9, PAD]] and batch.source[0, 1] == EOS
    nothing = Batch(np.array([[EOS]]), np.array([[BOS]]), np.array([[EOS]]))
    assert LanguageModel(TASK, masked=True)._alone(nothing, 0, "train", 0).target_out.tolist() == [[PAD]]


def test_what_is_not_asked_is_read_as_it_is() -> None:
    for plain, batch in zip(every(TASK), every(MASKED), strict=True):
        kept = batch.target_out == PAD
        assert batch.source.shape == batch.target_out.shape == words_of(plain).shape
        assert (batch.source[kept] == words_of(plain)[kept]).all()
        assert batch.target_in.shape == (len(batch.source), 0) and batch.source.dtype == np.int64


def test_of_the_words_asked_80_percent_are_masked_10_replaced_and_10_stay() -> None:
    batch, words = LanguageModel(LARGE, masked=True).train(0, 0), words_of(LARGE.train(0, 0))
    asked = batch.target_out != PAD
    read, true = batch.source[asked], words[asked]
    count = len(read)
    masked, stays = int((read == MASK).sum()), int((read == true).sum())
    replaced = count - masked - stays
    assert count > 5000
    for found, share in ((masked, 0.8), (stays, 0.1), (replaced, 0.1)):
        assert abs(found - share * count) < 4 * np.sqrt(share * (1 - share) * count)


def test_replacements_are_any_word_and_no_mark_and_the_words_asked_are_anywhere() -> None:
    read, true, places = [], [], []
    for step in range(8):
        batch, words = LanguageModel(LARGE, masked=True).train(0, step), words_of(LARGE.train(0, step))
        asked = batch.target_out != PAD
        read.append(batch.source[asked])
        true.append(words[asked])
        places.append(np.nonzero(asked)[1] / (np.count_nonzero(words, axis=1)[np.nonzero(asked)[0]] - 1))
    given, own = np.concatenate(read), np.concatenate(true)
    other = given[(given != MASK) & (given != own)]
    assert other.min() == UNK + 1 and other.max() == LARGE.vocab - 1 and len(np.unique(other)) > 0.9 * (LARGE.vocab - 4)
    middles = np.histogram(np.concatenate(places), bins=4, range=(0, 1))[0]
    assert middles.min() > 0.7 * middles.max(), "the beginning is asked as often as the end"


def test_the_mask_is_a_symbol_that_an_encoder_meets_nowhere_else() -> None:
    assert MASK == BOS
    assert not any((batch.source == MASK).any() for batch in every(TASK))
    assert all((words_of(batch) != MASK).all() for batch in every(TASK))


@pytest.mark.parametrize("task", [MASKED, CAUSAL], ids=["masked", "causal"])
def test_a_batch_is_a_function_of_seed_and_step(task: LanguageModel) -> None:
    again = LanguageModel(Synthetic(vocab=500, max_tokens=1024), masked=task.masked)
    for seed, step in ((0, 0), (0, 1), (5, 0), (5, 99)):
        assert same(task.train(seed, step), again.train(seed, step))
    batches = [task.train(seed, step) for seed, step in ((0, 0), (0, 1), (5, 0), (5, 99))]
    assert not any(same(one, other) for one, other in pairwise(batches))
    assert same(task.probe(), again.probe()) and same(task.calibration(2), again.calibration(2))
    assert not same(task.calibration(2), task.calibration(3))


def test_the_same_sentence_is_masked_elsewhere_at_another_step_seed_and_place() -> None:
    """The words of one batch, masked as others: what is asked follows seed, step and which batch it is."""
    batch = TASK.train(0, 0)
    asked = [
        LanguageModel(TASK, masked=True)._alone(batch, seed, which, number).target_out
        for seed, which, number in ((0, "train", 0), (0, "train", 1), (1, "train", 0), (0, "probe", 0))
    ]
    for i, one in enumerate(asked):
        assert not any(np.array_equal(one, other) for other in asked[:i])
        assert (one != PAD).sum() == (asked[0] != PAD).sum()


def test_batches_of_validation_are_masked_each_in_its_own_way() -> None:
    seen = [tuple(np.flatnonzero(batch.target_out)[:20]) for batch in MASKED.validation()]
    assert len(set(seen)) == len(seen) > 1


def test_the_causal_model_reads_the_target_side_alone_one_word_behind() -> None:
    for plain, batch in zip(every(TASK), every(CAUSAL), strict=True):
        assert batch.source.shape == (len(batch.target_in), 0) and batch.source.dtype == np.int64
        assert np.array_equal(batch.target_in, plain.target_in) and np.array_equal(batch.target_out, plain.target_out)
        assert (batch.target_in[:, 0] == BOS).all()
        behind = np.where(batch.target_out[:, :-1] == EOS, PAD, batch.target_out[:, :-1])
        assert np.array_equal(batch.target_in[:, 1:], behind)


def test_both_read_the_very_sentences_of_the_translation() -> None:
    for seed, step in ((0, 0), (1, 5)):
        plain, masked = TASK.train(seed, step), MASKED.train(seed, step)
        hidden = masked.target_out != PAD
        assert np.array_equal(np.where(hidden, masked.target_out, masked.source), plain.target_out)


def test_the_counts_of_the_masked_model_leave_the_end_mark_out_and_change_nobody_elses() -> None:
    plain = TASK.target_counts().copy()
    found = MASKED.target_counts()
    assert found[EOS] == 0 < plain[EOS]
    assert np.array_equal(np.delete(found, EOS), np.delete(plain, EOS))
    assert np.array_equal(TASK.target_counts(), plain) and np.array_equal(CAUSAL.target_counts(), plain)


@pytest.mark.parametrize("task", [MASKED, CAUSAL], ids=["masked", "causal"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_unigram_loss_is_what_a_constant_predictor_loses(task: LanguageModel, smoothing: float) -> None:
    """torch's cross-entropy of log q at every place asked, q of the counts add-one-smoothed; the constant that has
    seen these very words loses less, the one that knows nothing more."""
    counts = task.target_counts()
    p = torch.from_numpy((counts + 1) / (counts + 1).sum())
    q = ((1 - smoothing) * p + smoothing / task.vocab).log()
    asked = torch.cat([torch.from_numpy(batch.target_out).flatten() for batch in task.validation()])
    asked = asked[asked != PAD]

    def loses(logits: torch.Tensor) -> float:
        every_place = logits.expand(len(asked), -1)
        return float(torch.nn.functional.cross_entropy(every_place, asked, label_smoothing=smoothing))

    told = unigram_loss(counts, task.validation(), smoothing)
    assert told == pytest.approx(loses(q))
    seen = torch.bincount(asked, minlength=task.vocab).double()
    best = loses(((1 - smoothing) * (seen + 1e-9) / (seen + 1e-9).sum() + smoothing / task.vocab).log())
    assert best <= told < loses(torch.zeros(task.vocab).double())


@pytest.mark.parametrize(("task", "name"), [(MASKED, "synthetic, masked"), (CAUSAL, "synthetic, causal")])
def test_what_is_learnt_is_named_and_the_corpus_stays_the_tasks(task: LanguageModel, name: str) -> None:
    assert (task.name, task.digest, task.vocab) == (name, TASK.digest, TASK.vocab)
