"""What the papers of after 2022 say of their own methods, one central sentence each, in any block: one row a claim.

Their models are language models of a hundred million parameters and more, trained for billions of tokens; here they are
tested on tiny ones after some hundred updates, beside Pre-LN or Post-LN under the same settings and seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stabkit.claims.base import (
    MOST,
    MUCH,
    Claim,
    ClaimPart,
    Measurement,
    Threshold,
    Weight,
    at_least,
    at_most,
    closely,
    nats,
    power_of_n,
    times,
)
from stabkit.claims.evidence import (
    MARGIN,
    NEARLY,
    ClaimCell,
    Find,
    alike,
    fails,
    measured,
    numbers,
    over_cells,
    shares,
    span,
    trains,
)
from stabkit.claims.quality import too_short
from stabkit.figures.shared.comparison import Condition
from stabkit.methods import label
from stabkit.results.chain import SATURATED
from stabkit.results.line import FEWEST, SPAN, exponent
from stabkit.results.profile import Profile
from stabkit.storage.store import Run

LEAST_DEEP = 6
"""Layers from which on there is a depth to speak of."""


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


def than(method: str) -> ClaimPart:
    """`than Pre-LN’s`: the part of a claim that compares with this method."""
    return ClaimPart(method, f"than {label(method, {})}’s")


def peri_grows(part: ClaimPart, number: Callable[[Profile], float], limit: Threshold) -> Find:
    """How the variance of Peri-LN's states grows over depth: a number and a limit for a part of the claim."""
    return deep(number, "peri-ln", part=lambda cell: part, threshold=limit, beside=lambda cell: part.text)


def more_even(other: str) -> Find:
    """Mix-LN's spread of the gradient over the layers over that of another method."""
    return deep(lambda seen: seen.gradient_spread, "mix-ln", other, part=lambda cell: than(other))


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


def where_it_fails(method: str, other: str) -> Find:
    """Where the other fails in every seed: whether the method trains."""

    def where(cell: ClaimCell) -> bool:
        return cell.layers >= LEAST_DEEP and all(map(fails, cell.of(other)))

    return shares(lambda mine, theirs: trains(mine), method, other, where=where, blocks=True)


def nats_beside(method: str, other: str) -> Find:
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


