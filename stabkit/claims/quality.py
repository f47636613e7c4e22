"""What both papers say of translation quality and perplexity, measured here.

Quality is BLEU where all runs of a comparison were translated alike (`--bleu`) and none of them is near nothing (below
1), else the validation loss. The papers train for days on millions of sentences: what these runs are too short for is
told as out of reach, with the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stabkit.claims.base import MOST, Claim, ClaimPart, Measurement, Spot, Tell, at_least
from stabkit.claims.evidence import ClaimCell, cells, groups
from stabkit.claims.quality_evidence import (
    LONG,
    SHORT,
    against,
    beside,
    compared,
    gained,
    gains,
    loss,
    of_runs,
    published,
    too_short,
    train,
)
from stabkit.figures.depth import depth_law, flops
from stabkit.figures.depth.flops import Model
from stabkit.figures.shared import quality as qualities
from stabkit.figures.shared.comparison import Condition, variants
from stabkit.figures.shared.depth_fit import JOINED, Stacks, shape_of
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import listed, short
from stabkit.results.outcome import AT_UNIGRAM
from stabkit.storage.store import Run

P, ADMIN, D = "post-ln", "admin", "deepnorm"
DEEP = 18
LAW = 0.8
"""R² from which points are a line."""
A, R_SQUARED = ClaimPart("slope", "A"), ClaimPart("r-squared", "R²")
Find = Callable[[Sequence[Run]], list[Measurement]]


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
        shared = {"beside": law_text, "beyond": beyond}
        measurements.append(of_runs(members, (where,), str(first["condition"]), slopes, part=A, **shared))
        r_squared = at_least(LAW, "ours: from there on points are a line")
        measurements.append(
            of_runs(
                members,
                (where, Spot(R_SQUARED.key, R_SQUARED.text)),
                str(first["condition"]),
                squares,
                part=R_SQUARED,
                threshold=r_squared,
                **shared,
            )
        )
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
                measurements.append(
                    of_runs(sides[0], (where,), model.condition, values, beside=text, beyond=too_short(specs))
                )
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


def word_frequencies(runs: Sequence[Run]) -> list[Measurement]:
    """Whether Post-LN ends where a model that knows nothing but word frequencies is, and ADMIN below it."""

    def so(ours: Run, theirs: Run) -> bool:
        return _share(ours) >= AT_UNIGRAM and _share(theirs) < AT_UNIGRAM

    measurements = []
    for cell in cells(runs):
        if cell.layers >= DEEP and cell.seeds(P, ADMIN):
            parts = [
                f"{cell.label(method)} at {short(centre(cell.values(method, _share).values()), 3)} of the unigram loss"
                for method in (P, ADMIN)
            ]
            measurements.append(cell.measured(cell.share(so, P, ADMIN), P, ADMIN, beside="; ".join(parts)))
    return measurements


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
BETTER = at_least(0.0, "the paper says better")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="random-model",
        sentence="Default initialisation ends as a random model (ours: no better than word frequencies); ADMIN learns.",
        source="Very Deep Transformers §4, Table 1 and Fig. 2(a)",
        weight="side",
        test="18 layers or more: share of the seeds in which Post-LN ends at "
        f"{AT_UNIGRAM:g} of the best constant predictor's loss or above and ADMIN below it",
        threshold=MOST,
        scale="share",
        find=word_frequencies,
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
        threshold=at_least(-0.5, "Table 1: 27.8 against 26.9 to 28.1; ours: half a BLEU, half a nat"),
        scale="difference",
        tell=gained,
        find=comparable,
        needs="DeepNorm and another method at 6L-6L that train",
        command=f"stabkit sweep --depths 6 {SHORT}",
        methods=("deepnorm", "post-ln", "admin", "pre-ln"),
    ),
    Claim(
        key="deeper-deepnorm",
        sentence="DeepNorm's performance keeps improving as the model goes deeper.",
        source="DeepNet §5, Fig. 6 and Table 2",
        weight="central",
        test=f"DeepNorm at each depth against the next shallower one, {BY}; {LONG}",
        threshold=BETTER,
        scale="difference",
        tell=gained,
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
        test=f"DeepNorm at three depths or more, seed by seed: gain a unit of ln d, and R² of the line; {LONG}",
        threshold=at_least(0.0, "the paper says it grows"),
        scale="difference",
        tell=Tell(lambda value: f"{value:+.3f}".replace("-", "−")),
        find=law,
        needs="DeepNorm that trains at three depths or more",
        command=f"stabkit sweep --models deepnorm --depths 6,12,25,50 --seeds 0..2 {SHORT}",
        methods=("deepnorm",),
        parts=(A, R_SQUARED),
    ),
    Claim(
        key="deep-narrow",
        sentence="Given similar training FLOPs, a deep and narrow DeepNet outperforms a shallow and wide baseline.",
        source="DeepNet Table 4",
        weight="side",
        test=f"DeepNorm against wider, shallower Post-LN and DeepNorm, 6·N·D within 15 %, {BY}; {LONG}",
        threshold=BETTER,
        scale="difference",
        tell=gained,
        find=_equal_flops(_deep_narrow),
        needs="two models of equal FLOPs that train, one deeper and narrower",
        command=f"stabkit sweep --models post-ln,deepnorm --depths 12,48 --hidden 64,128 --ffn 2x {SHORT}",
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="symmetric",
        sentence="Given similar training FLOPs, equal stacks outperform a deep encoder with a shallow decoder.",
        source="DeepNet Table 4",
        weight="side",
        test=f"DeepNorm N = M against an encoder twice its decoder's depth or more, 6·N·D within 15 %, {BY}; {LONG}",
        threshold=BETTER,
        scale="difference",
        tell=gained,
        find=_equal_flops(_symmetric),
        needs="DeepNorm with equal stacks and with a shallow decoder, of equal FLOPs, that train",
        command=f"stabkit sweep --models deepnorm --depths 40,90x6 {SHORT}",
        methods=("deepnorm",),
    ),
    Claim(
        key="deeper-encoder",
        sentence="Deeper encoders are more worthwhile than deeper decoders: 60L-12L beats 12L-60L.",
        source="Very Deep Transformers §4, Table 3",
        weight="side",
        test=f"ADMIN N×M against M×N, N > M: {BY}; {LONG}",
        threshold=BETTER,
        scale="difference",
        tell=gained,
        find=deeper_encoder,
        needs="ADMIN at two mirrored shapes that train",
        command=f"stabkit sweep --models admin --depths 60x12,12x60 {SHORT}",
        methods=("admin",),
    ),
)
