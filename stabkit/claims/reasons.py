"""Our own readings of why a sentence of the papers may fail on tiny models and few updates: each a test, not a guess.

They stand beside the papers' claims where those fail, and say so in their first words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from stabkit.claims.base import Claim, ClaimPart, Measurement, Spot, Tell, at_least, at_most, ratio_claim, share_claim
from stabkit.claims.evidence import JUDGED, MARGIN, ClaimCell, at, cells, depth_of, fails, groups, measured, trains
from stabkit.figures.chain.chain_order import COLLAPSED
from stabkit.figures.shared.comparison import Condition, method_label, setting
from stabkit.figures.shared.numbers import series
from stabkit.figures.shared.words import short
from stabkit.methods import variant
from stabkit.results.intervals import wilson
from stabkit.spec import RunSpec, canonical
from stabkit.storage.store import Run

MIDDLE = 0.5
"""Of the updates: where the deficit is compared with that at the end."""
SHRINKS = 0.9
"""What is left of a deficit that shrinks, at most."""
ABOVE, BELOW = ClaimPart("began-above", "began above"), ClaimPart("began-below", "began below")


def behind(runs: Sequence[Run]) -> list[Measurement]:
    """Of every shape that is behind its method's shallowest, half-way or at the end: the deficit at the end over that
    half-way."""
    measurements = []
    for method, shallowest, deep in _lines(runs):
        values, parts = {}, []
        for seed in deep.runs[method]:
            if seed in shallowest.runs[method]:
                sides = shallowest.runs[method][seed], deep.runs[method][seed]
                middle, end = (_loss(sides[1], share) - _loss(sides[0], share) for share in (MIDDLE, 1.0))
                if all(map(trains, sides)) and max(middle, end) >= MARGIN and middle > 0:
                    values[seed] = max(end, 0.0) / middle
                    parts.append(f"{short(middle)} nats behind half-way, {short(end)} at the end")
        measurements.append(deep.measured(values, method, when=deep.spot(method), beside="; ".join(parts)))
    return measurements


def _lines(runs: Sequence[Run]) -> list[tuple[str, ClaimCell, ClaimCell]]:
    """(method, its shallowest cell, a deeper one) under one condition."""
    lines = []
    for _, members in groups(runs):
        by: dict[str, list[ClaimCell]] = {}
        for cell in cells(members):
            for method in cell.runs:
                by.setdefault(method, []).append(cell)
        lines += [(method, line[0], deep) for method, line in by.items() for deep in line[1:]]
    return lines


def rates(runs: Sequence[Run]) -> list[Measurement]:
    """Of every shape that ends behind its method's shallowest at one rate: what the next larger rate leaves of the
    deficit. A deep model that no longer trains there counts as infinitely far behind."""
    by: dict[Condition, dict[str, dict[tuple[int, int], dict[float, dict[int, Run]]]]] = {}
    for cell in cells(runs):
        for method, by_seed in cell.runs.items():
            for seed, run in by_seed.items():
                shapes = by.setdefault(_but_for(run.spec), {}).setdefault(method, {})
                shapes.setdefault(cell.depth, {}).setdefault(run.spec.train.lr, {})[seed] = run
    measurements = []
    for lines in by.values():
        for shapes in lines.values():
            shallowest, *deeper = shapes
            for depth in deeper:
                measurements += _steps(shapes[shallowest], shapes[depth])
    return measurements


def _but_for(spec: RunSpec) -> Condition:
    """What is the same at two rates."""
    return setting(spec).but("train.lr", None)


def _steps(shallow: dict[float, dict[int, Run]], deep: dict[float, dict[int, Run]]) -> list[Measurement]:
    """Every two neighbouring rates of one method at two depths."""
    both = sorted(set(shallow) & set(deep))
    measurements = []
    for low, high in zip(both, both[1:], strict=False):
        values, parts = {}, []
        for seed in sorted(set.intersection(*(set(side[rate]) for side in (shallow, deep) for rate in (low, high)))):
            before = _loss(deep[low][seed], 1.0) - _loss(shallow[low][seed], 1.0)
            rest = deep[low][seed], shallow[low][seed], shallow[high][seed]
            if before < MARGIN or not all(map(trains, rest)) or deep[high][seed].outcome.word == "early":
                continue
            after = _loss(deep[high][seed], 1.0) - _loss(shallow[high][seed], 1.0)
            gain = _loss(deep[low][seed], 1.0) - _loss(deep[high][seed], 1.0)
            better = trains(deep[high][seed]) and gain >= MARGIN
            values[seed] = max(after, 0.0) / before if better else math.inf
            word = f"{short(after)}" if trains(deep[high][seed]) else deep[high][seed].outcome.word
            parts.append(f"{short(before)} nats behind at {low:g}, {word} at {high:g}")
        if values:
            run = next(iter(deep[low].values()))
            settings = setting(run.spec).settings
            span = Condition((("train.lr", (low, high)), *(item for item in settings if item[0] != "train.lr")))
            depth = depth_of(run)
            where = Spot(f"{variant(run.spec)}/{depth.key}", f"{method_label(run.spec)} {depth.text}")
            apart, beside = span.of("train.lr").text, "; ".join(parts)
            measurements.append(measured([run], values, where, apart=apart, condition=span, beside=beside))
    return measurements


def parted_by_collapse(runs: Sequence[Run]) -> list[Measurement]:
    """Of all judged runs without warm-up, those that began collapsed and the others: the share that ends as it should,
    a place each, with Wilson's 95 % interval over the runs."""
    cosine = at("token_cosine", "state", 0)
    measurements = []
    for apart, members in groups([run for run in runs if run.spec.train.warmup == 0]):
        judged = [run for run in members if run.outcome.word in JUDGED and not math.isnan(cosine(run))]
        for part, side in ((ABOVE, True), (BELOW, False)):
            here = [run for run in judged if (cosine(run) > COLLAPSED) is side]
            if here:
                right = sum(fails(run) is side for run in here)
                measurements.append(
                    measured(
                        here,
                        dict.fromkeys(sorted({run.spec.seed for run in here}), right / len(here)),
                        Spot(part.key, f"{part.text} {COLLAPSED:g}"),
                        part=part,
                        apart=apart.text,
                        interval=wilson(right / len(here), len(here)),
                        beside=f"{right} of {len(here)} runs {'do not train' if side else 'train'}",
                    )
                )
    return measurements


