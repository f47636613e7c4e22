"""What the papers of 2021 to 2026 say of their own methods, a sentence or two each: one row a claim.

Their models are language models of a hundred million parameters and more, trained for billions of tokens; here they are
tested on tiny ones after some hundred updates, beside Pre-LN or Post-LN under the same settings and seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stabkit.claims.base import (
    MOST_RUNS,
    MUCH,
    Claim,
    Spot,
    Tell,
    Threshold,
    at_least,
    at_most,
    closely,
    nats,
    times,
)
from stabkit.claims.evidence import MARGIN, ClaimCell, Find, fails, numbers, over_cells, shares, too_short, trains
from stabkit.methods import label
from stabkit.results.profile import Profile
from stabkit.results.run import Run

LEAST_DEEP = 6
"""Layers from which on there is a depth to speak of."""
LESS = at_most(0.9, "stabkit's choice: a tenth less, more than another batch changes it")
SAME = at_most(MARGIN, f"stabkit's choice: {MARGIN:g} nats; smaller differences do not count")
LOWER = at_most(-MARGIN, f"stabkit's choice: lower by {MARGIN:g} nats; smaller differences do not count")
LINEAR = at_most(1.5, "stabkit's choice: a straight line gives 1, and 1.5 is still nearly 1")
BOUNDED = at_most(
    0.5, "stabkit's choice; an exponential between the ends gives 1: less than half of that is not exponential"
)
SHARE: dict[str, Any] = {"scale": "share", "tell": Tell()}
NATS: dict[str, Any] = {"scale": "difference", "tell": nats}
LINEARLY, NOT_EXPONENTIALLY = (
    Spot("linearly", "linearly"),
    Spot("not-exponentially", "not exponentially"),
)


def of(number: Callable[[Profile], float]) -> Callable[[Run], float]:
    """A number of a run's profile; NaN of a run without."""
    return lambda run: number(run.profile) if run.profile else math.nan


def deep(number: Callable[[Profile], float], *methods: str, **more: Any) -> Find:
    """A number of a method's profile, over another's where there is one, from LEAST_DEEP layers on and where the method
    trains in every seed."""

    def where(cell: ClaimCell) -> bool:
        return cell.layers >= LEAST_DEEP and all(map(trains, cell.of(methods[0])))

    return numbers(of(number), *methods, where=where, blocks=True, **more)


def each_part(*finds: Find) -> Find:
    """What tests each part of a claim, one after the other."""
    return lambda runs: [measurement for find in finds for measurement in find(runs)]


def than(method: str) -> Spot:
    """`than Pre-LN’s`: the part of a claim that compares with this method."""
    return Spot(method, f"than {label(method, {})}’s")


def peri_grows(part: Spot, number: Callable[[Profile], float], limit: Threshold) -> Find:
    """How the variance of Peri-LN's states grows over depth: a number and a limit for a part of the claim."""
    return deep(number, "peri-ln", part=lambda cell: part, threshold=limit, beside=lambda cell: part.text)


def more_even(other: str) -> Find:
    """Mix-LN's spread of the gradient over the layers over that of another method."""
    return deep(lambda seen: seen.gradient_spread, "mix-ln", other, part=lambda cell: than(other))


def mixing(start: str) -> Find:
    """The largest gain of mHC's mixings, whose paper does not say where they start; each start is a part."""
    words = start.partition("=")[2]
    part = Spot(start, f"from the {words} start" if words else "from ¼ everywhere")
    return deep(lambda seen: seen.mixing, start, part=lambda cell: part, beside=lambda cell: part.text)


def upper_over_lower(seen: Profile) -> float:
    """What the variance of the states grows by in the upper half of the layers over what it does in the lower: 1 of a
    straight line, 3 of a square. NaN where it does not grow."""
    lower, upper = seen.stream_half**2 - 1, seen.stream**2 - seen.stream_half**2
    return upper / lower if lower > 0 and upper > 0 else math.nan


def of_an_exponential(seen: Profile) -> float:
    """The same over what an exponential between the same ends gives, the square root of all its growth."""
    return upper_over_lower(seen) / seen.stream


def angle(seen: Profile) -> float:
    """Between what enters a layer and what leaves it, mean over the upper half: arccos of the mean cosine."""
    return math.acos(max(-1.0, min(1.0, seen.cosine_deep)))


