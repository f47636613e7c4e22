"""What an experiment says in one cell of the table: the same rule as stated and in every variation.

A word and the numbers behind it. `holds`, `falls` and `undecided` are of intervals over seeds, or of every seed where
runs train or do not; `in part` where seeds differ.

Losses are those of the last weights on validation text that judged no outcome and chose no rate; of the synthetic task,
which has none, the validation loss. What another draw of as much text would say enters each interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import spearmanr

from stabkit import methods
from stabkit.results.intervals import Z_975, Interval, drawn
from stabkit.results.line import log_slope
from studies.findings.design import TIMES
from studies.numbers import with_interval
from studies.rows import StudyRow

Word = Literal["holds", "in part", "falls", "undecided"]
Rows = Sequence[StudyRow]

GROWS = 0.25
"""The exponent up to which growth counts as nearly none, as for the papers' claims: a factor of 1.7 over 6 to 50
layers."""
SATURATED = math.sqrt(2 * 64) / 2
"""‖ΔF‖ from which on a model of width 64 can hardly move farther: the exponent is of shorter ones."""
DEEPEST = 50
"""Layers up to which an exponent is fitted, as in the figures."""
TEXT, FEW = drawn(17_000), drawn(435)
"""Half the 95 % interval that a difference of losses has because the text is a draw: of all validation pairs that are
left over, of the few that a run of 256 tokens a batch is judged on."""
WEAK, LOST = 1e-2, 1e-4
"""Shares of the top layer's gradient."""
ALIKE = 0.7
"""Rank correlation from which on two orders are nearly the same."""


@dataclass(frozen=True, slots=True)
class FindingCell:
    """What one variation says."""

    word: Word
    numbers: str


def growth(method: str) -> Callable[[Rows], FindingCell | None]:
    """Whether a method's ‖ΔF‖ grows with depth beyond GROWS."""

    def judge(rows: Rows) -> FindingCell | None:
        found = _exponents(rows, method)
        if len(found) < 2:
            return None
        interval = Interval.of(list(found.values()))
        return FindingCell(_above(interval, GROWS), f"N^{with_interval(interval)}")

    return judge


def faster(method: str, than: str) -> Callable[[Rows], FindingCell | None]:
    """Whether ‖ΔF‖ grows faster with depth under one method than under another, seed by seed."""

    def judge(rows: Rows) -> FindingCell | None:
        one, other = _exponents(rows, method), _exponents(rows, than)
        both = sorted(set(one) & set(other))
        if len(both) < 2:
            return None
        interval = Interval.of([one[seed] - other[seed] for seed in both])
        mean = sum(one[seed] for seed in both) / len(both)
        return FindingCell(_above(interval, 0.0), f"N^{mean:.2f}, faster by {with_interval(interval)}")

    return judge


def _exponents(rows: Rows, method: str) -> dict[int, float]:
    """{seed: the exponent of its ‖ΔF‖ in depth}, of depths to DEEPEST that are not saturated; of three or more."""
    by: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        if row.method == method and row.depth <= DEEPEST and row.update_end and row.update_end < SATURATED:
            by.setdefault(row.seed, []).append((row.depth, row.update_end))
    return {seed: log_slope(*zip(*some, strict=True)) for seed, some in sorted(by.items()) if len(some) >= 3}


def parted(stuck: Sequence[str], train: Sequence[str]) -> Callable[[Rows], FindingCell | None]:
    """Whether in every seed these methods do not train and those do."""

    def judge(rows: Rows) -> FindingCell | None:
        by = {(row.method, row.seed): row.trains for row in rows}
        seeds = sorted({seed for _, seed in by})
        named = [(key, False) for key in stuck] + [(key, True) for key in train]
        whole = [seed for seed in seeds if all((key, seed) in by for key, _ in named)]
        if not whole:
            return None
        as_said = sum(all(by[key, seed] == trains for key, trains in named) for seed in whole)
        counts = [f"{methods.label(key, {})} {sum(by[key, seed] for seed in whole)}" for key, _ in named]
        word: Word = "holds" if as_said == len(whole) else "falls" if not as_said else "in part"
        return FindingCell(word, f"train of {len(whole)}: {', '.join(counts)}")

    return judge


