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
from stabkit.figures.shared.comparison import depth_rank, method_label, outcome_word, series
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

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
    """Of every shape that is behind its method's shallowest, half-way or at the end: the one deficit against the
    other."""
    found = []
    for condition, label, shapes in _lines(runs):
        for deep in shapes[1:]:
            seeds = {run.spec.seed for run in shapes[0]} & {run.spec.seed for run in deep}
            middle, end = (_deficit(shapes[0], deep, seeds, share) for share in (MIDDLE, 1.0))
            if not (math.isfinite(middle) and math.isfinite(end) and max(middle, end) >= MARGIN):
                continue
            text = f"{short(middle)} nats behind half-way, {short(end)} at the end"
            where = listed(f"{label} {deep[0].spec.depth}", condition)
            found.append(Evidence(where=where, value=end - middle, text=text, holds=end <= SHRINKS * middle))
    return found


def rates(runs: Sequence[Run]) -> list[Evidence]:
    """Of every shape that ends behind its method's shallowest at one rate: what the next larger rate does to both.

    A deep model that no longer trains there is evidence against; one too short to judge is none.
    """
    by: dict[str, dict[float, dict[str, list[Run]]]] = {}
    for _, own in groups(runs):
        for run in sorted(own, key=lambda run: depth_rank(run.spec)):
            model = replace(run.spec.model, encoder_layers=0, decoder_layers=0)
            alike = replace(run.spec, seed=0, model=model, train=replace(run.spec.train, lr=0.0))
            shapes = by.setdefault(str(alike), {}).setdefault(run.spec.train.lr, {})
            shapes.setdefault(run.spec.depth, []).append(run)
    found = []
    for held in by.values():
        for low, high in zip(sorted(held), sorted(held)[1:], strict=False):
            shallowest, *deeper = held[low]
            for depth in deeper:
                sides = [held[rate].get(shape, []) for rate in (low, high) for shape in (shallowest, depth)]
                told = _by_rate(sides, low, high)
                if told:
                    found.append(told)
    return found


def _by_rate(sides: Sequence[Sequence[Run]], low: float, high: float) -> Evidence | None:
    """Shallow and deep at the smaller rate, shallow and deep at the larger, over the seeds that all four have."""
    seeds = set.intersection(*({run.spec.seed for run in side} for side in sides))
    paired = [[run for run in side if run.spec.seed in seeds] for side in sides]
    words = [{outcome_word(run) for run in side} for side in paired]
    if not seeds or any(word != {"trains"} for word in words[:3]) or "early" in words[3]:
        return None
    losses = [float(np.mean([_loss(run, 1.0) for run in side])) for side in paired]
    before, after = losses[1] - losses[0], losses[3] - losses[2]
    if before < MARGIN:
        return None
    begin = f"{short(before)} nats behind at {low:g} ({short(losses[1], 3)} against {short(losses[0], 3)})"
    ends = f"{short(after)} at {high:g} ({short(losses[3], 3)} against {short(losses[2], 3)})"
    if words[3] != {"trains"}:
        ends = f"{' and '.join(sorted(words[3] - {'trains'}))} at {high:g}"
    holds = words[3] == {"trains"} and after <= SHRINKS * before and losses[1] - losses[3] >= MARGIN
    where = f"{method_label(paired[1][0].spec)} {paired[1][0].spec.depth}"
    value = after - before if math.isfinite(after) else 0.0
    return Evidence(where=where, value=value, text=f"{begin}, {ends}", holds=holds)


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
        test="validation loss over that of the method's shallowest shape, where both train and it is higher by "
        f"{MARGIN:g} nats half-way or at the end: at the end at most {SHRINKS:g} times what it was half-way",
        find=behind,
        needs="a method that trains at two depths, the deeper one behind, with readings half-way",
        command="stabkit sweep --models deepnorm --depths 6,18 --steps 250 --warmup 0",
        methods=("deepnorm",),
        ours=True,
    ),
    Claim(
        key="larger-rate",
        sentence="Our reading where deeper is not better: the deeper model wants a larger rate.",
        source="stabkit, on DeepNet Table 2, Very Deep Transformers Fig. 2(b)",
        test="final validation loss over that of the method's shallowest shape, where it ends higher by "
        f"{MARGIN:g} nats or more: at the next larger rate it trains, itself ends lower by as much or more, and is "
        f"behind by at most {SHRINKS:g} times what it was",
        find=rates,
        needs="a method that trains at two depths and two rates, the deeper one ending behind at the smaller rate",
        command="stabkit sweep --models deepnorm --depths 6,18 --lr 1e-3,2e-3 --steps 1000 --warmup 0",
        methods=("deepnorm", "admin"),
        ours=True,
    ),
)
