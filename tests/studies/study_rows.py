"""Rows made by hand: a corpus in which the gradient decides, with noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from stabkit.results.forecast.measured import Measured
from studies.rows import StudyRow

METHODS = ("post-ln", "post-ln-init", "ds-init", "admin", "rezero", "r-fixup", "t-fixup", "pre-ln", "dlcl")
DEPTHS, RATES = (6, 12, 18), (5e-4, 2e-3, 8e-3, 1.6e-2, 3e-2)


def measured(**changes: float) -> Measured:
    """A run that goes on well."""
    gradient = dict(gradient_start=1.0, gradient_lowest=0.5, gradient_last=0.6, gradient_total=0.5)
    update = dict(update_first=3.0, update_last=9.0, step_last=0.5, path=20.0, still=0.0, moved=1.0, logits_last=30.0)
    chain = dict(
        ln_growth=1.2, ln_growth_last=1.1, branch_ratio=0.5, cosine_start=0.3, cosine_last=0.8, gradient_total_most=1.0
    )
    loss = dict(loss_start=8.2, loss_least=6.3, loss_last=6.3, loss_rises=0.0, unigram=6.05)
    return replace(Measured(**gradient, **update, **chain, **loss), **changes)


def row(i: int = 0, **changes: object) -> StudyRow:
    """One run; its place decides where it stands."""
    method, depth, rate = METHODS[i % 9], DEPTHS[i // 9 % 3], RATES[i // 2 % 5]
    given = {
        **dict(run_id=f"{method}-{depth}L-{depth}L-s{i + 1}-{i:012x}", method=method, digest="ab" * 32),
        **dict(encoder_layers=depth if i % 2 else 0, decoder_layers=depth, hidden=64, block="classic"),
        **dict(rate=rate, warmup=0, max_tokens=256, task="text" if i % 4 else "synthetic", seed=i + 1),
        **dict(outcome="trains", steps=250, validation=5.0, measured=measured()),
    }
    return StudyRow(**{**given, **changes})  # type: ignore[arg-type]


def corpus(n: int = 240, noise: float = 0.6, seed: int = 0) -> list[StudyRow]:
    """`n` rows whose gradient, from 1 down to 10⁻⁴, decides up to noise whether they train."""
    random = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        log = float(random.uniform(-4, 0))
        trains = log + noise * float(random.normal()) > -1.8
        seen = measured(gradient_lowest=10**log, gradient_last=10**log, cosine_last=float(random.uniform(0.5, 0.99)))
        rows.append(row(i, outcome="trains" if trains else "stuck", measured=seen))
    return rows


def auc_by_hand(p: list[float], label: list[bool]) -> float:
    """Pair by pair."""
    pairs = [
        (a, b) for a, good in zip(p, label, strict=True) if good for b, too in zip(p, label, strict=True) if not too
    ]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs) if pairs else math.nan
