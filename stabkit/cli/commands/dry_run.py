"""`--dry-run`: what would run and what it would cost; nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabkit import methods as table
from stabkit.cli import console
from stabkit.report.json_document import SCHEMA, text
from stabkit.running import cost
from stabkit.running.plan import Plan
from stabkit.running.request import Budget
from stabkit.spec import RunSpec
from stabkit.storage.store import Run, disk


def plan(
    specs: Sequence[RunSpec],
    planned: Plan[RunSpec, Run],
    workers: int,
    pace: float,
    texts: Mapping[str, str],
    *,
    json: bool,
) -> None:
    """`--dry-run`: what would run and what it would cost, told as a range; `pace`: how much longer than estimated the
    runs in the store took; `texts`: the files that the command named."""
    missing = {spec.run_id for spec in planned.missing}
    seconds = pace * sum(map(cost.seconds, planned.missing)) / workers
    memory = workers * max(map(cost.memory, planned.missing), default=0)
    room = sum(map(disk, planned.missing))
    if json:
        runs = [
            {
                "run_id": spec.run_id,
                "spec": spec.to_json(),
                "stored": spec.run_id not in missing,
                "parameters": table.parameters(spec, texts),
                "seconds": round(pace * cost.seconds(spec), 1),
            }
            for spec in specs
        ]
        whole = {"workers": workers, **_time(seconds), "pace": round(pace, 3)}
        whole |= {"memory_bytes": memory, "disk_bytes": room}
        console.document(text({"schema": SCHEMA, "plan": whole, "runs": runs}))
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
    console.say(
        f"{len(specs)} runs, {len(missing)} to train: {cost.span(seconds)} on {workers} "
        f"worker{'s' * (workers > 1)}, {memory / 1e9:.1f} GB of memory, {room / 1e6:.0f} MB of disk"
    )


def budget(need: Budget, *, json: bool) -> None:
    """`--dry-run` of a grid too large to list."""
    if json:
        whole = {
            "runs": need.runs,
            "workers": need.workers,
            **_time(need.seconds),
            "memory_bytes": need.memory,
            "disk_bytes": need.disk,
        }
        console.document(text({"schema": SCHEMA, "plan": whole}))
        return
    console.say(
        f"{need.runs} runs: {cost.span(need.seconds)} on {need.workers} worker{'s' * (need.workers > 1)}, "
        f"{need.memory / 1e9:.1f} GB of memory, {need.disk / 1e9:.1f} GB of disk"
    )


def _time(seconds: float) -> dict[str, float]:
    """An estimate and its bounds, for scripts."""
    low, high = cost.bounds(seconds)
    return {"seconds": round(seconds, 1), "seconds_low": round(low, 1), "seconds_high": round(high, 1)}
