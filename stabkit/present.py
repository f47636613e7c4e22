"""What a sweep shows: its plan, its progress, its verdict, its report's file."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit import console, cost
from stabkit import methods as table
from stabkit.document import SCHEMA, seconds_a_step, text
from stabkit.figures.comparison import geometric_mean, listed, percent, short
from stabkit.folder import write_file
from stabkit.request import Budget
from stabkit.spec import SHORTEST_JUDGED, RunSpec
from stabkit.store import Run, Store
from stabkit.sweep import Plan

if TYPE_CHECKING:
    from stabkit.claims import Finding
    from stabkit.surface.shelf import Surface

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
        console.document(text({"schema": SCHEMA, "plan": whole, "runs": runs}))
        return
    for warning in planned.corrupt:
        console.warn(warning)
    shown = list(specs[:200])
    scaled = any(spec.alpha_scale != 1 or spec.beta_scale != 1 for spec in specs)
    rows = [
        (
            table.label(spec.method, spec.options),
            spec.depth,
            spec.seed,
            spec.train.warmup,
            f"{spec.train.lr:g}",
            *((f"{spec.alpha_scale:g}", f"{spec.beta_scale:g}") if scaled else ()),
            f"{cost.parameters(spec):,}",
            "in the store" if spec.run_id not in missing else console.duration(cost.seconds(spec)),
        )
        for spec in shown
    ]
    scales = ("α ×", "β ×") if scaled else ()
    head = ("method", "depth", "seed", "warm-up", "lr", *scales, "parameters", "one core")
    console.table("The grid", head, rows)
    if len(specs) > len(shown):
        console.say(f"… and {len(specs) - len(shown)} more")
    console.say(
        f"{len(specs)} runs, {len(missing)} to train: about {console.duration(seconds)} on {workers} "
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
        console.document(text({"schema": SCHEMA, "plan": whole}))
        return
    console.say(
        f"{need.runs} runs: about {console.duration(need.seconds)} on {workers} worker{'s' * (workers > 1)}, "
        f"{need.memory / 1e9:.1f} GB of memory, {need.disk / 1e9:.1f} GB of disk"
    )


def finished(store: Store, spec: RunSpec, answer: Any, workers: int) -> tuple[str, str, float]:
    """(run id, what became of it and how long an update took, its share of the whole in seconds) for the progress."""
    if isinstance(answer, str):
        run = store.load(spec.run_id)
        stopped = int(run.outcome["steps"])
        early = f" (ended at step {stopped} of {spec.train.steps})" if stopped < spec.train.steps else ""
        words = f"{answer}{early}  {_milliseconds(run)}"
    else:
        words = f"failed: {answer.reason}"
    return spec.run_id, words, cost.seconds(spec) / workers


def _milliseconds(run: Run) -> str:
    """`41 s, 164 ms a step`; of a run whose start weighs more than its steps the first alone."""
    seconds, each = float(run.environment.get("wall_seconds", 0.0)), seconds_a_step(run)
    long = math.isfinite(each) and int(run.outcome["steps"]) >= SHORTEST_JUDGED
    return console.duration(seconds) + (f", {1000 * each:.0f} ms a step" if long else "")


def report_name(specs: Sequence[RunSpec], surfaces: Sequence[Surface] = (), kind: str = "landscape") -> str:
    """The name of a command's page: it belongs to its grid, and to its surfaces where it drew any (`kind`)."""
    names = [*(spec.run_id for spec in specs), *sorted(surface.surface_id for surface in surfaces)]
    return f"{kind if surfaces else 'sweep'}-{hashlib.sha256(chr(10).join(names).encode()).hexdigest()[:8]}.html"


def write(
    runs: Sequence[Run],
    failed: Sequence[tuple[RunSpec, str]],
    claimed: Sequence[Finding],
    path: Path,
    command: str,
    surfaces: Sequence[Surface] = (),
) -> Path:
    """Render a page into a file, replaced whole."""
    from stabkit.report.html import render

    page = render(runs, command=command, failed=failed, claimed=claimed, surfaces=surfaces)
    write_file(path, page.encode())
    return path


def pictures(runs: Sequence[Run], folder: Path) -> int:
    """Every figure as NAME.svg, .png, .pdf and .csv; returns how many figures."""
    import numpy as np

    from stabkit.figures import FIGURES, svg
    from stabkit.report import cards

    for figure in FIGURES:
        with np.errstate(all="ignore"):  # as on the page
            frame = figure.select(cards.source(figure, runs))
            drawn = figure.draw(frame)
        for kind in ("svg", "png", "pdf"):
            svg.save(drawn, folder / f"{figure.NAME}.{kind}")
        write_file(folder / f"{figure.NAME}.csv", frame.to_csv(index=False).encode())
    return len(FIGURES)


