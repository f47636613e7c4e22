"""A small language and its translation: what the synthetic task is made of.

A sentence is one clause or two, and a full stop. A clause is a row of slots, some of them empty; each of the two
languages is an order of those slots and a spelling of each. The source is verb-final, has postpositions and a mark
after its object, and shows number on nouns alone:

    [conjunction] [adverb] [attribute postposition] subject [place postposition] [object mark] [not] verb

The target is verb-second and has prepositions, and adjectives after their nouns:

    [conjunction] adverb verb [not] subject [preposition attribute] [object] [preposition place]
    [conjunction] subject [preposition attribute] verb [not] [object] [preposition place]

Subject, attribute, place and object are phrases: determiner, [adjective], noun. A target noun has a gender, which its
source does not show; its determiner and adjective agree with its gender and number. The verb agrees with the subject in
number, and which of its two translations is right depends on whether the object (the subject, where there is none) is
animate; which of a postposition's two is right, on whether its noun is. Words of every class follow Zipf's law.

The language belongs to VERSION and the size of the vocabulary, never to a seed. Shapes: n sentences of 2 clauses of
SLOTS slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.streams import stream
from stabkit.tasks.base import EOS, PAD, Tokens

VERSION = 1
"""Of the language: raised whenever the same arguments would give other sentences."""
SMALLEST_VOCAB = 128
"""Leaves at least two lemmas to every open class of words."""

# A clause's slots: five words, then four phrases of four words each; SUBJECT + NOUN is the subject's noun.
CONJUNCTION, ADVERB, VERB, NOT, MARK, SUBJECT, ATTRIBUTE, PLACE, OBJECT, SLOTS = 0, 1, 2, 3, 4, 5, 9, 13, 17, 21
ADPOSITION, DETERMINER, ADJECTIVE, NOUN = range(4)
PHRASES = np.array([SUBJECT, ATTRIBUTE, PLACE, OBJECT])


def _order(*parts: int, phrase: tuple[int, ...]) -> list[int]:
    """The slots in the order of `parts`, the words within each phrase in the order of `phrase`."""
    return [slot for part in parts for slot in ([part + word for word in phrase] if part in PHRASES else [part])]


_POST, _PRE = (DETERMINER, ADJECTIVE, NOUN, ADPOSITION), (ADPOSITION, DETERMINER, NOUN, ADJECTIVE)
SOURCE_ORDER = np.array(_order(CONJUNCTION, ADVERB, ATTRIBUTE, SUBJECT, PLACE, OBJECT, MARK, NOT, VERB, phrase=_POST))
TARGET_ORDER = np.array(
    [
        _order(CONJUNCTION, ADVERB, SUBJECT, ATTRIBUTE, VERB, NOT, OBJECT, PLACE, phrase=_PRE),
        _order(CONJUNCTION, ADVERB, VERB, NOT, SUBJECT, ATTRIBUTE, OBJECT, PLACE, phrase=_PRE),
    ]
)
"""(2, SLOTS − 1), the mark left out: without an adverb, and with one."""

SECOND_CLAUSE, PLURAL = 0.3, 0.3
CHANCE = {ADVERB: 0.3, NOT: 0.1, ATTRIBUTE: 0.25, PLACE: 0.4, OBJECT: 0.7} | {p + ADJECTIVE: 0.35 for p in PHRASES}
"""How often an optional part of a clause is there (an adjective: where its phrase is)."""


@dataclass(frozen=True, slots=True)
class WordClass:
    """Lemmas that fill the same slots; the k-th is drawn with p ∝ 1 / (k + 2), k from 1 (Zipf-Mandelbrot)."""

    name: str
    slots: tuple[int, ...]
    lemmas: int = 0
    """0: as many as fit the share."""
    share: float = 0.0
    """Of the ids that the closed classes leave."""
    forms: tuple[int, int] = (1, 1)
    """How many spellings a lemma has in the source and in the target."""


CLASSES = (
    WordClass("conjunction", (CONJUNCTION,), lemmas=4),
    WordClass("not", (NOT,), lemmas=1),
    WordClass("mark", (MARK,), lemmas=1),
    WordClass("determiner", tuple(PHRASES + DETERMINER), lemmas=4, forms=(1, 4)),
    WordClass("adposition", tuple(PHRASES + ADPOSITION), lemmas=8, forms=(1, 2)),
    WordClass("noun", tuple(PHRASES + NOUN), share=0.5, forms=(2, 2)),
    WordClass("verb", (VERB,), share=0.2, forms=(1, 4)),
    WordClass("adjective", tuple(PHRASES + ADJECTIVE), share=0.2, forms=(1, 4)),
    WordClass("adverb", (ADVERB,), share=0.1),
)
FULL_STOP = 4
"""The first id after the four symbols; the same in both languages."""


class Language:
    """Both languages at one size of their joint vocabulary. Lemma k in form f is word `first + k · forms + f`.

    first, forms (2, SLOTS): of the source and of the target. A noun's hidden `gender` and `animate` are bits of the
    language: a larger vocabulary adds nouns and changes none.
    """

    def __init__(self, vocab: int) -> None:
        self.vocab = vocab
        self.first = np.zeros((2, SLOTS), dtype=np.int64)
        self.forms = np.ones((2, SLOTS), dtype=np.int64)
        self.cumulative: list[NDArray[np.float64]] = []
        """For each of CLASSES: of its lemmas' probabilities."""
        free = FULL_STOP + 1
        room = vocab - free - sum(c.lemmas * sum(c.forms) for c in CLASSES)
        for c in CLASSES:
            lemmas = c.lemmas or int(room * c.share) // sum(c.forms)
            for side in (0, 1):
                self.first[side, list(c.slots)] = free
                self.forms[side, list(c.slots)] = c.forms[side]
                free += lemmas * c.forms[side]
            weights = np.cumsum(1 / (np.arange(lemmas) + 3))
            self.cumulative.append(weights / weights[-1])
            if c.name == "noun":
                bits = stream(0, "synthetic language", VERSION).random((lemmas, 2)) < 0.5
                self.gender, self.animate = bits[:, 0], bits[:, 1]

    def shapes(self, rng: np.random.Generator, sentences: int) -> NDArray[np.bool_]:
        """(sentences, 2, SLOTS) which slots are filled; a second clause that is not there has none."""
        filled = rng.random((sentences, 2, SLOTS)) < _chances()
        _complete(filled)
        filled[:, 1, CONJUNCTION] = True
        filled[:, 1] &= rng.random((sentences, 1)) < SECOND_CLAUSE
        return filled

    def say(self, rng: np.random.Generator, shapes: NDArray[np.bool_]) -> tuple[Tokens, Tokens]:
        """Words drawn for the filled slots: (n, S) and (n, T) rows of the source and of the target, without marks."""
        plural = rng.random(shapes.shape) < PLURAL
        uniform = rng.random(shapes.shape)
        lemmas = np.empty(shapes.shape, dtype=np.int64)
        for c, cumulative in zip(CLASSES, self.cumulative, strict=True):
            slots = list(c.slots)
            lemmas[..., slots] = np.searchsorted(cumulative, uniform[..., slots], side="right")
        source, target = self._spell(shapes, lemmas, plural)
        order = TARGET_ORDER[shapes[..., ADVERB].astype(np.intp)]
        return _write(source[..., SOURCE_ORDER]), _write(np.take_along_axis(target, order, axis=-1))

    def _spell(self, filled: NDArray[np.bool_], lemmas: Tokens, plural: NDArray[np.bool_]) -> tuple[Tokens, Tokens]:
        """(n, 2, SLOTS) words of both languages, slot by slot, PAD where nothing stands; plural[…, noun] counts."""
        nouns = PHRASES + NOUN
        number = plural[..., nouns].astype(np.int64)
        gender, animate = self.gender[lemmas[..., nouns]], self.animate[lemmas[..., nouns]].astype(np.int64)
        agreement = 2 * gender + number
        subject, object_ = 0, 3  # of PHRASES
        patient = np.where(filled[..., OBJECT + NOUN], animate[..., object_], animate[..., subject])
        source, target = self.first[:, None, None, :] + self.forms[:, None, None, :] * lemmas
        source[..., nouns] += number
        target[..., nouns] += number
        target[..., PHRASES + DETERMINER] += agreement
        target[..., PHRASES + ADJECTIVE] += agreement
        target[..., PHRASES + ADPOSITION] += animate
        target[..., VERB] += 2 * patient + number[..., subject]
        return np.where(filled, source, PAD), np.where(filled, target, PAD)

    def expected(self) -> NDArray[np.float64]:
        """(vocab,) how often each word stands in a target sentence on average, by the same rules."""
        filled = _chances()
        _complete(filled)
        filled *= 1 + SECOND_CLAUSE
        filled[CONJUNCTION], filled[MARK] = SECOND_CLAUSE, 0
        lemmas = {
            c.name: np.diff(cumulative, prepend=0) for c, cumulative in zip(CLASSES, self.cumulative, strict=True)
        }
        number, gender, animate = (
            np.array([1 - chance, chance])
            for chance in (PLURAL, lemmas["noun"] @ self.gender, lemmas["noun"] @ self.animate)
        )
        agreement = np.outer(gender, number).ravel()
        forms = {"noun": number, "determiner": agreement, "adjective": agreement, "adposition": animate}
        forms["verb"] = np.outer(animate, number).ravel()
        expected = np.zeros(self.vocab)
        expected[[FULL_STOP, EOS]] = 1
        for c in CLASSES:
            words = np.outer(lemmas[c.name], forms.get(c.name, np.ones(1))).ravel() * filled[list(c.slots)].sum()
            first = int(self.first[1, c.slots[0]])
            expected[first : first + len(words)] = words
        return expected


