"""What "Very Deep Transformers for Neural Machine Translation" (Liu, Duh, Liu, Gao 2020) says of ADMIN, measured here.

Its models are 512 wide and trained for days; its sentences about wiring and initialisation can be tested on small ones,
those about BLEU cannot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import MARGIN, cells, ends, fates, groups, judged, place
from stabkit.figures.shared import share
from stabkit.figures.shared.comparison import outcome_word
from stabkit.figures.shared.words import listed, number, short
from stabkit.storage.store import Run

P, ADMIN = "Post-LN", "ADMIN"
DEEP = 18
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0"


def _loss(run: Run) -> float:
    return number(run.outcome.get("validation_loss"))


def balances(runs: Sequence[Run]) -> list[Evidence]:
    def apart(run: Run) -> float:
        """The factor between branch and shortcut, geometric mean over decoder sub-layers at step 0."""
        table = run.records.get("branch_ratio")
        if table is None or not len(table.steps):
            return math.nan
        first = table.select(share.output_sites(table.sites))[0]
        return float(np.exp(np.abs(np.log(first)).mean())) if (first > 0).all() else math.nan

    found = []
    for cell in cells(runs):
        seeds = cell.seeds(P, ADMIN)
        ours, theirs = cell.mean(ADMIN, apart, seeds), cell.mean(P, apart, seeds)
        if math.isfinite(ours) and math.isfinite(theirs):
            text = f"a factor of {short(ours)} apart, {short(theirs)} under Post-LN"
            found.append(Evidence(where=place(cell, P, ADMIN), value=ours / theirs, text=text, holds=ours < theirs))
    return found


def shares(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        seeds = cell.seeds(P, ADMIN)
        ours, theirs = cell.mean(ADMIN, share.effective, seeds), cell.mean(P, share.effective, seeds)
        if math.isfinite(ours) and math.isfinite(theirs):
            count = len(share.output_sites(cell.of(ADMIN)[0].records["branch_ratio"].sites))
            text = f"{short(ours)} of {count} sub-layers against {short(theirs)}"
            if theirs >= count / 2:  # Post-LN's are balanced themselves: nothing is left to be shown
                continue
            holds = ours >= count / 2 and ours >= 2 * theirs
            found.append(Evidence(where=place(cell, P, ADMIN), value=ours / count, text=text, holds=holds))
    return found


def trains(runs: Sequence[Run]) -> list[Evidence]:
    return [
        ends(cell, ADMIN, lambda word: word == "trains", "train")
        for cell in cells(runs)
        if cell.layers >= DEEP and judged(cell, ADMIN)
    ]


def default_fails(runs: Sequence[Run]) -> list[Evidence]:
    return [fates(cell, P, ADMIN) for cell in cells(runs) if cell.layers >= DEEP and judged(cell, P, ADMIN)]


def lower_encoder(runs: Sequence[Run]) -> list[Evidence]:
    def share_of(run: Run) -> float:
        table, top = run.records.get("grad_norm"), f"decoder.{run.spec.model.decoder_layers}"
        if table is None or not {"encoder.1", top} <= set(table.sites):
            return math.nan
        return max(float(table.at("encoder.1")[0] / table.at(top)[0]), 1e-45)

    found = []
    for cell in cells(runs):
        if cell.layers >= DEEP and P in cell.runs:
            value = cell.mean(P, share_of)
            if math.isfinite(value):
                text = f"{short(value)} of the top decoder layer's"
                found.append(Evidence(where=place(cell, P), value=value, text=text, holds=value < 0.1))
    return found


def alike_when_shallow(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for cell in cells(runs):
        if cell.depth == "6L-6L" and judged(cell, P, ADMIN):
            seeds = cell.seeds(P, ADMIN)
            ours, theirs = cell.mean(ADMIN, _loss, seeds), cell.mean(P, _loss, seeds)
            both = {outcome_word(cell.runs[label][seed]) for label in (P, ADMIN) for seed in seeds} == {"trains"}
            if math.isfinite(ours) and math.isfinite(theirs):
                text = f"{short(ours, 3)} against {short(theirs, 3)} nats"
                holds = both and abs(ours - theirs) < 0.1
                found.append(Evidence(where=place(cell, P, ADMIN), value=ours - theirs, text=text, holds=holds))
    return found


def deeper_is_better(runs: Sequence[Run]) -> list[Evidence]:
    found = []
    for condition, own in groups(runs):
        by = {cell.depth: cell for cell in cells(own) if judged(cell, ADMIN)}
        base = by.pop("6L-6L", None)
        for depth, cell in by.items():
            seeds = sorted(set(cell.runs[ADMIN]) & set(base.runs[ADMIN])) if base and cell.layers > 6 else []
            if base and seeds and all(outcome_word(base.runs[ADMIN][seed]) == "trains" for seed in seeds):
                ours, theirs = cell.mean(ADMIN, _loss, seeds), base.mean(ADMIN, _loss, seeds)
                if abs(ours - theirs) < MARGIN:
                    continue
                text = f"{short(ours, 3)} at {depth} against {short(theirs, 3)} nats"
                where = listed(depth, condition)
                found.append(Evidence(where=where, value=theirs - ours, text=text, holds=ours < theirs))
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="balance",
        sentence="ω balances the shortcut x against the branch f(x), whose unequal magnitudes cause instability.",
        source="Very Deep Transformers §3",
        test="factor between ‖ωx‖ and ‖f(x)‖, step 0, mean over decoder sub-layers; ADMIN's nearer to 1 than Post-LN's",
        find=balances,
        needs="ADMIN and Post-LN at one depth and seed",
        command="stabkit sweep --models post-ln,admin",
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="shares",
        sentence="Balance read as shares (our reading, not the paper's words): under ADMIN every sub-layer has a say.",
        source="Very Deep Transformers §3",
        test="effective number of sub-layers in the branches' part of the output, step 0; half of all, twice Post-LN's",
        find=shares,
        needs="ADMIN and Post-LN at one depth and seed, Post-LN's effective number below half of all",
        command="stabkit sweep --models post-ln,admin",
        methods=("post-ln", "admin"),
        ours=True,
    ),
    Claim(
        key="admin-trains",
        sentence="ADMIN's initialisation keeps training from diverging, even in deep networks.",
        source="Very Deep Transformers §3 and §4",
        test="outcomes of ADMIN at 18 layers or more, every seed",
        find=trains,
        needs="ADMIN at 18 layers or more, long enough to judge",
        command=NO_WARMUP,
        methods=("admin",),
    ),
    Claim(
        key="default-fails",
        sentence="The same deep model diverges with default initialisation and trains with ADMIN.",
        source="Very Deep Transformers §4, Table 1",
        test="outcomes of Post-LN and ADMIN at 18 layers or more, every seed",
        find=default_fails,
        needs="Post-LN and ADMIN at 18 layers or more, long enough to judge",
        command=NO_WARMUP,
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="lower-encoder",
        sentence="Little gradient flows between the decoder and the lower layers of the encoder.",
        source="Very Deep Transformers §2",
        test="Post-LN, step 0, 18 layers or more: first encoder layer's gradient over top decoder layer's; below 0.1",
        find=lower_encoder,
        needs="Post-LN encoder-decoders of 18 layers or more",
        command="stabkit sweep --models post-ln --depths 18,50",
        methods=("post-ln",),
    ),
    Claim(
        key="shallow",
        sentence="At 6L-6L default initialisation and ADMIN do equally well.",
        source="Very Deep Transformers §4, Table 1",
        test="validation loss at 6L-6L when both train; within 0.1 nats",
        find=alike_when_shallow,
        needs="Post-LN and ADMIN at 6L-6L, long enough to judge",
        command="stabkit sweep --models post-ln,admin --depths 6 --steps 250 --warmup 0",
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="deeper-better",
        sentence="Deeper ADMIN models reach a lower perplexity than 6L-6L.",
        source="Very Deep Transformers §4, Fig. 2(b)",
        test="ADMIN's validation loss at each deeper model against 6L-6L's (the paper trains for days), where they are "
        f"{MARGIN:g} nats or more apart",
        find=deeper_is_better,
        needs="ADMIN at 6L-6L and deeper, long enough to judge, clearly apart",
        command="stabkit sweep --models admin --depths 6,18 --steps 250 --warmup 0",
        methods=("admin",),
    ),
)
