"""Which numbers the forecast is made of: tried one after the other on the fitting part, by folds of it.

    python -m studies.own choose

From nothing, the link is added that lowers the folds' log loss most, until none lowers it by LEAST. What the package
uses (`LINKS`) was taken from this list and its reasons; the judging part was not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stabkit.results.forecast.logistic import Array, log
from stabkit.results.own.forecast import LINKS, OwnLink, clamp
from stabkit.results.own.measured import SILENT
from studies.forecast.regression import fit
from studies.forecast.scores import auc
from studies.own.corpus import CorpusRow
from studies.own.fit import RIDGE, features, labels, part, usable

FOLDS, LEAST = 10, 0.003


MORE: tuple[OwnLink, ...] = tuple(
    OwnLink(key, label, "", of)
    for key, label, of in (
        ("first", "what the scores tell at the highest rate", lambda s, a: log(s.ramp_information_first, SILENT)),
        ("last", "… at sixteen times it", lambda s, a: log(s.ramp_information_last, SILENT)),
        ("most", "… where they tell most", lambda s, a: log(s.ramp_information_most, SILENT)),
        ("given up", "the mean over the most",
         lambda s, a: log(s.ramp_information, SILENT) - log(s.ramp_information_most, SILENT)),
        ("from the start", "the mean over what they told at the start",
         lambda s, a: log(s.ramp_information, SILENT) - log(s.information_start, SILENT)),
        ("at 16", "what they tell after update 16", lambda s, a: log(s.information, SILENT)),
        ("weakest", "weakest over strongest layer's gradient, on the ramp",
         lambda s, a: math.nan if math.isnan(s.gradient_least) else clamp(log(s.ramp_least, 1e-5), -5, 0)),
        ("weakest before", "… in sixteen updates", lambda s, a: clamp(log(s.gradient_least, 1e-5), -5, 0)),
        ("loss there", "at the end of the ramp over the first", lambda s, a: -clamp(s.ramp_loss / s.loss_start, 0, 3)),
        ("gradient ratio", "lowest over top layer's, capped at 1", lambda s, a: min(0.0, log(s.gradient_lowest, 1e-4))),
        ("gradient size", "total, after over before", lambda s, a: -log(s.gradient_total)),
        ("tokens", "1 − cosine between tokens after update 16", lambda s, a: log(1 - s.cosine_last, 1e-3)),
        ("fall", "share of the loss that is gone", lambda s, a: clamp(s.loss_fall / s.loss_start, -0.5, 0.3)),
        ("rises", "what the loss rises by", lambda s, a: -clamp(s.loss_rises, 0, 3)),
        ("rest", "how little F still moves", lambda s, a: -log(s.step_last / max(s.update_last, 1e-12))),
        ("size", "of F, over its own at the start", lambda s, a: -abs(log(s.size_last))),
        ("update", "how far F has moved", lambda s, a: -log(s.update_last)),
        ("step", "how little of their norm a step moves weights", lambda s, a: -clamp(log(s.delta_last, 1e-6), -6, 0)),
        ("rate", "over the usual one", lambda s, a: -log(a.rate)),
        ("fast", "above the usual one", lambda s, a: -max(0.0, log(a.rate))),
        ("slow", "below it", lambda s, a: min(0.0, log(a.rate))),
        ("depth", "layers", lambda s, a: -math.log2(a.layers)),
        ("warm-up", "updates of it", lambda s, a: -math.log2(1 + a.warmup / 16)),
        ("branches", "‖γ·f‖/‖ω·x‖ at the end", lambda s, a: log(s.branch_last, 1e-6)),
        ("bounded", "share of sub-layers with a norm", lambda s, a: s.bounded),
        ("growth", "of the stream", lambda s, a: -abs(log(s.growth))),
    )
)  # fmt: skip


def folds(x: Array, rows: Sequence[CorpusRow]) -> tuple[float, float]:
    """(log loss, area) of forecasts of each fold by a fit on the others."""
    label, p = labels(rows), np.zeros(len(rows))
    for fold in range(FOLDS):
        inside = np.arange(len(rows)) % FOLDS == fold
        p[inside] = fit(x[~inside], label[~inside], RIDGE).probability(x[inside])
    near = np.clip(np.where(label, p, 1 - p), 1e-3, 1.0)
    return float(-np.log(near).mean()), auc(p, label)


def choose(rows: Sequence[CorpusRow]) -> list[str]:
    """A line a step."""
    tried = (*LINKS, *MORE)
    own = [row for row in part(rows, judge=False) if usable(row, tried)]
    x = features(own, tried)
    chosen: list[int] = []
    lines = [f"{len(own)} rows with all numbers, {int((~labels(own)).sum())} fail"]
    best = math.inf
    while True:
        scored = [(folds(x[:, [*chosen, i]], own), i) for i in range(len(tried)) if i not in chosen]
        (loss, area), link = min(scored)
        if loss > best - LEAST:
            break
        best = loss
        chosen.append(link)
        lines.append(f"{tried[link].key}: log loss {loss:.3f}, area {area:.3f}")
    loss, area = folds(features(own), own)
    lines.append(f"the package's ({', '.join(link.key for link in LINKS)}): log loss {loss:.3f}, area {area:.3f}")
    return lines
