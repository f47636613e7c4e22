"""What DeepNet says in §1, §3 and §5 of where gradients and updates are large, and of training at every depth.

Lemma 1 (§3.1), of the size of what attention returns, is a bound: a softmax mixes values and is never larger than they
are. How far below them it lies is the mixture's affair, which W_Q and W_K decide: even weights average the values,
sharp ones pick one. So the sentence built on it, that the size "only depends on the value and output projection", is
measured at θ₀: both projections times 0.25 and times 4, by which the logits go 256-fold apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from stabkit.claims.base import (
    UNWARMED,
    WARMED,
    Claim,
    Measurement,
    Spot,
    at_least,
    at_most,
    closely,
    ratio_claim,
    share_claim,
)
from stabkit.claims.deepnet.chain import start
from stabkit.claims.deepnet.update import PRE, SWEEP, D, P
from stabkit.claims.evidence import at, cells, from_layers, numbers, over, shares, trains
from stabkit.results.run import Run
from stabkit.results.sites import parse

FACTORS = ("0.25", "4")


def excess_below_top(run: Run) -> float:
    """The largest gradient of a lower sub-layer over the top one's, of each kind by itself, at step 0."""
    table = run.records.get("grad_norm")
    names = [site for site in table.sites if parse(site).stack == "decoder" and parse(site).sublayer] if table else []
    shares = []
    for kind in dict.fromkeys(parse(name).kind for name in names):
        kind_names = [name for name in names if parse(name).kind == kind]
        if len(kind_names) > 1 and table is not None:
            *lower, last = table.select(kind_names)[0].tolist()
            shares.append(over(max(lower), last))
    return max(shares, default=math.nan)


def encoder_or_decoder(runs: Sequence[Run]) -> Iterator[Measurement]:
    """‖ΔF‖ after update 1 of an encoder-decoder over that of its encoder alone, of Post-LN without warm-up."""
    every = [cell for cell in cells(runs) if cell.warmup == 0 and P in cell.runs]
    for cell in every:
        if cell.encoder_layers == cell.decoder_layers:
            alone = [
                other for other in every if (other.encoder_layers, other.decoder_layers) == (cell.encoder_layers, 0)
            ]
            for other in alone:
                if other.condition == cell.condition:
                    number = at("update", "state", 1)
                    ours, theirs = cell.values(P, number), other.values(P, number)
                    values = {seed: over(ours[seed], theirs[seed]) for seed in ours if seed in theirs}
                    yield cell.measured(values, P, beside=f"against {other.where}")


def attention(run: Run) -> float:
    """Mean ‖attention(x)‖/‖x‖ over the attention sub-layers at step 0; NaN without the probe."""
    table = run.records.get("branch_ratio")
    if table is None or table.steps[0] != 0:
        return math.nan
    is_attention = [site.endswith((".self", ".cross")) for site in table.sites]
    return float(table.values[0, is_attention].mean()) if any(is_attention) else math.nan


def attention_sizes(runs: Sequence[Run]) -> Iterator[Measurement]:
    """By how much the size changes, up or down, with each of the factors."""
    for cell in cells(runs):
        for factor in FACTORS:
            scaled = f"{P}:query_key={factor}"
            ratios = {seed: max(r, 1 / r) for seed, r in cell.ratio(scaled, P, attention).items() if r > 0}
            if ratios:
                yield cell.measured(ratios, scaled, P, when=Spot(f"times-{factor}", f"{factor} ×"))


