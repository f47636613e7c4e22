"""What DeepNet says of its two constants: Fig. 9 (α and β scaled), Table 11 (one of them taken away), and §3.3's step
from the top sub-layer's gradient to both.

A number is made of two runs of one seed that differ in nothing else: the method as published, and changed.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stabkit.claims.base import (
    Claim,
    Measurement,
    Spot,
    Tell,
    Threshold,
    at_least,
    at_most,
    nats_claim,
    share_claim,
)
from stabkit.claims.evidence import COLD, JUDGED, MARGIN, Find, depth_of, fails, loss, measured, too_short
from stabkit.results.conditions import Condition, conditions, output_layers
from stabkit.results.line import log_slope
from stabkit.results.outcome import displayed
from stabkit.results.run import Run
from stabkit.words import listed, short

Change = tuple[float, float, str]
"""Factors on α and β, and the constant that is dropped."""
PUBLISHED: Change = (1.0, 1.0, "")
OVER_ALPHA, OVER_BETA = Spot("alpha", "α"), Spot("beta", "β")


def _planes(runs: Sequence[Run]) -> Iterator[tuple[Spot, str, dict[Change, dict[int, Run]]]]:
    """(where, apart, {change: {seed: run}}) of DeepNorm: runs that differ in the change and the seed alone."""
    members = [run for run in runs if run.spec.method == "deepnorm"]
    plain = [replace(run.spec, alpha_scale=1.0, beta_scale=1.0, options={}) for run in members]
    held: dict[tuple[Spot, Condition], dict[Change, dict[int, Run]]] = {}
    for run, apart in zip(members, conditions(plain), strict=True):
        options = ",".join(f"{name}={value}" for name, value in sorted(run.spec.options.items()))
        change = run.spec.alpha_scale, run.spec.beta_scale, options
        held.setdefault((depth_of(run), apart), {}).setdefault(change, {})[run.spec.seed] = run
    for (where, apart), by in held.items():
        yield where, apart.text, by


def _compared(runs: Sequence[Run], change: Change) -> Iterator[tuple[Spot, str, dict[int, Run], dict[int, Run]]]:
    """(where, apart, DeepNorm's runs, the changed ones) by the seeds in which the method itself trains and the changed
    one was judged; nothing where there is none."""
    for where, apart, by in _planes(runs):
        base, other = by.get(PUBLISHED, {}), by.get(change, {})
        seeds = [
            seed
            for seed in sorted(set(base) & set(other))
            if base[seed].outcome.word == "trains" and other[seed].outcome.word in JUDGED
        ]
        if seeds:
            yield where, apart, {seed: base[seed] for seed in seeds}, {seed: other[seed] for seed in seeds}


def without(dropped: str) -> Find:
    """Whether DeepNorm without one of its constants fails where DeepNorm itself trains, seed by seed."""

    def find(runs: Sequence[Run]) -> Iterator[Measurement]:
        for where, apart, base, other in _compared(runs, (1.0, 1.0, f"{dropped}=one")):
            values, told = {seed: float(fails(run)) for seed, run in other.items()}, _outcomes(other)
            if more := [loss(other[seed]) - loss(run) for seed, run in base.items() if not values[seed]]:
                apart_by = statistics.median(more)
                side = f"{short(abs(apart_by))} nats {'above' if apart_by > 0 else 'below'} DeepNorm"
                told = listed(told, f"what trains ends {side}")
            yield measured([*base.values()][:1], values, where, apart=apart, beside=told, beyond=_cold(other))

    return find


def _cold(runs: Mapping[int, Run]) -> str:
    """Why a failure without warm-up decides nothing; "" where none is one."""
    return COLD if any(fails(run) and run.spec.train.warmup == 0 for run in runs.values()) else ""


def _outcomes(runs: Mapping[int, Run]) -> str:
    """`2 stuck, 1 trains`, `3 train`."""
    many = {"trains": "train"}
    counts = Counter(displayed(run.outcome.word) for run in runs.values())
    return ", ".join(f"{count} {many.get(word, word) if count > 1 else word}" for word, count in counts.items())


def _changed(
    alpha: float = 1.0,
    beta: float = 1.0,
    dropped: str = "",
    parts: Sequence[tuple[Spot | None, Threshold | None]] = ((None, None),),
    quality: bool = False,
) -> Find:
    """Nats by which a changed method ends above the method itself, by seed; where it fails, infinitely many. Which of
    two that train is better in the end (`quality`), short runs cannot say, nor runs without warm-up how one without a
    constant fares in the paper."""

    def find(runs: Sequence[Run]) -> Iterator[Measurement]:
        for where, apart, base, other in _compared(runs, (alpha, beta, f"{dropped}=one" if dropped else "")):
            values, first = {seed: _above(run, base[seed]) for seed, run in other.items()}, [*base.values()][:1]
            early = too_short([first[0].spec]) if quality and not all(map(fails, other.values())) else ""
            more: dict[str, Any] = {
                "apart": apart,
                "beside": _outcomes(other),
                "beyond": early or (_cold(other) if dropped else ""),
            }
            for part, threshold in parts:
                yield measured(first, values, where, part=part, threshold=threshold, **more)

    return find


def _above(changed: Run, base: Run) -> float:
    more = loss(changed) - loss(base)
    return more if math.isfinite(more) and not fails(changed) else math.inf


def top_gradient(runs: Sequence[Run]) -> Iterator[Measurement]:
    """The log-log slope of the top sub-layer's weights' gradient at step 0 over α, and over β, seed by seed."""
    for where, apart, by in _planes(runs):
        for axis, (part, expected) in enumerate(((OVER_ALPHA, -1.0), (OVER_BETA, 1.0))):
            line: dict[int, list[tuple[float, float]]] = {}
            for change, by_seed in by.items():
                if not change[2] and (change[1], change[0])[axis] == 1.0:
                    for seed, run in by_seed.items():
                        line.setdefault(seed, []).append(((change[0], change[1])[axis], _top(run)))
            values = {}
            for seed, points in sorted(line.items()):
                kept = [(x, y) for x, y in points if 0 < y < math.inf]
                if len(kept) >= 3:
                    values[seed] = abs(log_slope(*zip(*kept, strict=True)) - expected)
            if values:
                first = next(iter(by.get(PUBLISHED, next(iter(by.values()))).values()))
                over = Spot(f"over-{part.key}", f"over {part.text}")
                yield measured([first], values, where, over, apart=apart, part=part)


def _top(run: Run) -> float:
    """‖∂L/∂W‖ of the last sub-layer's weights at step 0."""
    table = run.records.get("weight_grad")
    site = f"{output_layers(run.spec)[-1]}.ffn"
    return float(table.at(site)[0]) if table is not None and site in table.sites else math.nan


UNSTABLE = at_least(0.5, "stabkit's choice: half a nat, or it fails")
WORSE = at_least(MARGIN, "stabkit's choice: a twentieth of a nat, runs of one seed compared")
SLIGHT = at_most(0.3, "stabkit's choice: “slightly” is at most 0.3 nats")
IS_WORSE, SLIGHTLY = Spot("worse", "worse"), Spot("slightly", "slightly")
ABLATE = "stabkit ablate --seeds 0..4"
DROP = f"{ABLATE} --drop deepnorm,init"
NOTE = "(a sentence may hold at one rate and not at another: each rate is judged separately)"


def _fig9(key: str, sentence: str, changed: str, threshold: Threshold, find: Find) -> Claim:
    return nats_claim(
        key=key,
        sentence=sentence,
        source="DeepNet §10, Fig. 9",
        weight="side",
        test=f"DeepNorm with {changed} against DeepNorm itself: nats by which it ends higher, infinite where it "
        f"fails {NOTE}",
        threshold=threshold,
        find=find,
        needs=f"DeepNorm itself and with {changed}, long enough to judge",
        command=ABLATE,
        methods=("deepnorm",),
    )


CLAIMS: tuple[Claim, ...] = (
    _fig9("alpha-small", "A small shortcut scale α destabilises.", "α × 0.25", UNSTABLE, _changed(alpha=0.25)),
    _fig9("beta-large", "A large initialisation scale β destabilises.", "β × 4", UNSTABLE, _changed(beta=4.0)),
    _fig9(
        "alpha-large",
        "A large shortcut scale α undermines performance.",
        "α × 4",
        WORSE,
        _changed(alpha=4.0, quality=True),
    ),
    _fig9(
        "beta-small",
        "A small initialisation scale β undermines performance.",
        "β × 0.25",
        WORSE,
        _changed(beta=0.25, quality=True),
    ),
    share_claim(
        key="without-deepnorm",
        sentence="Without DeepNorm (α = 1, β kept) training diverges.",
        source="DeepNet §10, Table 11",
        weight="central",
        test="DeepNorm with α = 1 where DeepNorm itself trains: share of the seeds that are stuck or diverge (a "
        "failure without warm-up, which is harder, decides nothing)",
        find=without("alpha"),
        needs="DeepNorm itself and with α = 1, long enough to judge",
        command=DROP,
        methods=("deepnorm",),
    ),
    nats_claim(
        key="without-init",
        sentence="Without the initialisation (β = 1, α kept) the result is slightly worse.",
        source="DeepNet §10, Table 11",
        weight="side",
        test="DeepNorm with β = 1 against DeepNorm itself: nats by which it ends higher, infinite where it fails (a "
        "failure without warm-up, which is harder, decides nothing)",
        threshold=WORSE,
        find=_changed(dropped="beta", parts=((IS_WORSE, WORSE), (SLIGHTLY, SLIGHT)), quality=True),
        needs="DeepNorm itself and with β = 1, long enough to judge",
        command=DROP,
        methods=("deepnorm",),
        parts=(IS_WORSE, SLIGHTLY),
    ),
    Claim(
        key="top-gradient",
        sentence="The top sub-layer's gradient scales as ‖θ‖/α: the step on which α and β rest.",
        source="DeepNet §3.3",
        weight="side",
        test="DeepNorm with α (β) scaled, three factors or more: log-log slope of ‖∂L/∂W‖ of the last feed-forward "
        "sub-layer's weights at step 0 (without the norm's gain and bias, which lie behind the sum), distance from −1 "
        "(1)",
        threshold=at_most(0.25, "stabkit's choice: a quarter of the power"),
        tell=Tell(unit="away"),
        find=top_gradient,
        needs="DeepNorm at three factors on α and on β",
        command=ABLATE,
        methods=("deepnorm",),
        parts=(OVER_ALPHA, OVER_BETA),
    ),
)
