"""What an experiment says in one cell of the table: the same rule as stated and in every variation.

A word and the numbers behind it. `holds`, `falls` and `undecided` are of intervals over seeds, or of every seed where
methods train or do not; `in part` where seeds differ. What one seed says is said to be one seed's.

Losses are those of the last weights on validation text that judged no outcome and chose no rate; of the synthetic task,
which has none, the validation loss. What another draw of as much text would say enters each interval of losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import spearmanr

from stabkit import methods
from stabkit.claims.evidence import NEARLY
from stabkit.figures.shared.words import short
from stabkit.results import chain
from stabkit.results.intervals import Z_975, Interval, drawn
from stabkit.results.line import log_slope
from stabkit.results.outcome import GROWN, LOST, VANISHED
from studies.findings.design import RUNGS, TIMES
from studies.numbers import with_interval
from studies.recent.table import TOKENS
from studies.rows import StudyRow

Word = Literal["holds", "in part", "falls", "undecided", "holds (one seed)", "falls (one seed)"]
Rows = Sequence[StudyRow]
Judge = Callable[[Rows], "FindingCell"]

WIDTH = 64
SATURATED = chain.SATURATED * math.sqrt(2 * WIDTH)
"""‖ΔF‖ from which on a model of this width can hardly move farther: no exponent is fitted through it."""
DEEPEST = 50
"""Layers up to which an exponent is fitted, as in the figures."""
UNSEEN = 17_000
"""Tokens of the validation text that judged no outcome, and more."""
ALIKE = 0.7
"""Rank correlation from which on two orders are nearly the same."""


@dataclass(frozen=True, slots=True)
class FindingCell:
    """What one variation says."""

    word: Word
    numbers: str


def growth(method: str) -> Judge:
    """Whether a method's ‖ΔF‖ grows with depth beyond what counts as nearly none."""

    def judge(rows: Rows) -> FindingCell:
        by_seed, saturated = _exponents(rows, method)
        if len(by_seed) < 2:
            return _none(saturated)
        interval = Interval.of(list(by_seed.values()))
        return FindingCell(_above(interval, NEARLY), f"N^{with_interval(interval)}{_beside(saturated)}")

    return judge


def faster(method: str, than: str) -> Judge:
    """Whether ‖ΔF‖ grows faster with depth under one method than under another, seed by seed."""

    def judge(rows: Rows) -> FindingCell:
        (first, saturated), (second, _) = _exponents(rows, method), _exponents(rows, than)
        seeds = sorted(set(first) & set(second))
        if len(seeds) < 2:
            return _none(saturated)
        apart = Interval.of([first[seed] - second[seed] for seed in seeds])
        exponents = f"N^{_range([first[seed] for seed in seeds])}"
        faster_by = with_interval(apart, signed=True)
        return FindingCell(_above(apart, 0.0), f"{exponents}, faster by {faster_by}{_beside(saturated)}")

    return judge


def _exponents(rows: Rows, method: str) -> tuple[dict[int, float], int]:
    """({seed: the exponent of its ‖ΔF‖ in depth}, seeds with none because one of their depths is saturated)."""
    points: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        if row.method == method and row.depth <= DEEPEST and row.update_end:
            points.setdefault(row.seed, []).append((row.depth, row.update_end))
    fitted = {
        seed: log_slope(*zip(*some, strict=True))
        for seed, some in sorted(points.items())
        if len(some) >= 3 and max(update for _, update in some) < SATURATED
    }
    return fitted, len(points) - len(fitted)


def _beside(saturated: int) -> str:
    return f" ({saturated} seeds saturated)" if saturated else ""


def _none(saturated: int) -> FindingCell:
    return FindingCell("undecided", f"no exponent{_beside(saturated)}")


def separated(stuck: Sequence[str], train: Sequence[str]) -> Judge:
    """Whether in every seed these methods do not train and those do."""

    def judge(rows: Rows) -> FindingCell:
        trains = {(row.method, row.seed): row.trains for row in rows}
        wanted = {**dict.fromkeys(stuck, False), **dict.fromkeys(train, True)}
        seeds = [seed for seed in sorted({seed for _, seed in trains}) if all((key, seed) in trains for key in wanted)]
        as_said = sum(all(trains[key, seed] == ends for key, ends in wanted.items()) for seed in seeds)
        counts = [f"{methods.label(key, {})} {sum(trains[key, seed] for seed in seeds)}" for key in wanted]
        return FindingCell(_counted(as_said, len(seeds)), f"train of {len(seeds)}: {', '.join(counts)}")

    return judge


