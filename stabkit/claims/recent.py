"""What the papers of 2024 to 2026 say of their own methods, a sentence or two each, in any block: one row a claim.

As `today.py`'s: tiny models after some hundred updates, beside Pre-LN or Post-LN under the same settings and seeds.
"""

from __future__ import annotations

from stabkit.claims.base import MOST, MUCH, Claim, ClaimPart, at_most, closely, nats, times
from stabkit.claims.evidence import MARGIN, Find
from stabkit.claims.today import LESS, claim_of, deep, each_part, nats_beside, where_it_fails


def _mixing(start: str) -> Find:
    """The largest gain of mHC's mixings, whose paper does not say where they start; each start is a part."""
    words = start.partition("=")[2]
    part = ClaimPart(start, f"from the {words} start" if words else "from ¼ everywhere")
    return deep(lambda seen: seen.mixing, start, part=lambda cell: part, beside=lambda cell: part.text)


CLAIMS: tuple[Claim, ...] = (
    claim_of(
        "derf-matches",
        "Derf does as well as the norm in whose place it stands, with all else as it was.",
        "Chen et al. 2025, abstract",
        "derf",
        "pre-ln",
        test="validation loss where Pre-LN trains: Derf’s minus Pre-LN’s",
        threshold=at_most(MARGIN, f"stabkit's choice: {MARGIN:g} nats; smaller differences do not count"),
        scale="difference",
        tell=nats,
        find=nats_beside("derf", "pre-ln"),
    ),
    claim_of(
        "gpas-smaller",
        "GPAS keeps the variance of states from growing over depth as Pre-LN’s does.",
        "Chen et al. 2025b, abstract and Fig. 1",
        "gpas",
        "pre-ln",
        test="size of the state after the last layer over the first layer’s input: GPAS’s over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=deep(lambda seen: seen.stream, "gpas", "pre-ln"),
    ),
    claim_of(
        "gated-spikes",
        "A gate on attention makes training less spiky.",
        "Qiu et al. 2025, abstract",
        "gated-attention",
        "pre-ln",
        test="largest gradient norm from update 50 on over its median: with the gate over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=deep(lambda seen: seen.spikes, "gated-attention", "pre-ln"),
    ),
    claim_of(
        "value-residual-loss",
        "Values of the first layer in every layer give a lower loss.",
        "Zhou et al. 2024, abstract",
        "value-residual",
        "pre-ln",
        test="validation loss where Pre-LN trains: with value residual minus without",
        threshold=at_most(-MARGIN, f"stabkit's choice: lower by {MARGIN:g} nats; smaller differences do not count"),
        scale="difference",
        tell=nats,
        find=nats_beside("value-residual", "pre-ln"),
    ),
    claim_of(
        "siamese-trains",
        "SiameseNorm trains where Post-LN is stuck.",
        "arXiv 2602.08064, abstract",
        "siamesenorm",
        "post-ln",
        test="outcomes of SiameseNorm where Post-LN fails in every seed: share of the seeds that train",
        threshold=MOST,
        scale="share",
        find=where_it_fails("siamesenorm", "post-ln"),
    ),
    claim_of(
        "attnres-bounded",
        "Attention Residuals keep states from growing over depth as Pre-LN’s do.",
        "Kimi Team 2026, abstract",
        "attention-residuals",
        "pre-ln",
        test="size of the state after the last layer over the first layer’s input: Attention Residuals’ over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=closely,
        find=deep(lambda seen: seen.stream, "attention-residuals", "pre-ln"),
    ),
    claim_of(
        "attnres-even",
        "Attention Residuals’ gradients are more even over the layers than Pre-LN’s.",
        "Kimi Team 2026, abstract",
        "attention-residuals",
        "pre-ln",
        weight="side",
        test="largest over smallest layer’s gradient norm: Attention Residuals’ over Pre-LN’s",
        threshold=LESS,
        scale="ratio",
        tell=times,
        find=deep(lambda seen: seen.gradient_spread, "attention-residuals", "pre-ln"),
    ),
    claim_of(
        "mhc-gain",
        "Mixings that are doubly stochastic let no stream grow.",
        "Xie et al. 2025, Fig. 7: 1.6 at most",
        "mhc",
        test="the largest gain of the product of mixings at any step, forward or backward",
        threshold=at_most(1.6, "the paper’s own"),
        scale="ratio",
        tell=times,
        find=each_part(*(_mixing(start) for start in ("mhc", "mhc:start=identity", "mhc:start=static"))),
    ),
    claim_of(
        "hc-gain",
        "Mixings without a constraint let streams grow.",
        "Xie et al. 2025, Fig. 3: up to 3,000",
        "hyper-connections",
        "mhc",
        test="the largest gain of the product of mixings at any step: hyper-connections’ over mHC’s",
        threshold=MUCH,
        scale="ratio",
        tell=times,
        find=deep(lambda seen: seen.mixing, "hyper-connections", "mhc"),
    ),
)