def _chances() -> NDArray[np.float64]:
    """(SLOTS,) of what is drawn for a clause; `_complete` adds what follows from it."""
    chances = np.zeros(SLOTS)
    chances[[SUBJECT, VERB]] = 1
    chances[list(CHANCE)] = list(CHANCE.values())
    return chances


def _complete(filled: NDArray[Any]) -> None:
    """Fill (…, SLOTS) in place as the grammar demands, a phrase being there where its first slot is.

    Right for bits and, as parts are drawn independently, for the chances of bits.
    """
    there = filled[..., PHRASES]
    filled[..., PHRASES + DETERMINER] = filled[..., PHRASES + NOUN] = there
    filled[..., PHRASES + ADJECTIVE] *= there
    filled[..., MARK] = filled[..., OBJECT]
    filled[..., [SUBJECT + ADPOSITION, OBJECT + ADPOSITION]] = 0


def _write(words: Tokens) -> Tokens:
    """(n, 2, L) words with gaps → (n, longest) rows without, the full stop at each end, padded with PAD."""
    words = words.reshape(len(words), -1)
    words = np.concatenate([words, np.full((len(words), 1), FULL_STOP)], axis=1)
    words = np.take_along_axis(words, np.argsort(words == PAD, axis=1, kind="stable"), axis=1)
    return words[:, : np.count_nonzero(words, axis=1).max()]