def gradient_lost(rows: Rows) -> FindingCell:
    """Whether in every seed less than VANISHED of the top layer's gradient reaches Post-LN's lowest before any update
    and less than LOST in training, and no method's LN inputs grow by half in sixteen updates."""
    mine = [row for row in rows if row.method == "post-ln" and row.measured and row.profile]
    starts = [row.measured.gradient_start for row in mine if row.measured]
    least = [row.profile.gradient_lowest for row in mine if row.profile]
    growths = [row.measured.ln_growth for row in rows if row.measured]
    if not mine:
        return FindingCell("undecided", "no row of Post-LN with a profile")
    as_said = sum(start < VANISHED and low < LOST for start, low in zip(starts, least, strict=True))
    word = _counted(as_said, len(mine)) if max(growths) < GROWN else "in part"
    numbers = f"{_range(starts)} before, {_range(least)} at its lowest, LN inputs at most {short(max(growths))}-fold"
    return FindingCell(word, f"{numbers}, {len(mine)} seeds")


def times(method: str, than: str, least: float) -> Judge:
    """Whether at every depth and seed one method's ‖ΔF‖ is so many times another's."""

    def judge(rows: Rows) -> FindingCell:
        updates = {(row.method, row.depth, row.seed): row.update_end for row in rows if row.update_end}
        ratios = {
            (depth, seed): update / updates[than, depth, seed]
            for (key, depth, seed), update in updates.items()
            if key == method and (than, depth, seed) in updates
        }
        depths = sorted({depth for depth, _ in ratios})
        ranges = [f"{depth}L {_range([r for (n, _), r in ratios.items() if n == depth])}" for depth in depths]
        as_said = sum(ratio >= least for ratio in ratios.values())
        return FindingCell(_counted(as_said, len(ratios)), f"times: {', '.join(ranges)}")

    return judge


def _range(values: Sequence[float]) -> str:
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


def lower(method: str, than: str) -> Judge:
    """Whether one method's loss lies below another's, seed by seed; `mhc:start=identity` names an option."""

    def judge(rows: Rows) -> FindingCell:
        apart = _apart(rows, method, than)
        return FindingCell(_below(apart), with_interval(apart, signed=True)) if apart else DIVERGED

    return judge


def lowest(method: str) -> Judge:
    """Whether a method's loss lies below that of every other that is there, seed by seed; one that diverged has no
    say."""

    def judge(rows: Rows) -> FindingCell:
        rivals = sorted({_name(row) for row in rows} - {method})
        apart = {rival: gap for rival in rivals if (gap := _apart(rows, method, rival))}
        if not apart:
            return DIVERGED
        words = {_below(gap) for gap in apart.values()}
        word: Word = "falls" if "falls" in words else "undecided" if "undecided" in words else "holds"
        next_ = max(apart, key=lambda rival: apart[rival].high)
        return FindingCell(word, f"{with_interval(apart[next_], signed=True)} to {_label(next_)}")

    return judge


def own_embedding(rows: Rows) -> FindingCell:
    """Whether Depth-μP's loss lies below Pre-LN's, the rates of the layers and of the embedding each searched apart.

    `rows`: at the best rate of each factor. The seed that searched the rates chooses the factor too, by its loss on the
    sentences that judge a run; the losses compared are of the other seeds, and of other sentences. A best that lies at
    an end of what was tried is no best.
    """
    best: dict[str, tuple[float, float]] = {}
    losses: dict[str, dict[int, float]] = {}
    for key in ("own-pre-ln-embedding", "own-depth-mup-embedding"):
        factors = {factor: [row for row in rows if (row.method, _factor(row)) == (key, factor)] for factor in TIMES}
        if not all(factors.values()):
            return FindingCell("undecided", "a factor has no rate at which it trains")
        first = min(row.seed for mine in factors.values() for row in mine)
        factor = min(factors, key=lambda factor: _mean([r.equal_loss for r in factors[factor] if r.seed == first]))
        best[key] = (factor, factors[factor][0].rate)
        losses[key] = {row.seed: _loss(row) for row in factors[factor] if row.seed != first}
    plain, scaled = losses.values()
    seeds = sorted(set(plain) & set(scaled))
    apart = Interval.of([scaled[seed] - plain[seed] for seed in seeds], drawn(UNSEEN))
    where = "; ".join(
        f"{label} {rate:.2g}, embedding {factor * rate:.2g}"
        for label, (factor, rate) in zip(("Pre-LN", "Depth-μP"), best.values(), strict=True)
    )
    edge = any(factor == TIMES[-1] or rate in (RUNGS[0], RUNGS[-1]) for factor, rate in best.values())
    word: Word = "undecided" if edge else _below(apart)
    return FindingCell(word, f"{with_interval(apart, signed=True)} ({where}{', at an end' if edge else ''})")


