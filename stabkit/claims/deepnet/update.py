"""What DeepNet (Wang et al., journal version) says of the model update in §2 and §3, and what these runs measure.

‖ΔF‖ is eq. 1's: accumulated, against θ₀. The paper's early window is read at the reference step (update 16) under
warm-up and at updates 1, 16 and 50 without, where all that moves is near √(2d) a dozen updates later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    at_update,
    closely,
    power_of_n,
    ratio_claim,
    signed,
)
from stabkit.claims.evidence import (
    NEARLY,
    ClaimCell,
    above_theorem,
    at,
    cells,
    falling,
    groups,
    mean_over,
    numbers,
    of_line,
    over,
    sizes,
)
from stabkit.results import update_fit
from stabkit.results.chain import SATURATED
from stabkit.results.once import once
from stabkit.results.readings import centre, reference_step
from stabkit.results.run import Run
from stabkit.words import listed, short

P, INIT, D, PRE = "post-ln", "post-ln-init", "deepnorm", "pre-ln"
DEEP = 18
"""The paper's §2 speaks of 18L-18L; shallower models train."""
SWEEP = "stabkit sweep --depths 6,18,50 --warmup 4000 --seeds 0..4"
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0 --seeds 0..4"


def cold_and_deep(cell: ClaimCell) -> bool:
    """Without warm-up, as deep as the paper's §2 has it."""
    return cell.warmup == 0 and cell.layers >= DEEP


@once
def _lines(runs: Sequence[Run]) -> list[tuple[str, list[Run], dict[str, update_fit.DepthLine]]]:
    """(condition in words, its runs, {method: line}) at the page's reference step, of stacks of equal depth or of one
    stack."""
    step = reference_step(runs)
    rows = []
    for apart, members in groups(runs):
        lines = update_fit.lines(update_fit.updates(members, step))
        for shape in dict.fromkeys(line.shape for line in lines):
            of_shape = {line.variant: line for line in lines if line.shape == shape}
            rows.append((listed(update_fit.unless_equal(shape), apart), members, of_shape))
    return rows


def growth(runs: Sequence[Run]) -> Iterator[Measurement]:
    for apart, members, lines in _lines(runs):
        if P in lines and D in lines:
            ours, theirs = lines[P], lines[D]
            more = {seed: ours.seeds[seed] - max(at, 0.0) for seed, at in theirs.seeds.items() if seed in ours.seeds}
            beside = f"{power_of_n(ours.exponent)} against {power_of_n(theirs.exponent)}"
            yield of_line(members, ours, more, apart=apart, beside=beside)


def constant(runs: Sequence[Run]) -> list[Measurement]:
    return [
        of_line(own, line, sizes(line), apart=apart, beside=falling(line))
        for apart, own, lines in _lines(runs)
        if (line := lines.get(D)) is not None
    ]


def bound(runs: Sequence[Run]) -> Iterator[Measurement]:
    for apart, members, lines in _lines(runs):
        for method, line in lines.items():
            more = above_theorem(line)
            if more:
                beside = f"{power_of_n(line.exponent)}, sum {power_of_n(line.theorem)}"
                yield of_line(members, line, more, Spot(method, line.label), apart=apart, beside=beside)


def smaller(runs: Sequence[Run]) -> Iterable[Measurement]:
    step = reference_step(runs)
    return numbers(at("update", "state", step), P, D, where=lambda cell: cell.warmup > step)(runs)


def relatively_small(runs: Sequence[Run]) -> Iterator[Measurement]:
    """‖ΔF‖ of Post-LN over Post-LN-init's after updates 1, 16 and 50."""
    for cell in cells(runs):
        for step in (1, 16, 50) if cold_and_deep(cell) else ():
            number = at("update", "state", step)
            low = centre(cell.values(INIT, number).values())
            top = SATURATED * math.sqrt(2 * cell.of(INIT)[0].spec.model.hidden) if cell.of(INIT) else math.inf
            beyond = f"both are beyond {SATURATED:g} of √(2d), where all methods look alike" if low > top else ""
            values = cell.ratio(P, INIT, number)
            yield cell.measured(values, P, INIT, when=at_update(step), beyond=beyond)


_later = mean_over("update", lambda run: "state@step", 50, 100)


def later_share(run: Run) -> float:
    """The size of an update from step 50 on over that of the first."""
    return over(_later(run), at("update", "state@step", 1)(run))


def standstill_text(cell: ClaimCell) -> str:
    """`0.02 an update, Post-LN-init 0.9, 0.3 an update`."""
    other = [_middle(cell.values(INIT, number)) for number in (later_share, _later)]
    init = f"{cell.label(INIT)} {other[0]}, {other[1]} per update" if cell.of(INIT) else ""
    return listed(f"{_middle(cell.values(P, _later))} per update", init)


