"""Values → what a command shows: plans, verdicts, listings, JSON documents, the report's file."""

from __future__ import annotations

import hashlib
import json as jsonlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stabkit import console, cost
from stabkit import methods as table
from stabkit.errors import UsageError, nearest
from stabkit.flags import Budget
from stabkit.methods.base import sites
from stabkit.outcome import gradient_ratio
from stabkit.records import jsonable
from stabkit.spec import RunSpec
from stabkit.store import CorruptRun, Run, Store, write_file
from stabkit.sweep import Plan

SCHEMA = "stabkit/1"
COLOURS = {"trains": "green", "stuck": "red", "diverged": "bold red", "failed": "magenta", "early": ""}


def reuse(plan: Plan) -> str:
    """`reused 12, new 6, 3 in the directory are not part of this grid`."""
    parts = [f"reused {len(plan.reused)}", f"new {len(plan.missing)}"]
    if plan.other:
        parts.append(f"{plan.other} in the directory are not part of this grid")
    return ", ".join(parts) + ("; nothing to train" if not plan.missing else "")


def plan(specs: Sequence[RunSpec], planned: Plan, workers: int, *, json: bool) -> None:
    """`--dry-run`: what would run and what it would cost."""
    missing = {spec.run_id for spec in planned.missing}
    seconds = sum(map(cost.seconds, planned.missing)) / workers
    memory = workers * max(map(cost.memory, planned.missing), default=0)
    disk = sum(map(cost.disk, planned.missing))
    if json:
        runs = [
            {
                "run_id": spec.run_id,
                "spec": spec.to_json(),
                "stored": spec.run_id not in missing,
                "parameters": cost.parameters(spec),
                "seconds": round(cost.seconds(spec), 1),
            }
            for spec in specs
        ]
        whole = {"workers": workers, "seconds": round(seconds, 1), "memory_bytes": memory, "disk_bytes": disk}
        console.document(jsonlib.dumps({"schema": SCHEMA, "plan": whole, "runs": runs}, indent=1, allow_nan=False))
        return
    for warning in planned.corrupt:
        console.warn(warning)
    shown = list(specs[:200])
    rows = [
        (
            table.label(spec.method, spec.options),
            spec.depth,
            spec.seed,
            spec.train.warmup,
            f"{spec.train.lr:g}",
            f"{cost.parameters(spec):,}",
            "in the store" if spec.run_id not in missing else _duration(cost.seconds(spec)),
        )
        for spec in shown
    ]
    console.table("The grid", ("method", "depth", "seed", "warm-up", "lr", "parameters", "one core"), rows)
    if len(specs) > len(shown):
        console.say(f"… and {len(specs) - len(shown)} more")
    console.say(
        f"{len(specs)} runs, {len(missing)} to train: about {_duration(seconds)} on {workers} "
        f"worker{'s' * (workers > 1)}, {memory / 1e9:.1f} GB of memory, {disk / 1e6:.0f} MB of disk"
    )


def budget(need: Budget, workers: int, *, json: bool) -> None:
    """`--dry-run` of a grid too large to list."""
    if json:
        whole = {
            "runs": need.runs,
            "workers": workers,
            "seconds": round(need.seconds, 1),
            "memory_bytes": need.memory,
            "disk_bytes": need.disk,
        }
        console.document(jsonlib.dumps({"schema": SCHEMA, "plan": whole}, indent=1, allow_nan=False))
        return
    console.say(
        f"{need.runs} runs: about {_duration(need.seconds)} on {workers} worker{'s' * (workers > 1)}, "
        f"{need.memory / 1e9:.1f} GB of memory, {need.disk / 1e9:.1f} GB of disk"
    )


def finished(spec: RunSpec, answer: Any, workers: int) -> tuple[str, str, float]:
    """(run id, what became of it, its share of the whole in seconds) for the progress display."""
    words = answer if isinstance(answer, str) else f"failed: {answer.reason}"
    return spec.run_id, words, cost.seconds(spec) / workers


def report(
    runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]], store: Store, specs: Sequence[RunSpec], command: str
) -> Path:
    """The sweep's page, under a name that belongs to its grid."""
    grid = hashlib.sha256("\n".join(spec.run_id for spec in specs).encode()).hexdigest()[:8]
    return write(runs, failed, store.out / "reports" / f"sweep-{grid}.html", command)