def _factor(row: StudyRow) -> int:
    return int(row.options.partition("=")[2] or 1)


def same_order(rows: Rows) -> FindingCell:
    """Whether methods have nearly the same order of losses under AdamW and under Muon."""
    by: dict[str, dict[str, list[float]]] = {"adamw": {}, "muon": {}}
    for row in rows:
        by[row.optimizer].setdefault(_name(row), []).append(_loss(row))
    both = sorted(set(by["adamw"]) & set(by["muon"]))
    means = [[_mean(losses[name]) for name in both] for losses in by.values()]
    rho = float(spearmanr(*means).statistic)
    reach = Z_975 * math.sqrt((1 + rho**2 / 2) / (len(both) - 3))  # Bonett and Wright (2000)
    centre = math.atanh(min(max(rho, -1 + 1e-9), 1 - 1e-9))
    interval = Interval(rho, math.tanh(centre - reach), math.tanh(centre + reach))
    return FindingCell(_above(interval, ALIKE), f"{with_interval(interval, signed=True)}, {len(both)} methods")


CHOOSING = frozenset({"embedding"})
"""Statements whose judge chooses by the seed that searched the rates."""
JUDGES: Mapping[str, tuple[str, Judge]] = {
    "update-grows": ("update-depth", growth("deepnorm")),
    "post-ln-faster": ("update-depth", faster("post-ln", "deepnorm")),
    "goal": ("goal", growth("deepnorm")),
    "goal-smaller": ("goal", times("post-ln", "deepnorm", 2.0)),
    "stuck-18": ("stuck-18", separated(("post-ln",), ("post-ln-init", "admin", "deepnorm"))),
    "gradient-lost": ("stuck-18", gradient_lost),
    "mhc-identity": ("mhc-start", lower("mhc:start=identity", "mhc")),
    "mhc-static": ("mhc-start", lower("mhc", "mhc:start=static")),
    "hc-lowest": ("mhc-start", lowest("hyper-connections")),
    "embedding": ("embedding", own_embedding),
    "hundred": ("hundred", separated(("post-ln", "mix-ln", "dyt"), ("pre-ln", "deepnorm"))),
    "order": ("order", same_order),
}
"""{finding: (its experiment, how a cell of it is judged)}."""
DIVERGED = FindingCell("undecided", "a seed has no loss, or there are fewer than two")


def _counted(as_said: int, of: int) -> Word:
    """Of seeds, or of depths and seeds; one alone is said to be one."""
    if of < 2:
        return "undecided" if not of else "holds (one seed)" if as_said else "falls (one seed)"
    return "holds" if as_said == of else "in part" if as_said else "falls"


def _name(row: StudyRow) -> str:
    return f"{row.method}:{row.options}" if row.options else row.method


def _label(name: str) -> str:
    key, _, option = name.partition(":")
    return methods.label(key, dict([option.split("=")]) if option else {})


def _loss(row: StudyRow) -> float:
    """What a run is compared by."""
    return row.unseen if row.unseen is not None else row.validation


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _apart(rows: Rows, method: str, than: str) -> Interval | None:
    """One's loss less the other's, over the seeds that both have; None of fewer than two, or where one is infinite."""
    losses = [{row.seed: _loss(row) for row in rows if _name(row) == name} for name in (method, than)]
    seeds = sorted(set(losses[0]) & set(losses[1]))
    apart = [losses[0][seed] - losses[1][seed] for seed in seeds]
    if len(apart) < 2 or not all(map(math.isfinite, apart)):
        return None
    tokens = TOKENS if any(row.unseen is None for row in rows) else UNSEEN
    return Interval.of(apart, drawn(tokens))


def _above(interval: Interval, limit: float) -> Word:
    return "holds" if interval.low > limit else "falls" if interval.high < limit else "undecided"


def _below(interval: Interval) -> Word:
    return "holds" if interval.high < 0 else "falls" if interval.low > 0 else "undecided"
