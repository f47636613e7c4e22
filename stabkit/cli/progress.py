"""How far the work is, on stderr: live bars on a terminal, a line a finished run elsewhere, nothing when quiet."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from rich.markup import escape

from stabkit.cli import console
from stabkit.cli.console import err, note, plain, warn
from stabkit.errors import StabkitError
from stabkit.paper.item import Item
from stabkit.report.json_document import seconds_a_step
from stabkit.results.records import lacking
from stabkit.results.run import Run
from stabkit.running import cost
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import Plan
from stabkit.running.probes import ProbedCell, ProbeSpec
from stabkit.running.trials import TrialSpec, TriedModel
from stabkit.spec import SHORTEST_JUDGED, RunSpec
from stabkit.storage.jobs import Event
from stabkit.words import listed


class Screen:
    """What a command shows while it carries out a request: a `report.result.CallListener`, and `paper.run`'s."""

    def __init__(
        self,
        *,
        quiet: bool,
        command: str = "",
        meanwhile: Callable[[], None] = lambda: None,
        rounds: bool = False,
    ) -> None:
        """`command` is how it was typed. `meanwhile` is called once, when the first worker is at work: until then every
        core is busy starting them. `rounds`: each plan is a round of a search, and what else is in the store is no
        news."""
        self.quiet, self.command, self._meanwhile = quiet, command, meanwhile
        self._round = 0 if rounds else None

    def noted(self, note: str) -> None:
        """A warning: what was left out, and why."""
        console.warn(note)

    def planned(self, plan: Plan[Any, Any]) -> None:
        """One line: what is there, what is to be made; before it one for every corrupt folder."""
        for warning in plan.corrupt:
            console.warn(warning)
        if self.quiet:
            return
        match plan.work.kind:
            case "run":
                if self._round is not None:
                    self._round += 1
                    plan = dataclasses.replace(plan, other=0)
                console.note(f"round {self._round}: {reuse(plan)}" if self._round else reuse(plan))
                if said := lacking(run.lacks for run in plan.ready.values()):
                    console.note(said)
            case "translation":
                console.note(f"translations: {len(plan.ready)} cached, {len(plan.jobs)} to make")
            case "surface":
                console.note(f"surfaces: {len(plan.ready)} cached, {len(plan.missing)} to draw")

    @contextmanager
    def training(
        self, plan: Plan[RunSpec, Run], workers: int
    ) -> Iterator[tuple[Tell, Callable[[RunSpec, Run | Lost], None]]]:
        """The table of what has ended above bars, or lines; a run's line says how it ended."""
        from stabkit.cli import board

        seconds = sum(map(cost.seconds, plan.missing)) / workers
        names = {} if self.quiet else board.names(plan.specs)
        shown = None if self.quiet or self._round is not None else board.Board(plan.specs, plan.ready.values())
        with progress(len(plan.missing), seconds, self.quiet, names, shown) as bars:

            def event(event: Event) -> None:
                self._begun()
                bars.event(event)

            def ended(spec: RunSpec, ending: Run | Lost) -> None:
                self._begun()
                if shown is not None:
                    shown.ended(spec, ending)
                bars.finished(*finished(spec, ending, workers))

            yield event, ended

    def _begun(self) -> None:
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()

    def making(self, what: str) -> None:
        """One line: what takes seconds before the first run."""
        if not self.quiet:
            console.note(what)

    @contextmanager
    def measuring(self, plan: Plan[Any, Any]) -> Iterator[tuple[Tell, Callable[[str], None]]]:
        """Bars on a terminal; elsewhere nothing, for the jobs are many and short."""
        word = "translated" if plan.work.kind == "translation" else ""
        quiet = self.quiet or not sys.stderr.isatty()
        with progress(len(plan.jobs), float(len(plan.jobs)), quiet) as bars:
            yield bars.event, lambda job_id: bars.finished(job_id, word, 1.0)

    @contextmanager
    def trying(self, count: int) -> Iterator[tuple[Tell, Callable[[TrialSpec, TriedModel | Lost], None]]]:
        """Bars, or a line a rate tried on a user's own model."""
        with progress(count, float(count), self.quiet) as bars:

            def ended(spec: TrialSpec, ending: TriedModel | Lost) -> None:
                if isinstance(ending, Lost):
                    line = f"no result: {ending.reason}"
                else:
                    trial = ending.trial
                    line = f"{trial.loss:.4g}, {trial.seconds:.0f} s" if trial.trial.trains else "does not train"
                bars.finished(spec.name, line, 1.0)

            yield bars.event, ended

    @contextmanager
    def probing(self, count: int) -> Iterator[tuple[Tell, Callable[[ProbeSpec, ProbedCell | Lost], None]]]:
        """Bars, or a line a cell of a user's own model; a reason that came before is not said again."""
        from stabkit.wording import links

        reasons: set[str] = set()
        with progress(count, float(count), self.quiet) as bars:

            def ended(spec: ProbeSpec, ending: ProbedCell | Lost) -> None:
                if isinstance(ending, ProbedCell):
                    line = f"{'reused' if ending.reused else 'probed'}  {links.cell(ending.cell)}"
                elif spec.change:
                    line = ending.reason
                else:
                    line = (
                        "no result, for the same reason" if ending.reason in reasons else f"no result: {ending.reason}"
                    )
                    reasons.add(ending.reason)
                bars.finished(spec.name, line, 1.0)

            yield bars.event, ended

    def begins(self, item: Item) -> None:
        """The name of the paper's item that is next."""
        if not self.quiet:
            console.note(f"{item.key}: {item.title}")

    def stopped(self, item: Item, why: StabkitError) -> None:
        """A warning: the item ends here, the others go on."""
        console.warn(f"{item.key} stops here: {why}")