def _middle(values: Mapping[int, float]) -> str:
    return short(centre(values.values()))


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="growth",
        sentence="With depth Post-LN's model update explodes; DeepNet's does not.",
        source="DeepNet §3.3, Fig. 4",
        weight="central",
        test="exponents of ‖ΔF‖ ∝ N^p at update 16, over 6 to 50 layers: Post-LN's minus DeepNorm's (which "
        "counts as 0 where it falls)",
        threshold=at_least(0.25, "stabkit's choice: 1.7 times the growth over 6 to 50 layers"),
        tell=signed,
        find=growth,
        spread={WARMED: {"6-50": 0.7275}},
        needs="Post-LN and DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
        methods=("post-ln", "deepnorm"),
    ),
    ratio_claim(
        key="smaller",
        sentence="DeepNet has much smaller updates than Post-LN.",
        source="DeepNet §3.2, Fig. 4",
        weight="central",
        test="‖ΔF‖ of Post-LN over DeepNorm's at update 16, under warm-up",
        threshold=MUCH,
        find=smaller,
        spread={WARMED: {"18x18": 0.9258, "50x50": 1.12, "6x6": 0.7738}},
        needs="Post-LN and DeepNorm at one depth and seed, with warm-up",
        command=SWEEP,
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="constant",
        sentence="DeepNet's model update is nearly constant in depth.",
        source="DeepNet §3.3, Fig. 4",
        weight="central",
        test="DeepNorm's exponent of ‖ΔF‖ ∝ N^p at update 16, over 6 to 50 layers, up or down",
        threshold=at_most(NEARLY, "stabkit's choice: N^0.25 is a factor of 1.7 over 6 to 50 layers"),
        tell=power_of_n,
        find=constant,
        spread={WARMED: {"6-50": 0.04393}},
        needs="DeepNorm at three depths or more from 6 to 50 layers",
        command=SWEEP,
        methods=("deepnorm",),
    ),
    Claim(
        key="bound",
        sentence="‖ΔF‖ grows no faster with depth than the theorem's sum over the sub-layers' ‖Δθ‖.",
        source="DeepNet §3.2, Theorems 2 and 3",
        weight="central",
        test="exponent of ‖ΔF‖ minus that of the theorem's sum over the measured ‖Δθ‖, over 6 to 50 layers (a higher "
        "exponent is evidence, not a refutation: the bound has a free constant)",
        threshold=at_most(0.1, "stabkit's choice: a factor of 1.2 over 6 to 50 layers"),
        tell=signed,
        find=bound,
        spread={
            WARMED: {"admin/6-50": 0.1216, "deepnorm/6-50": 0.0311, "post-ln-init/6-50": 0.1714, "post-ln/6-50": 0.8975}
        },
        needs="one of the Post-LN methods at three depths or more from 6 to 50 layers",
        command=SWEEP,
        methods=("post-ln", "post-ln-init", "ds-init", "admin", "deepnorm"),
    ),
    ratio_claim(
        key="initialisation",
        sentence="Post-LN-init has relatively small updates.",
        source="DeepNet §2, Fig. 3(a)",
        weight="central",
        test="without warm-up, 18 layers or more: ‖ΔF‖ of eq. 1 after updates 1, 16 and 50, Post-LN's over "
        "Post-LN-init's",
        threshold=at_least(1.25, "stabkit's choice: a quarter larger"),
        tell=closely,
        find=relatively_small,
        spread={
            UNWARMED: {
                "18x18/update-1": 0.8093,
                "18x18/update-16": 0.2018,
                "18x18/update-50": 0.1729,
                "18x18/updates-1-16": 0.5717,
            }
        },
        needs="Post-LN and Post-LN-init without warm-up at 18 layers or more",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
    ratio_claim(
        key="standstill",
        sentence="After its exploding start Post-LN hardly moves.",
        source="DeepNet §2, Fig. 3(a)",
        weight="central",
        test="Post-LN's ‖ΔF‖ per update, mean of steps 50–100, no warm-up, over that of its first update; for "
        "comparison Post-LN-init, which trains",
        threshold=at_most(0.1, "stabkit's choice: “hardly” is a tenth of its first update"),
        tell=Tell(unit="of its first"),
        find=numbers(later_share, P, where=cold_and_deep, beside=standstill_text),
        spread={UNWARMED: {"18x18": 0.3942}},
        needs="Post-LN without warm-up at 18 layers or more, 100 steps",
        command=NO_WARMUP,
        methods=("post-ln", "post-ln-init"),
    ),
)