def claims(claimed: Sequence[Finding]) -> None:
    """How many claims of the papers hold on these runs; those that fail, with what was measured."""
    claimed = [found for found in claimed if not found.claim.ours]
    count = Counter(found.verdict for found in claimed)
    tested = count["holds"] + count["fails"]
    if not tested:
        return
    console.say()
    ends = ":" if count["fails"] else "."
    fail = "fails" if count["fails"] == 1 or tested == 1 else "fail"
    these = f"Of {tested} claim{'s' * (tested > 1)} of the papers that these runs test"
    console.paragraph(f"{these}, {count['fails'] or 'none'} {fail}{ends}")
    for found in claimed:
        if found.verdict == "fails":
            console.paragraph(f"- {found.claim.sentence} ({found.claim.source}) Measured: {found.measured}", "  ")


def slopes(runs: Sequence[Run]) -> None:
    """The slopes of single SGD steps: a row a method, ranked at each depth, the two papers' methods compared."""
    from stabkit.figures import slope

    frame = slope.select(runs)
    means = slope.table(frame)
    for condition, own in means.groupby("condition", sort=False):
        depths = list(own["depth"].unique())
        rows = [
            (label, *(_slope_cell(mine[mine["depth"] == depth]) for depth in depths))
            for label, mine in own.groupby("label", sort=False)
        ]
        head = listed("‖ΔF‖/η of one SGD step, and its rank (1: moves least)", str(condition))
        console.table(head, ("", *depths), rows)
        console.say()
    if frame.empty:
        return
    console.paragraph(slope.title(runs) + ".")
    if apart := slope.agreement(runs):
        beyond = [name for name, share in apart if share > slope.AGREE]
        widest = f"{apart[0][0]}, {percent(apart[0][1])} apart"
        told = f"Two rates agree within {percent(slope.AGREE)} in every run (widest: {widest})."
        if beyond:
            told = (
                f"Two rates differ by more than {percent(slope.AGREE)} in {len(beyond)} of {len(apart)} runs ({widest})"
            )
            told += ": not linear, or lost in rounding; `--dtype float64` tells which."
        console.paragraph(told)


def _slope_cell(own: Any) -> str:
    """`29  (2)`, of several seeds with the least and the greatest under it."""
    if own.empty:
        return ""
    row = own.iloc[0]
    spread = f"\n{short(row['least'])} to {short(row['greatest'])}" if row["greatest"] > row["least"] else ""
    return f"{short(row['slope'])}  ({row['rank']}){spread}"


def verdict(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]]) -> None:
    """The verdict matrix in the terminal: outcome, ‖ΔF‖ at the reference step, what is known; not of single steps."""
    if all(run.spec.single_step for run in runs) and runs:
        return
    from stabkit.figures.comparison import short
    from stabkit.outcome import power
    from stabkit.report.headline import advice, headline
    from stabkit.report.matrix import matrix

    verdicts = matrix(runs, failed)
    rows = []
    for row in verdicts.rows:
        cells = []
        for cell in row.cells:
            update = f"‖ΔF‖ {short(cell.update)}" if math.isfinite(cell.update) else ""
            detail = cell.details[0] if len(set(cell.details)) == 1 else ""
            if not detail and cell.vanished:
                detail = f"gradient {power(cell.gradient_ratio)}"
            cells.append("\n".join(line for line in (cell.words, update, detail) if line))
        rows.append((row.label, *((row.condition,) if verdicts.has_conditions else ()), *cells))
    head = ("", *(("condition",) if verdicts.has_conditions else ()), *verdicts.depths)
    console.table(f"Outcome, and ‖ΔF‖ after {verdicts.reference_step} updates", head, rows, _colour)
    console.say()
    console.paragraph(headline(runs, failed))
    if hint := advice(runs):
        console.paragraph(hint)


def quality(runs: Sequence[Run]) -> None:
    """BLEU of every method at every depth, with what it was measured by; nothing where nothing was translated."""
    from stabkit.figures import bleu

    frame = bleu.select(runs)
    for (signature, condition), own in frame.groupby(["signature", "condition"], sort=False):
        depths = list(own["depth"].unique())
        rows = [
            (label, *(bleu.words(mine[mine["depth"] == depth]) for depth in depths))
            for label, mine in own.groupby("label", sort=False)
        ]
        console.say()
        console.table(listed("BLEU, and perplexity on the validation text", str(condition)), ("", *depths), rows)
        console.say(f"sacreBLEU {signature}")


def _colour(text: str) -> str:
    """A cell's colour, by its outcome; an early one whose gradient has vanished is a warning."""
    words = text.split()
    if "gradient" in words:
        return "yellow"
    return COLOURS.get(words[0], "") if words else ""


def roughness(runs: Sequence[Run], surfaces: Sequence[Surface]) -> None:
    """How rough the cuts are, ruler by ruler: the ratio of the two methods, paired by direction."""
    from stabkit.figures import cuts
    from stabkit.figures.surfaces import Landscape

    frame = cuts.select(Landscape(runs, surfaces))
    if frame.empty:
        return
    console.say()
    console.table(
        "Roughness: mean absolute second difference of one-dimensional cuts, nats",
        ("depth", "seed", "ruler", "method", "roughness", "negative curvature"),
        [
            (
                depth,
                seed,
                ruler,
                label,
                short(geometric_mean(own["roughness"])),
                percent(float(own["negative"].mean())),
            )
            for (depth, seed, ruler, label), own in cuts.rough(frame).groupby(
                ["depth", "seed", "ruler", "label"], sort=False
            )
        ],
    )