class Progress(Protocol):
    """What a running sweep shows."""

    def event(self, event: Event) -> None: ...
    def finished(self, run_id: str, line: str, seconds: float) -> None: ...


@contextmanager
def progress(
    runs: int, seconds: float, quiet: bool, names: Mapping[str, str] = {}, above: Any = None
) -> Iterator[Progress]:
    """Live bars on a terminal, under what is shown `above` them; one line a finished run elsewhere, nothing when quiet.
    `names`: what a run is called there, by its id.

    `seconds` is the estimated work of all runs: the whole bar advances by each run's share of it, so that its ETA holds
    although runs differ a hundredfold.
    """
    if quiet:
        yield _Quiet()
    elif sys.stderr is None or not sys.stderr.isatty():
        yield _Lines(runs, names)
    else:
        with _bars(runs, seconds, names, above) as bars:
            yield bars


def _aside(event: Event) -> bool:
    """Say what a worker has to say besides its progress; whether it had."""
    if "warning" in event:
        warn(event["warning"])
    elif "note" in event:
        note(event["note"])
    return "warning" in event or "note" in event


def _loss(event: Event) -> str:
    loss = event["loss"]
    return loss if isinstance(loss, str) else f"{loss:.3f}"


class _Quiet:
    def event(self, event: Event) -> None:
        if "warning" in event:
            warn(event["warning"])

    def finished(self, run_id: str, line: str, seconds: float) -> None:
        pass


class _Pace:
    """How fast each run goes: from its first event that was seen here to its last."""

    def __init__(self) -> None:
        self.first: dict[str, tuple[float, int]] = {}

    def of(self, event: Event, now: float) -> float:
        """Seconds a step of this event's run; NaN at its first event."""
        at, step = self.first.setdefault(event["id"], (now, event["step"]))
        return (now - at) / (event["step"] - step) if event["step"] > step else math.nan


class _Lines:
    EVERY = 60.0
    """Seconds between two lines about one run that is still training."""

    def __init__(self, runs: int, names: Mapping[str, str] = {}) -> None:
        self.runs, self.done, self.names = runs, 0, names
        self.pace = _Pace()
        self.told: dict[str, float] = {}

    def event(self, event: Event) -> None:
        if _aside(event):
            return
        now = time.monotonic()
        seconds = self.pace.of(event, now)
        if now - self.told.setdefault(event["id"], now) >= self.EVERY and seconds == seconds:
            self.told[event["id"]] = now
            left = seconds * (event["steps"] - event["step"])
            note(
                f"{self.names.get(event['id'], event['id'])}  step {event['step']} of {event['steps']}, loss "
                f"{_loss(event)}, "
                f"{1000 * seconds:.0f} ms a step, {cost.duration(left)} left"
            )

    def finished(self, run_id: str, line: str, seconds: float) -> None:
        self.done += 1
        note(f"[{self.done}/{self.runs}] {self.names.get(run_id, run_id)}  {line}")


