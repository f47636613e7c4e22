"""Surfaces as work: which ones a command asks for around its runs, and a job a tile. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stabkit.errors import UsageError
from stabkit.results.run import Run
from stabkit.results.surface import At, Normalise, PathPlane, Plane, Surface, SurfaceSpec
from stabkit.running import cost, plan
from stabkit.running.plan import Plan, Work
from stabkit.spec import RunSpec
from stabkit.storage import weights
from stabkit.storage.jobs import Context, Job
from stabkit.storage.shelf import Shelf
from stabkit.storage.surfaces import SURFACE, Tiles
from stabkit.surface import directions, tiles
from stabkit.version import __version__

TOGETHER = 64
"""Points in one forward pass on a GPU."""
POINT, PATH, BESIDE = 0.4, 300, 0.4
"""What a point costs, in `cost.forward`: a batch half as large, without what a backward pass needs; a path, in points:
its plane, and the loss at each of its weights; and the seconds that a surface or a cut takes besides: directions,
stored weights, its model, its picture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SurfaceRequest:
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


def specs(runs: Sequence[Run], wanted: SurfaceRequest) -> list[SurfaceSpec]:
    """The surfaces of every pair of runs that differ in their method alone, under each one's directions, with their
    cuts; and each run's path in its own plane. Raises UsageError where a run did not keep the weights asked for."""
    across = directions.axis(wanted.points, wanted.reach)
    along = directions.axis(wanted.cut_points, wanted.reach)
    surfaces: list[SurfaceSpec] = []
    for together in _pairs(runs):
        points = [At(run=run.run_id, step=_step(run, wanted.at)) for run in together]
        for origin in points:
            for donor in points:
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
                        surfaces.append(
                            SurfaceSpec(origin=origin, plane=plane, a=across, b=across, device=wanted.device)
                        )
                    surfaces.append(SurfaceSpec(origin=origin, plane=plane, a=along, device=wanted.device))
        if wanted.path != "none":
            surfaces += [spec for run in together if (spec := _path(run, wanted))]
    return surfaces


def seconds(spec: RunSpec, wanted: SurfaceRequest | None, compared: int) -> float:
    """Of all surfaces around one run of a landscape of so many methods, on one core; 0 where none are drawn."""
    if wanted is None:
        return 0.0
    path = wanted.path != "none"
    surfaces = compared * (1 + len(wanted.direction_seeds)) + path
    return (points(wanted, compared) + PATH * path) * POINT * cost.forward(spec) + BESIDE * surfaces


def left(missing: Sequence[SurfaceSpec], passes: Mapping[str, float]) -> float:
    """The same of surfaces that are known; `passes`: {run id: seconds of a forward pass}."""
    return sum(
        (len(spec.a) * len(spec.b) + PATH * spec.path) * POINT * passes[spec.origin.run] + BESIDE for spec in missing
    )


def points(wanted: SurfaceRequest, compared: int) -> int:
    """Points of these surfaces."""
    random = compared * (wanted.points**2 + wanted.cut_points * len(wanted.direction_seeds))
    return random + (wanted.points**2 if wanted.path != "none" else 0)


def _pairs(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of one depth and seed, in the order they came."""
    pairs: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        pairs.setdefault((run.spec.depth, run.spec.seed), []).append(run)
    return list(pairs.values())


def _step(run: Run, at: str) -> int:
    """The number of updates that `at` names in this run."""
    last = run.outcome.steps
    step = {"init": 0, "end": last}.get(at)
    step = int(at) if step is None else step
    if step not in weights.stored_steps(run):
        have = ", ".join(map(str, weights.stored_steps(run)))
        raise UsageError(f"--at {at}: {run.run_id} kept the weights of steps {have}; --snapshots keeps more")
    return step


def _path(run: Run, wanted: SurfaceRequest) -> SurfaceSpec | None:
    """The surface around a run's path at the path's own range, a sixth to spare; None where the path has no plane."""
    steps = weights.snapshots(run)
    if len(steps) < 3 or wanted.path == "none":
        return None
    points = [weights.at(run, step, ()) for step in steps]
    try:
        axes = directions.pca(points) if wanted.path == "pca" else directions.hao(points)
    except ValueError:
        return None  # it does not move, or not finitely: there is nothing to draw
    projected = [directions.project(point, points[-1], axes.first, axes.second)[:2] for point in points]
    a, b = (_range([coordinates[i] for coordinates in projected], wanted.points) for i in (0, 1))
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


def planned(specs: Sequence[SurfaceSpec], out: Path, context: Context) -> Plan[SurfaceSpec, Surface]:
    """Which surfaces are whole, and the missing tiles of the others."""
    shelf = Shelf(SURFACE, out)

    def jobs(spec: SurfaceSpec) -> list[Job]:
        finished, rows = Tiles(shelf, spec), list[Job]()
        for name, first, last in tiles.names(spec):
            if finished.read(name, first, last) is None:
                tile: Job = {"kind": "tile", "id": f"{spec.surface_id}/{name}", "out": str(out)}
                rows.append({**tile, **context, "spec": spec.to_json(), "name": name, "first": first, "last": last})
        return rows

    def result(spec: SurfaceSpec, answer: str) -> Surface:
        with shelf.awaited(spec.surface_id):  # another command may be putting the same tiles together
            if spec.surface_id not in shelf:
                Tiles(shelf, spec).commit(tiles.names(spec), {"stabkit": __version__})
        return shelf.load(spec.surface_id)

    work = Work(
        kind="surface",
        again="drawn again",
        shelf=shelf,
        name=lambda spec: spec.surface_id,
        jobs=jobs,
        result=result,
    )
    return plan.plan(specs, work)
