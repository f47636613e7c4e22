"""What both papers say of translation quality and perplexity, measured here.

Quality is BLEU where all runs of a comparison were translated alike (`--bleu`) and none of them is near nothing (below
1), else the validation loss. The papers train for days on millions of sentences: a sentence that fails here after some
hundred updates is not refuted there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stabkit.claims.base import Claim, Evidence
from stabkit.claims.evidence import MARGIN, Cell, cells, groups, judged, place
from stabkit.claims.quality_evidence import (
    AT_UNIGRAM,
    BELOW_UNIGRAM,
    JUDGED,
    LOST,
    above_own_unigram,
    all_judged,
    better,
    mean_text,
    published,
    train,
)
from stabkit.figures.ablation import robustness
from stabkit.figures.depth import depth_law, flops
from stabkit.figures.depth.flops import Model
from stabkit.figures.shared import quality as qualities
from stabkit.figures.shared.comparison import method_label, outcome_word
from stabkit.figures.shared.depth_fit import JOINED, shape_of
from stabkit.figures.shared.words import listed, number
from stabkit.storage.store import Run

if TYPE_CHECKING:
    import pandas as pd

P, ADMIN, D = "Post-LN", "ADMIN", "DeepNorm"
DEEP = 18
LAW = 0.8
"""R² from which points are a line."""


def deeper(runs: Sequence[Run]) -> list[Evidence]:
    """DeepNorm at each depth against the next shallower one."""
    found = []
    for condition, own in groups(runs):
        line: dict[str, list[Cell]] = {}
        for cell in cells(own):
            model = cell.of(D)[0].spec.model if D in cell.runs else None
            shape = shape_of(model.encoder_layers, model.decoder_layers)[0] if model else ""
            if shape in JOINED and judged(cell, D):
                line.setdefault(shape, []).append(cell)
        for of_shape in line.values():
            for shallow, deep in zip(of_shape, of_shape[1:], strict=False):
                seeds = sorted(set(shallow.runs[D]) & set(deep.runs[D]))
                sides = [[cell.runs[D][seed] for seed in seeds] for cell in (deep, shallow)]
                told = better(*sides) if seeds and train(sides[1]) else None
                if told and told.clear:
                    where = listed(deep.depth, condition)
                    text = f"{told.ours} after {told.theirs} at {shallow.depth}"
                    found.append(Evidence(where=where, value=told.gain, text=text, holds=told.gain > 0))
    return found


def _axes(runs: Sequence[Run]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(axis, place, DeepNorm's runs) for every setting that was varied by itself."""
    frame = robustness.select(published(runs))
    own = frame[frame["label"] == D]
    for (axis, depth, condition), rows in own.groupby(["axis", "depth", "condition"], sort=False):
        yield str(axis), listed(depth, condition), rows


def largest(runs: Sequence[Run]) -> list[Evidence]:
    """What became of DeepNorm at the largest value of every axis."""
    found = []
    for axis, where, rows in _axes(runs):
        top = rows[rows["value"] == rows["value"].max()]
        words = list(top["outcome"])
        if all(word in JUDGED for word in words):
            trained = words.count("trains")
            text = f"{trained} of {len(words)} runs train"
            spot = listed(robustness.words(axis, f"{top['value'].iloc[0]:g}"), where)
            found.append(Evidence(where=spot, value=trained / len(words), text=text, holds=trained == len(words)))
    return found


def larger(runs: Sequence[Run]) -> list[Evidence]:
    """DeepNorm's loss at the largest value of every axis against the smallest; all runs of an axis were given equally
    many updates, and those that train have done them all."""
    by, found = {run.run_id: run for run in runs}, []
    for axis, where, rows in _axes(runs):
        ends = [rows[rows["value"] == value] for value in (rows["value"].max(), rows["value"].min())]
        seeds = set(ends[0]["seed"]) & set(ends[1]["seed"])
        sides = [[by[run] for run in end.loc[end["seed"].isin(list(seeds)), "run"]] for end in ends]
        if not seeds or not all(map(all_judged, sides)):
            continue
        losses = [float(np.mean([above_own_unigram(run) for run in side])) for side in sides]
        if not math.isfinite(losses[1]):
            continue
        gain = losses[1] - losses[0] if math.isfinite(losses[0]) else -LOST
        if abs(gain) < MARGIN:
            continue
        told = [f"{loss:+.2f} nats" if math.isfinite(loss) else "diverged" for loss in losses]
        top, bottom = (f"{end['value'].iloc[0]:g}" for end in ends)
        text = f"{told[0]} at {top} against {told[1]} at {bottom}"
        found.append(Evidence(where=f"{axis}, {where}", value=gain, text=text, holds=gain > 0))
    return found


