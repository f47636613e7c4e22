"""What DeepNet says of its two constants: Fig. 9 (α and β scaled) and Table 11 (one of them taken away).

Each piece of evidence is a pair of runs that differ in nothing else: the method as published, and changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import fails
from stabkit.figures.ablation import boundary
from stabkit.figures.shared import scales
from stabkit.figures.shared.comparison import outcome_word
from stabkit.figures.shared.words import listed, number, short
from stabkit.storage.store import Run

Find = Callable[[Sequence[Run]], list[Evidence]]
PAIRS = 5
"""Factors on α and β, at least, before a claim is made of all of them together."""
LOST = 99.0
"""Where a run without a finite loss stands among the others: worse than any. It is never told."""


def _pairs(runs: Sequence[Run], alpha: float, beta: float, dropped: str) -> Iterator[tuple[str, Run, Run]]:
    """(where, DeepNorm as published, DeepNorm changed so), of one setting and seed in which the first trains."""
    held: dict[str, dict[tuple[float, float, str], Run]] = {}
    for run in runs:
        if run.spec.method == "deepnorm":
            own = replace(run.spec, alpha_scale=1.0, beta_scale=1.0, options={})
            options = ",".join(f"{name}={value}" for name, value in sorted(run.spec.options.items()))
            held.setdefault(own.run_id, {})[run.spec.alpha_scale, run.spec.beta_scale, options] = run
    for _, by in sorted(held.items()):
        base, changed = by.get((1.0, 1.0, "")), by.get((alpha, beta, f"{dropped}=one" if dropped else ""))
        if base and changed and outcome_word(base) == "trains" and outcome_word(changed) != "early":
            warmup = f"warm-up {base.spec.train.warmup}" if base.spec.train.warmup else "no warm-up"
            yield listed(base.spec.depth, warmup, f"lr {base.spec.train.lr:g}", f"seed {base.spec.seed}"), base, changed


def _changed(holds: Callable[[bool, float], bool], *, alpha: float = 1.0, beta: float = 1.0, dropped: str = "") -> Find:
    """Evidence of one change: does it fail, and how many nats above the method itself does it end?"""

    def find(runs: Sequence[Run]) -> list[Evidence]:
        found = []
        for where, base, changed in _pairs(runs, alpha, beta, dropped):
            more = number(changed.outcome.get("validation_loss")) - number(base.outcome.get("validation_loss"))
            value = more if math.isfinite(more) else LOST
            text = f"{outcome_word(changed)}, {more:+.2f} nats" if math.isfinite(more) else outcome_word(changed)
            found.append(
                Evidence(where=where, value=value, text=text, holds=holds(fails(outcome_word(changed)), value))
            )
        return found

    return find


def follows(runs: Sequence[Run]) -> list[Evidence]:
    """Does ‖ΔF‖ rise with the theorem's sum over the factors?"""
    found = []
    for name, own in scales.groups(boundary.select(runs)):
        rho = boundary.rank_correlation(own["relative"], own["update_first"])
        if len(scales.cells(own)) >= PAIRS and math.isfinite(rho):
            text = f"rank correlation {rho:.3f}, log-log slope {boundary.slope(own):.2f} over {len(own)} runs"
            found.append(Evidence(where=name, value=rho, text=text, holds=rho >= 0.8))
    return found


def parted(runs: Sequence[Run]) -> list[Evidence]:
    """Does one level of the theorem's sum part the runs that fail from those that train?"""
    found = []
    for name, own in scales.groups(boundary.select(runs)):
        words = set(own["outcome"])
        if len(scales.cells(own)) < PAIRS or "trains" not in words or not words & {"stuck", "diverged"}:
            continue
        border = boundary.border(own)
        if border is None:
            found.append(Evidence(where=name, value=0.0, text="no level parts them", holds=False))
            continue
        text = (
            f"at {short(border.level)} times the method's own sum {border.right} of {border.total} runs are on the "
            f"right side{boundary.told(own)}"
        )
        found.append(
            Evidence(where=name, value=border.right / border.total, text=text, holds=border.right >= 0.9 * border.total)
        )
    return found


def _unstable(lost: bool, more: float) -> bool:
    return lost or more >= 0.5