class _Bars:
    EVERY = 0.1
    """Seconds between two drawings. They are drawn from here alone: what is printed while a thread of rich's own draws
    leaves lines behind where the table has grown or a bar has gone."""

    def __init__(self, bars: Any, runs: int, seconds: float, names: Mapping[str, str]) -> None:
        self.bars, self.runs, self.done, self.total, self.names = bars, runs, 0, seconds, names
        self.passed, self.drawn = 0.0, -math.inf
        self.whole = bars.add_task("all runs", total=max(seconds, 1e-9), note=f"0/{runs}")
        self.tasks: dict[str, Any] = {}

    def event(self, event: Event) -> None:
        if _aside(event):
            return
        run_id = event["id"]
        if run_id not in self.tasks:
            self.tasks[run_id] = self.bars.add_task(
                escape(self.names.get(run_id, run_id)), total=event["steps"], note=""
            )
        line = f"step {event['step']}, loss {_loss(event)}"
        self.bars.update(self.tasks[run_id], completed=event["step"], note=line)
        if (now := time.monotonic()) - self.drawn > self.EVERY:
            self.drawn = now
            self.bars.refresh()

    def finished(self, run_id: str, line: str, seconds: float) -> None:
        self.done += 1
        self.passed += seconds
        if run_id in self.tasks:
            self.bars.remove_task(self.tasks.pop(run_id))
        self.bars.update(self.whole, completed=self.passed, note=f"{self.done}/{self.runs}")
        name = self.names.get(run_id, run_id)
        self.bars.refresh()
        self.bars.console.print(f"{escape(name)}  {escape(plain(line))}", highlight=False, soft_wrap=True)


@contextmanager
def _bars(runs: int, seconds: float, names: Mapping[str, str], above: Any) -> Iterator[_Bars]:
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )

    class _WithTable(RichProgress):
        """The bars, and what stands above them."""

        def get_renderables(self) -> Iterator[Any]:
            if above is not None:
                yield above
            yield from super().get_renderables()

    with _WithTable(*columns, console=err(), transient=True, auto_refresh=False) as bars:
        yield _Bars(bars, runs, seconds, names)


def reuse(plan: Plan[RunSpec, Run]) -> str:
    """`reused 12, new 6, 3 in the directory are not part of this grid`."""
    parts = [f"reused {len(plan.ready)}", f"new {len(plan.missing)}"]
    if plan.other:
        parts.append(f"{plan.other} other runs in the directory are not part of this grid")
    return ", ".join(parts) + ("; nothing to train" if not plan.missing else "")


def finished(spec: RunSpec, ending: Run | Lost, workers: int) -> tuple[str, str, float]:
    """(run id, what became of it and how long an update took, its share of the whole in seconds) for the progress."""
    from stabkit.cli.board import forecast

    if isinstance(ending, Run):
        stopped = ending.outcome.steps
        early = f" (ended at step {stopped} of {spec.train.steps})" if stopped < spec.train.steps else ""
        words = f"{listed(f'{ending.outcome.word}{early}', forecast(ending))}  {_milliseconds(ending)}"
    else:
        words = f"failed: {ending.text}"
    return spec.run_id, words, cost.seconds(spec) / workers


def _milliseconds(run: Run) -> str:
    """`41 s, 164 ms a step`; of a run whose start weighs more than its steps the first alone."""
    seconds, each = float(run.environment.get("wall_seconds", 0.0)), seconds_a_step(run)
    long = math.isfinite(each) and run.outcome.steps >= SHORTEST_JUDGED
    return cost.duration(seconds) + (f", {1000 * each:.0f} ms a step" if long else "")
