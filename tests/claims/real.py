"""Runs that were really trained, tiny, and what a test changes in them: one number of their records."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results.conditions import method_label
from stabkit.results.records import Table
from stabkit.results.run import Run
from stabkit.running import work
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.storage.store import Store
from stabkit.tasks import objective
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

P, INIT, ADMIN, D, PRE = "Post-LN", "Post-LN-init", "ADMIN", "DeepNorm", "Pre-LN"
KEYS = {P: "post-ln", INIT: "post-ln-init", ADMIN: "admin", D: "deepnorm", PRE: "pre-ln"}
Runs = list[Run]


def spec(method: str, encoder: int, decoder: int, options: dict[str, str] | None = None, **more: Any) -> RunSpec:
    model = ModelConfig(encoder_layers=encoder, decoder_layers=decoder, hidden=16, ffn=24, heads=2)
    config = TrainConfig(**{"steps": 16, "max_tokens": 128, **more})
    return RunSpec(method=method, options=options or {}, model=model, train=config, task=TaskConfig(vocab=200))


STEP: dict[str, Any] = {"optimizer": "sgd", "steps": 1, "warmup": 0, "lr": 1e-4, "clip": 0.0}
SPECS = (
    *(spec(KEYS[label], n, n) for label in (P, D) for n in (6, 18, 50)),
    *(spec(KEYS[label], 6, 6) for label in (INIT, ADMIN)),  # of which nothing is claimed with a warm-up
    *(spec(KEYS[label], 18, 18, warmup=0) for label in (P, INIT, ADMIN, D, PRE)),
    spec("post-ln", 18, 0, warmup=0),
    *(
        spec(key, n, m, options, **STEP)
        for key, options, both in (
            ("deepnorm", {}, True),
            ("sub-ln", {}, False),
            ("sub-ln", {"gain": "one"}, False),
        )
        for n in (6, 18, 50)
        for m in ((n,) if both else (0,))
    ),
)


def trained(folder: Path) -> None:
    """All of SPECS into a store: half a minute."""
    store = Store(folder)
    store.writable()
    for one in SPECS:
        language = Synthetic(vocab=one.task.vocab, max_tokens=one.train.max_tokens)
        result = train.run(one, objective.of(language, one.model.encoder_layers, one.model.decoder_layers))
        store.commit(one, work.files(one, result, {}))


def loaded(folder: Path) -> Runs:
    store = Store(folder)
    return [store.load(one.run_id) for one in SPECS]


def changed(run: Run, records: dict[str, Table] | None = None, **spec_changes: Any) -> Run:
    """The run with other records or another spec; what is derived from them is derived anew."""
    own = {name: spec_changes.pop(name) for name in list(spec_changes) if name in TrainConfig.__dataclass_fields__}
    size = {name: spec_changes.pop(name) for name in list(spec_changes) if name in ModelConfig.__dataclass_fields__}
    made = replace(
        run.spec, train=replace(run.spec.train, **own), model=replace(run.spec.model, **size), **spec_changes
    )
    return Run(
        path=run.path.parent / made.run_id,
        spec=made,
        kept=run.kept,
        records=records or run.records,
        environment=run.environment,
        digest=run.digest,
    )


def of(runs: Iterable[Run], *labels: str, depth: str = "*", **train: Any) -> Runs:
    """Those of these methods (without options unless named so), at these depths, with these settings."""
    return [
        run
        for run in runs
        if (not labels or method_label(run.spec) in labels)
        and fnmatch.fnmatch(run.spec.depth, depth)
        and all(getattr(run.spec.train, name) == value for name, value in train.items())
    ]


def seeds(runs: Runs, count: int = 2) -> Runs:
    """Each run under several seeds: what all of them show is decided."""
    return [changed(run, seed=seed) for run in runs for seed in range(count)]


def longer(runs: Runs, steps: int, **more: Any) -> Runs:
    """The runs as if they had gone on to this step, standing still."""
    return [
        changed(run, {name: _on(table, steps) for name, table in run.records.items()}, steps=steps, **more)
        for run in runs
    ]


def _on(table: Table, steps: int) -> Table:
    if len(table.steps) == 1 and table.steps[0] == 0:
        return table
    more = [step for step in (25, 50, 75, *range(100, steps, 25), round(0.75 * steps), steps) if step > table.steps[-1]]
    added = np.array(sorted(set(more)), dtype=np.int64)
    values = np.concatenate([table.values, np.repeat(table.values[-1:], len(added), axis=0)])
    return Table(np.concatenate([table.steps, added]), table.sites, values)


def times(
    runs: Runs,
    probe: str,
    sites: str,
    factor: float,
    labels: Sequence[str] = (),
    depth: str = "*",
    step: Callable[[int], bool] = lambda step: True,
    exact: float | None = None,
    **train: Any,
) -> Runs:
    """One number changed: a probe's readings on these sites at these steps, times a factor (or set)."""
    chosen = {id(run) for run in of(runs, *labels, depth=depth, **train)}

    def edit(run: Run) -> Run:
        table = run.records[probe]
        rows = np.array([step(int(t)) for t in table.steps])
        columns = np.array([fnmatch.fnmatch(site, sites) for site in table.sites])
        assert rows.any() and columns.any(), (probe, sites)
        values = table.values.copy()
        values[np.ix_(rows, columns)] = values[np.ix_(rows, columns)] * factor if exact is None else exact
        return changed(run, {**run.records, probe: Table(table.steps, table.sites, values)})

    return [edit(run) if id(run) in chosen else run for run in runs]


def ending(runs: Runs, word: str, *labels: str, depth: str = "*", share: float = 0.8) -> Runs:
    """Runs of 250 updates that end so: training, at this share of the unigram loss, stuck or diverged."""
    chosen = {id(run) for run in of(runs, *labels, depth=depth)}

    def edit(run: Run) -> Run:
        unigram = float(run.kept["unigram_loss"])
        level = {"trains": share * unigram, "stuck": unigram, "diverged": float("inf")}[word]
        (made,) = longer([run], 250)
        (made,) = times([made], "validation", "validation", 1.0, exact=level, step=lambda step: step >= 16)
        (made,) = times([made], "loss", "*", 1.0, exact=min(level, 99.0), step=lambda step: step >= 16)
        return made

    return [edit(run) if id(run) in chosen else run for run in runs]
