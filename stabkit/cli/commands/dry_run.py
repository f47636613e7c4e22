"""`--dry-run`: what would run and what it would cost; nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from stabkit import methods as table
from stabkit.cli import console
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.report.json_document import SCHEMA, Document, text
from stabkit.results.run import Run
from stabkit.running import cost, pace, runs
from stabkit.running.plan import Plan
from stabkit.running.request import Budget, price
from stabkit.spec import RunSpec


class CostJson(TypedDict):
    """What runs would cost: an estimate and its bounds."""

    seconds: float
    seconds_low: float
    seconds_high: float
    workers: int
    memory_bytes: float
    disk_bytes: float


class PlanJson(CostJson):
    """What the runs that are not stored would cost."""

    pace: float
    """How much longer than estimated those of the runs took that the store has."""
    surfaces_seconds: float
    """What surfaces that are not drawn yet take beside, at most."""


class PlannedRunJson(TypedDict):
    """A run of a plan."""

    run_id: str
    spec: RunSpec
    stored: bool
    parameters: int
    seconds: float
    """On one core."""


class GridJson(CostJson):
    """What a grid too large to list would cost."""

    runs: int


class PlanDocument(Document):
    """A grid, run by run."""

    plan: PlanJson
    runs: list[PlannedRunJson]


class GridDocument(Document):
    """A grid too large to list."""

    plan: GridJson


DryRunDocument = PlanDocument | GridDocument
"""`--dry-run` of what trains a grid."""


def clocked(screen: Screen) -> None:
    """Time the machine, the first time that it is asked what it takes."""
    if pace.known() is None:
        screen.making("timing this machine, once: some seconds")
        with Signals(screen.command):
            runs.clock()


def plan(
    specs: Sequence[RunSpec],
    planned: Plan[RunSpec, Run],
    workers: int,
    pace: float,
    texts: Mapping[str, str],
    drawn: float = 0.0,
    *,
    json: bool,
) -> None:
    """`--dry-run`: what would run and what it would cost, told as a range; `pace`: how much longer than estimated
    those took that the store has; `texts`: the files that were named; `drawn`: seconds that surfaces take beside."""
    missing = {spec.run_id for spec in planned.missing}
    need = replace(price([(1, spec) for spec in planned.missing], workers), workers=workers)
    seconds = cost.together(planned.missing, workers, pace)
    if json:
        runs: list[PlannedRunJson] = [
            {
                "run_id": spec.run_id,
                "spec": spec,
                "stored": spec.run_id not in missing,
                "parameters": table.parameters(spec, texts),
                "seconds": round(pace * cost.seconds(spec), 1),
            }
            for spec in specs
        ]
        whole: PlanJson = {**_cost(need, seconds), "pace": round(pace, 3), "surfaces_seconds": round(drawn, 1)}
        body: PlanDocument = {"schema": SCHEMA, "plan": whole, "runs": runs}
        console.document(text(body))
        return
    for warning in planned.corrupt:
        console.warn(warning)
    shown = list(specs[:200])
    scaled = any(spec.alpha_scale != 1 or spec.beta_scale != 1 for spec in specs)
    rows = [
        (
            table.label_of(spec),
            spec.depth,
            spec.seed,
            spec.train.warmup,
            f"{spec.train.lr:g}",
            *((f"{spec.alpha_scale:g}", f"{spec.beta_scale:g}") if scaled else ()),
            f"{table.parameters(spec, texts):,}",
            "in the store" if spec.run_id not in missing else cost.span(pace * cost.seconds(spec)),
        )
        for spec in shown
    ]
    scales = ("α ×", "β ×") if scaled else ()
    head = ("method", "depth", "seed", "warm-up", "lr", *scales, "parameters", "one core")
    console.table("The grid", head, rows)
    if len(specs) > len(shown):
        console.say(f"… and {len(specs) - len(shown)} more")
    console.say(f"{len(specs)} runs, {len(missing)} to train: {_line(need, seconds)}")
    if drawn:
        every = cost.span(seconds + drawn)
        console.say(f"their surfaces, unless they are drawn already: {cost.span(drawn)} more, {every} in all")


def budget(need: Budget, *, json: bool) -> None:
    """`--dry-run` of a grid too large to list."""
    if json:
        body: GridDocument = {"schema": SCHEMA, "plan": {"runs": need.runs, **_cost(need, need.seconds)}}
        console.document(text(body))
    else:
        console.say(f"{need.runs} runs: {_line(need, need.seconds)}")


def _cost(need: Budget, seconds: float) -> CostJson:
    low, high = cost.bounds(seconds)
    return {
        "workers": need.workers,
        "seconds": round(seconds, 1),
        "seconds_low": round(low, 1),
        "seconds_high": round(high, 1),
        "memory_bytes": need.memory,
        "disk_bytes": need.disk,
    }


def _line(need: Budget, seconds: float) -> str:
    where = f"{cost.span(seconds)} on {need.workers} worker{'s' * (need.workers > 1)}"
    disk = f"{need.disk / 1e9:.1f} GB" if need.disk >= 1e9 else f"{need.disk / 1e6:.0f} MB"
    return f"{where}, {need.memory / 1e9:.1f} GB of memory, {disk} of disk"
