"""What DeepNet (Wang et al., journal version) says in §2, §3 and §5, and what these runs measure of it.

The early window of the paper's pictures is read at the reference step (update 16) under warm-up and after the first
update without one, where everything that moves is at √(2d) a dozen updates later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import Cell, at, cells, groups, judged, mean_over, place, ratio, warmups
from stabkit.figures import grad_last, update_depth
from stabkit.figures.comparison import chain, reference_step, short
from stabkit.outcome import VANISHED
from stabkit.store import Run

P, INIT, D = "Post-LN", "Post-LN-init", "DeepNorm"
DEEP = 18
"""The paper's §2 speaks of 18L-18L; shallower models train."""
SWEEP = "stabkit sweep --depths 6,18,50 --seeds 0..2"
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0"
BOTH = "stabkit sweep --depths 18 --steps 250 --warmup 0,4000"
ONLY_LARGER = 1.1
"""A ratio nearer to 1 is no difference: about what another seed makes of it."""


def _exponents(runs: Sequence[Run]) -> list[tuple[str, dict[str, tuple[float, float]]]]:
    """(condition, {label: (exponent, the theorem's)}) at the reference step, for equally deep stacks."""
    found = []
    for condition, own in groups(runs):
        lines = update_depth.fit(update_depth.select(own))
        lines = lines[lines["shape"] == "N = M"]
        values = zip(lines["label"], lines["exponent"], lines["predicted"], strict=True)
        found.append((condition, {str(label): (float(p), float(bound)) for label, p, bound in values}))
    return found


def _layers(condition: str) -> str:
    return f"6–50 layers, {condition}" if condition else "6–50 layers"


