"""What "Very Deep Transformers for Neural Machine Translation" (Liu, Duh, Liu, Gao 2020) says of ADMIN, measured here.

Its models are 512 wide and trained for days; its sentences about wiring and initialisation can be tested on small ones,
those about BLEU cannot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import cells, groups, judged, place
from stabkit.figures import share
from stabkit.figures.comparison import number, outcome_word, short
from stabkit.store import Run

P, ADMIN = "Post-LN", "ADMIN"
DEEP = 18
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0"


def balances(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        seeds = cell.seeds(P, ADMIN)
        ours, theirs = cell.mean(ADMIN, share.effective, seeds), cell.mean(P, share.effective, seeds)
        if cell.layers >= 2 and math.isfinite(ours) and math.isfinite(theirs):
            sublayers = len(
                [s for s in cell.of(ADMIN)[0].records["branch_ratio"].sites if s.startswith("decoder")]
            ) or len(cell.of(ADMIN)[0].records["branch_ratio"].sites)
            text = f"{short(ours)} of {sublayers} sub-layers against {short(theirs)}"
            holds = ours >= sublayers / 2 and ours >= 2 * theirs
            found.append(Evidence(where=place(cell, P, ADMIN), value=ours / sublayers, text=text, holds=holds))
    return found


def trains(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.layers >= DEEP and judged(cell, ADMIN):
            kept = [word == "trains" for word in cell.outcomes(ADMIN)]
            text = f"{sum(kept)} of {len(kept)} runs train"
            found.append(Evidence(where=cell.where, value=sum(kept) / len(kept), text=text, holds=all(kept)))
    return found


def default_fails(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.layers >= DEEP and judged(cell, P) and judged(cell, ADMIN):
            lost = [word in ("stuck", "diverged") for word in cell.outcomes(P)]
            kept = [word == "trains" for word in cell.outcomes(ADMIN)]
            text = f"{P} fails in {sum(lost)} of {len(lost)}, {ADMIN} trains in {sum(kept)} of {len(kept)}"
            holds = all(lost) and all(kept)
            found.append(Evidence(where=cell.where, value=sum(lost) + sum(kept), text=text, holds=holds))
    return found


def lower_encoder(runs: Sequence[Run]) -> list[Evidence]:
    def first(stack: str) -> object:
        def value(run: Run) -> float:
            table = run.records.get("grad_norm")
            if table is None or f"{stack}.1" not in table.sites:
                return math.nan
            return max(float(table.at(f"{stack}.1")[0]), 1e-45)

        return value

    found = []
    for cell in cells(runs):
        if cell.layers >= DEEP and P in cell.runs:
            share_of = cell.mean(P, first("encoder")) / cell.mean(P, first("decoder"))  # type: ignore[arg-type]
            if math.isfinite(share_of):
                text = f"{short(share_of)} times the decoder's"
                found.append(Evidence(where=place(cell, P), value=share_of, text=text, holds=share_of < 0.1))
    return found


def alike_when_shallow(runs: Sequence[Run]) -> list[Evidence]:
    def loss(run: Run) -> float:
        return number(run.outcome.get("validation_loss"))

    found = []
    for cell in cells(runs):
        if cell.layers <= 6 and judged(cell, P) and judged(cell, ADMIN):
            seeds = cell.seeds(P, ADMIN)
            ours, theirs = cell.mean(ADMIN, loss, seeds), cell.mean(P, loss, seeds)
            both = {outcome_word(run) for label in (P, ADMIN) for run in cell.of(label)} == {"trains"}
            if math.isfinite(ours) and math.isfinite(theirs):
                text = f"{short(ours, 3)} against {short(theirs, 3)} nats"
                holds = both and abs(ours - theirs) < 0.1
                found.append(Evidence(where=place(cell, P, ADMIN), value=ours - theirs, text=text, holds=holds))
    return found


def deeper_is_better(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for condition, own in groups(runs):
        by = {
            cell.layers: cell.mean(ADMIN, lambda run: number(run.outcome.get("validation_loss")))
            for cell in cells(own)
            if judged(cell, ADMIN)
        }
        if len(by) > 1 and all(math.isfinite(loss) for loss in by.values()):
            shallow, deep = min(by), max(by)
            text = f"{short(by[deep], 3)} at {deep} layers against {short(by[shallow], 3)} at {shallow}"
            gain = by[shallow] - by[deep]
            found.append(Evidence(where=condition or "all runs", value=gain, text=text, holds=gain > 0))
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="balance",
        sentence="ω balances the shortcut against the residual branch, so that no sub-layer outweighs the others.",
        source="Very Deep Transformers §3",
        test="effective number of decoder sub-layers in the output at step 0; at least half and twice Post-LN's",
        find=balances,
        needs="ADMIN and Post-LN at one depth and seed",
        command="stabkit sweep --models post-ln,admin",
    ),
    Claim(
        key="admin-trains",
        sentence="ADMIN's initialisation keeps training from diverging, even in deep networks.",
        source="Very Deep Transformers §3 and §4",
        test="outcomes of ADMIN at 18 layers or more, every seed",
        find=trains,
        needs="ADMIN at 18 layers or more, long enough to judge",
        command=NO_WARMUP,
    ),
    Claim(
        key="default-fails",
        sentence="The same deep model diverges with default initialisation and trains with ADMIN.",
        source="Very Deep Transformers §4, Table 1",
        test="outcomes of Post-LN and ADMIN at 18 layers or more, every seed",
        find=default_fails,
        needs="Post-LN and ADMIN at 18 layers or more, long enough to judge",
        command=NO_WARMUP,
    ),
    Claim(
        key="lower-encoder",
        sentence="The gradient is lost above all between the decoder and the lower layers of the encoder.",
        source="Very Deep Transformers §2",
        test="Post-LN, step 0, 18 layers or more: first encoder layer's gradient over first decoder layer's; below 0.1",
        find=lower_encoder,
        needs="Post-LN encoder-decoders of 18 layers or more",
        command="stabkit sweep --models post-ln --depths 18,50",
    ),
    Claim(
        key="shallow",
        sentence="At 6L-6L default initialisation and ADMIN do equally well.",
        source="Very Deep Transformers §4, Table 1",
        test="validation loss at up to 6 layers when both train; within 0.1 nats",
        find=alike_when_shallow,
        needs="Post-LN and ADMIN at up to 6 layers, long enough to judge",
        command="stabkit sweep --models post-ln,admin --depths 6 --steps 250 --warmup 0",
    ),
    Claim(
        key="deeper-better",
        sentence="Deeper ADMIN models reach a lower perplexity than 6L-6L.",
        source="Very Deep Transformers §4, Fig. 2(b)",
        test="ADMIN's validation loss at the deepest against the shallowest depth (the paper trains for days)",
        find=deeper_is_better,
        needs="ADMIN at two depths, long enough to judge",
        command="stabkit sweep --models admin --depths 6,18 --steps 250 --warmup 0",
    ),
)
