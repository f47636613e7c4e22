"""Sweeps from Python, and what a store holds as tables of pandas."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from stabkit.cli.parsing import grids, machine
from stabkit.errors import FailedRuns, StoreError
from stabkit.figures.shared.comparison import FACTS, shown
from stabkit.figures.shared.numbers import lowest_ratio, reference_step, update_at
from stabkit.library.options import read
from stabkit.running import execute
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import Plan
from stabkit.running.request import check
from stabkit.spec import RunSpec
from stabkit.storage import export
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.store import Run, Store

COLUMNS = (
    *FACTS,
    *("lr", "warmup", "steps", "validation_loss", "unigram_loss", "update", "gradient_ratio", "forecast", "p_trains"),
)
"""Of `load_runs`."""


def sweep(models: str | Sequence[str] = "post-ln,post-ln-init,admin,deepnorm", **options: Any) -> pd.DataFrame:
    """Train every method at every depth, as `stabkit sweep` does, and return `load_runs` of these runs.

    Options have the command's names, with underscores: `depths=(6, 18)`, `steps=250`, `warmup=0`, `seeds="0..2"`,
    `data=…`, `out=…` (where the store is; the current directory). What the store holds is not trained again. Raises
    UsageError for an option or value that is none, FailedRuns where a run has no result after three attempts (the
    others are stored), StoreBusy where another process writes to this store.

    >>> import stabkit
    >>> table = stabkit.sweep("deepnorm", depths=2, steps=2, hidden=16, ffn=32, vocab=200, out=out)
    >>> table[["label", "depth", "outcome"]].drop_duplicates().to_dict("records")
    [{'label': 'DeepNorm', 'depth': '2L-2L', 'outcome': 'early'}]
    """
    text = read("sweep", {"models": models, **options})
    asked = grids.sweep(
        {**text, "quiet": True, "given": {name for name, value in options.items() if value is not None}}
    )
    for note in asked.notes:
        warnings.warn(note, stacklevel=2)
    if not text["yes"]:
        check(asked)
    store = Store(asked.out)
    with store.writing():
        done = execute.run(asked, store, _Silent(), retry_failed=text["retry_failed"])
    if done.failed:
        first, reason = done.failed[0]
        raise FailedRuns(f"{len(done.failed)} runs have no result; {first.run_id}: {reason}")
    return table(done.runs)


def load_runs(out: str | PathLike[str] = "") -> pd.DataFrame:
    """Every finished run of the store at `out` (else STABKIT_HOME, else here), a row each, in the order of all tables.

    Columns: what it is (run, method, label, condition, depth, encoder_layers, decoder_layers, seed, lr, warmup, steps),
    its outcome, validation_loss and unigram_loss in nats a token, update (‖ΔF‖ at the table's reference step, output
    units), gradient_ratio (lowest layer's over top layer's, the least of the run), forecast (a word or "") and
    p_trains (NaN where there is none). A damaged run is left out with a warning. Raises StoreError where there is no
    store.

    >>> import stabkit
    >>> stabkit.load_runs(out)["method"].unique().tolist()
    ['deepnorm']
    """
    return table(_stored(out))


def load_records(out: str | PathLike[str] = "") -> pd.DataFrame:
    """Everything recorded in the store at `out` as one long table: run, step, probe, site, value. The rows of
    `stabkit export`; units are each probe's own.

    >>> import stabkit
    >>> records = stabkit.load_records(out)
    >>> list(records.columns)
    ['run', 'step', 'probe', 'site', 'value']
    >>> int(records.query("probe == 'update'")["step"].max())
    2
    """
    return pd.DataFrame(list(export.rows(_stored(out))), columns=list(export.COLUMNS))


def table(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run: COLUMNS."""
    step = reference_step(list(runs))
    return pd.DataFrame([_row(each.run, each.facts(), step) for each in shown(list(runs))], columns=list(COLUMNS))


def _row(run: Run, facts: dict[str, Any], step: int) -> dict[str, Any]:
    told = run.forecast
    return {
        **facts,
        "lr": run.spec.train.lr,
        "warmup": run.spec.train.warmup,
        "steps": run.outcome.steps,
        "validation_loss": run.outcome.validation_loss,
        "unigram_loss": run.outcome.unigram_loss,
        "update": update_at(run, step),
        "gradient_ratio": lowest_ratio(run),
        "forecast": told.word if told else "",
        "p_trains": float("nan") if told is None or told.p_trains is None else told.p_trains,
    }


def _stored(out: str | PathLike[str]) -> list[Run]:
    home = machine.output(str(out) or os.environ.get("STABKIT_HOME", ""))
    if not (home / "runs").is_dir():
        raise StoreError(f"there is no store at {Path(home)}: it has no folder runs/; give the --out of a sweep")
    store, found = Store(home), []
    for run_id in store.ids():
        try:
            found.append(store.load(run_id))
        except CorruptFolder as error:
            warnings.warn(f"corrupt run, left out: {error}", stacklevel=3)
    return found


class _Silent:
    """A listener that says nothing."""

    def planned(self, plan: Plan[Any, Any]) -> None: ...

    def making(self, what: str) -> None: ...

    @contextmanager
    def training(
        self, plan: Plan[RunSpec, Run], workers: int
    ) -> Iterator[tuple[Tell, Callable[[RunSpec, Run | Lost], None]]]:
        yield lambda event: None, lambda spec, ended: None

    @contextmanager
    def measuring(self, plan: Plan[Any, Any]) -> Iterator[tuple[Tell, Callable[[str], None]]]:
        yield lambda event: None, lambda name: None
