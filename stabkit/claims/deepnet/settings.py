"""What DeepNet says of quality by depth (§5, Fig. 6, Table 2), and of larger rates, batches and widths (§5, Fig. 7; §7,
Table 6; §8, Table 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stabkit.claims.base import Claim, Measurement, Spot, Tell, at_least, share_claim
from stabkit.claims.evidence import (
    JUDGED,
    LONG,
    MARGIN,
    SHORT,
    ClaimCell,
    cells,
    deeper_than,
    depth_of,
    groups,
    loss,
    measured,
    trains,
)
from stabkit.results import settings
from stabkit.results.conditions import Condition, variants
from stabkit.results.run import Run
from stabkit.results.update_fit import JOINED, Stacks, shape_of
from stabkit.words import short

if TYPE_CHECKING:
    import pandas as pd

D = "deepnorm"
BASELINES = ("post-ln", "pre-ln", "normformer")
NO_WARMUP = "--steps 250 --warmup 0"
gained = Tell(lambda value: f"{'+' if value >= 0 else '−'}{short(abs(value))}")
"""`+0.13`: how much better."""


def deeper(runs: Sequence[Run]) -> list[Measurement]:
    """DeepNorm at each depth against the next shallower one, of those at which every seed trains."""
    lines: dict[tuple[Condition, Stacks], list[ClaimCell]] = {}
    for cell in cells(runs):
        shape = shape_of(cell.encoder_layers, cell.decoder_layers)[0]
        if shape in JOINED and D in cell.runs and all(map(trains, cell.of(D))):
            lines.setdefault((cell.condition, shape), []).append(cell)
    return [
        deeper_than(deep, shallow, D) for line in lines.values() for shallow, deep in zip(line, line[1:], strict=False)
    ]


def _axes(runs: Sequence[Run]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(axis, condition, DeepNorm's runs) for every setting that was varied by itself."""
    kept = [run for _, own in groups(runs) for run in own]
    frame = settings.frame(kept)
    group = frame[frame["run"].map(variants(kept)) == D]
    for (axis, _, condition), rows in group.groupby(["axis", "depth", "condition"], sort=False):
        yield str(axis), str(condition), rows


def largest(runs: Sequence[Run]) -> Iterator[Measurement]:
    """What became of DeepNorm at the largest value of every axis."""
    by = {run.run_id: run for run in runs}
    for axis, condition, rows in _axes(runs):
        top = [by[run] for run in rows.loc[rows["value"] == rows["value"].max(), "run"]]
        if all(run.outcome.word in JUDGED for run in top):
            values = {run.spec.seed: float(trains(run)) for run in top}
            top_value = f"{rows['value'].max():g}"
            where = depth_of(top[0]), Spot(f"{axis}-{top_value}", settings.phrase(axis, top_value))
            yield measured(top, values, *where, apart=condition)


def larger(runs: Sequence[Run]) -> Iterator[Measurement]:
    """DeepNorm's loss at the smallest value of every axis less that at the largest, after equally many updates."""
    by = {run.run_id: run for run in runs}
    for axis, condition, rows in _axes(runs):
        ends = []
        for value in (rows["value"].max(), rows["value"].min()):
            end = [by[run] for run in rows.loc[rows["value"] == value, "run"]]
            ends.append({run.spec.seed: run for run in end if run.outcome.word in JUDGED})
        seeds = sorted(set(ends[0]) & set(ends[1]))
        values = {}
        for seed in seeds:
            high, low = (_above_unigram(end[seed]) for end in ends)
            if math.isfinite(low):
                values[seed] = low - high
        if values:
            top, bottom = (f"{pick:g}" for pick in (rows["value"].max(), rows["value"].min()))
            sides = Spot(f"{axis}-{top}-against-{bottom}", f"{axis} {top} against {bottom}")
            largest_runs = list(ends[0].values())
            yield measured(largest_runs, values, depth_of(largest_runs[0]), sides, apart=condition)


def _above_unigram(run: Run) -> float:
    """The validation loss less that of the best constant predictor on the same text: sizes of batches cut the
    validation text differently, and this takes out how hard each piece is. Infinite where it is not finite."""
    value = loss(run) - run.outcome.unigram_loss
    return value if math.isfinite(value) else math.inf


