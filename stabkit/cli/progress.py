"""How far the work is, on stderr: bars under a table on a terminal, a line a finished run elsewhere, only warnings when
quiet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from stabkit.cli import console
from stabkit.cli.eta import Eta
from stabkit.errors import StabkitError
from stabkit.paper.item import Item
from stabkit.report.json_document import seconds_a_step
from stabkit.results.conditions import conditions, depth_rank, method_label
from stabkit.results.matrix import matrix
from stabkit.results.outcome import displayed
from stabkit.results.records import lacking
from stabkit.results.run import Run
from stabkit.running import cost
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import Plan
from stabkit.running.probes import ProbedCell, ProbeSpec
from stabkit.running.trials import TrialSpec, TriedModel
from stabkit.spec import SHORTEST_JUDGED, RunSpec
from stabkit.storage.jobs import Event
from stabkit.wording import legend
from stabkit.words import duration, listed


class Screen:
    """What a command shows while it carries out a request: a `running.following.CallListener`, and `paper.run`'s."""

    def __init__(
        self, *, quiet: bool, command: str = "", meanwhile: Callable[[], None] = lambda: None, rounds: bool = False
    ) -> None:
        """`command` is how it was typed. `meanwhile` is called once, when the first worker is at work: until then every
        core is busy starting them. `rounds`: each plan is a round of a search, and what else is in the store is no
        news."""
        self.quiet, self.command, self._meanwhile = quiet, command, meanwhile
        self._round = 0 if rounds else None

    def noted(self, note: str) -> None:
        """A warning: what was left out, and why."""
        console.warn(note)

    def making(self, what: str) -> None:
        """One line: what takes seconds before the first run."""
        if not self.quiet:
            console.note(what)

    def begins(self, item: Item) -> None:
        """The name of the paper's item that is next."""
        self.making(f"{item.key}: {item.title}")

    def stopped(self, item: Item, why: StabkitError) -> None:
        """A warning: the item ends here, the others go on."""
        console.warn(f"{item.key} stops here: {why}")

    def planned(self, plan: Plan[Any, Any]) -> None:
        """One line: what is there, what is to be made; before it one for every corrupt folder."""
        for warning in plan.corrupt:
            console.warn(warning)
        match plan.work.kind:
            case "run":
                if self._round is not None:
                    self._round += 1
                    plan = replace(plan, other=0)
                self.making(f"round {self._round}: {reuse(plan)}" if self._round else reuse(plan))
                if said := lacking(run.lacks for run in plan.ready.values()):
                    self.making(said)
            case "surface":
                self.making(f"surfaces: {len(plan.ready)} cached, {len(plan.missing)} to draw")

    @contextmanager
    def training(
        self, plan: Plan[RunSpec, Run], workers: int
    ) -> Iterator[tuple[Tell, Callable[[RunSpec, Run | Lost], None]]]:
        """The table of what has ended above bars, or lines; a run's line says how it ended."""
        board = Board(() if self.quiet else plan.specs)
        above = board if self._round is None else None
        for run in plan.ready.values() if above and not self.quiet else ():
            board.ended(run.spec, run)
        if plan.missing:
            self.making(cost.announced(plan.missing, workers))
        eta = Eta(len(plan.missing), {spec.run_id: cost.seconds(spec) for spec, _ in plan.jobs}, workers)
        with Bars(eta, self.quiet, above, board.names) as bars:

            def event(event: Event) -> None:
                self._begun()
                bars.event(event)

            def ended(spec: RunSpec, ending: Run | Lost) -> None:
                self._begun()
                if not self.quiet:
                    board.ended(spec, ending)
                line = f"failed: {ending.text}" if isinstance(ending, Lost) else _ended(spec, ending)
                bars.ended(spec.run_id, line)

            yield event, ended

    def _begun(self) -> None:
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()

    @contextmanager
    def measuring(self, plan: Plan[Any, Any]) -> Iterator[tuple[Tell, Callable[[str], None]]]:
        """Bars on a terminal; elsewhere nothing, for the jobs are many and short."""
        with Bars(Eta(len(plan.jobs)), self.quiet, lines=False) as bars:
            yield bars.event, lambda job_id: bars.ended(job_id, "")

    @contextmanager
    def trying(self, count: int) -> Iterator[tuple[Tell, Callable[[TrialSpec, TriedModel | Lost], None]]]:
        """Bars, or a line a rate tried on a user's own model."""
        with Bars(Eta(count), self.quiet) as bars:
            yield bars.event, lambda spec, ending: bars.ended(spec.name, _tried(ending))

    @contextmanager
    def probing(self, count: int) -> Iterator[tuple[Tell, Callable[[ProbeSpec, ProbedCell | Lost], None]]]:
        """Bars, or a line a cell of a user's own model; a reason that came before is not said again."""
        reasons: set[str] = set()
        with Bars(Eta(count), self.quiet) as bars:
            yield bars.event, lambda spec, ending: bars.ended(spec.name, _probed(spec, ending, reasons))


