"""The verdict matrix as a value: a row a method and condition, a column a depth. Pure; page and terminal both show it.

cell = what became of its runs (one word each, counted over seeds), ‖ΔF‖ at the reference step (median over
seeds), the runs themselves; where they are all `early` the forecast, and what their like under a warm-up say of the
chain. Its words are `legend.py`'s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stabkit.methods import blocks, variant
from stabkit.results.chain import SATURATED
from stabkit.results.conditions import (
    GROUPS,
    MOST_IN_COLOUR,
    Condition,
    condition_order,
    conditions,
    depth_rank,
    method_group,
    method_label,
    method_rank,
    paint,
)
from stabkit.results.forecast.logistic import PROBABLY, word
from stabkit.results.forecast.logistic import Word as Forecasted
from stabkit.results.forecast.model import HORIZON
from stabkit.results.outcome import Outcome, Risk, Word
from stabkit.results.readings import centre, reference_step, update_at
from stabkit.results.run import Run
from stabkit.spec import RunSpec, canonical
from stabkit.words import plain

OUTCOMES: tuple[Word, ...] = ("diverged", "stuck", "failed", "early", "trains")
"""Worst first: a cell takes the colour of its worst run. `early` is a run too short to judge."""


CLEARLY = 0.05
"""Nats of validation loss between two single runs below which seeds may change their order."""
NONE = (math.nan, math.nan)
"""The probabilities of a cell without any."""


@dataclass(frozen=True, slots=True)
class Chained:
    """What the runs of a cell say of the chain under a warm-up that they did not leave."""

    warmup: int
    update: float
    """‖ΔF‖ at the reference step, median over seeds."""
    risks: tuple[Risk, ...]
    """Of the first of them that has any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictCell:
    """All runs of one method, condition and depth."""

    outcomes: tuple[tuple[Word, int], ...] = ()
    """(word, how many), worst first."""
    ended: tuple[Outcome, ...] = ()
    """How each run ended, in the order of `run_ids`."""
    update: float = math.nan
    saturated: bool = False
    """Whether ‖ΔF‖ is so near the output's own size that it can hardly grow."""
    loss: float = math.nan
    """Validation loss of those that were judged; NaN where one was not."""
    unigram: float = math.nan
    run_ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why its failed runs failed."""
    forecast: Forecasted | None = None
    """Where all are `early`: what their first updates say, by the least likely seed; None where they say nothing."""
    p_trains: float = math.nan
    """That seed's probability; NaN where one has none."""
    p_range: tuple[float, float] = NONE
    """The least and the greatest of its seeds'."""
    axes: tuple[str, ...] = ()
    """Along which its runs lie out of the forecast's range."""
    unseen: bool = False
    """Whether the forecast's fit has no run of its method."""
    layers: tuple[int, int] = (0, 0)
    """Of encoder and decoder."""
    chained: tuple[Chained, ...] = ()
    """What the same runs under a warm-up say, a warm-up each."""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.outcomes)

    @property
    def worst(self) -> Word | None:
        """The word that colours the cell; None where the grid has no such run."""
        return self.outcomes[0][0] if self.outcomes else None

    @property
    def verdict(self) -> Word | Forecasted | None:
        """One word: the forecast where there is one, else the worst outcome."""
        return self.forecast or self.worst

    @property
    def at_risk(self) -> bool:
        """Whether one of its early runs shows a broken link."""
        return any(outcome.risks for outcome in self.ended)

    @property
    def answered(self) -> bool:
        """Whether it says something of its method: by its worst outcome, or a forecast within its range."""
        return not math.isnan(self.p_trains) or self.worst in ("trains", "stuck", "diverged")

    @property
    def seeds_differ(self) -> bool:
        """Whether a forecast is undecided because one seed fails and another trains."""
        return self.forecast == "undecided" and opposed(self.p_range)

    @property
    def rank(self) -> float:
        """By which a column is sorted, best first: judged by loss, then forecasts by probability, then what diverged or
        says nothing."""
        if math.isfinite(self.loss):
            return self.loss
        if not math.isnan(self.p_trains):
            return 1e3 * (2 - self.p_trains)
        return 1e4 * (1 + len(OUTCOMES) - badness(self.worst)) if self.worst else math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictRow:
    """One method under one condition; its cells stand in the order of the matrix's depths."""

    method: str
    label: str
    group: str
    condition: Condition
    cells: tuple[VerdictCell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Rows in table order within their group, depths from shallow to deep."""

    depths: tuple[str, ...]
    reference_step: int
    rows: tuple[VerdictRow, ...]
    warmups: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    """Of the runs that have a row."""
    block: str = "classic"
    """Their block, where it is one; where there are several the conditions tell them apart."""
    updates: tuple[int, ...] = ()
    """After how many each ended, or was to end."""
    seeds: int = 0
    """How many there are."""
    tasks: tuple[str, ...] = ()
    """Names of what they were trained on."""
    optimizers: tuple[str, ...] = ()
    """Keys of what stepped them."""
    horizon: int = 0
    """Updates that a forecast is for: within so many past the warm-up a run of its fit had trained, or had not."""

    @property
    def lowest(self) -> frozenset[tuple[str, ...]]:
        """The cells, by their runs, whose loss is clearly the lowest of their depth, where several train: in every seed
        below every seed of the others; of single seeds by more than CLEARLY."""
        least = set()
        for column in zip(*(row.cells for row in self.rows), strict=True):
            train = [cell for cell in column if cell.worst == "trains" and math.isfinite(cell.loss)]
            best, *others = sorted(train, key=lambda cell: cell.loss) or [VerdictCell()]
            highest = max((outcome.validation_loss for outcome in best.ended), default=math.inf)
            beyond = highest + (CLEARLY if len(best.ended) == 1 else 0.0)
            if others and all(outcome.validation_loss > beyond for other in others for outcome in other.ended):
                least.add(best.run_ids)
        return frozenset(least)

    @property
    def unigram(self) -> float | None:
        """The unigram loss of every judged cell, where they have one to three digits."""
        found = {f"{cell.unigram:.3g}" for row in self.rows for cell in row.cells if math.isfinite(cell.unigram)}
        return float(found.pop()) if len(found) == 1 else None

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
    by_run = conditions(specs)
    order = condition_order(specs)
    step = reference_step(runs)
    depths = sorted({(depth_rank(spec), spec.depth) for spec in specs})
    rows = sorted(
        {
            (GROUPS.index(method_group(spec)), method_rank(spec), order[condition], variant(spec), paint(spec))
            for spec, condition in zip(specs, by_run, strict=True)
        }
    )
    labels = {variant(spec): method_label(spec) for spec in specs}
    places = {place: condition for condition, place in order.items()}
    held: dict[tuple[str, int, str], list[Run]] = {}
    lost: dict[tuple[str, int, str], list[str]] = {}
    for run, condition in zip(runs, by_run, strict=False):
        held.setdefault((variant(run.spec), order[condition], run.spec.depth), []).append(run)
    for (spec, reason), condition in zip(failed, by_run[len(runs) :], strict=True):
        lost.setdefault((variant(spec), order[condition], spec.depth), []).append(plain(reason))
    return Matrix(
        depths=tuple(depth for _, depth in depths),
        reference_step=step,
        warmups=tuple(sorted({spec.train.warmup for spec in specs})),
        rates=tuple(sorted({spec.train.lr for spec in specs})),
        updates=tuple(sorted({spec.train.steps for spec in specs})),
        seeds=len({spec.seed for spec in specs}),
        tasks=tuple(sorted({spec.task.name for spec in specs})),
        optimizers=tuple(sorted({spec.train.optimizer for spec in specs})),
        horizon=max((HORIZON["text" if spec.task.source else "synthetic"] for spec in specs), default=0),
        block=named[0] if len(named := sorted({blocks.name_of(spec.model) for spec in specs})) == 1 else "classic",
        rows=tuple(
            VerdictRow(
                method=key,
                label=labels[name],
                group=GROUPS[group],
                condition=places[place],
                cells=tuple(
                    _cell(held.get((name, place, depth), []), lost.get((name, place, depth), []), step, beside)
                    for _, depth in depths
                ),
            )
            for group, _, place, name, key in rows
        ),
    )


def folded(runs: Sequence[Run]) -> tuple[list[Run], dict[str, list[Run]]]:
    """Splits off the runs that are still in warm-up where twins of a shorter warm-up are shown: (runs that have a row,
    {likeness: runs that stand in the cells of their twins})."""
    rows: dict[str, dict[int, list[Run]]] = {}
    for run in runs:
        rows.setdefault(likeness(run.spec, depth=False), {}).setdefault(run.spec.train.warmup, []).append(run)
    aside: dict[str, list[Run]] = {}
    for by_warmup in rows.values():
        for warmup in sorted(by_warmup)[1:]:
            members = by_warmup[warmup]
            if all(run.outcome.word == "early" and run.spec.train.steps < warmup for run in members):
                for run in members:
                    aside.setdefault(likeness(run.spec), []).append(run)
    gone = {run.run_id for members in aside.values() for run in members}
    return [run for run in runs if run.run_id not in gone], aside


def likeness(spec: RunSpec, *, depth: bool = True) -> str:
    """What a run shares with those that differ from it in seed and warm-up alone, and with `depth` off in depth too."""
    model = spec.model if depth else replace(spec.model, encoder_layers=0, decoder_layers=0)
    train = replace(spec.train, warmup=0, steps=0, verdict_at=0, stop_when_decided=False)
    alike = replace(spec, seed=0, train=train, model=model, record_every=10, snapshots=0)
    return canonical(alike.stored())


def _chained(runs: Sequence[Run], step: int) -> tuple[Chained, ...]:
    """A row a warm-up: ‖ΔF‖, and a link that breaks."""
    by: dict[int, list[Run]] = {}
    for run in runs:
        by.setdefault(run.spec.train.warmup, []).append(run)
    return tuple(
        Chained(
            warmup,
            centre(update_at(run, step) for run in group),
            next((run.outcome.risks for run in group if run.outcome.risks), ()),
        )
        for warmup, group in sorted(by.items())
    )


def opposed(p_range: tuple[float, float]) -> bool:
    """Whether the least likely seed fails, at least probably, and the likeliest trains."""
    return p_range[0] <= 1 - PROBABLY and PROBABLY <= p_range[1]


def _forecast(runs: Sequence[Run]) -> tuple[Forecasted | None, tuple[float, float], tuple[str, ...]]:
    """(word, least and greatest probability, axes out of range) of a cell's early runs; nothing where one has no
    forecast. The word is that of the least likely seed; where seeds are opposed, or one has none, undecided."""
    forecasts = [run.forecast for run in runs if run.outcome.word == "early"]
    if not forecasts or len(forecasts) < len(runs) or any(one is None for one in forecasts):
        return None, NONE, ()
    axes = tuple(dict.fromkeys(axis for one in forecasts if one for axis in one.axes))
    probabilities = [one.p_trains for one in forecasts if one and one.p_trains is not None]
    if len(probabilities) < len(forecasts):
        return "undecided", NONE, axes
    p_range = min(probabilities), max(probabilities)
    return "undecided" if opposed(p_range) else word(p_range[0]), p_range, axes


def _cell(runs: list[Run], reasons: list[str], step: int, beside: Mapping[str, list[Run]]) -> VerdictCell:
    runs = sorted(runs, key=lambda run: (run.spec.seed, run.run_id))
    counts: Counter[Word] = Counter(run.outcome.word for run in runs)
    if reasons:
        counts["failed"] += len(reasons)
    forecast_word, p_range, axes = _forecast(runs) if not reasons else (None, NONE, ())
    alike = list(dict.fromkeys(likeness(run.spec) for run in runs))
    model = runs[0].spec.model if runs else None
    update = centre(update_at(run, step) for run in runs)
    judged = bool(runs) and all(run.outcome.word in ("trains", "stuck") for run in runs)
    losses = [run.outcome.validation_loss for run in runs]
    return VerdictCell(
        forecast=forecast_word,
        p_trains=p_range[0],
        p_range=p_range,
        axes=axes,
        unseen=any(run.forecast.unseen for run in runs if run.outcome.word == "early" and run.forecast),
        layers=(model.encoder_layers, model.decoder_layers) if model else (0, 0),
        chained=_chained([run for key in alike for run in beside.get(key, ())], step),
        outcomes=tuple(sorted(counts.items(), key=lambda item: (badness(item[0]), item[0]))),
        update=update,
        saturated=model is not None and update > SATURATED * math.sqrt(2 * model.hidden),
        loss=centre(losses) if judged else math.nan,
        unigram=centre(run.outcome.unigram_loss for run in runs),
        ended=tuple(run.outcome for run in runs),
        run_ids=tuple(run.run_id for run in runs),
        reasons=tuple(reasons),
    )


def badness(word: Word) -> int:
    """The place of a word in OUTCOMES; of one that is not there, behind them."""
    return OUTCOMES.index(word) if word in OUTCOMES else len(OUTCOMES)
