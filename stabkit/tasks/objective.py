"""What a model learns on a task: to translate, or, with one stack alone, the target language.

    encoder and decoder   translation, as the task gives it
    decoder alone         causal language model: the next token of the target sentence
    encoder alone         masked language model of the target sentence (Devlin et al. 2019, §3.1): 15 % of the batch's
                          words, end marks excepted, are to be found; of these 80 % are replaced by MASK, 10 % by a
                          random word, 10 % stay. MASK is BOS, which an encoder meets nowhere else.

The language models read the same sentences as the translation does, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stabkit.streams import stream
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch, Task

MASK = BOS
MASKED, REPLACED, RANDOM = 0.15, 0.8, 0.1


def of(task: Task, encoder_layers: int, decoder_layers: int) -> Task:
    """The task as a model of N encoder and M decoder layers learns it."""
    if encoder_layers and decoder_layers:
        return task
    return LanguageModel(task, masked=bool(encoder_layers))


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """The target side of a translation task: causal (`source` is empty), or masked (`source` is what is read, and
    `target_out` is PAD wherever nothing is asked)."""

    task: Task
    masked: bool

    @property
    def name(self) -> str:
        return f"{self.task.name}, {'masked' if self.masked else 'causal'}"

    @property
    def digest(self) -> str:
        return self.task.digest

    @property
    def vocab(self) -> int:
        return self.task.vocab

    def train(self, seed: int, step: int) -> Batch:
        return self._alone(self.task.train(seed, step), seed, "train", step)

    def probe(self) -> Batch:
        return self._alone(self.task.probe(), 0, "probe", 0)

    def validation(self) -> tuple[Batch, ...]:
        return tuple(self._alone(batch, 0, "validation", i) for i, batch in enumerate(self.task.validation()))

    def calibration(self, seed: int) -> Batch:
        return self._alone(self.task.calibration(seed), seed, "calibration", 0)

    def target_counts(self) -> NDArray[np.int64]:
        """End marks are never asked of a masked model."""
        counts = self.task.target_counts().copy()
        counts[EOS] *= not self.masked
        return counts

    def _alone(self, batch: Batch, seed: int, which: str, number: int) -> Batch:
        if self.masked:
            return _masked(batch, self.vocab, stream(seed, self.task.digest, "mask", which, number))
        return replace(batch, source=np.empty((len(batch.target_in), 0), dtype=np.int64))


def _masked(batch: Batch, vocab: int, rng: np.random.Generator) -> Batch:
    """The batch's target sentences with some of their words to be found."""
    words = batch.target_out
    places = np.flatnonzero((words != PAD) & (words != EOS))
    count = max(1, round(MASKED * len(places)))
    chosen = places[np.argsort(rng.random(len(places)), kind="stable")[:count]]
    fate, other = rng.random(len(chosen)), rng.integers(UNK + 1, vocab, len(chosen))
    read, asked = words.reshape(-1).copy(), np.full(words.size, PAD, dtype=np.int64)
    asked[chosen] = read[chosen]
    read[chosen] = np.where(fate < REPLACED, MASK, np.where(fate < REPLACED + RANDOM, other, read[chosen]))
    return Batch(
        source=read.reshape(words.shape),
        target_in=np.empty((len(words), 0), dtype=np.int64),
        target_out=asked.reshape(words.shape),
    )
