"""What both papers say of translation quality and perplexity, measured here.

Quality is BLEU where all runs of a comparison were translated alike (`--bleu`) and none of them is near nothing (below
1), else the validation loss. The papers train for days on millions of sentences: what these runs are too short for is
told as out of reach, with the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stabkit.claims.base import UNWARMED, Claim, ClaimPart, Measurement, Spot, Tell, at_depth, at_least, share_claim
from stabkit.claims.evidence import ClaimCell, Find, cells, from_layers, groups, measured, shares
from stabkit.figures.depth import depth_law, flops
from stabkit.figures.depth.flops import Model
from stabkit.figures.shared import quality as qualities
from stabkit.figures.shared.comparison import Condition, variants
from stabkit.figures.shared.depth_fit import JOINED, Stacks, shape_of
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import listed, short
from stabkit.results.outcome import AT_UNIGRAM
from stabkit.spec import RunSpec
from stabkit.storage.store import Run

P, ADMIN, D = "post-ln", "admin", "deepnorm"
DEEP = 18
LAW = 0.8
"""R² from which points are a line."""
A, R_SQUARED = ClaimPart("slope", "A"), ClaimPart("r-squared", "R²")
REACH = 8_000 * 4_000
"""Tokens after which the papers begin to compare qualities: DeepNet's Fig. 6 after 8,000 updates of 4,000 tokens."""
LONG = "decided only after 8,000 updates of 4,000 tokens, as in DeepNet's Fig. 6"
SHORT = "--steps 8000 --max-tokens 4000 --bleu"


def too_short(specs: Sequence[RunSpec]) -> str:
    """Why these runs cannot decide who is better in the end; nothing where they can."""
    least = min(specs, key=lambda spec: spec.train.steps * spec.train.max_tokens).train
    if least.steps * least.max_tokens >= REACH:
        return ""
    return (
        f"{least.steps:,} updates of {least.max_tokens:,} tokens show how fast a model begins to learn; the papers "
        "compare after 8,000 updates of 4,000 and more"
    )


def loss(run: Run) -> float:
    """The validation loss at the end."""
    return run.outcome.validation_loss