def freed(runs: Sequence[Run]) -> list[Measurement]:
    """Of every setting in which a method's tied runs fail: whether it trains with a softmax of its own, seed by seed.
    With a large shortcut and tied embeddings a model begins by predicting its own input
    (`figures/depth/loss_start.py`): whether that is why DeepNorm, which trains at width 64, may not at 256."""
    pairs: dict[str, dict[bool, dict[int, Run]]] = {}
    for run in runs:
        if run.outcome.word in JUDGED:
            alike = replace(run.spec, seed=0, model=replace(run.spec.model, tied=True))
            pairs.setdefault(canonical(alike.stored()), {}).setdefault(run.spec.model.tied, {})[run.spec.seed] = run
    measurements = []
    for by in pairs.values():
        tied, by_seed = by.get(True, {}), by.get(False, {})
        seeds = sorted(seed for seed in set(tied) & set(by_seed) if not trains(tied[seed]))
        if seeds:
            run = tied[seeds[0]]
            ends = [f"{tied[seed].outcome.word} tied, {by_seed[seed].outcome.word} untied" for seed in seeds]
            method = Spot(variant(run.spec), method_label(run.spec))
            measurements.append(
                measured(
                    [run],
                    {seed: float(trains(by_seed[seed])) for seed in seeds},
                    method,
                    depth_of(run),
                    apart=f"d = {run.spec.model.hidden}, lr {run.spec.train.lr:g}",
                    beside="; ".join(dict.fromkeys(ends)),
                )
            )
    return measurements


def _loss(run: Run, share: float) -> float:
    """The validation loss at the last reading within this share of the updates."""
    steps, values = series(run, "validation", "validation")
    within = values[steps <= share * run.spec.train.steps]
    return float(within[-1]) if len(within) else math.nan


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="rank-collapse",
        sentence="stabkit's candidate for a first link: where tokens nearly share one direction before any update, a "
        "model does not train; elsewhere it does.",
        source="stabkit; a mean cosine of tokens near 1 is called rank collapse",
        weight="ours",
        test=f"no warm-up, all methods and depths: the share of runs with an initial mean cosine above {COLLAPSED:g} "
        "that do not train, and the share of the others that train",
        threshold=at_least(0.75, "stabkit's choice: three in four"),
        scale="difference",
        tell=Tell(lambda value: f"{value:.0%}"),
        parts=(ABOVE, BELOW),
        find=parted_by_collapse,
        needs="runs without warm-up, long enough to judge",
        command="stabkit sweep --models post-ln,admin,deepnorm,pre-ln --depths 6,18 --steps 250 --warmup 0",
        methods=("post-ln", "admin", "deepnorm", "pre-ln"),
    ),
    ratio_claim(
        key="gap-closes",
        sentence="stabkit's reading where deeper is not better: the deficit of deeper models shrinks as training "
        "goes on.",
        source="stabkit, on DeepNet Fig. 6 and 8, Very Deep Transformers Fig. 2(b) and Table 3",
        weight="ours",
        test="excess of validation loss over the method's shallowest shape, where both train and it is at least "
        f"{MARGIN:g} nats half-way or at the end: the share left at the end",
        threshold=at_most(SHRINKS, "stabkit's choice: a tenth less"),
        tell=Tell(unit="of it left"),
        find=behind,
        needs="a method that trains at two depths, the deeper one behind, with readings half-way",
        command="stabkit sweep --models deepnorm --depths 6,18 --steps 250 --warmup 0",
        methods=("deepnorm",),
    ),
    ratio_claim(
        key="larger-rate",
        sentence="stabkit's reading where deeper is not better: the deeper model needs a larger rate.",
        source="stabkit, on DeepNet Table 2, Very Deep Transformers Fig. 2(b)",
        weight="ours",
        test="excess of final validation loss over the method's shallowest shape, where it is at least "
        f"{MARGIN:g} nats: the share left at the next larger rate, where it trains there and itself ends lower "
        "by as much",
        threshold=at_most(SHRINKS, "stabkit's choice: a tenth less"),
        tell=Tell(unit="of it left"),
        find=rates,
        needs="a method that trains at two depths and two rates, the deeper one ending behind at the smaller rate",
        command="stabkit sweep --models deepnorm --depths 6,18 --lr 1e-3,2e-3 --steps 1000 --warmup 0",
        methods=("deepnorm", "admin"),
    ),
    share_claim(
        key="tied-start",
        sentence="stabkit's reading where a method no longer trains at a greater width: tied embeddings make it "
        "begin by predicting its own input.",
        source="stabkit, on DeepNet §5, Fig. 7",
        weight="ours",
        test="runs that fail with the softmax tied to the embedding: share of the seeds that train with a "
        "separate one, all else equal",
        find=freed,
        needs="a setting in which a method fails, judged with --untied too",
        command="stabkit sweep --models deepnorm --depths 12 --hidden 256 --ffn 2x --heads 4 --lr 3e-4 --warmup 0 "
        "--steps 250 --untied",
        methods=("deepnorm",),
    ),
)
