"""What DeepNet (Wang et al., journal version) says in §1 to §5 of LN inputs, gradients and stuck training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.claims.base import (
    MUCH,
    UNWARMED,
    WARMED,
    Claim,
    Measurement,
    Spot,
    Tell,
    at_least,
    at_most,
    closely,
    ratio_claim,
    share_claim,
)
from stabkit.claims.deepnet.update import DEEP, INIT, NO_WARMUP, P, cold_and_deep
from stabkit.claims.evidence import (
    ClaimCell,
    Find,
    Number,
    at,
    cells,
    fails_but_other_trains,
    mean_over,
    numbers,
    shares,
)
from stabkit.results.breaks import NEVER, first
from stabkit.results.chain import LATER, WINDOW, gradient_ratio
from stabkit.results.conditions import output_layers
from stabkit.results.outcome import BY_EYE, GROWN, VANISHED
from stabkit.results.points import LOWEST
from stabkit.results.readings import centre, chain, lowest_ratio
from stabkit.results.run import Run
from stabkit.results.sites import main_sites
from stabkit.words import short

BEGAN = Spot("start", "before any update")
FALL = Spot("fall", "fall after the explosion")
FOLLOWED = 100
"""stabkit's choice: updates from which on what has not become large is not large."""
LARGER = 1.25
"""stabkit's choice of what is significantly larger."""
TEN_FOLD = at_least(10.0, "stabkit's choice: ten-fold")
GONE = f"stabkit's limit for a vanished gradient; {BY_EYE}"


gradients = Tell(lambda value: short(value, 1) if value > LOWEST else "0")
"""A ratio of gradients: `3e-7`; `0` of what float32 does not hold."""


def _growth_of(run: Run) -> float:
    return chain(run, "ln_input_growth")


def followed(number: Number, limit: float, method: str, other: str | None = None, **more: Any) -> Find:
    """`numbers` of LN inputs, which the paper follows in training: one that has not come to its limit in a few updates
    decides nothing, for it still may."""

    def too_early(cell: ClaimCell) -> str:
        updates = min(run.spec.train.steps for own in (method, other) if own for run in cell.of(own))
        values = cell.ratio(method, other, number) if other else cell.values(method, number)
        if updates >= FOLLOWED or centre(values.values()) >= limit:
            return ""
        return f"{updates} updates: what is not large yet may become so; the paper follows it in training"

    return numbers(number, method, other, where=cold_and_deep, beyond=too_early, **more)


def deep_decoder(cell: ClaimCell) -> bool:
    return cell.decoder_layers >= DEEP


def ln_inputs(run: Run) -> NDArray[np.float64]:
    """The mean input of all LNs at each step, in √d."""
    table = run.records.get("ln_input")
    if table is None:
        return np.full(1, math.nan)
    sizes: NDArray[np.float64] = table.select(main_sites(table.sites)).mean(axis=1) / math.sqrt(run.spec.model.hidden)
    return sizes


def largest_ln_input(run: Run) -> float:
    return float(ln_inputs(run).max())


def ln_inputs_text(cell: ClaimCell) -> str:
    """`3.1 √d against 1.2 √d; 2.9 √d before any update`."""
    ours, theirs = (centre(cell.values(method, largest_ln_input).values()) for method in (P, INIT))
    start = centre(cell.values(P, lambda run: float(ln_inputs(run)[0])).values())
    return f"{short(ours)} √d against {short(theirs)} √d; {short(start)} √d before any update"


def start(run: Run) -> float:
    return max(chain(run, "gradient_ratio_start"), LOWEST)


def fall_after(run: Run) -> float:
    """How many times lower than at the last reading before the update exploded (‖ΔF‖ beyond SATURATED of √(2d)) the
    gradient's ratio comes from then on; NaN of a run whose update does not explode."""
    exploded, table = first(run, "update"), run.records.get("grad_norm")
    if table is None or exploded in (None, NEVER):
        return math.nan
    ratios, since = gradient_ratio(table), table.steps >= exploded
    if not since.any() or since.all():
        return math.nan
    with np.errstate(invalid="ignore"):
        return max(float(ratios[~since][-1]), LOWEST) / max(float(np.nanmin(ratios[since])), LOWEST)


def _where_lost(number: Number, run: Run) -> float:
    return number(run) if lowest_ratio(run) < VANISHED else math.nan


def order(runs: Sequence[Run]) -> Iterator[Measurement]:
    """Of the runs that have lost their gradient at their lowest: its ratio before any update, and how far it falls
    once the update has exploded."""
    for cell in cells(runs):
        if cell.decoder_layers >= DEEP and cell.warmup == 0:
            for part, number, limit in ((BEGAN, start, at_least(VANISHED, GONE)), (FALL, fall_after, TEN_FOLD)):
                values = cell.values(P, partial(_where_lost, number))
                when = Spot(part.key, part.text)
                yield cell.measured(values, P, when=when, part=part, threshold=limit)


def last_layer(runs: Sequence[Run]) -> Iterator[Measurement]:
    def top(run: Run) -> str:
        return output_layers(run.spec)[-1]

    def first(run: Run) -> float:
        return at("grad_norm", top(run), 0)(run)

    for cell in cells(runs):
        if cell.warmup == 0:
            values, when = cell.ratio(INIT, P, mean_over("grad_norm", top, *WINDOW)), Spot("later", LATER)
            if not any(map(math.isfinite, values.values())):  # shorter runs
                values, when = cell.ratio(INIT, P, first), Spot("step-0", "step 0")
            yield cell.measured(values, INIT, P, when=when)


