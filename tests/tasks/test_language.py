"""The small language: its grammar against a translator that reads word by word, its words and their ids."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from stabkit.tasks import language
from stabkit.tasks.base import EOS, PAD, Batch
from stabkit.tasks.language import FULL_STOP, SMALLEST_VOCAB
from stabkit.tasks.synthetic import Synthetic


class Translator:
    """Translates one sentence at a time, reading its source from left to right; knows no slots and no arrays."""

    def __init__(self, task: Synthetic) -> None:
        both = task.language
        self.gender, self.animate = both.gender, both.animate
        self.meaning: dict[int, tuple[str, int, int]] = {}
        """Source word → its class, lemma and form."""
        self.first: dict[str, int] = {}
        self.forms: dict[str, int] = {}
        for kind, cumulative in zip(language.CLASSES, both.cumulative, strict=True):
            name, slots = kind.name, kind.slots
            self.first[name], self.forms[name] = int(both.first[1, slots[0]]), kind.forms[1]
            for lemma in range(len(cumulative)):
                for form in range(kind.forms[0]):
                    word = int(both.first[0, slots[0]]) + lemma * kind.forms[0] + form
                    assert word not in self.meaning
                    self.meaning[word] = name, lemma, form

    def say(self, name: str, lemma: int, form: int = 0) -> int:
        assert 0 <= form < self.forms[name]
        return self.first[name] + lemma * self.forms[name] + form

    def __call__(self, source: list[int]) -> list[int]:
        assert source[-2:] == [FULL_STOP, EOS]
        target: list[int] = []
        clause: list[tuple[str, int, int]] = []
        for word in source[:-2]:
            clause.append(self.meaning[word])
            if clause[-1][0] == "verb":
                target += self.clause(clause)
                clause = []
        assert not clause, "words after the last verb"
        return [*target, FULL_STOP, EOS]

    def clause(self, words: list[tuple[str, int, int]]) -> list[int]:
        conjunction: list[int] = []
        adverb: list[int] = []
        negation: list[int] = []
        parts: dict[str, list[int]] = {"attribute": [], "subject": [], "place": [], "object": []}
        number, animate = 0, False
        phrase: list[tuple[str, int, int]] = []

        def finish(part: str) -> None:
            assert not parts[part]
            parts[part] = self.phrase(phrase)
            phrase.clear()

        for name, lemma, form in words:
            if name == "conjunction":
                conjunction = [self.say(name, lemma)]
            elif name == "adverb":
                adverb = [self.say(name, lemma)]
            elif name == "determiner":
                if phrase:  # no adposition and no mark came: that was the subject
                    number, animate = phrase[-1][2], bool(self.animate[phrase[-1][1]])
                    finish("subject")
                phrase.append((name, lemma, form))
            elif name in ("adjective", "noun"):
                phrase.append((name, lemma, form))
            elif name == "adposition":
                adposition = self.say(name, lemma, int(self.animate[phrase[-1][1]]))
                part = "place" if parts["subject"] else "attribute"
                finish(part)
                parts[part].insert(0, adposition)
            else:
                if name == "mark":
                    animate = bool(self.animate[phrase[-1][1]])
                    finish("object")
                elif phrase:
                    number, animate = phrase[-1][2], bool(self.animate[phrase[-1][1]])
                    finish("subject")
                if name == "not":
                    negation = [self.say(name, lemma)]
                if name == "verb":
                    verb = [self.say(name, lemma, 2 * animate + number), *negation]
        subject = parts["subject"] + parts["attribute"]
        middle = adverb + verb + subject if adverb else subject + verb
        return conjunction + middle + parts["object"] + parts["place"]

    def phrase(self, words: list[tuple[str, int, int]]) -> list[int]:
        """Determiner, noun, adjective, agreeing."""
        (_, determiner, _), *adjectives, (_, noun, number) = words
        agreement = 2 * int(self.gender[noun]) + number
        return [
            self.say("determiner", determiner, agreement),
            self.say("noun", noun, number),
            *[self.say("adjective", lemma, agreement) for _, lemma, _ in adjectives],
        ]


def rows(batch: Batch) -> list[tuple[list[int], list[int]]]:
    return [
        ([int(w) for w in source if w != PAD], [int(w) for w in target if w != PAD])
        for source, target in zip(batch.source, batch.target_out, strict=True)
    ]


@pytest.mark.parametrize("vocab", [SMALLEST_VOCAB, 2000, 50_000])
def test_every_target_is_what_a_word_by_word_translator_says(vocab: int) -> None:
    task = Synthetic(vocab=vocab)
    translate = Translator(task)
    pairs = [pair for step in range(20) for pair in rows(task.train(1, step))]
    pairs += [pair for batch in (*task.validation(), task.probe(), task.calibration(1)) for pair in rows(batch)]
    assert len(pairs) > 700
    for source, target in pairs:
        assert translate(source) == target


def test_the_target_verb_is_second_and_the_source_verb_last() -> None:
    task = Synthetic()
    first, forms = task.language.first, task.language.forms
    verbs = range(first[0, language.VERB], first[0, language.CLASSES[7].slots[0]])
    adverbs = range(first[1, language.ADVERB], task.vocab)
    assert forms[1, language.VERB] == 4
    for source, target in [pair for step in range(20) for pair in rows(task.train(0, step))]:
        assert source[-3] in verbs
        if target[0] in adverbs:
            assert target[1] in verbs


def test_one_source_word_has_several_translations_and_context_decides() -> None:
    task = Synthetic()
    verb = int(task.language.first[0, language.VERB])  # the commonest
    forms = range(int(task.language.first[1, language.VERB]), int(task.language.first[1, language.VERB]) + 4)
    seen: dict[int, int] = defaultdict(int)
    for source, target in [pair for step in range(60) for pair in rows(task.train(0, step))]:
        if verb in source:
            for word in target:
                seen[word] += word in forms
    assert all(seen[form] >= 5 for form in forms)


def test_a_vocabulary_grows_without_renaming_genders() -> None:
    small, large = Synthetic(vocab=500).language, Synthetic(vocab=5000).language
    assert np.array_equal(small.gender, large.gender[: len(small.gender)])
    assert np.array_equal(small.animate, large.animate[: len(small.animate)])


def test_every_class_has_words_and_no_two_share_an_id() -> None:
    for vocab in (SMALLEST_VOCAB, SMALLEST_VOCAB + 1, 999, 50_000):
        task = Synthetic(vocab=vocab)
        taken = [FULL_STOP]
        for kind, cumulative in zip(language.CLASSES, task.language.cumulative, strict=True):
            assert len(cumulative) >= (kind.lemmas or 2)
            for side in (0, 1):
                first = int(task.language.first[side, kind.slots[0]])
                taken += range(first, first + len(cumulative) * kind.forms[side])
        assert sorted(taken) == list(range(FULL_STOP, FULL_STOP + len(taken)))
        assert vocab - 30 < FULL_STOP + len(taken) <= vocab