def where_it_fails(method: str) -> Find:
    """Where Post-LN fails in every seed: whether the method trains."""

    def where(cell: ClaimCell) -> bool:
        return cell.layers >= LEAST_DEEP and all(map(fails, cell.of("post-ln")))

    return shares(lambda mine, theirs: trains(mine), method, "post-ln", where=where, blocks=True)


def nats_beside(method: str, other: str = "pre-ln") -> Find:
    """The method's loss less the other's, where that trains; who is better in the end is out of reach of short runs, as
    it is for the papers' claims, and that the method does not train is not."""
    loss = of(lambda seen: seen.loss)

    def less(cell: ClaimCell) -> dict[int, float]:
        mine, theirs = cell.values(method, loss), cell.values(other, loss)
        both = [seed for seed in cell.seeds(method, other) if trains(cell.runs[other][seed])]
        return {seed: mine[seed] - theirs[seed] for seed in both if seed in mine and seed in theirs}

    def beyond(cell: ClaimCell) -> str:
        seeds = [seed for seed in cell.seeds(method, other) if trains(cell.runs[other][seed])]
        if any(not trains(cell.runs[method][seed]) for seed in seeds):
            return ""
        return too_short([run.spec for run in (*cell.of(method), *cell.of(other))])

    return over_cells(less, method, other, where=lambda cell: cell.layers >= LEAST_DEEP, beyond=beyond, blocks=True)


def row(
    key: str,
    sentence: str,
    source: str,
    methods: Sequence[str],
    test: str,
    threshold: Threshold,
    find: Find,
    **how: Any,
) -> Claim:
    """One claim: a ratio of sizes unless `how` says otherwise."""
    usual: dict[str, Any] = {"weight": "central", "scale": "ratio", "tell": closely}
    return Claim(
        key=key,
        sentence=sentence,
        source=source,
        methods=tuple(methods),
        test=test,
        threshold=threshold,
        find=find,
        needs=f"{' and '.join(methods)} at {LEAST_DEEP} layers or more, long enough for a verdict",
        command="python -m studies recent",
        **usual | how,
    )


GRADIENTS = "largest over smallest layer’s gradient norm"
SPIKES = "largest gradient norm from update 50 on over its median"
GROWTH = "size of the state after the last layer over the first layer’s input"
MATCHES = "does as well as the norm in whose place it stands, with all else as it was."

