"""What "Very Deep Transformers for Neural Machine Translation" (Liu, Duh, Liu, Gao 2020) says of ADMIN, measured here.

Its models are 512 wide and trained for days; its sentences about wiring and initialisation can be tested on small ones.
Its deepest encoder has 60 layers, its deepest decoder 60, and RAdam is its optimiser: what is deeper is beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np

from stabkit.claims.base import (
    MOST_RUNS,
    UNWARMED,
    WARMED,
    Claim,
    Measurement,
    Spot,
    Tell,
    at_least,
    at_most,
    ratio_claim,
    share_claim,
    signed,
)
from stabkit.claims.deepnet.chain import GONE, gradients
from stabkit.claims.evidence import (
    COLD,
    LONG,
    SHORT,
    ClaimCell,
    cells,
    deeper_than,
    fails_but_other_trains,
    from_layers,
    loss,
    over,
    shares,
    too_short,
    trains,
)
from stabkit.results.conditions import Condition
from stabkit.results.outcome import AT_UNIGRAM, VANISHED
from stabkit.results.points import LOWEST
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.results.sites import main_sites, of_output
from stabkit.words import short

P, ADMIN, PRE = "post-ln", "admin", "pre-ln"
DEEP, DEEPEST = 18, 60
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0 --seeds 0..4"
RESET = "a norm after every sum resets the variance to 1: nothing can compound"
PARTS = (Spot("18-to-49", "18 to 49 layers"), Spot("50-to-60", "50 to 60 layers"))
BEYOND = f"deeper than the paper's {DEEPEST} layers"


def beyond_admin(cell: ClaimCell) -> str:
    """Without warm-up it is harder: a failure there decides nothing."""
    values = cell.share(trains, ADMIN).values()
    failed = bool(values) and not MOST_RUNS.met(fmean(values))
    return _beyond(cell) or (COLD if cell.warmup == 0 and failed else "")


def cold_or_beyond(cell: ClaimCell) -> str:
    return _beyond(cell) or ("" if cell.warmup else COLD)


def _beyond(cell: ClaimCell) -> str:
    return BEYOND if cell.layers > DEEPEST else ""


def lower_encoder(runs: Sequence[Run]) -> list[Measurement]:
    """The first encoder layer's gradient over the last decoder layer's, before any update and at its lowest."""

    def ratios(run: Run) -> list[float]:
        table, top = run.records.get("grad_norm"), f"decoder.{run.spec.model.decoder_layers}"
        if table is None or not {"encoder.1", top} <= set(table.sites):
            return [math.nan]
        widths: list[float] = (table.at("encoder.1") / table.at(top)).tolist()
        return widths

    def at_start(run: Run) -> float:
        return max(ratios(run)[0], LOWEST)

    def lowest(run: Run) -> float:
        return max(min((one for one in ratios(run) if math.isfinite(one)), default=math.nan), LOWEST)

    return [
        cell.measured(cell.values(P, number), P, when=when)
        for cell in cells(runs)
        for when, number in ((Spot("step-0", "step 0"), at_start), (Spot("lowest", "lowest"), lowest))
        if cell.encoder_layers >= DEEP and cell.decoder_layers and P in cell.runs
    ]


def compounds(runs: Sequence[Run]) -> list[Measurement]:
    """The variance of what the last sub-layer of the output's stack adds up to over that of the first, at step 0."""

    def growth(run: Run) -> float:
        table = run.records.get("branch_ratio")
        names = main_sites(of_output(table.sites)) if table is not None else []
        if table is None or len(names) < 2:
            return math.nan
        first, last = (
            sum(float(table.at(f"{name}@{part}")[0]) for part in ("branch", "shortcut"))
            for name in (names[0], names[-1])
        )
        return over(last, first)

    return [
        cell.measured(cell.values(method, growth), method, when=cell.spot(method), beside=RESET if method == P else "")
        for cell in cells(runs)
        for method in (PRE, P)
        if cell.layers >= DEEP and method in cell.runs
    ]


def lost(run: Run) -> bool:
    """Whether a recorded gradient is not finite."""
    table = run.records.get("grad_norm")
    return table is not None and not np.isfinite(table.select(main_sites(table.sites))).all()


def briefly(cell: ClaimCell) -> str:
    """Why no NaN in these runs says nothing of the paper's; nothing of runs as long."""
    if not too_short([run.spec for run in cell.of(P)]):
        return ""
    return "in single precision and too short: the paper's gradients became NaN after days of training"


