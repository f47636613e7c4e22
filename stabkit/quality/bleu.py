"""BLEU by sacreBLEU (Post 2018) with its signature, and the paired bootstrap between systems (Koehn 2004).

A corpus's BLEU is a function of sums over its sentences: right n-grams, n-grams, and the lengths of both sides. With
these ten numbers a sentence, a resampled corpus costs a matrix product. Never imports torch.

    BLEU = 100 · min(1, exp(1 − r/c)) · exp(mean_n log p_n),  n = 1 … 4
    p_n = right_n / all_n; where right_n = 0 the k-th such n counts 1 / (2^k · all_n)   (smooth.exp)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import require
from stabkit.results.translation import Score
from stabkit.storage.translations import Translation
from stabkit.streams import stream

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

ORDER = 4
SAMPLES = 1000
LEVEL = 0.05
"""Of the bootstrap, as in Very Deep Transformers, Table 3."""

Counts = NDArray[np.float64]
"""(sentences, 10): right 1- to 4-grams, all 1- to 4-grams of the hypothesis, its length, the reference's."""


def score(hypotheses: Sequence[str], references: Sequence[str], tokenize: str) -> Score:
    """BLEU of a corpus, one reference a sentence; `tokenize`: sacreBLEU's name, `13a` or `none`."""
    metric = _metric(tokenize)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    ratio = score.sys_len / score.ref_len if score.ref_len else float("nan")
    return Score(bleu=float(score.score), signature=str(metric.get_signature()), length_ratio=float(ratio))


def counts(hypotheses: Sequence[str], references: Sequence[str], tokenize: str) -> Counts:
    """Every sentence's ten numbers."""
    metric = _metric(tokenize, effective_order=True)
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        score = metric.sentence_score(hypothesis, [reference])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, dtype=np.float64).reshape(-1, 2 * ORDER + 2)


def _metric(tokenize: str, *, effective_order: bool = False) -> BLEU:
    require("sacrebleu", "BLEU", "papers")
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenize, force=True, effective_order=effective_order)


def counted(translation: Translation) -> Counts:
    """Every sentence's ten numbers in a stored translation; counted once, for figures and claims ask again."""
    return _counted(translation.hypotheses, translation.references, translation.tokenize)


@lru_cache(maxsize=256)
def _counted(hypotheses: tuple[str, ...], references: tuple[str, ...], tokenize: str) -> Counts:
    return counts(hypotheses, references, tokenize)


def bleu(sums: Counts) -> NDArray[np.float64]:
    """BLEU of every row (…, 10) of summed counts."""
    right, every = sums[..., :ORDER], sums[..., ORDER : 2 * ORDER]
    ours, theirs = sums[..., -2], sums[..., -1]
    none = (right == 0) & (every > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(none, 0.5 ** np.cumsum(none, axis=-1) / every, right / every)
        brevity = np.where(ours < theirs, np.exp(1 - theirs / ours), 1.0)
        score = 100 * brevity * np.exp(np.log(p).mean(axis=-1))
    # as sacreBLEU: without one right word the score is 0, not what smoothing makes of it
    return np.where((right[..., 0] > 0) & (every > 0).all(axis=-1), score, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """System A against system B on the same sentences."""

    difference: float
    """A's BLEU minus B's."""
    low: float
    high: float
    """Where 95 % of the resampled differences lie."""
    p: float
    """Two-sided: twice the share of the samples on the rarer side of 0, ties by half."""
    sign: str
    """`+` A is better at LEVEL, `-` B is, `=` neither."""


def compare(a: Counts, b: Counts, samples: int = SAMPLES) -> Compared:
    """Paired bootstrap: the same resampled sentences for both systems; every pair of systems of one length of text sees
    the same samples, so that a matrix of comparisons is of one experiment. Raises ValueError for unequal lengths."""
    if a.shape != b.shape or not len(a):
        raise ValueError(f"a paired test needs the same sentences of both systems, got {len(a)} and {len(b)}")
    return from_samples(*(bleu(counts.sum(axis=0)) for counts in (a, b)), *resampled([a, b], samples))


def resampled(systems: Sequence[Counts], samples: int = SAMPLES) -> list[NDArray[np.float64]]:
    """For every system its BLEU on each of the same resampled corpora."""
    size = len(systems[0])
    draws = stream(0, "bootstrap", size).integers(0, size, (samples, size))
    weights = np.stack([np.bincount(draw, minlength=size) for draw in draws]).astype(np.float64)
    return [bleu(weights @ counts) for counts in systems]


def from_samples(
    a: NDArray[np.float64], b: NDArray[np.float64], a_samples: NDArray[np.float64], b_samples: NDArray[np.float64]
) -> Compared:
    """The verdict from both systems' BLEU, on the whole corpus and on the samples."""
    difference = float(a - b)
    apart = a_samples - b_samples
    below = float((apart < 0).mean() + 0.5 * (apart == 0).mean())
    p = 2 * min(below, 1 - below)
    sign = "=" if difference == 0 or p >= LEVEL else "+" if difference > 0 else "-"
    low, high = np.quantile(apart, [0.025, 0.975])
    return Compared(difference=difference, low=float(low), high=float(high), p=p, sign=sign)