def gradient_lost(rows: Rows) -> FindingCell | None:
    """Whether in every seed less than WEAK of the top layer's gradient reaches Post-LN's lowest before any update, and
    less than LOST in training."""
    mine = [row for row in rows if row.method == "post-ln" and row.measured and row.profile]
    starts = [row.measured.gradient_start for row in mine if row.measured]
    ends = [row.profile.gradient_lowest for row in mine if row.profile]
    if not mine:
        return None
    as_said = sum(start < WEAK and end < LOST for start, end in zip(starts, ends, strict=True))
    word: Word = "holds" if as_said == len(mine) else "falls" if not as_said else "in part"
    return FindingCell(word, f"{_range(starts)} before, {_range(ends)} at its lowest, {len(mine)} seeds")


def times(one: str, than: str, at_least: float) -> Callable[[Rows], FindingCell | None]:
    """Whether at every depth and seed one method's ‖ΔF‖ is so many times another's."""

    def judge(rows: Rows) -> FindingCell | None:
        by = {(row.method, row.depth, row.seed): row.update_end for row in rows if row.update_end}
        places = sorted((depth, seed) for key, depth, seed in by if key == one and (than, depth, seed) in by)
        if not places:
            return None
        ratios = {place: by[one, *place] / by[than, *place] for place in places}
        as_said = sum(ratio >= at_least for ratio in ratios.values())
        word: Word = "holds" if as_said == len(ratios) else "falls" if not as_said else "in part"
        each = [
            f"{depth}L {_range([ratio for (n, _), ratio in ratios.items() if n == depth])}"
            for depth in sorted({depth for depth, _ in ratios})
        ]
        return FindingCell(word, f"times: {', '.join(each)}")

    return judge


