"""The verdict matrix as a value: a row a method and condition, a column a depth. Pure; page and terminal both show it.

cell = what became of its runs (one word each, counted over seeds), ‖ΔF‖ at the reference step (median over
seeds), the lowest first/last decoder gradient ratio over the run (median likewise), the runs themselves; where they
are all `early` the forecast, and what their like under a warm-up say of the chain
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stabkit.figures.shared.comparison import (
    GROUPS,
    MOST_IN_COLOUR,
    condition_order,
    conditions,
    depth_rank,
    method_group,
    method_label,
    method_rank,
)
from stabkit.figures.shared.numbers import centre, lowest_ratio, outcome_word, reference_step, update_at
from stabkit.figures.shared.words import listed, number, plain, short
from stabkit.methods import blocks
from stabkit.results.chain import SATURATED
from stabkit.results.forecast.model import word
from stabkit.results.outcome import AT_RISK
from stabkit.spec import RunSpec, canonical
from stabkit.storage.store import Run

OUTCOMES = ("diverged", "stuck", "failed", "early", "trains")
"""Worst first: a cell takes the colour of its worst run. `early` is a run too short to judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """All runs of one method, condition and depth."""

    outcomes: tuple[tuple[str, int], ...] = ()
    """(word, how many), worst first."""
    update: float = math.nan
    saturated: bool = False
    """Whether ‖ΔF‖ is so near the output's own size that it can hardly grow."""
    loss: float = math.nan
    """Validation loss of those that were judged; NaN where one was not."""
    unigram: float = math.nan
    gradient_ratio: float = math.nan
    details: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why its failed runs failed."""
    forecast: str = ""
    """Where all are `early`: what their first updates say, by the median over seeds; nothing where they say nothing."""
    p_trains: float = math.nan
    """The median probability; NaN where there is none."""
    axes: tuple[str, ...] = ()
    """Along which its runs lie out of the forecast's range."""
    layers: tuple[int, int] = (0, 0)
    """Of encoder and decoder."""
    beside: tuple[str, ...] = ()
    """`warm-up 4000: ‖ΔF‖ 0.27`: what the same runs under a warm-up that they did not leave say of the chain."""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.outcomes)

    @property
    def worst(self) -> str:
        """The word that colours the cell; `missing` when the grid has no such run."""
        return self.outcomes[0][0] if self.outcomes else "missing"

    @property
    def at_risk(self) -> bool:
        """Whether one of its early runs shows a broken link."""
        return any(detail.startswith(AT_RISK) for detail in self.details)

    @property
    def answer(self) -> str:
        """The one word of the cell: the forecast where there is one, else the outcomes."""
        return self.forecast or self.words

    @property
    def answered(self) -> bool:
        """Whether it says something of its method: by every run's outcome, or a forecast within its range."""
        return self.forecast not in ("", "out of range") or self.worst in ("trains", "stuck", "diverged")

    @property
    def probability(self) -> str:
        """`0.93`, `> 0.99`: the forecast's, never a certainty; nothing where there is none."""
        if math.isnan(self.p_trains):
            return ""
        return "> 0.99" if self.p_trains > 0.99 else "< 0.01" if self.p_trains < 0.01 else f"{self.p_trains:.2f}"

    @property
    def value(self) -> str:
        """What decides: the forecast's probability, the loss of what was judged, else ‖ΔF‖ if it is not saturated."""
        if self.forecast:
            return self.probability
        if math.isfinite(self.loss):
            return short(self.loss, 3)
        return "" if self.saturated else short(self.update)

    @property
    def rank(self) -> float:
        """By which a column is sorted, best first: judged by loss, then forecasts by probability, then what diverged or
        says nothing."""
        if math.isfinite(self.loss):
            return self.loss
        if not math.isnan(self.p_trains):
            return 1e3 * (2 - self.p_trains)
        return 1e4 * (1 + len(OUTCOMES) - badness(self.worst)) if self.total else math.inf

    @property
    def words(self) -> str:
        """`trains`, `trains 3/3`, `diverged 1/3, trains 2/3`; `–` for none."""
        if self.total <= 1:
            return self.outcomes[0][0] if self.outcomes else "–"
        return ", ".join(f"{word} {count}/{self.total}" for word, count in self.outcomes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One method under one condition; its cells stand in the order of the matrix's depths."""

    method: str
    label: str
    group: str
    condition: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Rows in table order within their group, depths from shallow to deep."""

    depths: tuple[str, ...]
    reference_step: int
    rows: tuple[Row, ...]
    warmups: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    """Of the runs that have a row."""
    block: str = "classic"
    """Their block, where it is one; where there are several the conditions tell them apart."""

    @property
    def lowest(self) -> frozenset[tuple[str, ...]]:
        """The cells, by their runs, with the lowest loss of their depth, where several train."""
        found = set()
        for column in zip(*(row.cells for row in self.rows), strict=True):
            train = [cell for cell in column if cell.worst == "trains" and math.isfinite(cell.loss)]
            if len(train) > 1:
                found.add(min(train, key=lambda cell: cell.loss).run_ids)
        return frozenset(found)

    @property
    def lit(self) -> tuple[str, ...]:
        """Of more methods than a figure can tell apart at a glance the three that it shows in colour: the best, the
        middle and the worst, each where it is deepest and has an answer; () of fewer."""
        ranks: dict[str, float] = {}
        for row in self.rows:
            last = [cell.rank for cell in row.cells if cell.answered]
            ranks[row.method] = min(ranks.get(row.method, math.inf), last[-1] if last else math.inf)
        if len(ranks) <= MOST_IN_COLOUR:
            return ()
        order = sorted((key for key in ranks if ranks[key] < math.inf), key=lambda key: ranks[key]) or list(ranks)
        return order[0], order[len(order) // 2], order[-1]

    @property
    def has_conditions(self) -> bool:
        return any(row.condition for row in self.rows)


def matrix(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = ()) -> Matrix:
    """The verdicts of all runs, and of those that have none because they failed."""
    runs, beside = folded(list({run.run_id: run for run in runs}.values()))
    specs = [run.spec for run in runs] + [spec for spec, _ in failed]
    texts = conditions(specs)
    order = condition_order(specs)
    step = reference_step(runs)
    depths = sorted({(depth_rank(spec), spec.depth) for spec in specs})
    rows = sorted(
        {
            (GROUPS.index(method_group(spec)), method_rank(spec), order[text], spec.method, method_label(spec), text)
            for spec, text in zip(specs, texts, strict=True)
        }
    )
    held: dict[tuple[str, str, str], list[Run]] = {}
    lost: dict[tuple[str, str, str], list[str]] = {}
    for run, text in zip(runs, texts, strict=False):
        held.setdefault((method_label(run.spec), text, run.spec.depth), []).append(run)
    for (spec, reason), text in zip(failed, texts[len(runs) :], strict=True):
        lost.setdefault((method_label(spec), text, spec.depth), []).append(plain(reason))
    return Matrix(
        depths=tuple(depth for _, depth in depths),
        reference_step=step,
        warmups=tuple(sorted({spec.train.warmup for spec in specs})),
        rates=tuple(sorted({spec.train.lr for spec in specs})),
        block=named[0] if len(named := sorted({blocks.name_of(spec.model) for spec in specs})) == 1 else "classic",
        rows=tuple(
            Row(
                method=key,
                label=label,
                group=GROUPS[group],
                condition=text,
                cells=tuple(
                    _cell(held.get((label, text, depth), []), lost.get((label, text, depth), []), step, beside)
                    for _, depth in depths
                ),
            )
            for group, _, _, key, label, text in rows
        ),
    )


def folded(runs: Sequence[Run]) -> tuple[list[Run], dict[str, list[Run]]]:
    """The runs that have a row, and {likeness: those that stand in their cells}: a row all of whose runs are `early`
    and still warming up tells of the chain, and the same runs with the least warm-up of who trains."""
    rows: dict[str, dict[int, list[Run]]] = {}
    for run in runs:
        rows.setdefault(likeness(run.spec, depth=False), {}).setdefault(run.spec.train.warmup, []).append(run)
    aside: dict[str, list[Run]] = {}
    for by_warmup in rows.values():
        for warmup in sorted(by_warmup)[1:]:
            own = by_warmup[warmup]
            if all(outcome_word(run) == "early" and run.spec.train.steps < warmup for run in own):
                for run in own:
                    aside.setdefault(likeness(run.spec), []).append(run)
    gone = {run.run_id for own in aside.values() for run in own}
    return [run for run in runs if run.run_id not in gone], aside


def likeness(spec: RunSpec, *, depth: bool = True) -> str:
    """What a run shares with those that differ from it in seed and warm-up alone, and with `depth` off in depth too."""
    model = spec.model if depth else replace(spec.model, encoder_layers=0, decoder_layers=0)
    train = replace(spec.train, warmup=0, steps=0, verdict_at=0, stop_when_decided=False)
    alike = replace(spec, seed=0, train=train, model=model, record_every=10, snapshots=0)
    return canonical(alike.stored())


def _beside(runs: Sequence[Run], step: int) -> tuple[str, ...]:
    """A line a warm-up: ‖ΔF‖, and a link that breaks."""
    by: dict[int, list[Run]] = {}
    for run in runs:
        by.setdefault(run.spec.train.warmup, []).append(run)
    lines = []
    for warmup, own in sorted(by.items()):
        risks = [text for run in own if (text := plain(str(run.outcome.get("detail", "")))).startswith(AT_RISK)]
        update = short(centre(update_at(run, step) for run in own))
        lines.append(listed(f"warm-up {warmup}: ‖ΔF‖ {update}", risks[0] if risks else ""))
    return tuple(lines)


def _forecast(runs: Sequence[Run]) -> tuple[str, float, tuple[str, ...]]:
    """(word, median probability, axes out of range) of a cell's early runs; nothing where one has no forecast. The word
    is that of every seed: where they differ it is open."""
    found = [run.forecast for run in runs if outcome_word(run) == "early"]
    if not found or len(found) < len(runs) or any(one is None for one in found):
        return "", math.nan, ()
    axes = tuple(dict.fromkeys(axis for one in found if one for axis in one.axes))
    told = [one.p_trains for one in found if one and one.p_trains is not None]
    words = {word(one.p_trains) for one in found if one}
    p = statistics.median(told) if told else math.nan
    return words.pop() if len(words) == 1 else "open", p, axes


def _cell(runs: list[Run], reasons: list[str], step: int, beside: Mapping[str, list[Run]]) -> Cell:
    runs = sorted(runs, key=lambda run: (run.spec.seed, run.run_id))
    counts = Counter(outcome_word(run) for run in runs)
    if reasons:
        counts["failed"] += len(reasons)
    told, p, axes = _forecast(runs) if not reasons else ("", math.nan, ())
    alike = list(dict.fromkeys(likeness(run.spec) for run in runs))
    model = runs[0].spec.model if runs else None
    update = centre(update_at(run, step) for run in runs)
    judged = bool(runs) and all(outcome_word(run) in ("trains", "stuck") for run in runs)
    losses = [number(run.outcome.get("validation_loss")) for run in runs]
    return Cell(
        forecast=told,
        p_trains=p,
        axes=axes,
        layers=(model.encoder_layers, model.decoder_layers) if model else (0, 0),
        beside=_beside([one for key in alike for one in beside.get(key, ())], step),
        outcomes=tuple(sorted(counts.items(), key=lambda item: (badness(item[0]), item[0]))),
        update=update,
        saturated=model is not None and update > SATURATED * math.sqrt(2 * model.hidden),
        loss=centre(losses) if judged else math.nan,
        unigram=centre(number(run.outcome.get("unigram_loss")) for run in runs),
        gradient_ratio=centre(map(lowest_ratio, runs)),
        details=tuple(plain(str(run.outcome.get("detail", ""))) for run in runs),
        run_ids=tuple(run.run_id for run in runs),
        reasons=tuple(reasons),
    )


def badness(word: str) -> int:
    return OUTCOMES.index(word) if word in OUTCOMES else len(OUTCOMES)