def alike_when_shallow(runs: Sequence[Run]) -> Iterator[Measurement]:
    for cell in cells(runs):
        if cell.depth == (6, 6) and (values := cell.share(lambda *each: True, P, ADMIN)):
            apart = {
                seed: abs(loss(cell.runs[ADMIN][seed]) - loss(cell.runs[P][seed]))
                if trains(cell.runs[ADMIN][seed]) and trains(cell.runs[P][seed])
                else math.inf
                for seed in values
            }
            parts = [short(centre(cell.values(method, loss).values()), 3) for method in (ADMIN, P)]
            warm = "" if cell.warmup else "without warm-up; the paper warms up for 4,000 updates and more"
            warm = warm or too_short([run.spec for run in (*cell.of(P), *cell.of(ADMIN))])
            beside = f"{parts[0]} against {parts[1]} nats"
            yield cell.measured(apart, P, ADMIN, beside=beside, beyond=warm)


def deeper_is_better(runs: Sequence[Run]) -> Iterator[Measurement]:
    """ADMIN's validation loss at 6L-6L less that of each deeper model of the same setting."""
    by: dict[Condition, dict[tuple[int, int], ClaimCell]] = {}
    for cell in cells(runs):
        if cell.share(trains, ADMIN):
            by.setdefault(cell.condition, {})[cell.depth] = cell
    for line in by.values():
        base = line.pop((6, 6), None)
        yield from (deeper_than(cell, base, ADMIN) for cell in line.values() if base and cell.layers > 6)


def _share(run: Run) -> float:
    """Validation loss over that of the best constant predictor; infinite where it is not finite."""
    unigram = run.outcome.unigram_loss
    return loss(run) / unigram if math.isfinite(loss(run)) and run.outcome.word != "diverged" else math.inf


def at_word_frequencies(ours: Run, theirs: Run) -> bool:
    """Whether one ends where a model that knows nothing but word frequencies is, and the other below it."""
    return _share(ours) >= AT_UNIGRAM and _share(theirs) < AT_UNIGRAM


def of_unigram(cell: ClaimCell) -> str:
    """`Post-LN at 1.01 of the unigram loss; ADMIN at 0.8 of the unigram loss`."""
    ends = {method: short(centre(cell.values(method, _share).values()), 3) for method in (P, ADMIN)}
    return "; ".join(f"{cell.label(method)} at {end} of the unigram loss" for method, end in ends.items())