def _range(values: Sequence[float]) -> str:
    low, high = (f"{end(values):.2g}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def lower(one: str, than: str) -> Callable[[Rows], FindingCell | None]:
    """Whether one method's loss lies below another's, seed by seed; `mhc:start=identity` names an option."""

    def judge(rows: Rows) -> FindingCell | None:
        found = _less(rows, one, than)
        return FindingCell(_below(found, 0.0), with_interval(found, signed=True)) if found else None

    return judge


def lowest(one: str) -> Callable[[Rows], FindingCell | None]:
    """Whether a method has the lowest loss of all that are there: below the next lowest, seed by seed."""

    def judge(rows: Rows) -> FindingCell | None:
        others = {name for name in map(_name, rows) if name != one}
        found = {other: less for other in others if (less := _less(rows, one, other))}
        if not found:
            return None
        next_ = max(sorted(found), key=lambda other: found[other].value)
        return FindingCell(_below(found[next_], 0.0), f"{with_interval(found[next_], signed=True)} to {_label(next_)}")

    return judge


def own_embedding(rows: Rows) -> FindingCell | None:
    """Whether Depth-μP's loss lies below Pre-LN's, the rates of the layers and of the embedding each searched apart, on
    the sentences that judge a run; the losses are of others."""
    best: dict[str, tuple[str, float]] = {}
    for key in ("own-pre-ln-embedding", "own-depth-mup-embedding"):
        first = [row for row in rows if row.method == key and row.seed == min(r.seed for r in rows)]
        if {row.options for row in first} != {"" if times == 1 else f"times={times}" for times in TIMES}:
            return None
        chosen = min(first, key=lambda row: row.equal_loss)
        best[key] = (chosen.options, chosen.rate)
    kept = [row for row in rows if (row.options, row.rate) == best[row.method]]
    plain, scaled = ({row.seed: _loss(row) for row in kept if row.method == key} for key in best)
    seeds = sorted(set(plain) & set(scaled))
    if len(seeds) < 2:
        return None
    found = Interval.of([scaled[seed] - plain[seed] for seed in seeds], TEXT)
    at = "; ".join(
        f"{label} {rate:.2g}, embedding {float((options or 'times=1')[6:]) * rate:.2g}"
        for label, (options, rate) in zip(("Pre-LN", "Depth-μP"), best.values(), strict=True)
    )
    return FindingCell(_below(found, 0.0), f"{with_interval(found, signed=True)} ({at})")


def same_order(rows: Rows) -> FindingCell | None:
    """Whether methods have nearly the same order of losses under AdamW and under Muon."""
    by: dict[str, dict[str, list[float]]] = {"adamw": {}, "muon": {}}
    for row in rows:
        by[row.optimizer].setdefault(_name(row), []).append(_loss(row))
    both = sorted(set(by["adamw"]) & set(by["muon"]))
    if len(both) < 5:
        return None
    means = [[sum(losses[name]) / len(losses[name]) for name in both] for losses in by.values()]
    found = float(spearmanr(*means).statistic)
    if abs(found) == 1:
        return FindingCell("holds" if found > 0 else "falls", f"{found:+.2f}, {len(both)} methods")
    reach = Z_975 * math.sqrt((1 + found**2 / 2) / (len(both) - 3))  # Bonett and Wright (2000)
    interval = Interval(found, math.tanh(math.atanh(found) - reach), math.tanh(math.atanh(found) + reach))
    return FindingCell(_above(interval, ALIKE), f"{with_interval(interval, signed=True)}, {len(both)} methods")


JUDGES: Mapping[str, tuple[str, Callable[[Rows], FindingCell | None]]] = {
    "update-grows": ("update-depth", growth("deepnorm")),
    "post-ln-faster": ("update-depth", faster("post-ln", "deepnorm")),
    "goal": ("goal", growth("deepnorm")),
    "goal-smaller": ("goal", times("post-ln", "deepnorm", 2.0)),
    "stuck-18": ("stuck-18", parted(("post-ln",), ("post-ln-init", "admin", "deepnorm"))),
    "gradient-lost": ("stuck-18", gradient_lost),
    "mhc-identity": ("mhc-start", lower("mhc:start=identity", "mhc")),
    "mhc-static": ("mhc-start", lower("mhc", "mhc:start=static")),
    "hc-lowest": ("mhc-start", lowest("hyper-connections")),
    "embedding": ("embedding", own_embedding),
    "hundred": ("hundred", parted(("post-ln", "mix-ln", "dyt"), ("pre-ln", "deepnorm"))),
    "order": ("order", same_order),
    "thousand": ("thousand", parted(("post-ln", "deepnorm"), ("pre-ln", "depth-mup"))),
}
"""{finding: (its experiment, how a cell of it is judged)}."""


def _name(row: StudyRow) -> str:
    return f"{row.method}:{row.options}" if row.options else row.method


def _label(name: str) -> str:
    key, _, option = name.partition(":")
    return methods.label(key, dict([option.split("=")]) if option else {})


def _loss(row: StudyRow) -> float:
    """What a run is compared by."""
    return row.unseen if row.unseen is not None else row.validation


def _less(rows: Rows, one: str, than: str) -> Interval | None:
    """One's loss less the other's, over the seeds that both have; None of fewer than two."""
    losses = [{row.seed: _loss(row) for row in rows if _name(row) == name} for name in (one, than)]
    seeds = sorted(set(losses[0]) & set(losses[1]))
    apart = [losses[0][seed] - losses[1][seed] for seed in seeds]
    if len(apart) < 2 or not all(map(math.isfinite, apart)):
        return None
    return Interval.of(apart, FEW if any(row.unseen is None for row in rows) else TEXT)


def _above(interval: Interval, limit: float) -> Word:
    return "holds" if interval.low > limit else "falls" if interval.high < limit else "undecided"


def _below(interval: Interval, limit: float) -> Word:
    return "holds" if interval.high < limit else "falls" if interval.low > limit else "undecided"