CLAIMS: tuple[Claim, ...] = (
    ratio_claim(
        key="top-largest",
        sentence="Post-LN shrinks the error signal on its way down: no sub-layer's gradient exceeds that of the top "
        "one of its kind.",
        source="DeepNet §3.3",
        weight="side",
        test="Post-LN, step 0: largest gradient of a lower decoder sub-layer over the top layer's of the same kind, "
        "the worst of the three kinds",
        threshold=at_most(1.05, "the paper says none exceeds it; stabkit's choice: 5 % for batch noise"),
        tell=closely,
        find=numbers(excess_below_top, P),
        spread={UNWARMED: {"18x18": 0.09877, "6x6": 0.3762}, WARMED: {"18x18": 0.09877, "50x50": 0.161, "6x6": 0.3762}},
        needs="Post-LN with two decoder layers or more",
        command=SWEEP,
        methods=("post-ln",),
        at_start=True,
    ),
    ratio_claim(
        key="pre-ln-bottom",
        sentence="Pre-LN's gradients are larger at the bottom than at the top layers.",
        source="DeepNet §1 and §5",
        weight="side",
        test="Pre-LN, step 0, 6 layers or more: first over last decoder layer's gradient",
        threshold=at_least(1.1, "stabkit's choice: a tenth, more than another batch changes it"),
        find=numbers(start, PRE, where=from_layers(6)),
        spread={WARMED: {"18x18": 0.3203, "6x6": 0.3583}},
        needs="Pre-LN at 6 layers or more",
        command="stabkit sweep --models pre-ln,deepnorm --depths 6,18 --warmup 4000",
        methods=("pre-ln",),
        at_start=True,
    ),
    ratio_claim(
        key="deepnorm-bottom",
        sentence="DeepNet alleviates Pre-LN's larger gradients at the bottom layers.",
        source="DeepNet §5",
        weight="side",
        test="first over last decoder layer's gradient at step 0, 6 layers or more: DeepNorm's over Pre-LN's",
        threshold=at_most(0.9, "stabkit's choice: a tenth less, more than another batch changes it"),
        find=numbers(start, D, PRE, where=from_layers(6)),
        needs="Pre-LN and DeepNorm at 6 layers or more",
        command="stabkit sweep --models pre-ln,deepnorm --depths 6,18 --warmup 4000",
        methods=("pre-ln", "deepnorm"),
        at_start=True,
    ),
    ratio_claim(
        key="decoder-unstable",
        sentence="The decoder is more unstable than the encoder: cross-attention adds the encoder's update.",
        source="DeepNet §3.2",
        weight="side",
        test="Post-LN's ‖ΔF‖ after update 1 without warm-up: encoder-decoder's over that of the encoder alone",
        threshold=at_least(1.1, "stabkit's choice: a tenth larger"),
        find=encoder_or_decoder,
        needs="Post-LN with N layers a side and, by a second command, with N encoder layers alone; `stabkit report` "
        "of both",
        command="stabkit sweep --models post-ln --depths 6,18 --arch encoder-only --warmup 0",
        methods=("post-ln",),
    ),
    share_claim(
        key="deep",
        sentence="DeepNet is stable from shallow to deep: it trains at 50 layers and more.",
        source="DeepNet §5, Table 1 and Fig. 6",
        weight="central",
        test="outcomes of DeepNorm at 50 layers or more: share of the seeds that train",
        find=shares(trains, D, where=from_layers(50)),
        needs="DeepNorm at 50 layers or more, long enough to judge",
        command="stabkit sweep --models deepnorm --depths 50,100 --steps 250 --warmup 0",
        methods=("deepnorm",),
    ),
    ratio_claim(
        key="attention-size",
        sentence="W_Q and W_K do not change the bound of attention's size, which value and output projection set "
        "(tested on the size itself).",
        source="DeepNet §3.1, Lemma 1",
        weight="side",
        test="Post-LN with both projections times 0.25 and times 4: ‖attention(x)‖/‖x‖ at step 0 against that of the "
        "base initialisation, as a factor up or down",
        threshold=at_most(2.0, "stabkit's choice: two-fold; W_V and W_O times 4 would give sixteen-fold"),
        find=attention_sizes,
        needs="Post-LN at the base initialisation and with query_key=0.25 or 4",
        command="stabkit sweep --models post-ln,post-ln:query_key=0.25,post-ln:query_key=4 --depths 6 --steps 1 "
        "--seeds 0..4",
        methods=("post-ln",),
        at_start=True,
    ),
)