def law(runs: Sequence[Run]) -> list[Evidence]:
    """DeepNorm's line over the logarithm of depth."""
    frame = depth_law.select(published(runs))
    found = []
    for _, own in depth_law.lines(frame[frame["label"] == D]):
        first, layers = own.iloc[0], own.loc[own["fitted"], "layers"]
        gain = float(first["A"]) * (1 if first["measure"] == qualities.BLEU else -1)
        where = listed(f"{layers.min()} to {layers.max()} layers", first["condition"])
        holds = gain > 0 and float(first["R2"]) >= LAW
        found.append(Evidence(where=where, value=gain, text=depth_law.law(first), holds=holds))
    return found


def _equal_flops(fits: Callable[[Model, Model], bool]) -> Callable[[Sequence[Run]], list[Evidence]]:
    """A DeepNorm model against every other of the same FLOPs that `fits` it, over the seeds that both have."""

    def find(runs: Sequence[Run]) -> list[Evidence]:
        by, found = {run.run_id: run for run in runs}, []
        for one, other in flops.pairs(flops.select(published(runs))):
            seeds = set(one.rows["seed"]) & set(other.rows["seed"])
            if one.label != D or not seeds or not fits(one, other):
                continue
            sides = [
                [by[run] for run in side.rows.loc[side.rows["seed"].isin(list(seeds)), "run"]] for side in (one, other)
            ]
            told = better(*sides) if all(map(train, sides)) else None
            if told and told.clear:
                where = listed(f"{one.shape} against {other.name}", one.condition)
                text = f"{told.ours} against {told.theirs}"
                found.append(Evidence(where=where, value=told.gain, text=text, holds=told.gain > 0))
        return found

    return find


def _deep_narrow(one: Model, other: Model) -> bool:
    equal = one.encoder_layers == one.decoder_layers and other.encoder_layers == other.decoder_layers
    return equal and other.label in (P, D) and one.layers > other.layers and one.hidden < other.hidden


def _symmetric(one: Model, other: Model) -> bool:
    lopsided = other.decoder_layers > 0 and other.encoder_layers >= 2 * other.decoder_layers
    return one.encoder_layers == one.decoder_layers and lopsided and other.label == D and one.hidden == other.hidden


def _share(run: Run) -> float:
    """Validation loss over that of the best constant predictor; infinite where it is not finite."""
    loss, unigram = (number(run.outcome.get(key)) for key in ("validation_loss", "unigram_loss"))
    return loss / unigram if math.isfinite(loss) and outcome_word(run) != "diverged" else math.inf


def random_model(runs: Sequence[Run]) -> list[Evidence]:
    """Whether Post-LN ends where a model that knows nothing but word frequencies is, and ADMIN below it."""
    found = []
    for cell in cells(runs):
        if cell.layers < DEEP or not judged(cell, P, ADMIN):
            continue
        sides = [[cell.runs[label][seed] for seed in cell.seeds(P, ADMIN)] for label in (P, ADMIN)]
        shares = [[_share(run) for run in side] for side in sides]
        if any(math.isnan(share) for side in shares for share in side):
            continue
        ends = [[number(run.outcome.get("perplexity")) for run in side] for side in sides]
        told = [
            f"{label} ends at {mean_text(own)} of the unigram loss"
            + (f", perplexity {mean_text(last)}" if np.isfinite(last).any() else "")
            for label, own, last in zip((P, ADMIN), shares, ends, strict=True)
        ]
        holds = min(shares[0]) >= AT_UNIGRAM and max(shares[1]) < BELOW_UNIGRAM
        value = min(min(shares[0]), LOST)
        found.append(Evidence(where=place(cell, P, ADMIN), value=value, text="; ".join(told), holds=holds))
    return found


def deeper_encoder(runs: Sequence[Run]) -> list[Evidence]:
    """ADMIN of N encoder and M decoder layers, N > M, against M encoder and N decoder layers."""
    found = []
    for condition, own in groups(runs):
        by: dict[tuple[int, int], dict[int, Run]] = {}
        for run in own:
            if method_label(run.spec) == ADMIN:
                shape = run.spec.model.encoder_layers, run.spec.model.decoder_layers
                by.setdefault(shape, {})[run.spec.seed] = run
        for (n, m), deep in sorted(by.items()):
            mirrored = by.get((m, n), {})
            seeds = sorted(set(deep) & set(mirrored))
            sides = [[side[seed] for seed in seeds] for side in (deep, mirrored)]
            told = better(*sides) if n > m > 0 and seeds and all(map(train, sides)) else None
            if not told or not told.clear:
                continue
            names = (runs_[0].spec.depth for runs_ in sides)
            where = listed(" against ".join(names), condition)
            text = f"{told.ours} against {told.theirs}"
            found.append(Evidence(where=where, value=told.gain, text=text, holds=told.gain > 0))
    return found


