"""What the papers of after 2022 say of their own methods, one central sentence each, in any block: one row a claim.

Their models are language models of a hundred million parameters and more, trained for billions of tokens; here they are
tested on tiny ones after some hundred updates, beside Pre-LN or Post-LN under the same settings and seeds.
"""

from __future__ import annotations

from typing import Any

from stabkit.claims.base import MOST, MUCH, Claim, ClaimPart, at_least, at_most, closely, nats, times
from stabkit.claims.evidence import MARGIN
from stabkit.claims.exponents import NEARLY
from stabkit.claims.today.find import (
    LEAST_DEEP,
    against,
    angle,
    first_update,
    flat,
    growth,
    nats_beside,
    of,
    of_an_exponential,
    than,
    upper_over_lower,
    where_it_fails,
)
from stabkit.results.chain import SATURATED
from stabkit.results.line import FEWEST, SPAN


def sweep(depths: str) -> str:
    """The command that tests them, at these depths."""
    return (
        f"stabkit sweep --models today --arch decoder-only --depths {depths} --steps 250 --warmup 0 --lr 1e-3 "
        "--max-tokens 256 --seeds 0..4"
    )


LESS = at_most(0.9, "ours: a tenth less, more than another batch makes of it")


def _claim(key: str, sentence: str, source: str, method: str, *beside: str, line: bool = False, **given: Any) -> Claim:
    where = f"{FEWEST} depths, the deepest {SPAN:g} times the shallowest" if line else f"{LEAST_DEEP} layers or more"
    return Claim(
        key=key,
        sentence=sentence,
        source=source,
        weight="central",
        needs=f"{' and '.join((method, *beside))} at {where}, to a verdict",
        command=sweep("6,18,50" if line else "6,18"),
        methods=(method, *beside),
        **given,
    )


LINEAR = at_most(1.5, "ours: a straight line gives 1, and half more is still nearly one")
BOUNDED = at_most(0.5, "ours: an exponential between the same ends gives 1; less than half of that is none")
LINEARLY = ClaimPart("linearly", "linearly")
NOT_EXPONENTIALLY = ClaimPart("not-exponentially", "not exponentially")
FLAT = at_most(NEARLY, f"the paper: as large at every depth; ours: an exponent of {NEARLY:g} at most, up or down")

CLAIMS: tuple[Claim, ...] = (
    _claim(
        "peri-linear",
        "Peri-LN’s states grow in variance linearly with depth, not exponentially.",
        "Kim et al. 2025, abstract",
        "peri-ln",
        test="Peri-LN: what the variance grows by in the upper half of the layers over what it does in the lower; and "
        "that over what an exponential between the same ends gives",
        threshold=LINEAR,
        scale="ratio",
        tell=closely,
        find=growth("peri-ln", (LINEARLY, upper_over_lower, LINEAR), (NOT_EXPONENTIALLY, of_an_exponential, BOUNDED)),
        parts=(LINEARLY, NOT_EXPONENTIALLY),
    ),
    _claim(
        "sandwich-scale",
        "Sandwich-LN keeps the values of hidden states from growing layer by layer as Pre-LN’s do.",
        "Ding et al. 2021 §2.4",
        "sandwich-ln",
        "pre-ln",
        test="size of the state after the last layer over what enters the first: Sandwich-LN’s over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=against("sandwich-ln", "pre-ln", number=lambda seen: seen.stream),
    ),
    _claim(
        "reordered-spikes",
        "The reordered norm with q/k-norm makes the gradient’s norm less spiky.",
        "OLMo 2 §3.3.2, Fig. 7",
        "reordered-norm",
        "pre-ln",
        test="largest gradient norm from update 50 on over its median: the reordered norm’s over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=against("reordered-norm", "pre-ln", number=lambda seen: seen.spikes),
    ),
    _claim(
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
        find=against("mix-ln", "pre-ln", "post-ln", number=lambda seen: seen.gradient_spread, parts=True),
        parts=(than("pre-ln"), than("post-ln")),
    ),
    _claim(
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
    _claim(
        "lns-deep",
        "With LayerNorm scaling deep layers act less like an identity than Pre-LN’s.",
        "Sun et al. 2025 §5, Fig. 7",
        "layernorm-scaling",
        "pre-ln",
        test="angle between what enters a layer and what leaves it, in the upper half: LN scaling’s over Pre-LN’s",
        threshold=at_least(1.1, "ours: a tenth more"),
        scale="ratio",
        tell=closely,
        find=against("layernorm-scaling", "pre-ln", number=angle),
    ),
    _claim(
        "dyt-matches",
        "DyT does as well as the norm in whose place it stands, with all else as it was.",
        "Zhu et al. 2025 §5",
        "dyt",
        "pre-ln",
        test="validation loss where Pre-LN trains: DyT’s less Pre-LN’s, α 0.5 at first",
        threshold=at_most(MARGIN, f"ours: {MARGIN:g} nats, below which two losses are one"),
        scale="difference",
        tell=nats,
        find=nats_beside("dyt", "pre-ln"),
    ),
    _claim(
        "gpt2-start",
        "GPT-2’s scaled initialisation takes back what the residual path accumulates with depth.",
        "Radford et al. 2019 §2.3",
        "gpt2-init",
        test="size of the state after the last layer over what enters the first, step 0: its exponent in the depth",
        line=True,
        threshold=FLAT,
        scale="difference",
        find=flat("gpt2-init", of(lambda seen: seen.stream_start)),
    ),
    _claim(
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
    _claim(
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
    _claim(
        "residual-gradient",
        "ResiDual’s gradient does not vanish at the bottom as Post-LN’s does.",
        "Xie et al. 2023, abstract",
        "residual",
        "post-ln",
        test="the lowest ratio of the first to the last layer’s gradient norm: ResiDual’s over Post-LN’s",
        threshold=MUCH,
        scale="ratio",
        tell=times,
        find=against("residual", "post-ln", number=lambda seen: seen.gradient_lowest),
    ),
)