def write(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]], path: Path, command: str) -> Path:
    """Render a page into a file, replaced whole."""
    from stabkit.report.html import render

    write_file(path, render(runs, command=command, failed=failed).encode())
    return path


def verdict(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]]) -> None:
    """The verdict matrix in the terminal: outcome, ‖ΔF‖ at the reference step, what is known."""
    from stabkit.figures.comparison import short
    from stabkit.report.matrix import headline, matrix

    verdicts = matrix(runs, failed)
    rows = []
    for row in verdicts.rows:
        cells = []
        for cell in row.cells:
            update = f"‖ΔF‖ {short(cell.update)}" if math.isfinite(cell.update) else ""
            detail = cell.details[0] if len(set(cell.details)) == 1 else ""
            cells.append("\n".join(line for line in (cell.words, update, detail) if line))
        rows.append((row.label, *((row.condition,) if verdicts.has_conditions else ()), *cells))
    head = ("", *(("condition",) if verdicts.has_conditions else ()), *verdicts.depths)
    console.table(f"Outcome, and ‖ΔF‖ after {verdicts.reference_step} updates", head, rows, _colour)
    console.say()
    console.say(headline(runs, failed))


def _colour(text: str) -> str:
    """A cell's colour, by its outcome; an early one whose gradient has vanished is a warning."""
    words = text.split()
    if "gradient" in words:
        return "yellow"
    return COLOURS.get(words[0], "") if words else ""


def document(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]], page: Path) -> str:
    """The one JSON document of `--json`: strict, versioned, numbers that are not finite as strings."""
    body = {
        "schema": SCHEMA,
        "report": str(page),
        "runs": [_run(run) for run in runs]
        + [{**_facts(spec), "outcome": "failed", "reason": reason, "steps": 0} for spec, reason in failed],
    }
    return jsonlib.dumps(jsonable(body), indent=1, allow_nan=False)


def _facts(spec: RunSpec) -> dict[str, Any]:
    return {
        "run_id": spec.run_id,
        "spec": spec.to_json(),
        "model": spec.method,
        "encoder_layers": spec.model.encoder_layers,
        "decoder_layers": spec.model.decoder_layers,
        "seed": spec.seed,
        "alpha_scale": spec.alpha_scale,
        "beta_scale": spec.beta_scale,
        "warmup": spec.train.warmup,
    }


def _run(run: Run) -> dict[str, Any]:
    update, loss, validation = run.records["update"], run.records["loss"], run.records["validation"]
    return {
        **_facts(run.spec),
        **run.outcome,
        "digest": run.digest,
        "step": update.steps.tolist(),
        "update": update.at("state").tolist(),
        "loss": loss.at("train").tolist(),
        "probe_loss": loss.at("probe").tolist(),
        "grad_first_last_ratio": gradient_ratio(run.records["grad_norm"]).tolist(),
        "validation_step": validation.steps.tolist(),
        "validation": validation.at("validation").tolist(),
    }


def find(store: Store, names: Sequence[str]) -> list[Run]:
    """Runs by id, beginning of an id, or folder; all of the store's where none is named. Corrupt ones are warned of."""
    paths = []
    for name in names:
        folder = Path(name)
        if (folder / "spec.json").is_file():
            paths.append((Store(folder.resolve().parent.parent), folder.resolve().name))
        else:
            paths += [(store, run_id) for run_id in _matching(store, name)]
    found = []
    for where, run_id in paths if names else [(store, run_id) for run_id in store.ids()]:
        try:
            found.append(where.load(run_id))
        except CorruptRun as error:
            console.warn(f"corrupt run, left out: {error}")
    return list({run.run_id: run for run in found}.values())


def one(store: Store, name: str) -> Run:
    """The one run that a name begins."""
    return store.load(one_id(store, name))


def one_id(store: Store, name: str) -> str:
    """The id of the one run that a name begins."""
    found = _matching(store, name)
    if len(found) > 1:
        raise UsageError(f"{name!r} begins {len(found)} runs ({found[0]}, {found[1]}…); write more of it")
    return found[0]