CLAIMS: tuple[Claim, ...] = (
    ratio_claim(
        key="order",
        sentence="The order of the chain: Post-LN's gradient is there at the start, and vanishes only after the "
        "update has exploded.",
        source="DeepNet §2",
        weight="central",
        test="Post-LN without warm-up, 18 layers or more, runs whose first/last decoder gradient ratio vanishes: that "
        "ratio before any update, and how many times lower it falls once ‖ΔF‖ is beyond half of √(2d); an order is no "
        "cause",
        threshold=at_least(VANISHED, GONE),
        parts=(BEGAN, FALL),
        tell=gradients,
        find=order,
        spread={UNWARMED: {"18x18/fall": 2.043, "18x18/start": 1.885}},
        needs="Post-LN without warm-up at 18 layers or more, its gradient ratio below 10⁻² at its lowest",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    ratio_claim(
        key="vanishing",
        sentence="Post-LN's gradient vanishes: next to none reaches its lower layers.",
        source="DeepNet §2, Fig. 3(d)",
        weight="central",
        test="Post-LN's lowest first/last decoder gradient ratio without warm-up, 18 layers or more",
        threshold=at_most(VANISHED, GONE),
        tell=gradients,
        find=numbers(lowest_ratio, P, where=lambda cell: deep_decoder(cell) and cell.warmup == 0),
        spread={UNWARMED: {"18x18": 1.043}, WARMED: {"18x18": 1.914, "50x50": 2.822}},
        needs="Post-LN without warm-up at 18 decoder layers or more",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    ratio_claim(
        key="vanishing-init",
        sentence="Post-LN-init is relieved from the vanishing gradient.",
        source="DeepNet §2, Fig. 3(d)",
        weight="side",
        test="Post-LN-init's lowest first/last decoder gradient ratio, 18 layers or more",
        threshold=at_least(VANISHED, GONE),
        tell=gradients,
        find=numbers(lowest_ratio, INIT, where=deep_decoder),
        spread={UNWARMED: {"18x18": 0.5366}, WARMED: {"18x18": 0.2288, "50x50": 0.3168}},
        needs="Post-LN-init at 18 decoder layers or more",
        command="stabkit sweep --depths 18,50 --warmup 4000,0",
        methods=("post-ln-init",),
    ),
    ratio_claim(
        key="ln-growth",
        sentence="When Post-LN's update explodes, the inputs to LN grow large.",
        source="DeepNet §2, Fig. 3(b) and 3(c)",
        weight="central",
        test="Post-LN without warm-up, 18 layers or more: greatest mean LN input over that at step 0",
        threshold=at_least(GROWN, "stabkit's choice: 1.5 times as large"),
        tell=Tell(lambda value: f"{short(value, 3)}-fold"),
        find=followed(_growth_of, GROWN, P),
        spread={UNWARMED: {"18x18": 0.01949}},
        needs="Post-LN without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    ratio_claim(
        key="ln-stable",
        sentence="Post-LN-init's inputs to LN are stable.",
        source="DeepNet §2, Fig. 3(b) and 3(c)",
        weight="side",
        test="Post-LN-init without warm-up, 18 layers or more: greatest mean LN input over that at step 0",
        threshold=at_most(GROWN, "stabkit's choice: less than 1.5 times as large, also the limit for large ones"),
        tell=Tell(lambda value: f"{short(value, 3)}-fold"),
        find=followed(_growth_of, GROWN, INIT),
        spread={UNWARMED: {"18x18": 0.005779}},
        needs="Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln-init",),
    ),
    ratio_claim(
        key="ln-size",
        sentence="Post-LN's LN inputs are significantly larger than with proper initialisation.",
        source="DeepNet §2, Fig. 3(b) and 3(c)",
        weight="side",
        test="greatest mean LN input without warm-up, 18 layers or more: Post-LN's over Post-LN-init's, both in √d; "
        "for comparison Post-LN's before any update, which is already large",
        threshold=at_least(LARGER, "stabkit's choice: a quarter larger than the figure's proper initialisation"),
        tell=closely,
        find=followed(largest_ln_input, LARGER, P, INIT, beside=ln_inputs_text),
        spread={UNWARMED: {"18x18": 0.009833}},
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    ratio_claim(
        key="last-layer",
        sentence="The gradient of the last layers is much larger under Post-LN-init than under Post-LN.",
        source="DeepNet §2, Fig. 2(a) and 2(b)",
        weight="central",
        test="last decoder layer's gradient, no warm-up, as the mean of steps 100–250, of shorter runs at step 0 (the "
        "paper names no step; the figure has both): Post-LN-init's over Post-LN's",
        threshold=MUCH,
        find=last_layer,
        spread={UNWARMED: {"18x18/later": 0.1906, "18x18/step-0": 0.2054, "6x6/later": 0.191, "6x6/step-0": 0.2781}},
        needs="Post-LN and Post-LN-init without warm-up",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    share_claim(
        key="stuck",
        sentence="18L-18L Post-LN does not train; Post-LN-init does.",
        source="DeepNet §2, Fig. 2(c)",
        weight="central",
        test="outcomes at 18L-18L without warm-up: share of the seeds in which Post-LN is stuck or diverges and "
        "Post-LN-init trains",
        find=shares(fails_but_other_trains, P, INIT, where=lambda cell: cell.depth == (18, 18) and cell.warmup == 0),
        spread={UNWARMED: {"18x18": 0}},
        needs="Post-LN and Post-LN-init at 18L-18L without warm-up, long enough to judge",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
)
