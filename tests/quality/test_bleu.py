"""BLEU and its bootstrap against sacreBLEU itself, and against cases that can be counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import example, given
from hypothesis import strategies as st

from stabkit.quality import bleu
from stabkit.quality.bleu import LEVEL, compare, counts, score
from stabkit.streams import stream

LINE = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f.", "1,5", "(g)"]), max_size=9).map(" ".join)
SAID = LINE.filter(bool)
TOKENIZERS = ["13a", "none"]


def texts(systems: int) -> st.SearchStrategy[list[tuple[str, ...]]]:
    """Lines of a reference and of so many systems."""
    return st.lists(st.tuples(SAID, *[LINE] * systems), min_size=1, max_size=6)


def sacre(hypotheses: list[str], references: list[str], tokenize: str = "none") -> float:
    return float(sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenize, force=True).score)


@pytest.mark.parametrize("tokenize", TOKENIZERS)
def test_the_score_is_sacrebleus_with_its_signature(tokenize: str) -> None:
    said, wanted = ["the cat sat on the mat.", "a dog"], ["the cat sat on a mat.", "a dog sleeps"]
    found = score(said, wanted, tokenize)
    assert found.bleu == sacre(said, wanted, tokenize) and 0 < found.bleu < 100
    version = sacrebleu.__version__
    assert found.signature == f"nrefs:1|case:mixed|eff:no|tok:{tokenize}|smooth:exp|version:{version}"
    assert found.length_ratio == pytest.approx(9 / 10 if tokenize == "13a" else 8 / 9)


@pytest.mark.parametrize("tokenize", TOKENIZERS)
@given(lines=texts(1))
@example(lines=[("a b c d e", "a b c d f.")])
@example(lines=[("a b c d e", "a c b e d")])  # no right pair of words
@example(lines=[("a b c d", "e e e e e")])  # not one right word
@example(lines=[("a b c d", "e e"), ("b", "")])
@example(lines=[("a b c d", ""), ("b", "")])  # nothing said
@example(lines=[("a b c", "a b c"), ("b", "b")])  # no four words anywhere
@example(lines=[("a b c d", "a b"), ("c d e a", "c d e a")])
@example(lines=[("a", "a a a a a a")])  # a word is right once
def test_the_sums_of_the_sentences_make_the_corpuss_score(tokenize: str, lines: list[tuple[str, str]]) -> None:
    references, said = (list(side) for side in zip(*lines, strict=True))
    found = counts(said, references, tokenize)
    assert found.shape == (len(lines), 10) and found.dtype == np.float64
    corpus = sacre(said, references, tokenize)
    assert float(bleu.bleu(found.sum(0))) == pytest.approx(corpus, rel=1e-12, abs=1e-12)
    assert score(said, references, tokenize).bleu == corpus
    for row, one, reference in zip(bleu.bleu(found), said, references, strict=True):
        assert float(row) == pytest.approx(sacre([one], [reference], tokenize), rel=1e-12, abs=1e-12)


def test_a_sentences_ten_numbers_are_those_that_one_counts() -> None:
    """Right: a, b, d; "a b". Said: five words, so four pairs, three triples, two fours. Wanted: four words."""
    assert counts(["a b d d e"], ["a b c d"], "none").tolist() == [[3, 1, 0, 0, 5, 4, 3, 2, 5, 4]]
    by_hand = 100 * (3 / 5 * 1 / 4 * 1 / (2 * 3) * 1 / (4 * 2)) ** 0.25
    assert float(bleu.bleu(counts(["a b d d e"], ["a b c d"], "none"))[0]) == pytest.approx(by_hand)
    short = 100 * math.exp(1 - 6 / 4) * (4 / 4 * 3 / 3 * 2 / 2 * 1 / 1) ** 0.25
    assert float(bleu.bleu(counts(["a b c d"], ["a b c d e a"], "none"))[0]) == pytest.approx(short)


WANTED = ["a b c d", "e f g h"]
ONE = counts(["a b c d", "x x x x"], WANTED, "none")
"""Right in the first sentence, wrong in the second."""
OTHER = counts(["a b c x", "e f g h"], WANTED, "none")
ON = {  # BLEU of ONE and of OTHER by how often the resampled corpus holds the second sentence
    0: (100.0, 100 * (6 / 8 * 4 / 6 * 2 / 4 * 1 / (2 * 2)) ** 0.25),
    1: (50.0, 100 * (7 / 8 * 5 / 6 * 3 / 4 * 1 / 2) ** 0.25),
    2: (0.0, 100.0),
}


def test_every_resampled_corpus_of_two_sentences_has_the_bleu_worked_out_by_hand() -> None:
    held = [int(sum(draw)) for draw in stream(0, "bootstrap", 2).integers(0, 2, (1000, 2)).tolist()]
    for place, found in enumerate(bleu.resampled([ONE, OTHER])):
        np.testing.assert_allclose(found, [ON[second][place] for second in held], rtol=1e-12)
    apart = sorted(ON[second][0] - ON[second][1] for second in held)
    found = compare(ONE, OTHER)
    assert found.difference == pytest.approx(ON[1][0] - ON[1][1]) and found.difference < 0
    assert found.p == 2 * held.count(0) / 1000 and 0.4 < found.p < 0.6
    assert (found.low, found.high, found.sign) == (pytest.approx(apart[0]), pytest.approx(apart[-1]), "=")


def slowly(a: list[str], b: list[str], references: list[str], samples: int) -> tuple[float, str, float, float]:
    """(p, sign, low, high) by writing every resampled corpus out and asking sacreBLEU."""
    size = len(references)
    whole = sacre(a, references) - sacre(b, references)
    apart, not_better = [], 0.0
    for draw in stream(0, "bootstrap", size).integers(0, size, (samples, size)).tolist():
        drawn = [[side[i] for i in draw] for side in (a, b, references)]
        difference = sacre(drawn[0], drawn[2]) - sacre(drawn[1], drawn[2])
        apart.append(difference)
        if abs(difference) < 1e-9:
            not_better += 0.5
        elif (difference > 0) != (whole > 0):
            not_better += 1
    p = not_better / samples
    apart.sort()

    def quantile(share: float) -> float:
        place = share * (samples - 1)
        below = math.floor(place)
        above = min(below + 1, samples - 1)
        return apart[below] + (place - below) * (apart[above] - apart[below])

    sign = "=" if p >= LEVEL else "+" if whole > 0 else "-"
    return p, sign, quantile(0.025), quantile(0.975)


THREE = ["a b c d e", "b c d e f", "c d e f g h"]
GOOD = ["a b c d e", "b c d e x", "c d e f g h"]
FAIR = ["a b c d x", "b c d e x", "c d x f g h"]
BAD = ["a x", "x x x", "x d x"]
MIXED = ["x b c d x", "b c d e f", "c d x f g"]


@pytest.mark.parametrize(
    ("a", "b", "sign"),
    [(GOOD, BAD, "+"), (BAD, FAIR, "-"), (GOOD, FAIR, "+"), (FAIR, MIXED, "="), (MIXED, GOOD, "=")],
    ids=["good-bad", "bad-fair", "good-fair", "fair-mixed", "mixed-good"],
)
def test_the_verdict_is_that_of_writing_every_sample_out(a: list[str], b: list[str], sign: str) -> None:
    found = compare(counts(a, THREE, "none"), counts(b, THREE, "none"), samples=200)
    p, said, low, high = slowly(a, b, THREE, 200)
    assert (found.p, found.sign) == (pytest.approx(2 * min(p, 1 - p), abs=1e-12), said) and said == sign
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_a_system_is_no_better_than_itself() -> None:
    for one in (ONE, counts(BAD, THREE, "none"), counts(["", "", ""], THREE, "none")):
        found = compare(one, one.copy())
        assert (found.difference, found.low, found.high, found.p, found.sign) == (0, 0, 0, 1, "=")


@given(lines=texts(2))
def test_the_other_way_round_is_the_mirror(lines: list[tuple[str, str, str]]) -> None:
    references, *systems = (list(side) for side in zip(*lines, strict=True))
    a, b = (counts(said, references, "none") for said in systems)
    there, back = compare(a, b, 100), compare(b, a, 100)
    assert back.sign == {"+": "-", "-": "+", "=": "="}[there.sign]
    assert back.difference == -there.difference
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert back.p == pytest.approx(there.p, abs=1e-12)
    assert 0 <= there.p <= 1 and there.low <= there.high


def test_every_pair_of_systems_sees_the_same_samples() -> None:
    first, second, third = (counts(said, THREE, "none") for said in (GOOD, FAIR, BAD))
    together = bleu.resampled([first, second, third], 50)
    for i, pair in ((0, [first, third]), (1, [second, third])):
        alone = bleu.resampled(pair, 50)
        np.testing.assert_array_equal(alone[0], together[i])
        np.testing.assert_array_equal(alone[1], together[2])


def test_systems_of_other_sentences_are_not_compared() -> None:
    for a, b in ((ONE, ONE[:1]), (ONE[:0], ONE[:0])):
        with pytest.raises(ValueError, match="the same sentences of both systems"):
            compare(a, b)


def test_of_systems_that_differ_by_chance_alone_one_pair_in_twenty_is_told_apart() -> None:
    """The sign is two-sided at LEVEL, and where it tells two apart its interval leaves out 0."""
    rng = np.random.default_rng(0)
    told, pairs = 0, 300
    for _ in range(pairs):
        size = 80
        lengths = rng.integers(6, 15, size)
        sides = []
        for _ in range(2):
            right = rng.binomial(lengths[:, None] - np.arange(4), [0.5, 0.3, 0.2, 0.15])
            sides.append(np.column_stack([right, lengths[:, None] - np.arange(4), lengths, lengths]).astype(float))
        found = bleu.compare(*sides, samples=200)
        told += found.sign != "="
        assert (found.sign == "=") or not found.low < 0 < found.high or found.p > 0.03
    assert 0.02 * pairs <= told <= 0.1 * pairs