NO_WARMUP = "--steps 250 --warmup 0"
BY = "BLEU where translated (and 1 or more), else validation loss"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="deeper-deepnorm",
        sentence="DeepNorm's performance keeps improving as the model goes deeper.",
        source="DeepNet §5, Fig. 6 and Table 2",
        test=f"DeepNorm at each depth against the next shallower one, {BY}; better",
        find=deeper,
        needs="DeepNorm at two depths or more, long enough to judge, clearly apart",
        command=f"stabkit sweep --models deepnorm --depths 6,18,50 {NO_WARMUP} --bleu",
        methods=("deepnorm",),
    ),
    Claim(
        key="largest-settings",
        sentence="DeepNet can be trained without difficulty at the largest learning rate, batch and width.",
        source="DeepNet §5, Fig. 7",
        test="outcomes of DeepNorm at the largest value of each setting that was varied by itself, every seed",
        find=largest,
        needs="DeepNorm at two learning rates, batch sizes or widths, long enough to judge",
        command=f"stabkit sweep --models deepnorm --depths 18 {NO_WARMUP} --lr 5e-4,1e-3,2e-3",
        methods=("deepnorm",),
    ),
    Claim(
        key="larger-settings",
        sentence="DeepNet benefits from larger settings: a lower validation loss.",
        source="DeepNet §5, Fig. 7",
        test="DeepNorm at each setting's largest value against its smallest, equal updates: validation loss less the "
        f"same text's unigram loss; lower by {MARGIN:g} nats or more",
        find=larger,
        needs="DeepNorm at two learning rates, batch sizes or widths, long enough to judge",
        command=f"stabkit sweep --models deepnorm --depths 18 {NO_WARMUP} --max-tokens 512,1024,2048",
        methods=("deepnorm",),
    ),
    Claim(
        key="depth-law",
        sentence="Quality grows with the logarithm of depth: L(d) = A log d + B.",
        source="DeepNet Fig. 8",
        test=f"DeepNorm at three depths or more: A > 0 for BLEU, A < 0 for validation loss, and R² at least {LAW:g}",
        find=law,
        needs="DeepNorm that trains at three depths or more",
        command=f"stabkit sweep --models deepnorm --depths 6,12,25,50 {NO_WARMUP} --bleu",
        methods=("deepnorm",),
    ),
    Claim(
        key="deep-narrow",
        sentence="Given similar training FLOPs, a deep and narrow DeepNet outperforms a shallow and wide baseline.",
        source="DeepNet Table 4",
        test=f"DeepNorm against wider, shallower Post-LN and DeepNorm, 6·N·D within 15 %, {BY}; better",
        find=_equal_flops(_deep_narrow),
        needs="two models of equal FLOPs that train, one deeper and narrower, clearly apart",
        command=f"stabkit sweep --models post-ln,deepnorm --depths 12,48 --hidden 64,128 --ffn 2x {NO_WARMUP}",
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="symmetric",
        sentence="Given similar training FLOPs, equal stacks outperform a deep encoder with a shallow decoder.",
        source="DeepNet Table 4",
        test=f"DeepNorm N = M against an encoder twice its decoder's depth or more, 6·N·D within 15 %, {BY}; better",
        find=_equal_flops(_symmetric),
        needs="DeepNorm with equal stacks and with a shallow decoder, of equal FLOPs, that train, clearly apart",
        command=f"stabkit sweep --models deepnorm --depths 40,90x6 {NO_WARMUP}",
        methods=("deepnorm",),
    ),
    Claim(
        key="random-model",
        sentence="Default initialisation ends no better than a random model; ADMIN's perplexity falls.",
        source="Very Deep Transformers §4, Table 1 and Fig. 2(a)",
        test="18 layers or more: validation loss over that of the best constant predictor; Post-LN's at least "
        f"{AT_UNIGRAM:g} (or not finite), ADMIN's below {BELOW_UNIGRAM:g}",
        find=random_model,
        needs="Post-LN and ADMIN at 18 layers or more, long enough to judge",
        command=f"stabkit sweep --models post-ln,admin --depths 18 {NO_WARMUP}",
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="deeper-encoder",
        sentence="Deeper encoders are more worthwhile than deeper decoders: 60L-12L beats 12L-60L.",
        source="Very Deep Transformers §4, Table 3",
        test=f"ADMIN N×M against M×N, N > M: {BY}; better",
        find=deeper_encoder,
        needs="ADMIN at two mirrored shapes that train, clearly apart",
        command=f"stabkit sweep --models admin --depths 60x12,12x60 {NO_WARMUP} --bleu",
        methods=("admin",),
    ),
)