CLAIMS: tuple[Claim, ...] = (
    share_claim(
        key="admin-trains",
        sentence="ADMIN's initialisation keeps training from diverging, even in deep networks.",
        source="Very Deep Transformers §3 and §4",
        weight="central",
        test="outcomes of ADMIN at 18 to 49 and at 50 to 60 layers: share of the seeds that train (also "
        "without warm-up, which is harder; a failure there decides nothing)",
        find=shares(
            trains, ADMIN, where=from_layers(DEEP), beyond=beyond_admin, part=lambda cell: PARTS[cell.layers >= 50]
        ),
        spread={UNWARMED: {"18x18": 0}},
        needs="ADMIN at 18 to 60 layers, long enough to judge",
        command="stabkit sweep --models admin --depths 18,50 --steps 250 --warmup 0 --seeds 0..2",
        methods=("admin",),
        parts=PARTS,
    ),
    share_claim(
        key="default-fails",
        sentence="The same deep model diverges with default initialisation and trains with ADMIN.",
        source="Very Deep Transformers §4, Table 1",
        weight="central",
        test="outcomes at 18 to 60 layers under warm-up: share of the seeds in which Post-LN is stuck or diverges and "
        "ADMIN trains",
        find=shares(fails_but_other_trains, P, ADMIN, where=from_layers(DEEP), beyond=cold_or_beyond),
        spread={UNWARMED: {"18x18": 0}},
        needs="Post-LN and ADMIN at 18 to 60 layers under warm-up, long enough to judge",
        command="stabkit sweep --models post-ln,admin --depths 18 --steps 650 --warmup 400 --seeds 0..2",
        methods=("post-ln", "admin"),
    ),
    share_claim(
        key="nan-gradients",
        sentence="The gradients of default initialisation hit NaN.",
        source="Very Deep Transformers §4",
        weight="side",
        test="Post-LN at 18 to 60 layers, judged: share of the seeds in which a recorded gradient is not finite (here "
        "in single precision)",
        find=shares(lost, P, where=from_layers(DEEP), beyond=lambda cell: _beyond(cell) or briefly(cell)),
        spread={UNWARMED: {"18x18": 0}},
        needs="Post-LN at 18 to 60 layers, long enough to judge",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    share_claim(
        key="pre-ln-60x12",
        sentence="Pre-LN too trains at 60L-12L.",
        source="Very Deep Transformers §4, footnote 10",
        weight="side",
        test="outcomes of Pre-LN at 60L-12L: share of the seeds that train",
        find=shares(trains, PRE, where=lambda cell: cell.depth == (60, 12)),
        needs="Pre-LN at 60L-12L, long enough to judge",
        command="stabkit sweep --models pre-ln --depths 60x12 --steps 250 --warmup 0",
        methods=("pre-ln",),
    ),
    ratio_claim(
        key="compounds",
        sentence="The variance of the output at each layer compounds with depth.",
        source="Very Deep Transformers §1",
        weight="background",
        test="step 0, 18 layers or more: mean squares of shortcut and branch of the output's last sub-layer over "
        "those of its first",
        threshold=at_least(1.5, "stabkit's choice: 1.5 times as large"),
        find=compounds,
        spread={
            UNWARMED: {"18x18/post-ln": 0.2106},
            WARMED: {"18x18/post-ln": 0.2106, "18x18/pre-ln": 0.3163, "50x50/post-ln": 0.2481},
        },
        needs="Pre-LN or Post-LN at 18 layers or more",
        command="stabkit sweep --models post-ln,pre-ln --depths 18,50 --warmup 4000",
        methods=("post-ln", "pre-ln"),
        at_start=True,
    ),
    ratio_claim(
        key="lower-encoder",
        sentence="Little gradient reaches the lower layers of the encoder.",
        source="Very Deep Transformers §2",
        weight="background",
        test="Post-LN, encoder of 18 layers or more: its first layer's gradient over the decoder's last one's, at "
        "step 0 and lowest in training",
        threshold=at_most(VANISHED, GONE),
        tell=gradients,
        find=lower_encoder,
        spread={
            UNWARMED: {"18x18/lowest": 1.231, "18x18/step-0": 1.765},
            WARMED: {"18x18/lowest": 1.67, "18x18/step-0": 1.765, "50x50/lowest": 2.659, "50x50/step-0": 2.399},
        },
        needs="Post-LN encoder-decoders of 18 layers or more",
        command="stabkit sweep --models post-ln --depths 18,50 --warmup 4000",
        methods=("post-ln",),
    ),
    Claim(
        key="shallow",
        sentence="At 6L-6L default initialisation and ADMIN do equally well.",
        source="Very Deep Transformers §4, Table 1",
        weight="side",
        test="difference of validation losses at 6L-6L under warm-up, infinite where one fails (the paper's RAdam is "
        "`--optimizer radam`)",
        threshold=at_most(0.1, "the paper has 0.1 and 0.2 BLEU; stabkit's choice: a tenth of a nat"),
        tell=Tell(unit="nats"),
        find=alike_when_shallow,
        spread={UNWARMED: {"6x6": 0.081}},
        needs="Post-LN and ADMIN at 6L-6L under warm-up, long enough to judge",
        command="stabkit sweep --models post-ln,admin --depths 6 --steps 1000 --warmup 400 --optimizer radam",
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="deeper-better",
        sentence="Deeper ADMIN models reach a lower perplexity than 6L-6L.",
        source="Very Deep Transformers §4, Fig. 2(b)",
        weight="central",
        test=f"ADMIN's validation loss at 6L-6L minus that of each deeper model; {LONG}",
        threshold=at_least(0.0, "the paper says lower"),
        tell=Tell(signed.digits, "nats"),
        find=deeper_is_better,
        needs="ADMIN at 6L-6L and deeper, long enough to judge",
        command=f"stabkit sweep --models admin --depths 6,18 {SHORT}",
        methods=("admin",),
    ),
    share_claim(
        key="random-model",
        sentence="Default initialisation ends as a random model (here: no better than word frequencies); ADMIN learns.",
        source="Very Deep Transformers §4, Table 1 and Fig. 2(a)",
        weight="side",
        test="18 layers or more: share of the seeds in which Post-LN ends at "
        f"{AT_UNIGRAM:g} of the best constant predictor's loss or above and ADMIN below it",
        find=shares(at_word_frequencies, P, ADMIN, where=from_layers(DEEP), beside=of_unigram),
        spread={UNWARMED: {"18x18": 0}},
        needs="Post-LN and ADMIN at 18 layers or more, long enough to judge",
        command="stabkit sweep --models post-ln,admin --depths 18 --steps 250 --warmup 0",
        methods=("post-ln", "admin"),
    ),
)
