"""Something to learn, for a model whose factory gives no loss: a fresh batch at every step, of a source that can be
learnt and that generalises.

    tokens   sentences of one of `topics` topics each: a chain over its own words, after each of which come FOLLOW
             others, with probabilities CHANCES. A decoder guesses the next token; a model that sees what comes guesses
             hidden ones, every fourth or so, from those around
    images   noise around a mean a class: guess the class

`frequencies` is what a model reaches that knows how often each word, or class, comes and nothing else (nats): a model
that passes that level has learnt something of the source. Batches are a function of (seed, step).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from stabkit.streams import stream

WORDS, TOPICS, CHANCES = 64, 8, (0.55, 0.25, 0.15, 0.05)
FOLLOW = len(CHANCES)
MARKS = 4
"""The lowest ids of a vocabulary, which often mean padding or an end: not used where there are enough others."""
HIDDEN = 0.25
"""Share of tokens that are hidden."""
NOISE = 6.0
"""Standard deviation around a class' mean, whose entries have 1."""


DESCRIBED = f"{TOPICS} topics of {WORDS // TOPICS} words"


@dataclass(frozen=True)
class Words:
    """A chain of words in a vocabulary."""

    vocabulary: int
    seed: int

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """(words,) of the vocabulary; the last of it is kept free, to hide others by."""
        first = MARKS if self.vocabulary > WORDS + MARKS else 0
        count = max(2, min(WORDS, self.vocabulary - first - 1))
        if self.vocabulary < 3:
            return np.arange(self.vocabulary, dtype=np.int64)
        drawn = stream(self.seed, "learnable words").choice(self.vocabulary - first - 1, count, replace=False)
        return np.sort(drawn) + first

    @property
    def mask(self) -> int:
        """The id that stands for a hidden word."""
        return self.vocabulary - 1

    @cached_property
    def after(self) -> NDArray[np.float64]:
        """(words × words) probability of the next, of the same topic."""
        count = len(self.ids)
        random = stream(self.seed, "learnable chain")
        chain = np.zeros((count, count))
        for topic in np.array_split(np.arange(count), max(1, min(TOPICS, count // FOLLOW))):
            for word in topic:
                following = random.choice(topic, min(FOLLOW, len(topic)), replace=False)
                chain[word, following] = CHANCES[: len(following)]
        total: NDArray[np.float64] = chain / chain.sum(axis=1, keepdims=True)
        return total

    @cached_property
    def often(self) -> NDArray[np.float64]:
        """(words,) how often each comes; low topics come oftener than high ones."""
        topics = np.arange(len(self.ids)) * max(1, min(TOPICS, len(self.ids) // FOLLOW)) // max(1, len(self.ids))
        share = 1.0 / (topics + 2.0)
        for _ in range(500):
            share = 0.5 * (share + share @ self.after)
        total: NDArray[np.float64] = share / share.sum()
        return total

    @property
    def frequencies(self) -> float:
        """−Σ p·ln p: the loss of who knows frequencies alone, nats."""
        return float(-(self.often * np.log(self.often)).sum())

    @property
    def entropy(self) -> float:
        """Of the chain, −Σ p(w)·Σ p(v|w)·ln p(v|w): the loss of who knows which words follow which, nats."""
        surprise = -(self.after * np.log(np.where(self.after > 0, self.after, 1.0))).sum(axis=1)
        return float((self.often * surprise).sum())

    def batch(self, shape: tuple[int, int], step: int) -> torch.Tensor:
        """(sentences × tokens) ids."""
        random = stream(self.seed, f"learnable tokens {step}")
        cumulated = np.cumsum(self.after, axis=1)
        chosen = random.random(shape)
        words = np.empty(shape, dtype=np.int64)
        words[:, 0] = np.searchsorted(np.cumsum(self.often), chosen[:, 0])
        for t in range(1, shape[1]):
            words[:, t] = (cumulated[words[:, t - 1]] < chosen[:, t, None]).sum(axis=1)
        return torch.from_numpy(self.ids[np.minimum(words, len(self.ids) - 1)])

    def hidden(self, tokens: torch.Tensor, step: int) -> torch.Tensor:
        """(sentences × tokens) which of a batch's are hidden: at least one."""
        drawn = torch.from_numpy(stream(self.seed, f"learnable mask {step}").random(tuple(tokens.shape)))
        return (drawn < HIDDEN) | (drawn == drawn.min())


@dataclass(frozen=True)
class Pictures:
    """Classes of images, each around its mean."""

    classes: int
    size: tuple[int, int, int]
    """Channels, height, width."""
    seed: int

    @cached_property
    def means(self) -> NDArray[np.float64]:
        return stream(self.seed, "learnable means").standard_normal((self.classes, *self.size))

    @property
    def frequencies(self) -> float:
        """ln of the classes, nats."""
        return float(np.log(self.classes))

    def batch(self, count: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(images, labels)."""
        random = stream(self.seed, f"learnable images {step}")
        labels = random.integers(0, self.classes, count)
        noise = NOISE * random.standard_normal((count, *self.size))
        return torch.from_numpy(self.means[labels] + noise).float(), torch.from_numpy(labels)


Scores = Callable[[torch.Tensor], torch.Tensor]
"""What a model makes of tokens or images."""


def next_token(scores: Scores, words: Words, shape: tuple[int, int], step: int, device: torch.device) -> torch.Tensor:
    """Cross-entropy of each token but the first; nats."""
    tokens = words.batch(shape, step).to(device)
    logits = scores(tokens)
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def masked(scores: Scores, words: Words, shape: tuple[int, int], step: int, device: torch.device) -> torch.Tensor:
    """Cross-entropy of the hidden tokens; nats."""
    tokens = words.batch(shape, step)
    hidden = words.hidden(tokens, step)
    given = tokens.masked_fill(hidden, words.mask).to(device)
    logits = scores(given)
    return torch.nn.functional.cross_entropy(logits[hidden.to(device)].float(), tokens[hidden].to(device))


def classified(scores: Scores, pictures: Pictures, count: int, step: int, device: torch.device) -> torch.Tensor:
    """Cross-entropy of the classes; nats."""
    images, labels = pictures.batch(count, step)
    return torch.nn.functional.cross_entropy(scores(images.to(device)).float(), labels.to(device))
