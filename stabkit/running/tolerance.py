"""The search for the rate that each cell tolerates: rounds of sixteen updates, all cells and seeds side by side.

Every round is an ordinary request: what the store holds is not trained again, and a search that was interrupted goes on
where it stopped, for what comes next follows from what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from stabkit.results.forecast.measured import UPDATES
from stabkit.results.forecast.model import ours, unscored
from stabkit.results.tolerance import COARSE, OfSeed, Tolerance, Tried, next_rates, of_seed
from stabkit.running import execute
from stabkit.running.request import Request
from stabkit.spec import RunSpec
from stabkit.storage.store import Run, Store

JUDGED = 250
"""Updates after which most runs can be judged."""
BEYOND = 5
"""Runs that a seed takes beyond the coarse grid, about."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found, and the runs it took."""

    found: tuple[Tolerance, ...]
    runs: tuple[Run, ...]
    failed: tuple[tuple[RunSpec, str], ...]


def search(
    request: Request,
    label: Callable[[RunSpec], str],
    store: Store,
    listener: execute.Listener,
    *,
    retry_failed: bool = False,
) -> Searched:
    """The rates of every cell of the request's grids; their own rates are not used. A run that is lost ends the search
    of its cell and seed."""
    cells = cells_of(request)
    tried: list[dict[float, float | None]] = [{} for _ in cells]
    runs: dict[str, Run] = {}
    failed: dict[str, tuple[RunSpec, str]] = {}
    lost: set[int] = set()
    first = min(cell.seed for cell in cells)
    while wanted := list(_wanted(cells, tried, lost, first)):
        specs = [_at(cells[i], rate) for i, rate in wanted]
        done = execute.run(request.of(specs), store, listener, retry_failed=retry_failed)
        runs |= {run.run_id: run for run in done.runs}
        failed |= {spec.run_id: (spec, reason) for spec, reason in done.failed}
        for (i, rate), spec in zip(wanted, specs, strict=True):
            if spec.run_id in runs:
                tried[i][rate] = probability(runs[spec.run_id])
            else:
                lost.add(i)
    tolerances = tuple(_tolerances(cells, tried, label))
    return Searched(tolerances, tuple(runs.values()), tuple(failed.values()))


def updates(spec: RunSpec) -> int:
    """After how many a rate is judged: UPDATES by their forecast; where that was never scored under this optimiser
    JUDGED, by the outcome."""
    return JUDGED if unscored(spec, ours()) else UPDATES


def probability(run: Run) -> float | None:
    """That it trains; 0 of a run that has diverged by update 16, None of one out of the forecast's range. Of a run that
    went on, 1 or 0 by its outcome, None where it is early."""
    if run.spec.train.steps > UPDATES:
        return {"trains": 1.0, "stuck": 0.0, "diverged": 0.0}.get(run.outcome.word)
    return run.forecast.p_trains if run.forecast else 0.0


def cells_of(request: Request) -> list[RunSpec]:
    """One spec a method, depth, width and seed, at any rate."""
    return list({spec.run_id: spec for spec in (_at(spec, COARSE[0]) for spec in request.specs)}.values())


def first_round(request: Request) -> list[RunSpec]:
    """The coarse grid on the first seed."""
    cells = cells_of(request)
    first = min(cell.seed for cell in cells)
    return [_at(cell, rate) for cell in cells if cell.seed == first for rate in COARSE]


def _at(cell: RunSpec, rate: float) -> RunSpec:
    return replace(cell, train=replace(cell.train, lr=rate, steps=updates(cell), warmup=0))


def _place(cell: RunSpec) -> str:
    return replace(cell, seed=0).run_id


def _wanted(cells: Sequence[RunSpec], tried: Sequence[Tried], lost: set[int], first: int) -> list[tuple[int, float]]:
    """(cell, rate) of the next round. A cell's first seed begins with the coarse grid, the others where it ended."""
    guesses: dict[str, float] = {}
    for i, cell in enumerate(cells):
        if cell.seed == first and tried[i] and not next_rates(tried[i], None):
            seed = of_seed(cell.seed, tried[i])
            guesses[_place(cell)] = seed.passes or COARSE[0]
    wanted = []
    for i, cell in enumerate(cells):
        guess = guesses.get(_place(cell))
        if i in lost or (cell.seed != first and guess is None):
            continue
        wanted += [(i, rate) for rate in next_rates(tried[i], None if cell.seed == first else guess)]
    return wanted


def _tolerances(cells: Sequence[RunSpec], tried: Sequence[Tried], label: Callable[[RunSpec], str]) -> list[Tolerance]:
    pairs = sorted(zip(cells, tried, strict=True), key=lambda pair: (_order(cells, pair[0]), pair[0].seed))
    tolerances = []
    for _, group in groupby(pairs, key=lambda pair: _order(cells, pair[0])):
        of = [(cell, rates) for cell, rates in group if rates]
        seeds: tuple[OfSeed, ...] = tuple(of_seed(cell.seed, rates) for cell, rates in of)
        if seeds:
            spec = of[0][0]
            tolerances.append(
                Tolerance(
                    method=spec.method,
                    label=label(spec),
                    encoder_layers=spec.model.encoder_layers,
                    decoder_layers=spec.model.decoder_layers,
                    hidden=spec.model.hidden,
                    seeds=seeds,
                )
            )
    return tolerances


def _order(cells: Sequence[RunSpec], cell: RunSpec) -> int:
    """Where its place stands first among the cells."""
    where = _place(cell)
    return next(i for i, other in enumerate(cells) if _place(other) == where)