def _worse(lost: bool, more: float) -> bool:
    return more >= 0.05


def _fails(lost: bool, more: float) -> bool:
    return lost


def _slightly_worse(lost: bool, more: float) -> bool:
    return not lost and 0 < more <= 0.3


UNSTABLE, WORSE = "it fails or ends 0.5 nats above", "it ends 0.05 nats above or more"
ABLATE = "stabkit ablate --seeds 0,1"
DROP = f"{ABLATE} --drop deepnorm,init"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="alpha-small",
        sentence="A small shortcut scale α destabilises.",
        source="DeepNet §10, Fig. 9",
        test=f"DeepNorm with α × 0.25 beside DeepNorm itself, validation loss at the end; {UNSTABLE}",
        find=_changed(_unstable, alpha=0.25),
        needs="DeepNorm itself and with α × 0.25, long enough to judge",
        command=ABLATE,
        methods=("deepnorm",),
    ),
    Claim(
        key="beta-large",
        sentence="A large initialisation scale β destabilises.",
        source="DeepNet §10, Fig. 9",
        test=f"DeepNorm with β × 4 beside DeepNorm itself, validation loss at the end; {UNSTABLE}",
        find=_changed(_unstable, beta=4.0),
        needs="DeepNorm itself and with β × 4, long enough to judge",
        command=ABLATE,
        methods=("deepnorm",),
    ),
    Claim(
        key="alpha-large",
        sentence="A large shortcut scale α undermines performance.",
        source="DeepNet §10, Fig. 9",
        test=f"DeepNorm with α × 4 beside DeepNorm itself, validation loss at the end; {WORSE}",
        find=_changed(_worse, alpha=4.0),
        needs="DeepNorm itself and with α × 4, long enough to judge",
        command=ABLATE,
        methods=("deepnorm",),
    ),
    Claim(
        key="beta-small",
        sentence="A small initialisation scale β undermines performance.",
        source="DeepNet §10, Fig. 9",
        test=f"DeepNorm with β × 0.25 beside DeepNorm itself, validation loss at the end; {WORSE}",
        find=_changed(_worse, beta=0.25),
        needs="DeepNorm itself and with β × 0.25, long enough to judge",
        command=ABLATE,
        methods=("deepnorm",),
    ),
    Claim(
        key="without-deepnorm",
        sentence="Without DeepNorm (α = 1, β kept) training diverges.",
        source="DeepNet §10, Table 11",
        test="DeepNorm with α = 1 beside DeepNorm itself, validation loss at the end; it fails",
        find=_changed(_fails, dropped="alpha"),
        needs="DeepNorm itself and with α = 1, long enough to judge",
        command=DROP,
        methods=("deepnorm",),
    ),
    Claim(
        key="without-init",
        sentence="Without the initialisation (β = 1, α kept) the result is slightly worse.",
        source="DeepNet §10, Table 11",
        test="DeepNorm with β = 1 beside DeepNorm itself, validation loss at the end; trains, up to 0.3 nats worse",
        find=_changed(_slightly_worse, dropped="beta"),
        needs="DeepNorm itself and with β = 1, long enough to judge",
        command=DROP,
        methods=("deepnorm",),
    ),
    Claim(
        key="update-follows",
        sentence="The update rises with Σ√(v² + w²)/α·‖Δθ‖ (our reading: the paper has it as a bound).",
        source="DeepNet §3.2, Theorems 2 and 3",
        test="α and β scaled: rank correlation of ‖ΔF‖ after update 1 with the theorem's sum; at least 0.8",
        find=follows,
        needs="five pairs of factors on α and β",
        command=ABLATE,
        methods=("deepnorm",),
        ours=True,
    ),
    Claim(
        key="bound-decides",
        sentence="Training fails where the theorem's sum is large (our reading: the paper bounds the update by it).",
        source="DeepNet §2 and §3.2",
        test="α and β scaled: one level of the theorem's sum, fitted to these runs, has 9 of 10 on the right "
        "side; beside it what β/α alone and the measured ‖ΔF‖ do",
        find=parted,
        needs="five pairs of factors on α and β, among them some that fail and some that train",
        command="stabkit ablate --grid --seeds 0,1",
        methods=("deepnorm",),
        ours=True,
    ),
)