def gains(ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[dict[int, float], str]:
    """({seed: how much better ours is}, `BLEU 31.2 against 30.1`), over the seeds that both have; by BLEU where every
    run of both sides was translated alike, and translates, else by validation loss."""
    by = [{run.spec.seed: run for run in side} for side in (ours, theirs)]
    seeds = sorted(set(by[0]) & set(by[1]))
    measure = qualities.measured([side[seed] for side in by for seed in seeds])
    values = [[measure.values[side[seed].run_id] for seed in seeds] for side in by]
    by_seed = {
        seed: gain
        for seed, one, other in zip(seeds, *values, strict=True)
        if not math.isnan(gain := measure.gain(_lost(one, measure.name), _lost(other, measure.name)))
    }
    unit = "BLEU {}" if measure.name == qualities.BLEU else "{} nats"
    parts = [unit.format(short(centre(side), 3)) if any(map(math.isfinite, side)) else "diverged" for side in values]
    return by_seed, " against ".join(parts)


def _lost(value: float, name: str) -> float:
    """A quality that is no number is the worst there is."""
    if math.isfinite(value):
        return value
    return 0.0 if name == qualities.BLEU else math.inf


def compared(cell: ClaimCell, base: ClaimCell, method: str) -> Measurement:
    """One method at one shape against itself at another."""
    return against(cell, cell.of(method), base.of(method), beside(cell, base))


def beside(cell: ClaimCell, other: ClaimCell) -> Spot:
    """`18L-18L against 6L-6L`."""
    ends = at_depth(*cell.depth), at_depth(*other.depth)
    return Spot("-against-".join(end.key for end in ends), " against ".join(end.text for end in ends))


def against(cell: ClaimCell, ours: Sequence[Run], theirs: Sequence[Run], where: Spot) -> Measurement:
    """How much better some runs of a cell are than others."""
    values, sides = gains(ours, theirs)
    both = [*ours, *theirs]
    beyond = too_short([run.spec for run in both])
    return measured(both, values, where, apart=cell.apart.text, condition=cell.condition, beside=sides, beyond=beyond)


def published(runs: Sequence[Run]) -> list[Run]:
    """Those whose α and β are the papers', by one recipe for all."""
    return [run for _, own in groups(runs) for run in own]


def train(runs: Sequence[Run]) -> bool:
    """Whether all of them train: against one that does not, whatever is measured is no quality."""
    return bool(runs) and all(run.outcome.word == "trains" for run in runs)


def above_own_unigram(run: Run) -> float:
    """The validation loss less that of the best constant predictor on the same text: sizes of batches cut the
    validation text differently, and this takes out how hard each piece is."""
    return loss(run) - run.outcome.unigram_loss


gained = Tell(lambda value: f"{'+' if value >= 0 else '−'}{short(abs(value))}")
"""`+0.13`: how much better."""


def deeper(runs: Sequence[Run]) -> list[Measurement]:
    """DeepNorm at each depth against the next shallower one."""
    lines: dict[tuple[Condition, Stacks], list[ClaimCell]] = {}
    for cell in cells(runs):
        shape = shape_of(cell.encoder_layers, cell.decoder_layers)[0]
        if shape in JOINED and train(cell.of(D)):
            lines.setdefault((cell.condition, shape), []).append(cell)
    return [
        compared(deep, shallow, D) for line in lines.values() for shallow, deep in zip(line, line[1:], strict=False)
    ]


def law(runs: Sequence[Run]) -> list[Measurement]:
    """DeepNorm's slope over the logarithm of depth, and R², seed by seed."""
    every = published(runs)
    frame = depth_law.select(every)
    measurements = []
    for _, group in depth_law.lines(frame[frame["run"].map(variants(every)) == D]):
        first, fitted = group.iloc[0], group[group["fitted"]]
        sign = 1 if first["measure"] == qualities.BLEU else -1
        slopes, squares = {}, {}
        for seed, mine in fitted.groupby("seed"):
            a, _, r2 = depth_law.fit(mine["layers"].tolist(), mine["quality"].tolist())
            slopes[int(str(seed))], squares[int(str(seed))] = sign * a, r2
        members = [run for run in every if run.run_id in set(fitted["run"])]
        ends = fitted["layers"].min(), fitted["layers"].max()
        where = Spot(f"{ends[0]}-{ends[1]}", f"{ends[0]} to {ends[1]} layers")
        law_text = listed(depth_law.law(first), depth_law.breaks(group))
        beyond = too_short([run.spec for run in members])
        shared: dict[str, Any] = {"apart": str(first["condition"]), "beside": law_text, "beyond": beyond}
        measurements.append(measured(members, slopes, where, part=A, **shared))
        limit = at_least(LAW, "stabkit's choice: from there the points form a line")
        square = Spot(R_SQUARED.key, R_SQUARED.text)
        measurements.append(measured(members, squares, where, square, part=R_SQUARED, threshold=limit, **shared))
    return measurements


def _equal_flops(fits: Callable[[Model, Model, str], bool]) -> Find:
    """A DeepNorm model against every other of the same FLOPs that `fits` it: (the one, the other, its method)."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        by, of_run, measurements = {run.run_id: run for run in runs}, variants(runs), []
        for model, other in flops.pairs(flops.select(published(runs))):
            ours, theirs = (of_run[side.rows["run"].iloc[0]] for side in (model, other))
            if ours != D or not fits(model, other, theirs):
                continue
            sides = [[by[run] for run in side.rows["run"]] for side in (model, other)]
            values, text = gains(*sides)
            if all(map(train, sides)) and values:
                specs = [run.spec for side in sides for run in side]
                where = Spot(f"{_key(model, D)}-against-{_key(other, theirs)}", f"{model.shape} against {other.name}")
                condition, beyond = model.condition, too_short(specs)
                measurements.append(measured(sides[0], values, where, apart=condition, beside=text, beyond=beyond))
        return measurements

    return find


def _key(model: Model, method: str) -> str:
    return f"{method}-{model.encoder_layers}x{model.decoder_layers}-d{model.hidden}"


def _deep_narrow(model: Model, other: Model, method: str) -> bool:
    equal = model.encoder_layers == model.decoder_layers and other.encoder_layers == other.decoder_layers
    return equal and method in (P, D) and model.layers > other.layers and model.hidden < other.hidden


def _symmetric(model: Model, other: Model, method: str) -> bool:
    lopsided = other.decoder_layers > 0 and other.encoder_layers >= 2 * other.decoder_layers
    return model.encoder_layers == model.decoder_layers and lopsided and method == D and model.hidden == other.hidden


def _share(run: Run) -> float:
    """Validation loss over that of the best constant predictor; infinite where it is not finite."""
    unigram = run.outcome.unigram_loss
    return loss(run) / unigram if math.isfinite(loss(run)) and run.outcome.word != "diverged" else math.inf


def at_word_frequencies(ours: Run, theirs: Run) -> bool:
    """Whether one ends where a model that knows nothing but word frequencies is, and the other below it."""
    return _share(ours) >= AT_UNIGRAM and _share(theirs) < AT_UNIGRAM


def told_shares(cell: ClaimCell) -> str:
    """`Post-LN at 1.01 of the unigram loss; ADMIN at 0.8 of the unigram loss`."""
    ends = {method: short(centre(cell.values(method, _share).values()), 3) for method in (P, ADMIN)}
    return "; ".join(f"{cell.label(method)} at {end} of the unigram loss" for method, end in ends.items())


def deeper_encoder(runs: Sequence[Run]) -> list[Measurement]:
    """ADMIN of N encoder and M decoder layers, N > M, against M encoder and N decoder layers."""
    measurements = []
    for _, members in groups(runs):
        by = {(cell.encoder_layers, cell.decoder_layers): cell for cell in cells(members) if ADMIN in cell.runs}
        for (n, m), deep in sorted(by.items()):
            mirrored = by.get((m, n))
            if mirrored and n > m > 0 and train(deep.of(ADMIN)) and train(mirrored.of(ADMIN)):
                measurements.append(against(deep, deep.of(ADMIN), mirrored.of(ADMIN), beside(deep, mirrored)))
    return measurements


def comparable(runs: Sequence[Run]) -> list[Measurement]:
    """DeepNorm's quality at 6L-6L against the best other method's that trains."""
    measurements = []
    for cell in cells(runs):
        if cell.depth == (6, 6) and train(cell.of(D)):
            for method in cell.runs:
                if method != D and train(cell.of(method)):
                    where = Spot(f"6x6-against-{method}", f"{cell.where} against {cell.label(method)}")
                    measurements.append(against(cell, cell.of(D), cell.of(method), where))
    return measurements


NO_WARMUP = "--steps 250 --warmup 0"
BY = "BLEU where translated (and 1 or more), else validation loss"
better_claim = partial(Claim, scale="difference", tell=gained, threshold=at_least(0.0, "the paper says better"))
"""Says that one model is better than another."""


CLAIMS: tuple[Claim, ...] = (
    share_claim(
        key="random-model",
        sentence="Default initialisation ends as a random model (here: no better than word frequencies); ADMIN learns.",
        source="Very Deep Transformers §4, Table 1 and Fig. 2(a)",
        weight="side",
        test="18 layers or more: share of the seeds in which Post-LN ends at "
        f"{AT_UNIGRAM:g} of the best constant predictor's loss or above and ADMIN below it",
        find=shares(at_word_frequencies, P, ADMIN, where=from_layers(DEEP), beside=told_shares),
        spread={UNWARMED: {"18x18": 0}},
        needs="Post-LN and ADMIN at 18 layers or more, long enough to judge",
        command=f"stabkit sweep --models post-ln,admin --depths 18 {NO_WARMUP}",
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="comparable",
        sentence="At 6L-6L DeepNet performs comparably with the baselines.",
        source="DeepNet §5, Table 1",
        weight="side",
        test=f"DeepNorm against every method that trains at 6L-6L: {BY}; {LONG}",
        threshold=at_least(-0.5, "Table 1: 27.8 against 26.9 to 28.1; stabkit's choice: half a BLEU, half a nat"),
        scale="difference",
        tell=gained,
        find=comparable,
        spread={
            UNWARMED: {"6x6-against-admin": 0.06333, "6x6-against-post-ln": 0.1074, "6x6-against-post-ln-init": 0.1304}
        },
        needs="DeepNorm and another method at 6L-6L that train",
        command=f"stabkit sweep --depths 6 {SHORT}",
        methods=("deepnorm", "post-ln", "admin", "pre-ln"),
    ),
    better_claim(
        key="deeper-deepnorm",
        sentence="DeepNorm's performance keeps improving as the model goes deeper.",
        source="DeepNet §5, Fig. 6 and Table 2",
        weight="central",
        test=f"DeepNorm at each depth against the next shallower one, {BY}; {LONG}",
        find=deeper,
        needs="DeepNorm at two depths or more that trains",
        command=f"stabkit sweep --models deepnorm --depths 6,18,50 {SHORT}",
        methods=("deepnorm",),
    ),
    Claim(
        key="depth-law",
        sentence="Quality grows with the logarithm of depth: L(d) = A log d + B.",
        source="DeepNet Fig. 8",
        weight="side",
        test=f"DeepNorm at three depths or more, seed by seed: gain per unit of ln d, and R² of the line; {LONG}",
        threshold=at_least(0.0, "the paper says it grows"),
        scale="difference",
        tell=Tell(lambda value: f"{value:+.3f}".replace("-", "−")),
        find=law,
        needs="DeepNorm that trains at three depths or more",
        command=f"stabkit sweep --models deepnorm --depths 6,12,25,50 --seeds 0..2 {SHORT}",
        methods=("deepnorm",),
        parts=(A, R_SQUARED),
    ),
    better_claim(
        key="deep-narrow",
        sentence="Given similar training FLOPs, a deep and narrow DeepNet outperforms a shallow and wide baseline.",
        source="DeepNet Table 4",
        weight="side",
        test=f"DeepNorm against wider, shallower Post-LN and DeepNorm, 6·N·D within 15 %, {BY}; {LONG}",
        find=_equal_flops(_deep_narrow),
        needs="two models of equal FLOPs that train, one deeper and narrower",
        command=f"stabkit sweep --models post-ln,deepnorm --depths 12,48 --hidden 64,128 --ffn 2x {SHORT}",
        methods=("post-ln", "deepnorm"),
    ),
    better_claim(
        key="symmetric",
        sentence="Given similar training FLOPs, equal stacks outperform a deep encoder with a shallow decoder.",
        source="DeepNet Table 4",
        weight="side",
        test=f"DeepNorm N = M against an encoder twice its decoder's depth or more, 6·N·D within 15 %, {BY}; {LONG}",
        find=_equal_flops(_symmetric),
        needs="DeepNorm with equal stacks and with a shallow decoder, of equal FLOPs, that train",
        command=f"stabkit sweep --models deepnorm --depths 40,90x6 {SHORT}",
        methods=("deepnorm",),
    ),
    better_claim(
        key="deeper-encoder",
        sentence="Deeper encoders are more worthwhile than deeper decoders: 60L-12L beats 12L-60L.",
        source="Very Deep Transformers §4, Table 3",
        weight="side",
        test=f"ADMIN N×M against M×N, N > M: {BY}; {LONG}",
        find=deeper_encoder,
        needs="ADMIN at two mirrored shapes that train",
        command=f"stabkit sweep --models admin --depths 60x12,12x60 {SHORT}",
        methods=("admin",),
    ),
)
