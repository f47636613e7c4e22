"""The Python API: the commands as functions, each with its signature from `options/commands.py` and its help here.

The command line calls what they wrap, with a listener that shows the progress. All stand in one file, so that what two
of them say is seen side by side. Importing it imports neither typer nor torch, pandas or matplotlib.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import wraps
from inspect import cleandoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, overload

from stabkit.errors import StoreError, UsageError, warn
from stabkit.options import commands, ranges
from stabkit.options.commands import Folder, Options
from stabkit.options.option import PlainType

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from stabkit.own.watch.watch import Watch
    from stabkit.report.log import LogResult
    from stabkit.report.result import (
        AuditResult,
        ProbeResult,
        SweepResult,
        TransferResult,
        WidthsResult,
    )
    from stabkit.results.run import Run
    from stabkit.running.following import CallListener
    from stabkit.storage.store import Store

P = ParamSpec("P")
Asked = TypeVar("Asked")
Found = TypeVar("Found")


def command(
    options: Callable[P, Asked],
) -> Callable[[Callable[[Asked, CallListener | None], Found]], Callable[P, Found]]:
    """A function with these options, a line each in its docstring, `options` itself in `.options`; what it does,
    `inspect.unwrap` gives: (options, listener) → …"""
    theirs = signature(options)
    places = [one for one in theirs.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]

    def decorate(act: Callable[[Asked, CallListener | None], Found]) -> Callable[P, Found]:
        @wraps(act)
        def call(*args: P.args, **kwargs: P.kwargs) -> Found:
            if unknown := next((name for name in kwargs if name not in theirs.parameters), ""):
                near = [f"did you mean {one!r}?" for one in get_close_matches(unknown, theirs.parameters, 1)]
                hint = "".join(near) or f"help(stabkit.{act.__name__}) lists them"
                raise UsageError(f"{act.__name__} has no option {unknown!r}; {hint}")
            if (count := len(args)) > len(places):
                raise UsageError(f"{act.__name__} got {count} values by place; give them by name, as depths=6")
            return act(options(*args, **kwargs), None)

        plain = [one.replace(annotation=PlainType(one.annotation)) for one in theirs.parameters.values()]
        returned = PlainType(act.__annotations__["return"])
        call.__signature__ = theirs.replace(parameters=plain, return_annotation=returned)  # type: ignore[attr-defined]
        call.options = options  # type: ignore[attr-defined]
        lines = [f"- {name}: {one.annotation.__metadata__[0].help}" for name, one in theirs.parameters.items()]
        call.__doc__ = "\n".join([cleandoc(act.__doc__ or ""), "", "Options:", "", *lines])
        return call

    return decorate


@command(commands.SweepOptions)
def sweep(asked: commands.SweepOptions, listener: CallListener | None) -> SweepResult:
    """Train every method at every depth and say which stay stable: a verdict table and an HTML report.

    The same command again trains nothing; a wider grid trains only what is missing.

    Raises UsageError for an invalid value. Commands that share a store train each run once. Warns of what is left
    out, and of runs without a result after three attempts (the others are stored). Without warm-up, the default, a
    forecast can tell; `warmup=4000` are the papers' early updates.

    >>> import stabkit
    >>> swept = stabkit.sweep("deepnorm", depths=2, steps=2, hidden=16, ffn=32, vocab=200)
    >>> swept.runs[["label", "depth", "outcome"]].drop_duplicates().to_dict("records")
    [{'label': 'DeepNorm', 'depth': '2L-2L', 'outcome': 'not judged'}]
    """
    return _train("sweep", asked, listener)


@command(commands.AblateOptions)
def ablate(asked: commands.AblateOptions, listener: CallListener | None) -> SweepResult:
    """Scale α and β (DeepNet Fig. 9): what breaks when the shortcut or the initialisation is off?

    Without --alpha-scale and --beta-scale each is scaled by 0.25, 0.5, 1, 2 and 4 in turn: nine runs.

    Raises and warns as `sweep`.
    """
    return _train("ablate", asked, listener)


@command(commands.TransferOptions)
def transfer(asked: commands.TransferOptions, listener: CallListener | None) -> TransferResult:
    """Find the best learning rate at every depth, or width, and say whether the smallest's carries to the largest.

    Of your own model (FACTORY) or of built-in methods (--models): carries, drifts by which law, or cannot be told.

    Beside the best rate stands the highest stable one: the highest that trains. `highest` searches that alone.

    Every run makes equal updates; what its loss is read on it was not trained on. Raises and warns as `sweep`, and as
    `probe` of a factory.
    """
    from stabkit.options import transfer as options
    from stabkit.options.probe import name
    from stabkit.report.result import TransferResult
    from stabkit.running import transfer as searching
    from stabkit.running import trials
    from stabkit.running.request import check

    limit = ranges.duration("--budget", asked.budget)
    typed = f"transfer {name(asked.factory)}" if asked.factory else "transfer"
    following = _following(typed, replace(asked, factory=None), listener)
    wanted = options.of_factory(asked) if asked.factory else options.of_methods(asked, following.making)
    if isinstance(wanted, options.FactoryAsked):
        store = _opened(wanted.request.out)
        searched = trials.searched(wanted.plan, wanted.request, wanted.place, following.trying, limit)
    else:
        for note in wanted.request.notes:
            following.noted(note)
        if not asked.yes:
            check(wanted.request)
        store = _opened(wanted.request.out)
        cells, retry = wanted.cells, asked.retry_failed
        ways = searching.of_methods(wanted.plan, cells, wanted.request, store, following, retry_failed=retry)
        searched = searching.search(wanted.plan, *ways, limit)
    if listener is None:
        for run, reason in searched.failed:
            warn(f"{run} has no result: {reason}")
    return TransferResult(call=following.command, out=store.out, name=options.page_name(wanted), searched=searched)


@command(commands.LandscapeOptions)
def landscape(asked: commands.LandscapeOptions, listener: CallListener | None) -> SweepResult:
    """Draw the loss around a trained model, beside another's: how smooth is it, and under which normalisation?

    Surfaces and cuts along random directions in three normalisations, and the path of training in its own plane.

    Of a model of your own `stabkit.loss_surface` draws it. Raises and warns as `sweep`.
    """
    return _train("landscape", asked, listener)


@overload
def probe(
    factory: commands.Factory,
    depths: commands.OwnDepths = ...,
    *,
    widths: None = ...,
    blocks: commands.OwnBlocks = ...,
    seeds: commands.Seeds = ...,
    steps: commands.OwnSteps = ...,
    lr: commands.OwnRates = ...,
    warmup: commands.OwnWarmup = ...,
    time: commands.OwnTime = ...,
    quick: commands.Quick = ...,
    out: commands.Out = ...,
    workers: commands.Workers = ...,
    shard: commands.Sharded = ...,
    run_timeout: commands.RunTimeout = ...,
    fresh: commands.Fresh = ...,
) -> ProbeResult: ...


@overload
def probe(
    factory: commands.Factory,
    depths: commands.OwnDepths = ...,
    *,
    widths: commands.Wholes,
    predict: commands.Wholes | None = ...,
    blocks: commands.OwnBlocks = ...,
    seeds: commands.Seeds = ...,
    steps: commands.OwnSteps = ...,
    lr: commands.OwnRates = ...,
    warmup: commands.OwnWarmup = ...,
    time: commands.OwnTime = ...,
    quick: commands.Quick = ...,
    out: commands.Out = ...,
    workers: commands.Workers = ...,
    shard: commands.Sharded = ...,
    run_timeout: commands.RunTimeout = ...,
    fresh: commands.Fresh = ...,
) -> WidthsResult: ...


@command(commands.ProbeOptions)
def probe(asked: commands.ProbeOptions, listener: CallListener | None) -> ProbeResult | WidthsResult:
    """Probe your own model over depths before you train it: will it train, which link breaks, and what mends it?

    factory(depth) returns a model, (model, loss), (model, loss, optimizer) or (model, loss, optimizer, scheduler), with
    loss(model, step) on the batch of that step. The command exits with 7 where it fails.

    With `widths` a factory(depth, width) is probed at one depth: will it train at each width, by which law does the
    highest rate that trains fall, and what is expected at others (`predict`)?

    From Python `factory` may be the function itself, if a fresh process can import it (not one of `__main__`), and
    nothing exits: `.verdict` says it. Raises UsageError where the factory cannot be called or gives no result at any
    depth; warns of each depth that has none.

    >>> import stabkit
    >>> probed = stabkit.probe("tests.own.probe_models:pre_ln", depths=(2, 4, 8), seeds=0, steps=2)
    >>> sorted(probed.links["link"])
    ['finite', 'gradient', 'logits', 'loss', 'stream', 'tokens', 'update']
    """
    from stabkit.options import probe as options
    from stabkit.report.result import ProbeResult, WidthsResult
    from stabkit.results.own.judged import judged, refuse
    from stabkit.results.own.widths import over_widths
    from stabkit.running import probes
    from stabkit.running.executors import several
    from stabkit.wording import links

    wanted, place = options.probe(asked)
    begin = time.time()
    following = _following(f"probe {wanted.factory}", asked, listener)
    _opened(wanted.out)
    seconds = probes.seconds(wanted, place.workers)
    following.making(links.announced(len(wanted.depths), seconds, wanted.time, quick=probes.train(wanted) == "no"))
    with several("processes", place) as execute:
        over = wanted.widths != (None,)
        done = (probes.over if over else probes.run)(wanted, execute, begin + wanted.time, following.probing)
        if done.results:
            refuse(done.results)
        found = judged(done.results) if done.results and not over else None
        if found is not None and probes.train(wanted) != "no" and found.mendable:
            found = probes.changed(found, wanted, execute, begin + wanted.time, following.probing)
    if not done.results:
        _, lost = done.lost[0]
        log = f"; full traceback: {lost.log}" if lost.log else ""
        raise UsageError(f"{wanted.factory} gave no result at any depth: {lost.reason}{log}")
    if listener is None:
        for cell, lost in done.lost:
            warn(f"depth {cell.depth}, seed {cell.seed} has no result: {lost.reason}")
    if found is None:
        words = over_widths(done.results, wanted.seeds[0], len(wanted.widths))
        return WidthsResult(call=following.command, request=wanted, done=done, words=words)
    seconds = round(time.time() - begin, 1)
    return ProbeResult(call=following.command, request=wanted, done=done, judged=found, seconds=seconds)


@command(commands.AuditOptions)
def audit(asked: commands.AuditOptions, listener: CallListener | None) -> AuditResult:
    """Compare your own model with a method's recipe: run it once, measure it, say what is violated.

    Finds sub-layers, norms, scales and matrices in the forward pass, by no name. Exits with 6 on a violation.

    From Python nothing exits: `.verdict` says it, `.findings` has each violation. Raises UsageError where nothing can
    be recognised.
    """
    from stabkit.options import audit  # torch
    from stabkit.report.result import AuditResult

    found = audit.audit(asked.factory, asked.method, asked.depths, asked.arch)
    return AuditResult(factory=asked.factory, audit=found)


def read_log(
    files: str | Path | Sequence[str | Path],
    *,
    classes: int | None = None,
    level: float | None = None,
    tokens: Folder = None,
    against: Folder = None,
    stop: float | None = None,
    out: Folder = None,
) -> LogResult:
    """Read the log of any training and say whether it is learning, slow, at the level of frequencies or dead.

    - files: CSV, JSONL, trainer_state.json, TensorBoard, W&B, MLflow, printed lines, a watch; found by content
    - classes, level, tokens: ln of the classes, the loss of who knows frequencies alone, token ids to count it from
    - against: the log of a training that went well; stop: which share of good trainings may be stopped
    - out: where `.page` is written

    Raises UsageError for what is no log, names what it needs.
    """
    from stabkit.options.log import read
    from stabkit.wording.log import stop as said

    names = [files] if isinstance(files, str | Path) else files
    if not isinstance(names, Sequence) or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(f"read_log takes a path or a list of paths, not {type(files).__name__}")
    given = {"classes": classes, "level": level, "tokens": tokens, "against": against, "stop": stop, "out": out}
    result = read(commands.LogOptions([str(name) for name in names], **given))  # type: ignore[arg-type]
    for own, one in zip(result.logs, result.stops, strict=True):
        if one is not None and one.why:
            warn(f"{own.log.name}: {said(one)}")
    return result


class WatchOptions(TypedDict, total=False):
    """The options of `watch`, for the callbacks of trainers (`stabkit.hf`, `stabkit.lightning`)."""

    probe: Any
    every: str | int
    out: str | Path
    name: str
    blocks: str
    warn: bool
    start: bool | None
    writer: Any
    anyway: bool
    page: bool
    stop: float | None


def watch(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
    *,
    probe: Any = None,
    every: str | int = "log",
    out: str | Path = "out",
    name: str = "",
    blocks: str = "",
    warn: bool = True,
    start: bool | None = None,
    writer: Any = None,
    anyway: bool = False,
    page: bool = False,
    stop: float | None = None,
) -> Watch:
    """Record the chain of a model in training and warn, once a link, through `warnings`: `own.watch.watch.Watch`.

    `watch = stabkit.watch(model, optimizer)` before the loop, where step 0 is the model as it is; `watch.loss(loss)` in
    it, if the loss is to be on the page; `watch.close()` after it, or use it in a `with`. Of several optimisers
    (`[muon, adamw]`) an update is over when each has stepped.

    - probe: what the model is read on: arguments as tuple or dict, or one tensor; without it the model's first call's
    - every: `log`, after updates 0 to 16 and the powers of √2; or a number of updates
    - out: the store: records lie in <out>/own/<id>/, what is flushed is kept whatever happens
    - name, blocks: what begins the id; names of blocks, `h.*`, where no sums x + f(x) are found
    - warn: False: record alone; page: True: `close()` makes the page, as `stabkit report` does
    - start: keep a copy of θ_0 for ‖θ_t − θ_0‖, of itself up to 1 GB
    - anyway: read activations although the forward draws from what the watch cannot put back (docs/watch.md)
    - stop: `watch.loss` raises `stabkit.Stuck` where the training is dead; of good ones this share (docs/log.md)
    - writer: a SummaryWriter of TensorBoard, a run of Weights & Biases or Trackio, or the module mlflow

    Of several processes rank 0 writes and warns; all of them make the watch and close it.

    Raises UsageError for what cannot be watched: no module, no optimiser of its parameters, all of them frozen, LBFGS,
    a batch on another device or that the model cannot be read on.

    >>> import stabkit
    >>> model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    >>> optimizer = torch.optim.AdamW(model.parameters())
    >>> with stabkit.watch(model, optimizer) as watch:
    ...     _ = model(torch.ones(1, 3, 8)).mean().backward(), optimizer.step()
    >>> watch.steps, watch.ended
    (1, 'closed')
    """
    from stabkit.own.watch.watch import Watch

    def written(store: Path, watch_id: str, command: str) -> Path:
        from stabkit.report.own import watch  # pandas and matplotlib
        from stabkit.storage.watched import WatchShelf

        return watch.write(WatchShelf(store).load(watch_id), store, command)

    return Watch(
        model,
        optimizer,
        probe=probe,
        every=every,
        out=out,
        name=name,
        blocks=blocks,
        warn=warn,
        start=start,
        writer=writer,
        anyway=anyway,
        page=written if page else None,
        stop=stop,
    )


def load_runs(out: Folder = None) -> pd.DataFrame:
    """Every finished run of the store at `out` (else STABKIT_HOME, else here), a row each, in the order of all tables.

    Columns: what it is (run, method, label, condition, depth, encoder_layers, decoder_layers, seed, lr, warmup, steps),
    its outcome, validation_loss and unigram_loss in nats a token, update (‖ΔF‖ at the table's reference step, output
    units), gradient_ratio (lowest layer's over top layer's, the least of the run), forecast (a word or "") and
    p_trains (NaN where there is none). A damaged run is left out with a warning. Raises StoreError where there is no
    store.

    >>> import stabkit
    >>> stabkit.load_runs()["method"].unique().tolist()
    ['deepnorm']
    """
    from stabkit.report.result import run_table

    return run_table(_stored(out))


def load_records(out: Folder = None) -> pd.DataFrame:
    """Everything recorded in the store at `out` as one long table: run, step, probe, site, value. The rows of
    `stabkit export`; units are each probe's own.

    >>> import stabkit
    >>> records = stabkit.load_records()
    >>> list(records.columns)
    ['run', 'step', 'probe', 'site', 'value']
    >>> int(records.query("probe == 'update'")["step"].max())
    2
    """
    import pandas as pd

    from stabkit.storage import export

    return pd.DataFrame(list(export.rows(_stored(out))), columns=list(export.COLUMNS))


def _following(typed: str, asked: Options, listener: CallListener | None) -> CallListener:
    """Who follows a call: who was given, or nobody, whose notes are warnings."""
    from stabkit.options.lines import line
    from stabkit.running.following import Silent

    return listener or Silent(f"stabkit {line(typed, asked.named)}")


def _opened(out: Path) -> Store:
    """The store there, after it was seen to be writable."""
    from stabkit.storage.store import Store

    store = Store(out)
    store.writable()
    return store


def _train(command: str, asked: commands.Trains, listener: CallListener | None) -> SweepResult:
    """Train what is missing, measure what is asked for."""
    from stabkit.options import own
    from stabkit.options.requests import request
    from stabkit.report.result import SweepResult
    from stabkit.running import execute
    from stabkit.running.request import check

    following = _following(command, asked, listener)
    wanted = request(asked, following.making)
    for note in wanted.notes:
        following.noted(note)
    if not asked.yes:
        check(wanted)
    trained = execute.run(wanted, _opened(wanted.out), following, retry_failed=asked.retry_failed)
    for note in own.changed(wanted.files):
        following.noted(note)
    if listener is None and trained.failed:
        warn(f"{len(trained.failed)} of {len(wanted.specs)} runs have no result; `.failed` and the page say why")
    return SweepResult(
        name=command,
        call=following.command,
        out=wanted.out,
        specs=wanted.specs,
        trained=trained,
        all_figures=asked.all_figures,
    )


def _stored(out: Folder) -> list[Run]:
    from stabkit.options import machine
    from stabkit.storage.folder import CorruptFolder
    from stabkit.storage.store import Store

    home = machine.output(out)
    if not (home / "runs").is_dir():
        other = f"; `read_log` reads the watches in {home / 'own'}" * (home / "own").is_dir()
        raise StoreError(f"no store at {home}: it has no folder runs/; give the --out of a sweep{other}")
    store, runs = Store(home), []
    for run_id in store.ids():
        try:
            runs.append(store.load(run_id))
        except CorruptFolder as error:
            warn(f"left out a corrupt run: {error}")
    if not runs:
        also = "; it has probes, and `stabkit.probe(…).runs` is their table" * (home / "probes").is_dir()
        warn(f"the store at {home} has no run of a sweep{also}")
    return runs