class Bars(Progress):
    """A bar a job and one of all, under what is shown `above` them; without a terminal a line a job that ended and, of
    long ones, one a minute; when quiet only what workers warn of.

    The bar of all advances by what each job has done of the work, so that its ETA holds although jobs differ a
    hundredfold. `names`: what a job is called there, by its id.

    Drawn from here alone: what is printed while a thread of rich's own draws leaves lines behind where the table has
    grown or a bar has gone.
    """

    DRAWN, EVERY = 0.1, 60.0
    """Seconds between two drawings; between two lines about one job."""

    def __init__(
        self,
        eta: Eta,
        quiet: bool,
        above: RenderableType | None = None,
        names: Mapping[str, str] = {},
        lines: bool = True,
    ) -> None:
        self.eta, self.done, self.quiet, self.above, self.names = eta, 0, quiet, above, names
        self.drawn, self.bars = -math.inf, dict[str, TaskID]()
        self.lined = dict[str, float]()
        texts = "{task.description}", "{task.fields[note]}", "{task.fields[left]}"
        name, note, left = (TextColumn(text) for text in texts)
        screen = console.err()
        live = not quiet and screen.file.isatty()
        self.lines = lines and not quiet and not live
        columns = name, BarColumn(bar_width=12), note, left
        super().__init__(*columns, console=screen, transient=True, auto_refresh=False, disable=not live)
        self.whole = self.add_task("all runs", total=1.0, note=f"0/{eta.count}", left="")

    def get_renderables(self) -> Iterator[RenderableType]:
        """What is above, and the bars; all runs together take no less than the longest of them."""
        left = {task: self.eta.left_of(job) for job, task in self.bars.items()}
        for own in self.tasks:
            seconds = left[own.id] if own.id in left else self.eta.left()
            own.fields["left"] = f"{duration(seconds)} left" if seconds else ""
        if self.above is not None:
            yield self.above
        yield from super().get_renderables()

    def event(self, event: Event) -> None:
        """How far a worker is, or what else it has to say."""
        if "decision" in event:
            from stabkit.wording import links

            event = {**event, "note": f"{event['id']}  {links.before_training(event['decision'])}"}
        if "warning" in event:
            console.warn(event["warning"])
        elif "note" in event:
            if self.lines or not self.disable:
                console.note(event["note"])
        else:
            self.eta.reached(event["id"], event["step"] / max(event["steps"], 1), now := time.monotonic())
            if self.lines:
                self._line(event, now)
            elif not self.disable:
                self._bar(event, now)

    def _line(self, event: Event, now: float) -> None:
        job, step, left = event["id"], event["step"], self.eta.left_of(event["id"])
        if now - self.lined.setdefault(job, now) >= self.EVERY and left:
            self.lined[job] = now
            pace = f"{1000 * left / (event['steps'] - step):.0f} ms a step, {duration(left)} left"
            console.note(f"{self.names.get(job, job)}  step {step} of {event['steps']}, loss {_loss(event)}, {pace}")

    def _bar(self, event: Event, now: float) -> None:
        job, note = event["id"], f"step {event['step']}, loss {_loss(event)}"
        if job not in self.bars:
            self.bars[job] = self.add_task(escape(self.names.get(job, job)), total=event["steps"], note="", left="")
        self.update(self.bars[job], completed=event["step"], total=event["steps"], note=note)
        if now - self.drawn > self.DRAWN:
            self.drawn = now
            self.update(self.whole, completed=self.eta.done())
            self.refresh()

    def ended(self, job: str, line: str) -> None:
        """A job has ended; `line` says how."""
        self.done += 1
        self.eta.reached(job, 1.0, time.monotonic())
        name = self.names.get(job, job)
        if self.lines:
            console.note(f"[{self.done}/{self.eta.count}] {name}  {line}")
        elif not self.disable:
            if job in self.bars:
                self.remove_task(self.bars.pop(job))
            self.update(self.whole, completed=self.eta.done(), note=f"{self.done}/{self.eta.count}")
            self.refresh()
            self.console.print(f"{escape(name)}  {escape(console.plain(line))}", highlight=False, soft_wrap=True)


