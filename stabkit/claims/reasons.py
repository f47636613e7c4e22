"""Our own readings of why a sentence of the papers may fail on tiny models and few updates: each a test, not a guess.

They stand beside the papers' claims where those fail, and say so in their first words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import MARGIN, groups
from stabkit.figures.comparison import depth_rank, listed, method_label, outcome_word, series, short
from stabkit.store import Run

MIDDLE = 0.5
"""Of the updates: where the deficit is compared with that at the end."""
SHRINKS = 0.9
"""What is left of a deficit that shrinks, at most."""


def _lines(runs: Sequence[Run]) -> Iterator[tuple[str, str, list[list[Run]]]]:
    """(condition, label, runs of each shape from the shallowest on), of runs that train."""
    for condition, own in groups(runs):
        by: dict[str, dict[str, list[Run]]] = {}
        for run in sorted(own, key=lambda run: depth_rank(run.spec)):
            if outcome_word(run) == "trains":
                by.setdefault(method_label(run.spec), {}).setdefault(run.spec.depth, []).append(run)
        yield from ((condition, label, list(shapes.values())) for label, shapes in by.items())


def behind(runs: Sequence[Run]) -> list[Evidence]:
    """Of every shape that ends behind its method's shallowest: its deficit at the end against that half-way."""
    found = []
    for condition, label, shapes in _lines(runs):
        for deep in shapes[1:]:
            seeds = {run.spec.seed for run in shapes[0]} & {run.spec.seed for run in deep}
            middle, end = (_deficit(shapes[0], deep, seeds, share) for share in (MIDDLE, 1.0))
            if not (math.isfinite(middle) and end >= MARGIN):
                continue
            text = f"{short(middle)} nats behind half-way, {short(end)} at the end"
            where = listed(f"{label} {deep[0].spec.depth}", condition)
            found.append(Evidence(where=where, value=end - middle, text=text, holds=end <= SHRINKS * middle))
    return found


def rates(runs: Sequence[Run]) -> list[Evidence]:
    """Of every shape that ends behind its method's shallowest at one rate: its deficit there and at a larger one."""
    by: dict[str, dict[float, list[list[Run]]]] = {}
    for _, label, shapes in _lines(runs):
        spec = shapes[0][0].spec
        model = replace(spec.model, encoder_layers=0, decoder_layers=0)
        alike = replace(spec, seed=0, model=model, train=replace(spec.train, lr=0.0))
        by.setdefault(f"{label} {alike}", {})[spec.train.lr] = shapes
    found = []
    for held in by.values():
        for low, high in zip(sorted(held), sorted(held)[1:], strict=False):
            for deep in held[low][1:]:
                depth = deep[0].spec.depth
                larger = next((shape for shape in held[high] if shape[0].spec.depth == depth), None)
                if larger is None or held[high][0][0].spec.depth != held[low][0][0].spec.depth:
                    continue
                sides = (held[low][0], deep, held[high][0], larger)
                seeds = set.intersection(*({run.spec.seed for run in side} for side in sides))
                before, after = (_deficit(*pair, seeds, 1.0) for pair in (sides[:2], sides[2:]))
                if not (math.isfinite(after) and before >= MARGIN):
                    continue
                text = f"{short(before)} nats behind at {low:g}, {short(after)} at {high:g}"
                where = f"{method_label(deep[0].spec)} {depth}"
                found.append(Evidence(where=where, value=after - before, text=text, holds=after <= SHRINKS * before))
    return found


def _deficit(shallow: Sequence[Run], deep: Sequence[Run], seeds: set[int], share: float) -> float:
    """By how much the deep runs' validation loss exceeds the shallow ones' after a share of the updates; a mean over
    the seeds that both have."""
    apart = []
    for seed in seeds:
        one, other = (next(run for run in side if run.spec.seed == seed) for side in (deep, shallow))
        apart.append(_loss(one, share) - _loss(other, share))
    return float(np.mean(apart)) if apart else math.nan


def _loss(run: Run, share: float) -> float:
    """The validation loss at the last reading within this share of the updates."""
    steps, values = series(run, "validation", "validation")
    within = values[steps <= share * run.spec.train.steps]
    return float(within[-1]) if len(within) else math.nan


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="gap-closes",
        sentence="Our reading where deeper is not better: the deficit of deeper models shrinks as training goes on.",
        source="stabkit, on DeepNet Fig. 6 and 8, Very Deep Transformers Fig. 2(b) and Table 3",
        test="validation loss over that of the method's shallowest shape, where both train and it ends higher by "
        f"{MARGIN:g} nats or more: at the end at most {SHRINKS:g} times what it was half-way",
        find=behind,
        needs="a method that trains at two depths, the deeper one ending behind, with readings half-way",
        command="stabkit sweep --models deepnorm --depths 6,18 --steps 250 --warmup 0",
        methods=("deepnorm",),
        ours=True,
    ),
    Claim(
        key="larger-rate",
        sentence="Our reading where deeper is not better: the deeper model wants a larger rate.",
        source="stabkit, on DeepNet Table 2, Very Deep Transformers Fig. 2(b)",
        test="final validation loss over that of the method's shallowest shape, both training, where it ends higher by "
        f"{MARGIN:g} nats or more: at the next larger rate at most {SHRINKS:g} times that",
        find=rates,
        needs="a method that trains at two depths and two rates, the deeper one ending behind at the smaller rate",
        command="stabkit sweep --models deepnorm --depths 6,18 --lr 1e-3,2e-3 --steps 1000 --warmup 0",
        methods=("deepnorm", "admin"),
        ours=True,
    ),
)