def flat(method: str, number: Callable[[Run], float], ceiling: float = math.inf) -> Find:
    """How far the exponent of a method's number in the depth lies from 0: one line through all runs of a setting, with
    its 95 % interval. Where a number is beyond `ceiling`·√(2d) it can hardly grow: that it does not decides nothing."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        held: dict[Condition, list[Run]] = {}
        for entry in alike(runs):
            if entry.variant == method:
                held.setdefault(entry.condition, []).append(entry.run)
        return [found for apart, own in held.items() if (found := _line(apart.text, own, number, ceiling))]

    return find


def _line(apart: str, members: Sequence[Run], number: Callable[[Run], float], ceiling: float) -> Measurement | None:
    points = [(layers(run), value) for run in members if 0 < (value := number(run)) < math.inf]
    line = exponent(points)
    if line is None:
        return None
    p, low, high = line
    saturated = max(value for _, value in points) > ceiling * math.sqrt(2 * members[0].spec.model.hidden)
    most = max(abs(low), abs(high))
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return measured(
        members,
        {run.spec.seed: abs(p) for run in members},
        span(min(points)[0], max(points)[0]),
        apart=apart,
        steps=min(run.spec.expected_steps for run in members),
        interval=(least, most),
        beside=power_of_n(p),
        beyond="‖ΔF‖ is saturated at some of these depths, at this rate" if saturated and least <= NEARLY else "",
    )


def layers(run: Run) -> int:
    """Of the deeper stack."""
    return max(run.spec.model.encoder_layers, run.spec.model.decoder_layers)


def first_update(run: Run) -> float:
    """‖ΔF‖ after update 1."""
    return run.measured.update_first if run.measured else math.nan


def sweep(depths: str, models: Sequence[str]) -> str:
    """The command that tests a claim of these methods, at these depths."""
    return (
        f"stabkit sweep --models {','.join(models)} --arch decoder-only --depths {depths} --steps 250 --warmup 0 "
        "--lr 1e-3 --max-tokens 256 --seeds 0..4"
    )


LESS = at_most(0.9, "stabkit's choice: a tenth less, more than another batch changes it")


def claim_of(
    key: str,
    sentence: str,
    source: str,
    method: str,
    *beside: str,
    line: bool = False,
    weight: Weight = "central",
    **given: Any,
) -> Claim:
    where = f"{FEWEST} depths, the deepest {SPAN:g} times the shallowest" if line else f"{LEAST_DEEP} layers or more"
    return Claim(
        key=key,
        sentence=sentence,
        source=source,
        weight=weight,
        needs=f"{' and '.join((method, *beside))} at {where}, long enough for a verdict",
        command=sweep("6,18,50" if line else "6,18", (method, *beside)),
        methods=(method, *beside),
        **given,
    )


LINEAR = at_most(1.5, "stabkit's choice: a straight line gives 1, and 1.5 is still nearly 1")
BOUNDED = at_most(
    0.5, "stabkit's choice; an exponential between the ends gives 1: less than half of that is not exponential"
)
LINEARLY = ClaimPart("linearly", "linearly")
NOT_EXPONENTIALLY = ClaimPart("not-exponentially", "not exponentially")
FLAT = at_most(NEARLY, f"the paper: as large at every depth; stabkit's choice: exponent within ±{NEARLY:g}")

CLAIMS: tuple[Claim, ...] = (
    claim_of(
        "peri-linear",
        "Peri-LN’s states grow in variance linearly with depth, not exponentially.",
        "Kim et al. 2025, abstract",
        "peri-ln",
        test="Peri-LN: growth of the variance in the upper half of the layers over that in the lower half; and "
        "this ratio over that of an exponential between the same ends",
        threshold=LINEAR,
        scale="ratio",
        tell=closely,
        find=each_part(
            peri_grows(LINEARLY, upper_over_lower, LINEAR), peri_grows(NOT_EXPONENTIALLY, of_an_exponential, BOUNDED)
        ),
        parts=(LINEARLY, NOT_EXPONENTIALLY),
    ),
    claim_of(
        "sandwich-scale",
        "Sandwich-LN keeps the values of hidden states from growing layer by layer as Pre-LN’s do.",
        "Ding et al. 2021 §2.4",
        "sandwich-ln",
        "pre-ln",
        test="size of the state after the last layer over the first layer’s input: Sandwich-LN’s over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=deep(lambda seen: seen.stream, "sandwich-ln", "pre-ln"),
    ),
    claim_of(
        "reordered-spikes",
        "The reordered norm with q/k-norm makes the gradient’s norm less spiky.",
        "OLMo 2 §3.3.2, Fig. 7",
        "reordered-norm",
        "pre-ln",
        test="largest gradient norm from update 50 on over its median: the reordered norm’s over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=deep(lambda seen: seen.spikes, "reordered-norm", "pre-ln"),
    ),
    claim_of(
        "mix-even",
        "Mix-LN’s gradients are more even over the layers than Pre-LN’s and Post-LN’s.",
        "Li et al. 2024, abstract and Fig. 3",
        "mix-ln",
        "pre-ln",
        "post-ln",
        test="largest over smallest layer’s gradient norm: Mix-LN’s over Pre-LN’s, and over Post-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=times,
        find=each_part(more_even("pre-ln"), more_even("post-ln")),
        parts=(than("pre-ln"), than("post-ln")),
    ),
    claim_of(
        "keel-trains",
        "Keel trains where Post-LN is stuck.",
        "Chen & Wei 2026 §4, Table 1",
        "keel",
        "post-ln",
        test="outcomes of Keel where Post-LN fails in every seed: share of the seeds that train",
        threshold=MOST,
        scale="share",
        find=where_it_fails("keel", "post-ln"),
    ),
    claim_of(
        "lns-deep",
        "With LayerNorm scaling deep layers act less like an identity than Pre-LN’s.",
        "Sun et al. 2025 §5, Fig. 7",
        "layernorm-scaling",
        "pre-ln",
        test="angle between a layer’s input and output, in the upper half: LN scaling’s over Pre-LN’s",
        threshold=at_least(1.1, "stabkit's choice: a tenth more"),
        scale="ratio",
        tell=closely,
        find=deep(angle, "layernorm-scaling", "pre-ln"),
    ),
    claim_of(
        "dyt-matches",
        "DyT does as well as the norm in whose place it stands, with all else as it was.",
        "Zhu et al. 2025 §5",
        "dyt",
        "pre-ln",
        test="validation loss where Pre-LN trains: DyT’s minus Pre-LN’s, α 0.5 at first",
        threshold=at_most(MARGIN, f"stabkit's choice: {MARGIN:g} nats; smaller differences do not count"),
        scale="difference",
        tell=nats,
        find=nats_beside("dyt", "pre-ln"),
    ),
    claim_of(
        "gpt2-start",
        "GPT-2’s scaled initialisation takes back what the residual path accumulates with depth.",
        "Radford et al. 2019 §2.3",
        "gpt2-init",
        test="size of the state after the last layer over the first layer’s input, step 0: its exponent in the depth",
        line=True,
        threshold=FLAT,
        scale="difference",
        find=flat("gpt2-init", of(lambda seen: seen.stream_start)),
    ),
    claim_of(
        "depth-mup-flat",
        "Depth-μP’s updates are as large at every depth.",
        "Yang et al. 2023 §1, Table 1",
        "depth-mup",
        test="‖ΔF‖ after update 1: its exponent in the depth, at one rate",
        line=True,
        threshold=FLAT,
        scale="difference",
        find=flat("depth-mup", first_update, SATURATED),
    ),
    claim_of(
        "completep-flat",
        "CompleteP’s updates are as large at every depth at a fixed rate.",
        "Dey et al. 2025, Fig. 7",
        "completep",
        test="‖ΔF‖ after update 1: its exponent in the depth, at one rate",
        line=True,
        threshold=FLAT,
        scale="difference",
        find=flat("completep", first_update, SATURATED),
    ),
    claim_of(
        "residual-gradient",
        "ResiDual’s gradient does not vanish at the bottom as Post-LN’s does.",
        "Xie et al. 2023, abstract",
        "residual",
        "post-ln",
        test="the lowest ratio of the first to the last layer’s gradient norm: ResiDual’s over Post-LN’s",
        threshold=MUCH,
        scale="ratio",
        tell=times,
        find=deep(lambda seen: seen.gradient_lowest, "residual", "post-ln"),
    ),
)