class Board:
    """The table of a sweep as its runs end: a row a method and condition, a column a depth; a cell says what its runs
    say that have ended."""

    BELOW = 8
    """Lines of the terminal that the bars take."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        self.rows = {
            spec.run_id: (method_label(spec), condition.text)
            for spec, condition in zip(specs, conditions(specs), strict=True)
        }
        self.names = {
            spec.run_id: listed(f"{label} {spec.depth} seed {spec.seed}", condition)
            for spec, (label, condition) in zip(specs, self.rows.values(), strict=True)
        }
        """{run id: `DeepNorm 100L-100L seed 2, no warm-up`}: each run by what sets it apart from the others."""
        self.depths = [depth for _, depth in sorted({(depth_rank(spec), spec.depth) for spec in specs})]
        self.runs: dict[tuple[tuple[str, str], str], list[Run]] = {}
        self.texts: dict[tuple[tuple[str, str], str], str] = {}

    def ended(self, spec: RunSpec, ending: Run | Lost) -> None:
        """One more run has ended."""
        place = self.rows[spec.run_id], spec.depth
        if isinstance(ending, Lost):
            self.texts[place] = "failed"
            return
        runs = self.runs.setdefault(place, [])
        runs.append(ending)
        ((cell,),) = (row.cells for row in matrix(runs).rows)
        self.texts[place] = (
            MEASURED if all(map(_open, runs)) else f"{legend.word_of(cell)} {legend.probability(cell)}".rstrip()
        )

    def __rich_console__(self, screen: Any, options: Any) -> Iterator[RenderableType]:
        """Nothing where the terminal is too low for it."""
        rows = list(dict.fromkeys(self.rows.values()))
        if not self.texts or len(rows) + self.BELOW > options.size.height:
            return
        named = 2 if any(condition for _, condition in rows) else 1
        table = [(*row[:named], *(self.texts.get((row, depth), "…") for depth in self.depths)) for row in rows]
        yield console.grid((*("", "condition")[:named], *self.depths), table, options.max_width)


def reuse(plan: Plan[RunSpec, Run]) -> str:
    """`reused 12, new 6, 3 in the directory are not part of this grid`."""
    parts = [f"reused {len(plan.ready)}", f"new {len(plan.missing)}"]
    if plan.other:
        parts.append(f"{plan.other} other runs in the directory are not part of this grid")
    return ", ".join(parts) + ("; nothing to train" if not plan.missing else "")


def _loss(event: Event) -> str:
    loss = event["loss"]
    return loss if isinstance(loss, str) else f"{loss:.3f}"


MEASURED = "measured"
"""Of a run that is too short for a verdict and has no forecast: its measurements are what was asked for."""


def _open(run: Run) -> bool:
    return run.outcome.word == "early" and (run.forecast is None or run.forecast.p_trains is None)


def _ended(spec: RunSpec, run: Run) -> str:
    """`trains (ended at step 90 of 250)  41 s, 164 ms a step`, `forecast: probably trains 0.87  4 s`: what became of a
    run, or its forecast, and how long it took; an update's time where its start weighs less."""
    steps, forecast = run.outcome.steps, run.forecast
    said: str = MEASURED if _open(run) else displayed(run.outcome.word)
    if run.outcome.word == "early" and forecast is not None and forecast.p_trains is not None:
        said = f"forecast: {forecast.word} {legend.sure(forecast.p_trains)}"
    said += f" (ended at step {steps} of {spec.train.steps})" * (steps < spec.train.steps)
    took, each = duration(float(run.environment.get("wall_seconds", 0.0))), seconds_a_step(run)
    long = math.isfinite(each) and steps >= SHORTEST_JUDGED
    return f"{said}  {took}" + (f", {1000 * each:.0f} ms a step" if long else "")


def _tried(ending: TriedModel | Lost) -> str:
    """What became of a rate."""
    if isinstance(ending, Lost):
        return f"no result: {ending.reason}"
    trial = ending.trial
    return f"{trial.loss:.4g}, {ending.seconds:.0f} s" if trial.trial.trains else "does not train"


def _probed(spec: ProbeSpec, ending: ProbedCell | Lost, reasons: set[str]) -> str:
    """What became of a cell of a user's own model; `reasons` are those that came before."""
    from stabkit.wording import links

    if isinstance(ending, ProbedCell):
        return f"{'reused' if ending.reused else 'probed'}  {links.cell(ending.cell)}"
    if spec.change:
        return ending.reason
    again = ending.reason in reasons
    reasons.add(ending.reason)
    return "no result, for the same reason" if again else f"no result: {ending.reason}"