def growth(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for condition, lines in _exponents(runs):
        if P in lines and D in lines:
            ours, theirs = lines[P][0], lines[D][0]
            text = f"N^{ours:.2f} against N^{theirs:.2f}"
            found.append(Evidence(where=_layers(condition), value=ours - theirs, text=text, holds=ours > theirs + 0.1))
    return found


def constant(runs: Sequence[Run]) -> list[Evidence]:
    return [
        Evidence(where=_layers(condition), value=lines[D][0], text=f"N^{lines[D][0]:.2f}", holds=lines[D][0] <= 0.25)
        for condition, lines in _exponents(runs)
        if D in lines
    ]


def bound(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for condition, lines in _exponents(runs):
        for label in (P, D):
            if label in lines and math.isfinite(lines[label][1]):
                measured, predicted = lines[label]
                text = f"{label} N^{measured:.2f}, bound N^{predicted:.2f}"
                holds = measured <= predicted + 0.1
                found.append(Evidence(where=_layers(condition), value=predicted - measured, text=text, holds=holds))
    return found


def smaller(runs: Sequence[Run]) -> list[Evidence]:
    step = reference_step(runs)
    found = []
    for cell in cells(runs):
        if cell.warmup > step:
            times = cell.ratio(P, D, at("update", "state", step))
            if math.isfinite(times):
                found.append(_times(times, place(cell, P, D), 3.0))
    return found


def _times(times: float, where: str, least: float, what: str = "") -> Evidence:
    text = f"{short(times)} times{f' {what}' if what else ''}"
    return Evidence(where=where, value=times, text=text, holds=times >= least)


def _first(runs: Sequence[Run], other: str) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP:
            times = cell.ratio(P, other, at("update", "state", 1))
            if math.isfinite(times):
                found.append(_times(times, place(cell, P, other), 2.0))
    return found


def first_deepnorm(runs: Sequence[Run]) -> list[Evidence]:
    return _first(runs, D)


def first_init(runs: Sequence[Run]) -> list[Evidence]:
    return _first(runs, INIT)


def standstill(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    later = mean_over("update", lambda run: "state@step", 50, 100)
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP and P in cell.runs:
            share = cell.mean(P, later) / cell.mean(P, at("update", "state@step", 1))
            if math.isfinite(share):
                text = f"{short(share)} of the first update"
                found.append(Evidence(where=place(cell, P), value=share, text=text, holds=share <= 0.1))
    return found


def warmup_helps(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for pair in warmups(runs, P):
        times = ratio(pair.without, pair.with_it, at("update", "state", 1))
        if pair.layers >= DEEP and math.isfinite(times):
            found.append(_times(times, pair.where, 2.0, "smaller"))
    return found


def init_helps(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP:
            times = cell.ratio(P, INIT, at("update", "state", 1))
            if math.isfinite(times):
                found.append(_times(times, place(cell, P, INIT), ONLY_LARGER, "smaller"))
    return found


def theta(runs: Sequence[Run]) -> list[Evidence]:
    step = reference_step(runs)

    def moved(run: Run) -> float:
        table = run.records.get("parameter_update")
        if table is None or not (table.steps == step).any():
            return math.nan
        return float(np.sqrt((table.values[np.flatnonzero(table.steps == step)[0]] ** 2).sum()))

    return [
        _times(times, pair.where, 2.0, f"smaller at step {step}")
        for pair in warmups(runs, P)
        if math.isfinite(times := ratio(pair.without, pair.with_it, moved))
    ]


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
    def greatest(run: Run) -> float:
        table = run.records.get("ln_input")
        if table is None:
            return math.nan
        sites = [site for site in table.sites if "@" not in site]
        return float(table.select(sites).mean(axis=1).max() / math.sqrt(run.spec.model.hidden))

    found = []
    for cell in cells(runs):
        if cell.warmup == 0 and cell.layers >= DEEP and P in cell.runs:
            size = cell.mean(P, greatest)
            if math.isfinite(size):
                text = f"{short(size)} √d at its greatest"
                found.append(Evidence(where=place(cell, P), value=size, text=text, holds=size >= 1.5))
    return found


def _lowest(run: Run) -> float:
    return max(chain(run, "gradient_ratio_lowest"), 1e-45)  # what float32 holds: 0 has no geometric mean


def vanishes(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        seeds = cell.seeds(P, INIT)
        if cell.layers >= DEEP and seeds:
            ours, theirs = cell.mean(P, _lowest, seeds), cell.mean(INIT, _lowest, seeds)
            if math.isfinite(ours) and math.isfinite(theirs):
                text = f"{short(ours, 1)} against {short(theirs, 1)}"
                where = place(cell, P, INIT)
                found.append(Evidence(where=where, value=ours, text=text, holds=ours < 1e-2 and ours < theirs / 10))
    return found


def after_explosion(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.layers < DEEP or P not in cell.runs:
            continue
        start = cell.mean(P, lambda run: chain(run, "gradient_ratio_start"))
        lowest = cell.mean(P, _lowest)
        if math.isfinite(start) and math.isfinite(lowest) and lowest < VANISHED:
            text = f"{short(start, 1)} at step 0, {short(lowest, 1)} at its lowest"
            holds = start >= VANISHED and lowest <= start / 10
            found.append(Evidence(where=place(cell, P), value=start / lowest, text=text, holds=holds))
    return found


def last_layer(runs: Sequence[Run]) -> list[Evidence]:
    number = mean_over("grad_norm", lambda run: f"decoder.{run.spec.model.decoder_layers}", *grad_last.WINDOW)
    found = []
    for cell in cells(runs):
        if cell.warmup == 0:
            times = cell.ratio(INIT, P, number)
            if math.isfinite(times):
                found.append(_times(times, place(cell, P, INIT), 1.0))
    return found


def not_at_18(runs: Sequence[Run]) -> list[Evidence]:
    return [
        _fates(cell, P, INIT)
        for cell in cells(runs)
        if cell.layers == DEEP and cell.warmup == 0 and judged(cell, P) and judged(cell, INIT)
    ]


def _fates(cell: Cell, failing: str, training: str) -> Evidence:
    """Whether in every seed one method fails and another trains."""
    lost = [word in ("stuck", "diverged") for word in cell.outcomes(failing)]
    kept = [word == "trains" for word in cell.outcomes(training)]
    text = f"{failing} fails in {sum(lost)} of {len(lost)}, {training} trains in {sum(kept)} of {len(kept)}"
    return Evidence(where=cell.where, value=sum(lost) + sum(kept), text=text, holds=all(lost) and all(kept))


def deep(runs: Sequence[Run]) -> list[Evidence]:
    return [_trains(cell, D) for cell in cells(runs) if cell.layers >= 50 and judged(cell, D)]


def _trains(cell: Cell, label: str) -> Evidence:
    kept = [word == "trains" for word in cell.outcomes(label)]
    text = f"{sum(kept)} of {len(kept)} runs train"
    return Evidence(where=cell.where, value=sum(kept) / len(kept), text=text, holds=all(kept))


def admin_fails(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.layers >= 50 and judged(cell, "ADMIN"):
            lost = [word == "diverged" for word in cell.outcomes("ADMIN")]
            text = f"{sum(lost)} of {len(lost)} runs diverge"
            found.append(Evidence(where=cell.where, value=sum(lost) / len(lost), text=text, holds=all(lost)))
    return found


def top_is_largest(runs: Sequence[Run]) -> list[Evidence]:
    def share(run: Run) -> float:
        table, layers = run.records.get("grad_norm"), run.spec.model.decoder_layers
        sites = [f"decoder.{layer}" for layer in range(1, layers + 1)]
        if table is None or layers < 2 or not set(sites) <= set(table.sites):
            return math.nan
        first = table.select(sites)[0]
        return float(first[:-1].max() / first[-1])

    found = []
    for cell in cells(runs):
        if P in cell.runs and math.isfinite(most := cell.mean(P, share)):
            text = f"no lower layer above {short(most)} of the top one's"
            found.append(Evidence(where=place(cell, P), value=most, text=text, holds=most <= 1.05))
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="growth",
        sentence="With depth Post-LN's model update explodes; DeepNet's does not.",
        source="DeepNet §3.3, Fig. 4",
        test="exponents of ‖ΔF‖ ∝ N^p at the reference step, fitted over 6 to 50 layers; Post-LN's larger by over 0.1",
        find=growth,
        needs="Post-LN and DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
    ),
    Claim(
        key="constant",
        sentence="DeepNet's model update is nearly constant in depth.",
        source="DeepNet §3.3, Fig. 4",
        test="DeepNorm's exponent at the reference step; nearly constant: at most 0.25",
        find=constant,
        needs="DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
    ),
    Claim(
        key="smaller",
        sentence="DeepNet has much smaller updates than Post-LN.",
        source="DeepNet Fig. 4, caption",
        test="‖ΔF‖ of Post-LN over DeepNorm's at the reference step under warm-up; much: 3 times at every depth",
        find=smaller,
        needs="Post-LN and DeepNorm at one depth and seed, with warm-up",
        command=SWEEP,
    ),
    Claim(
        key="bound",
        sentence="‖ΔF‖ grows no faster than the theorem's sum over the sub-layers' ‖Δθ‖.",
        source="DeepNet §3.2, Theorems 2 and 3",
        test="exponent of ‖ΔF‖ against that of the theorem's sum over the measured ‖Δθ‖; not above it by over 0.1",
        find=bound,
        needs="Post-LN or DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
    ),
    Claim(
        key="first-deepnorm",
        sentence="Post-LN's update explodes at the very beginning; DeepNet's does not.",
        source="DeepNet §2 and §3.3, Fig. 3(a) and 4",
        test="‖ΔF‖ after update 1 without warm-up, 18 layers or more: Post-LN over DeepNorm; at least twice",
        find=first_deepnorm,
        needs="Post-LN and DeepNorm without warm-up at 18 layers or more",
        command=NO_WARMUP,
    ),
    Claim(
        key="first-init",
        sentence="Post-LN's update explodes at the very beginning; Post-LN-init's does not.",
        source="DeepNet §2, Fig. 3(a)",
        test="‖ΔF‖ after update 1 without warm-up, 18 layers or more: Post-LN over Post-LN-init; at least twice",
        find=first_init,
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
    ),
    Claim(
        key="standstill",
        sentence="After its first update Post-LN hardly moves: it is stuck in a spurious optimum.",
        source="DeepNet §2, Fig. 3(a)",
        test="Post-LN's ‖ΔF‖ per update, mean of steps 50–100, over that of update 1, no warm-up; at most a tenth",
        find=standstill,
        needs="Post-LN without warm-up at 18 layers or more, 100 steps",
        command=NO_WARMUP,
    ),
    Claim(
        key="warmup",
        sentence="Warm-up helps: it lets Post-LN update smoothly.",
        source="DeepNet §2, Fig. 3(a)",
        test="Post-LN's ‖ΔF‖ after update 1 without warm-up over that with it, 18 layers or more; at least twice",
        find=warmup_helps,
        needs="Post-LN at 18 layers or more with and without warm-up",
        command=BOTH,
    ),
    Claim(
        key="initialisation",
        sentence="Better initialisation helps: it lets the model update smoothly.",
        source="DeepNet §2, Fig. 3(a)",
        test="‖ΔF‖ after update 1 without warm-up: Post-LN over Post-LN-init, 18 layers or more; above 1.1",
        find=init_helps,
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
    ),
    Claim(
        key="theta",
        sentence="Warm-up works by making ‖Δθ‖ smaller.",
        source="DeepNet §3.2",
        test="Post-LN's ‖Δθ‖ over all parameters at the reference step, without warm-up over with it; at least twice",
        find=theta,
        needs="Post-LN with and without warm-up",
        command=BOTH,
    ),
    Claim(
        key="ln-growth",
        sentence="When the update explodes, the inputs of the norms become large; under Post-LN-init they are stable.",
        source="DeepNet §2, Fig. 3(b), 3(c)",
        test="greatest mean LN input over that at step 0, no warm-up, 18 layers or more: above Post-LN-init's",
        find=ln_grows,
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
    ),
    Claim(
        key="ln-size",
        sentence="Without warm-up Post-LN's LN inputs are significantly larger than √d.",
        source="DeepNet §2, Fig. 3(b), 3(c)",
        test="Post-LN's greatest mean LN input over √d, no warm-up, 18 layers or more; significantly: 1.5 times",
        find=ln_above,
        needs="Post-LN without warm-up at 18 layers or more",
        command=NO_WARMUP,
    ),
    Claim(
        key="vanishing",
        sentence="Post-LN's lower layers lose their gradient; Post-LN-init's do not.",
        source="DeepNet §2, Fig. 3(d)",
        test="lowest first/last decoder gradient ratio, 18 layers or more: Post-LN's below 10⁻² and Post-LN-init's/10",
        find=vanishes,
        needs="Post-LN and Post-LN-init at 18 layers or more",
        command="stabkit sweep --depths 18,50",
    ),
    Claim(
        key="order",
        sentence="The gradient vanishes as training continues, after the update has exploded.",
        source="DeepNet §2",
        test="Post-LN's gradient ratio at step 0 (above 10⁻⁴: not yet gone) and its lowest (a tenth of that or less)",
        find=after_explosion,
        needs="Post-LN at 18 layers or more, long enough for its ratio to fall below 10⁻⁴",
        command=NO_WARMUP,
    ),
    Claim(
        key="last-layer",
        sentence="Post-LN-init's last layers have the larger gradient: exploding gradients are not the root cause.",
        source="DeepNet §2, Fig. 2(a), 2(b)",
        test="last decoder layer's gradient, mean of steps 100–250 without warm-up: Post-LN-init over Post-LN; above 1",
        find=last_layer,
        needs="Post-LN and Post-LN-init without warm-up for 250 steps (at the first updates the order is the reverse)",
        command=NO_WARMUP,
    ),
    Claim(
        key="top-largest",
        sentence="Post-LN makes the error signal smaller on its way down: no layer's gradient exceeds the top one's.",
        source="DeepNet §3.3",
        test="Post-LN, step 0: the largest gradient of a lower decoder layer over the top layer's; at most 1.05",
        find=top_is_largest,
        needs="Post-LN with two decoder layers or more",
        command=SWEEP,
    ),
    Claim(
        key="stuck",
        sentence="18L-18L Post-LN does not train; Post-LN-init does.",
        source="DeepNet §2, Fig. 2(c)",
        test="outcomes at 18L-18L without warm-up, every seed",
        find=not_at_18,
        needs="Post-LN and Post-LN-init at 18L-18L without warm-up, long enough to judge",
        command=NO_WARMUP,
    ),
    Claim(
        key="deep",
        sentence="DeepNet is stable from shallow to deep: it trains at 50 layers and more.",
        source="DeepNet §5, Table 1 and Fig. 6",
        test="outcomes of DeepNorm at 50 layers or more, every seed",
        find=deep,
        needs="DeepNorm at 50 layers or more, long enough to judge",
        command="stabkit sweep --models deepnorm --depths 50,100 --steps 250 --warmup 0",
    ),
    Claim(
        key="admin-fails",
        sentence="ADMIN diverges at 50L-50L and deeper.",
        source="DeepNet §5, Table 1",
        test="outcomes of ADMIN at 50 layers or more, every seed (the paper trains 100,000 steps of a larger model)",
        find=admin_fails,
        needs="ADMIN at 50 layers or more, long enough to judge",
        command="stabkit sweep --models admin --depths 50,100 --steps 250 --warmup 0",
    ),
)