def _matching(store: Store, name: str) -> list[str]:
    ids = store.ids()
    found = [name] if name in ids else [run_id for run_id in ids if name and run_id.startswith(name)]
    if not found:
        raise UsageError(f"no run {name!r} in {store.runs}{nearest(name, ids) or ';'} `stabkit runs ls` lists all")
    return found


def listing(runs: Sequence[Run], *, json: bool) -> None:
    """`runs ls`."""
    if json:
        rows = [{**_facts(run.spec), **run.outcome, "digest": run.digest} for run in runs]
        console.document(jsonlib.dumps({"schema": SCHEMA, "runs": rows}, indent=1, allow_nan=False))
        return
    console.table(
        f"{len(runs)} runs",
        ("run", "outcome", "steps", "loss", "seconds"),
        [
            (
                r.run_id,
                r.outcome["outcome"],
                r.outcome["steps"],
                _short(r.outcome["validation_loss"]),
                _short(r.environment.get("wall_seconds")),
            )
            for r in runs
        ],
    )


def show(run: Run, *, json: bool) -> None:
    """`runs show`."""
    if json:
        console.document(
            jsonlib.dumps(
                jsonable({"schema": SCHEMA, **_run(run), "environment": dict(run.environment)}),
                indent=1,
                allow_nan=False,
            )
        )
        return
    console.say(run.run_id)
    console.say(f"  {run.path}")
    for title, values in (
        ("outcome", run.outcome),
        ("chain", run.outcome["chain"]),
        ("spec", run.spec.to_json()),
        ("environment", run.environment),
    ):
        console.say(title)
        for name, value in values.items():
            if name != "chain":
                console.say(f"  {name:24} {_flat(value)}")


def methods(model: str, depths: Sequence[tuple[int, int]], *, json: bool) -> None:
    """`methods`: the table; with a name its constants at each depth."""
    if model:
        key, options = table.parse(model)
        rows = [row for depth in depths for row in _constants(key, options, *depth)]
    else:
        rows = []
    chosen = [table.build(*table.parse(model))] if model else list(table.DEFAULTS)
    if json:
        body = {
            "schema": SCHEMA,
            "methods": [
                {
                    "key": m.key,
                    "label": m.label,
                    "group": m.group,
                    "formula": m.formula,
                    "source": m.source,
                    "options": table.options(m.key),
                }
                for m in chosen
            ],
            **({"constants": rows} if model else {}),
        }
        console.document(jsonlib.dumps(body, indent=1, allow_nan=False))
        return
    for m in chosen:
        console.say(f"{m.key}  ({m.label})")
        console.say(f"  {m.formula}")
        console.say(f"  source: {m.source}")
        for name, values in table.options(m.key).items():
            console.say(f"  option {name}: {', '.join(values)} (default {values[0]})")
    if rows:
        console.say()
        console.table(
            "Constants: shortcut scale (ω, α) and initial gain (β), first to last layer",
            tuple(rows[0]),
            [tuple(_span(v) for v in row.values()) for row in rows],
        )


def _constants(key: str, options: dict[str, str], n: int, m: int) -> list[dict[str, Any]]:
    """A row a stack: ω and the gains of W_Q and W_K, and of the other weights, in the first and the last layer."""
    method = table.build(key, options)
    rows = []
    for stack in ("encoder", "decoder"):
        own = [site for site in sites(n, m, 64) if site.stack == stack]
        first, last = own[0], own[-1]
        omega: Any = "profiled" if method.calibrate else [method.omega(first).init, method.omega(last).init]
        rows.append(
            {
                "depth": f"{n}L-{m}L",
                "stack": stack,
                "shortcut": omega,
                "query, key": [method.gain(first, "query"), method.gain(last, "query")],
                "value, out, ffn": [method.gain(first, "out"), method.gain(last, "out")],
            }
        )
    return rows


def _span(value: Any) -> str:
    if isinstance(value, list):
        first, last = (f"{v:.4f}" for v in value)
        return first if first == last else f"{first} … {last}"
    return str(value)


def _flat(value: Any) -> str:
    return jsonlib.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value if value is not None else "–")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
