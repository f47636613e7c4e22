"""What a command was asked for, as a value: grids, where they run, what is measured beside; and what it would cost.

`cli/parsing/` makes it from options, `carry_out.py` carries it out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stabkit import methods
from stabkit.errors import StoreError, UsageError
from stabkit.running import cost
from stabkit.running.executors import EXECUTORS, Place
from stabkit.running.executors.base import Answer, Tell
from stabkit.running.grid import Grid
from stabkit.running.plan_surfaces import Wanted
from stabkit.running.plan_translations import Wanted as Translations
from stabkit.running.work import Job
from stabkit.spec import Chosen, RunSpec
from stabkit.storage import size

MANY_RUNS = 2_000
LONG_SECONDS = 48 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a command was asked for."""

    grids: tuple[Grid, ...]
    """What they share is trained once."""
    out: Path
    device: str
    """Where the model runs: `cpu`, `cuda:1`, `mps`. The spec keeps its kind alone."""
    corpus: dict[str, str] | None
    """{"directory": DIR} of parallel text, or None for the synthetic task."""
    checkpoint_every: int | None
    """Updates; None: what suits each run."""
    executor: str
    place: Place
    translations: Translations | None = None
    """What is translated with the trained models; None: nothing."""
    surfaces: Wanted | None = None
    """What is drawn around the runs; None: nothing."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """{sha256: text} of the files of methods and probes that the command named."""
    files: Mapping[str, str] = field(default_factory=dict)
    """{path: sha256} of them, as they were when they were read."""
    notes: tuple[str, ...] = ()
    """What was left out of it, and why."""

    @property
    def workers(self) -> int:
        """As many processes as there is work for."""
        return min(self.place.workers, len(self))

    def __len__(self) -> int:
        """Runs, those that grids share counted in each."""
        return sum(map(len, self.grids))

    def execute(self, jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        """Jobs by the executor asked for, on its workers."""
        return EXECUTORS[self.executor](jobs, tell, self.place)

    def of(self, specs: Sequence[RunSpec]) -> Request:
        """The same for these runs alone, whatever grids they are of."""
        grids = tuple(
            Grid(
                base=spec,
                methods=(Chosen(key=spec.method, options=spec.options, own=spec.own),),
                depths=((spec.model.encoder_layers, spec.model.decoder_layers),),
                seeds=(spec.seed,),
                warmups=(spec.train.warmup,),
                lrs=(spec.train.lr,),
                alpha_scales=(spec.alpha_scale,),
                beta_scales=(spec.beta_scale,),
            )
            for spec in specs
        )
        return replace(self, grids=grids)

    def specs(self) -> list[RunSpec]:
        """Every run once, in the order of the grids."""
        found = (methods.with_recipe(spec, self.texts) for grid in self.grids for spec in grid.specs())
        return list({spec.run_id: spec for spec in found}.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a whole grid would take, were nothing in the store."""

    runs: int
    seconds: float
    """On all workers."""
    memory: int
    disk: int


def budget(request: Request) -> Budget:
    """The grid's cost, without building its specs: runs of one depth cost the same."""
    one = [
        (len(grid) // len(grid.depths), next(replace(grid, depths=(depth,)).specs()))
        for grid in request.grids
        for depth in grid.depths
    ]
    return Budget(
        runs=len(request),
        seconds=sum(share * cost.seconds(spec) for share, spec in one) / request.workers,
        memory=request.workers * max(cost.memory(spec) for _, spec in one),
        disk=sum(share * size.disk(spec) for share, spec in one),
    )


def check(request: Request) -> None:
    """Refuse a grid that looks like a slip: too many runs, too long, too large for this machine."""
    need = budget(request)
    hours, memory = f"{need.seconds / 3600:.2g} hours", f"{need.memory / 1e9:.1f} GB of memory"
    what = f"{need.runs} runs, about {hours} on {request.workers} workers, {memory}"
    if need.runs > MANY_RUNS:
        raise UsageError(f"this grid is large: {what}; --dry-run shows its cost, --yes runs it")
    if need.seconds > LONG_SECONDS:
        raise UsageError(f"this grid is long: {what}; --dry-run shows its cost, --yes runs it")
    if need.memory > (have := _memory()):
        raise UsageError(
            f"this grid is too large for the {have / 1e9:.1f} GB of memory here: {what}; "
            "use fewer --workers, smaller --max-tokens or --depths, or --yes"
        )


def space(need: int, out: Path) -> None:
    """Refuse a sweep that the disk cannot hold."""
    there = next(p for p in (out, *out.parents) if p.exists())
    free = shutil.disk_usage(there).free
    if need > free:
        has, needs = f"{free / 1e6:.0f} MB free", f"about {need / 1e6:.0f} MB"
        raise StoreError(f"{there} has {has}, these runs need {needs}; make room or name another --out")


def _memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return float("inf")