def tolerates(runs: Sequence[Run]) -> Iterator[Measurement]:
    """Whether DeepNorm trains and a baseline fails at the least rate at which one of the two fails in every seed, where
    both train at a smaller one, or the baseline at none; rates that neither fails at say nothing."""
    rates: dict[tuple[tuple[int, int], Condition], dict[float, ClaimCell]] = {}
    for _, members in groups(runs):
        for cell in cells(members):
            lr = next(iter(next(iter(cell.runs.values())).values())).spec.train.lr
            rates.setdefault((cell.depth, cell.condition.but("train.lr", None)), {})[lr] = cell
    for (depth, _), by in rates.items():
        for method in BASELINES if 0 in depth else ():
            ever = any(any(cell.share(_first_trains, method, D).values()) for cell in by.values())
            both_train = False
            for lr, cell in sorted(by.items()):
                sides = [list(cell.share(so, method, D).values()) for so in (_first_trains, _second_trains)]
                told = both_train or (not ever and all(sides[1]))
                if told and sides[0] and not (any(sides[0]) and any(sides[1])):
                    values = cell.share(lambda ours, theirs: trains(theirs) and not trains(ours), method, D)
                    when = Spot(f"against-{method}-at-{lr:g}", f"against {cell.label(method)} at lr {lr:g}")
                    yield cell.measured(values, method, D, when=when)
                    break
                both_train = both_train or bool(sides[0]) and all(sides[0]) and all(sides[1])


def _first_trains(run: Run, other: Run) -> bool:
    return trains(run)


def _second_trains(run: Run, other: Run) -> bool:
    return trains(other)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="deeper-deepnorm",
        sentence="DeepNorm's performance keeps improving as the model goes deeper.",
        source="DeepNet §5, Fig. 6 and Table 2",
        weight="central",
        test=f"how much lower DeepNorm's validation loss is at each depth than at the next shallower one; {LONG}",
        threshold=at_least(0.0, "the paper says better"),
        tell=gained,
        find=deeper,
        needs="DeepNorm at two depths or more that trains",
        command=f"stabkit sweep --models deepnorm --depths 6,18,50 {SHORT}",
        methods=("deepnorm",),
    ),
    share_claim(
        key="largest-settings",
        sentence="DeepNet can be trained without difficulty at the largest learning rate, batch and width.",
        source="DeepNet §5, Fig. 7",
        weight="side",
        test="outcomes of DeepNorm at the largest value of each setting that was varied alone: share of the seeds "
        "that train",
        find=largest,
        needs="DeepNorm at two learning rates, batch sizes or widths, long enough to judge",
        command=f"stabkit sweep --models deepnorm --depths 18 {NO_WARMUP} --lr 5e-4,1e-3,2e-3",
        methods=("deepnorm",),
    ),
    share_claim(
        key="larger-rate-tolerated",
        sentence="DeepNet tolerates a larger learning rate than the baselines.",
        source="DeepNet §7, Table 6 and §8, Table 7",
        weight="side",
        test="one stack, at the lowest rate at which DeepNorm or a baseline fails in every seed, where both train at a "
        "smaller one or the baseline at none: share of the seeds in which DeepNorm trains and the baseline fails",
        find=tolerates,
        needs="DeepNorm and Post-LN, Pre-LN or NormFormer, one stack, judged at a rate at which both train and one at "
        "which one of them fails, or at rates of which the baseline trains at none",
        command=f"stabkit sweep --models post-ln,pre-ln,deepnorm --depths 12 --arch encoder-only {NO_WARMUP} --lr "
        "5e-4,1e-3,2e-3,4e-3",
        methods=("deepnorm", "post-ln", "pre-ln", "normformer"),
    ),
    Claim(
        key="larger-settings",
        sentence="DeepNet benefits from larger settings: a lower validation loss.",
        source="DeepNet §5, Fig. 7",
        weight="side",
        test="DeepNorm at each setting's smallest value minus at its largest, equal updates: validation loss above the "
        "same text's unigram loss",
        threshold=at_least(MARGIN, "stabkit's choice: a twentieth of a nat, runs of one seed compared"),
        tell=gained,
        find=larger,
        needs="DeepNorm at two learning rates, batch sizes or widths, long enough to judge",
        command=f"stabkit sweep --models deepnorm --depths 18 {NO_WARMUP} --max-tokens 512,1024,2048",
        methods=("deepnorm",),
    ),
)
