"""Runs → surfaces that are not on the shelf → executor → shelf. Never imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stabkit.errors import StoreError, UsageError
from stabkit.results.surface import At, Engine, Normalise, Plane, SurfaceSpec
from stabkit.running.executors.base import Tell
from stabkit.running.retry import Map, attempted
from stabkit.running.work import Job
from stabkit.storage import weights
from stabkit.storage.folder import CorruptFolder, OldFolder
from stabkit.storage.store import Run
from stabkit.storage.surfaces import Surface, SurfaceShelf
from stabkit.surface import directions, tiles
from stabkit.version import __version__

TOGETHER = 64
"""Points in one forward pass on a GPU."""
PathPlane = Literal["pca", "hao", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which surfaces a command asks for."""

    at: str = "end"
    """`init`, `end` or a number of updates."""
    points: int = 25
    reach: float = 1.0
    cut_points: int = 51
    direction_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """The first draws the surfaces, all of them the cuts."""
    normalise: Normalise = "filter"
    one_dimensional: bool = False
    path: PathPlane = "pca"
    device: str = "cpu"
    engine: Engine = "stabkit"
    """Of the surfaces; cuts and paths are always our own."""


def specs(runs: Sequence[Run], wanted: Wanted) -> list[SurfaceSpec]:
    """The surfaces of every pair of runs that differ in their method alone, under each one's directions, with their
    cuts; and each run's path in its own plane. Raises UsageError where a run did not keep the weights asked for."""
    across = directions.axis(wanted.points, wanted.reach)
    along = directions.axis(wanted.cut_points, wanted.reach)
    found: list[SurfaceSpec] = []
    for together in _pairs(runs):
        places = [At(run=run.run_id, step=_step(run, wanted.at)) for run in together]
        for origin in places:
            for donor in places:
                of = None if donor == origin else donor
                for seed in wanted.direction_seeds:
                    plane = Plane(
                        kind="random",
                        seed=seed,
                        normalise=wanted.normalise,
                        one_dimensional=wanted.one_dimensional,
                        of=of,
                        orthogonalise=False,  # as Li et al. have it
                    )
                    if seed == wanted.direction_seeds[0]:
                        found.append(
                            SurfaceSpec(
                                origin=origin,
                                plane=plane,
                                a=across,
                                b=across,
                                device=wanted.device,
                                engine=wanted.engine,
                            )
                        )
                    found.append(SurfaceSpec(origin=origin, plane=plane, a=along, device=wanted.device))
        if wanted.path != "none":
            found += [spec for run in together if (spec := _path(run, wanted))]
    return found


def between(runs: Sequence[Run], wanted: Wanted) -> list[SurfaceSpec]:
    """The line from the first run's last weights to the second's, or the plane of three; raises UsageError for fewer or
    more runs."""
    if len(runs) not in (2, 3):
        raise UsageError(f"--between takes two runs for a line or three for a triangle, got {len(runs)}")
    ends = [At(run=run.run_id, step=run.outcome.steps) for run in runs]
    unit = max(1, round((wanted.points - 1) / 1.5))
    before = (wanted.points - 1 - unit) // 2
    along = tuple((i - before) / unit for i in range(wanted.points))
    plane = Plane(kind="between", to=tuple(ends[1:]))
    return [
        SurfaceSpec(origin=ends[0], plane=plane, a=along, b=along if len(runs) == 3 else (0.0,), device=wanted.device)
    ]


def _pairs(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of one depth and seed, in the order they came."""
    held: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        held.setdefault((run.spec.depth, run.spec.seed), []).append(run)
    return list(held.values())


def _step(run: Run, at: str) -> int:
    """The number of updates that `at` names in this run."""
    last = run.outcome.steps
    step = {"init": 0, "end": last}.get(at)
    step = int(at) if step is None else step
    if step not in weights.kept(run):
        have = ", ".join(map(str, weights.kept(run)))
        raise UsageError(f"--at {at}: {run.run_id} kept the weights of steps {have}; --snapshots keeps more of them")
    return step


def _path(run: Run, wanted: Wanted) -> SurfaceSpec | None:
    """The surface around a run's path at the path's own range, a sixth to spare; None where the path has no plane."""
    steps = weights.snapshots(run)
    if len(steps) < 3 or wanted.path == "none":
        return None
    points = [weights.at(run, step, ()) for step in steps]
    try:
        axes = directions.pca(points) if wanted.path == "pca" else directions.hao(points)
    except ValueError:
        return None  # it does not move, or not finitely: there is nothing to draw
    places = [directions.project(point, points[-1], axes.first, axes.second)[:2] for point in points]
    a, b = (_range([place[i] for place in places], wanted.points) for i in (0, 1))
    plane = Plane(kind=wanted.path)
    return SurfaceSpec(
        origin=At(run=run.run_id, step=steps[-1]), plane=plane, a=a, b=b, path=True, device=wanted.device
    )


def _range(values: Sequence[float], points: int) -> tuple[float, ...]:
    """`points` evenly over the values and a sixth more on each side, one of them exactly 0."""
    low, high = min(values), max(values)
    room = (high - low) / 6 or 1.0
    width = (high - low + 2 * room) / (points - 1)
    before = round((room - low) / width)
    return tuple(float(f"{(i - before) * width:.9g}") for i in range(points))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is on the shelf, and the tiles that are missing."""

    ready: list[Surface]
    missing: list[SurfaceSpec]
    jobs: list[Job]
    corrupt: list[str]


def plan(wanted: Sequence[SurfaceSpec], shelf: SurfaceShelf, context: dict[str, Any]) -> Plan:
    """Which surfaces are whole, and the jobs of the others; a folder that fails its check goes to quarantine."""
    ready: list[Surface] = []
    missing: list[SurfaceSpec] = []
    jobs: list[Job] = []
    corrupt: list[str] = []
    for spec in wanted:
        if spec.surface_id in shelf:
            try:
                ready.append(shelf.load(spec.surface_id))
                continue
            except (CorruptFolder, OldFolder) as error:
                corrupt.append(f"corrupt surface: {error}; moved to {shelf.quarantine(spec.surface_id)}, drawn again")
        missing.append(spec)
        jobs += [
            {
                "kind": "tile",
                "id": f"{spec.surface_id}/{name}",
                "spec": spec.to_json(),
                "name": name,
                "first": first,
                "last": last,
                **context,
            }
            for name, first, last in tiles.names(spec)
            if shelf.tile(spec, name, first, last) is None
        ]
    return Plan(ready, missing, jobs, corrupt)


def run(
    planned: Plan,
    shelf: SurfaceShelf,
    execute: Map,
    tell: Tell,
    finished: Callable[[str], None],
) -> Iterator[Surface]:
    """Compute the missing tiles and put whole surfaces on the shelf; raises StoreError when one cannot be made."""
    lost = attempted(planned.jobs, execute, tell, finished)
    of_surface = {name.partition("/")[0]: reason for name, reason in lost.items()}
    for spec in planned.missing:
        if spec.surface_id in of_surface:
            raise StoreError(f"{spec.surface_id}: {of_surface[spec.surface_id]}; finished tiles are kept: run it again")
        shelf.commit(spec, tiles.names(spec), {"stabkit": __version__})
        yield shelf.load(spec.surface_id)