CLAIMS: tuple[Claim, ...] = (
    row(
        "peri-linear",
        "Peri-LN’s states grow in variance linearly with depth, not exponentially.",
        "Kim et al. 2025, abstract",
        ("peri-ln",),
        "Peri-LN: growth of the variance in the upper half of the layers over that in the lower half; and "
        "this ratio over that of an exponential between the same ends",
        LINEAR,
        each_part(
            peri_grows(LINEARLY, upper_over_lower, LINEAR), peri_grows(NOT_EXPONENTIALLY, of_an_exponential, BOUNDED)
        ),
        parts=(LINEARLY, NOT_EXPONENTIALLY),
    ),
    row(
        "sandwich-scale",
        "Sandwich-LN keeps the values of hidden states from growing layer by layer as Pre-LN’s do.",
        "Ding et al. 2021 §2.4",
        ("sandwich-ln", "pre-ln"),
        f"{GROWTH}: Sandwich-LN’s over Pre-LN’s",
        LESS,
        deep(lambda seen: seen.stream, "sandwich-ln", "pre-ln"),
    ),
    row(
        "reordered-spikes",
        "The reordered norm with q/k-norm makes the gradient’s norm less spiky.",
        "OLMo 2 §3.3.2, Fig. 7",
        ("reordered-norm", "pre-ln"),
        f"{SPIKES}: the reordered norm’s over Pre-LN’s",
        LESS,
        deep(lambda seen: seen.spikes, "reordered-norm", "pre-ln"),
    ),
    row(
        "mix-even",
        "Mix-LN’s gradients are more even over the layers than Pre-LN’s and Post-LN’s.",
        "Li et al. 2024, abstract and Fig. 3",
        ("mix-ln", "pre-ln", "post-ln"),
        f"{GRADIENTS}: Mix-LN’s over Pre-LN’s, and over Post-LN’s",
        LESS,
        each_part(more_even("pre-ln"), more_even("post-ln")),
        parts=(than("pre-ln"), than("post-ln")),
        tell=times,
    ),
    row(
        "keel-trains",
        "Keel trains where Post-LN is stuck.",
        "Chen & Wei 2026 §4, Table 1",
        ("keel", "post-ln"),
        "outcomes of Keel where Post-LN fails in every seed: share of the seeds that train",
        MOST_RUNS,
        where_it_fails("keel"),
        **SHARE,
    ),
    row(
        "lns-deep",
        "With LayerNorm scaling deep layers act less like an identity than Pre-LN’s.",
        "Sun et al. 2025 §5, Fig. 7",
        ("layernorm-scaling", "pre-ln"),
        "angle between a layer’s input and output, in the upper half: LN scaling’s over Pre-LN’s",
        at_least(1.1, "stabkit's choice: a tenth more"),
        deep(angle, "layernorm-scaling", "pre-ln"),
    ),
    row(
        "dyt-matches",
        f"DyT {MATCHES}",
        "Zhu et al. 2025 §5",
        ("dyt", "pre-ln"),
        "validation loss where Pre-LN trains: DyT’s minus Pre-LN’s, α 0.5 at first",
        SAME,
        nats_beside("dyt"),
        **NATS,
    ),
    row(
        "derf-matches",
        f"Derf {MATCHES}",
        "Chen et al. 2025, abstract",
        ("derf", "pre-ln"),
        "validation loss where Pre-LN trains: Derf’s minus Pre-LN’s",
        SAME,
        nats_beside("derf"),
        **NATS,
    ),
    row(
        "gpas-smaller",
        "GPAS keeps the variance of states from growing over depth as Pre-LN’s does.",
        "Chen et al. 2025b, abstract and Fig. 1",
        ("gpas", "pre-ln"),
        f"{GROWTH}: GPAS’s over Pre-LN’s",
        LESS,
        deep(lambda seen: seen.stream, "gpas", "pre-ln"),
    ),
    row(
        "gated-spikes",
        "A gate on attention makes training less spiky.",
        "Qiu et al. 2025, abstract",
        ("gated-attention", "pre-ln"),
        f"{SPIKES}: with the gate over Pre-LN’s",
        LESS,
        deep(lambda seen: seen.spikes, "gated-attention", "pre-ln"),
    ),
    row(
        "value-residual-loss",
        "Values of the first layer in every layer give a lower loss.",
        "Zhou et al. 2024, abstract",
        ("value-residual", "pre-ln"),
        "validation loss where Pre-LN trains: with value residual minus without",
        LOWER,
        nats_beside("value-residual"),
        **NATS,
    ),
    row(
        "siamese-trains",
        "SiameseNorm trains where Post-LN is stuck.",
        "arXiv 2602.08064, abstract",
        ("siamesenorm", "post-ln"),
        "outcomes of SiameseNorm where Post-LN fails in every seed: share of the seeds that train",
        MOST_RUNS,
        where_it_fails("siamesenorm"),
        **SHARE,
    ),
    row(
        "attnres-bounded",
        "Attention Residuals keep states from growing over depth as Pre-LN’s do.",
        "Kimi Team 2026, abstract",
        ("attention-residuals", "pre-ln"),
        f"{GROWTH}: Attention Residuals’ over Pre-LN’s",
        LESS,
        deep(lambda seen: seen.stream, "attention-residuals", "pre-ln"),
    ),
    row(
        "attnres-even",
        "Attention Residuals’ gradients are more even over the layers than Pre-LN’s.",
        "Kimi Team 2026, abstract",
        ("attention-residuals", "pre-ln"),
        f"{GRADIENTS}: Attention Residuals’ over Pre-LN’s",
        LESS,
        deep(lambda seen: seen.gradient_spread, "attention-residuals", "pre-ln"),
        weight="side",
        tell=times,
    ),
    row(
        "mhc-gain",
        "Mixings that are doubly stochastic let no stream grow.",
        "Xie et al. 2025, Fig. 7: 1.6 at most",
        ("mhc",),
        "the largest gain of the product of mixings at any step, forward or backward",
        at_most(1.6, "the paper’s own"),
        each_part(*(mixing(start) for start in ("mhc", "mhc:start=identity", "mhc:start=static"))),
        tell=times,
    ),
    row(
        "hc-gain",
        "Mixings without a constraint let streams grow.",
        "Xie et al. 2025, Fig. 3: up to 3,000",
        ("hyper-connections", "mhc"),
        "the largest gain of the product of mixings at any step: hyper-connections’ over mHC’s",
        MUCH,
        deep(lambda seen: seen.mixing, "hyper-connections", "mhc"),
        tell=times,
    ),
)
