"""What DeepNet (Wang et al., journal version) says in §2 and §3 of LN inputs, gradients and stuck training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.deepnet_update import DEEP, NO_WARMUP, ONLY_LARGER, SWEEP
from stabkit.claims.evidence import (
    at,
    by_seed,
    cells,
    ends,
    fails,
    fates,
    judged,
    mean_over,
    place,
)
from stabkit.figures.chain import grad_last
from stabkit.figures.shared.comparison import chain
from stabkit.figures.shared.words import short
from stabkit.results.outcome import VANISHED
from stabkit.storage.store import Run

P, INIT, D = "Post-LN", "Post-LN-init", "DeepNorm"


def _growth_of(run: Run) -> float:
    return chain(run, "ln_input_growth")


def ln_grows(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP:
            seeds = cell.seeds(P, INIT)
            ours, theirs = cell.mean(P, _growth_of, seeds), cell.mean(INIT, _growth_of, seeds)
            if seeds and math.isfinite(ours) and math.isfinite(theirs):
                text = f"{short(ours, 3)}-fold against {short(theirs, 3)}-fold"
                where = place(cell, P, INIT)
                found.append(Evidence(where=where, value=ours / theirs, text=text, holds=ours > theirs * 1.01))
    return found


def ln_above(runs: Sequence[Run]) -> list[Evidence]:
    def sizes(run: Run) -> NDArray[np.float64]:
        table = run.records.get("ln_input")
        if table is None:
            return np.full(1, math.nan)
        norms = table.select([site for site in table.sites if "@" not in site]).mean(axis=1)
        over: NDArray[np.float64] = norms / math.sqrt(run.spec.model.hidden)
        return over

    found = []
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP and P in cell.runs:
            size = cell.mean(P, lambda run: float(sizes(run).max()))
            start = cell.mean(P, lambda run: float(sizes(run)[0]))
            if math.isfinite(size):
                text = f"{short(size)} √d at its greatest, {short(start)} √d before any update"
                found.append(Evidence(where=place(cell, P), value=size, text=text, holds=size >= 1.5))
    return found


def _lowest(run: Run) -> float:
    return max(chain(run, "gradient_ratio_lowest"), 1e-45)  # what float32 holds: 0 has no geometric mean


def vanishes(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        seeds = cell.seeds(P, INIT)
        if cell.decoder_layers >= DEEP and seeds:
            ours, theirs = cell.mean(P, _lowest, seeds), cell.mean(INIT, _lowest, seeds)
            if math.isfinite(ours) and math.isfinite(theirs):
                text = f"{short(ours, 1)} against {short(theirs, 1)}"
                where = place(cell, P, INIT)
                found.append(Evidence(where=where, value=ours, text=text, holds=ours < 1e-2 and ours < theirs / 10))
    return found


def after_explosion(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.warmup or cell.decoder_layers < DEEP or P not in cell.runs:
            continue
        start = cell.mean(P, lambda run: chain(run, "gradient_ratio_start"))
        lowest = cell.mean(P, _lowest)
        if math.isfinite(start) and math.isfinite(lowest) and lowest < VANISHED:
            text = f"{short(start, 1)} at step 0, {short(lowest, 1)} at its lowest"
            holds = start >= VANISHED and lowest <= start / 10
            found.append(Evidence(where=place(cell, P), value=start / lowest, text=text, holds=holds))
    return found


def last_layer(runs: Sequence[Run]) -> list[Evidence]:
    def site(run: Run) -> str:
        return f"decoder.{run.spec.model.decoder_layers}"

    def first(run: Run) -> float:
        return at("grad_norm", site(run), 0)(run)

    number = mean_over("grad_norm", site, *grad_last.WINDOW)
    found = []
    for cell in cells(runs):
        if cell.warmup == 0:
            times = cell.ratio(INIT, P, number)
            if math.isfinite(times):
                spread = by_seed(cell.runs[INIT], cell.runs[P], number)
                text = f"{short(times)} times{spread}, {short(cell.ratio(INIT, P, first))} at step 0"
                where = place(cell, P, INIT)
                found.append(Evidence(where=where, value=times, text=text, holds=times >= ONLY_LARGER))
    return found


def not_at_18(runs: Sequence[Run]) -> list[Evidence]:
    return [
        fates(cell, P, INIT)
        for cell in cells(runs)
        if cell.depth == "18L-18L" and cell.warmup == 0 and judged(cell, P, INIT)
    ]


def deep(runs: Sequence[Run]) -> list[Evidence]:
    return [
        ends(cell, D, lambda word: word == "trains", "train")
        for cell in cells(runs)
        if cell.layers >= 50 and judged(cell, D)
    ]


def admin_fails(runs: Sequence[Run]) -> list[Evidence]:
    return [
        ends(cell, "ADMIN", fails, "diverge or are stuck")
        for cell in cells(runs)
        if cell.layers >= 50 and judged(cell, "ADMIN")
    ]


def top_is_largest(runs: Sequence[Run]) -> list[Evidence]:
    def share(run: Run) -> float:
        table = run.records.get("grad_norm")
        sites = (
            [s for s in table.sites if s.startswith("decoder.") and s.count(".") == 2 and "@" not in s] if table else []
        )
        if table is None or len(sites) < 2:
            return math.nan
        first = table.select(sites)[0]
        return float(first[:-1].max() / first[-1])

    found = []
    for cell in cells(runs):
        if P in cell.runs and math.isfinite(most := cell.mean(P, share)):
            text = f"the largest is {short(most)} times the top one's"
            found.append(Evidence(where=place(cell, P), value=most, text=text, holds=most <= 1.05))
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="ln-growth",
        sentence="When the update explodes, the inputs of the norms become large; under Post-LN-init they are stable.",
        source="DeepNet §2, Fig. 3(b), 3(c)",
        test="greatest mean LN input over that at step 0, no warm-up, 18 layers or more: above Post-LN-init's",
        find=ln_grows,
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    Claim(
        key="ln-size",
        sentence="Without warm-up Post-LN's LN inputs are significantly larger than √d.",
        source="DeepNet §2, Fig. 3(b), 3(c)",
        test="Post-LN's greatest mean LN input over √d, no warm-up, 18 layers or more; significantly: 1.5 times",
        find=ln_above,
        needs="Post-LN without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    Claim(
        key="vanishing",
        sentence="Post-LN's lower layers lose their gradient; Post-LN-init's do not.",
        source="DeepNet §2, Fig. 3(d)",
        test="lowest first/last decoder gradient ratio, 18 layers or more: Post-LN's below 10⁻² and Post-LN-init's/10",
        find=vanishes,
        needs="Post-LN and Post-LN-init at 18 layers or more",
        command="stabkit sweep --depths 18,50",
        methods=("post-ln", "post-ln-init"),
    ),
    Claim(
        key="order",
        sentence="The gradient vanishes as training continues, after the update has exploded.",
        source="DeepNet §2",
        test="Post-LN's gradient ratio at step 0 (above 10⁻⁴: not yet gone) and its lowest (a tenth of that or less)",
        find=after_explosion,
        needs="Post-LN without warm-up at 18 layers or more, long enough for its ratio to fall below 10⁻⁴",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    Claim(
        key="last-layer",
        sentence="Post-LN-init's last layers have the larger gradient: exploding gradients are not the root cause.",
        source="DeepNet §2, Fig. 2(a), 2(b)",
        test="last decoder layer's gradient, mean of steps 100–250, no warm-up: Post-LN-init over Post-LN; above 1.1",
        find=last_layer,
        needs="Post-LN and Post-LN-init without warm-up for 250 steps (at the first updates the order is the reverse)",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    Claim(
        key="top-largest",
        sentence="Post-LN shrinks the error signal on its way down: no sub-layer's gradient exceeds the top one's.",
        source="DeepNet §3.3",
        test="Post-LN, step 0: the largest gradient of a lower decoder sub-layer over the top one's; at most 1.05",
        find=top_is_largest,
        needs="Post-LN with two decoder layers or more",
        command=SWEEP,
        methods=("post-ln",),
    ),
    Claim(
        key="stuck",
        sentence="18L-18L Post-LN does not train; Post-LN-init does.",
        source="DeepNet §2, Fig. 2(c)",
        test="outcomes at 18L-18L without warm-up, every seed",
        find=not_at_18,
        needs="Post-LN and Post-LN-init at 18L-18L without warm-up, long enough to judge",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    Claim(
        key="deep",
        sentence="DeepNet is stable from shallow to deep: it trains at 50 layers and more.",
        source="DeepNet §5, Table 1 and Fig. 6",
        test="outcomes of DeepNorm at 50 layers or more, every seed",
        find=deep,
        needs="DeepNorm at 50 layers or more, long enough to judge",
        command="stabkit sweep --models deepnorm --depths 50,100 --steps 250 --warmup 0",
        methods=("deepnorm",),
    ),
    Claim(
        key="admin-fails",
        sentence="ADMIN diverges at 50L-50L and deeper.",
        source="DeepNet §5, Table 1",
        test="outcomes of ADMIN at 50 layers or more, every seed (the paper trains 100,000 steps of a larger model)",
        find=admin_fails,
        needs="ADMIN at 50 layers or more, long enough to judge",
        command="stabkit sweep --models admin --depths 50,100 --steps 250 --warmup 0",
        methods=("admin",),
    ),
)
