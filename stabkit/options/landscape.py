"""Options of a landscape → a Request with the surfaces that are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods.base import sites
from stabkit.options import grids, ranges
from stabkit.options.commands import LandscapeOptions
from stabkit.options.grids import Making
from stabkit.results.surface import NORMALISATIONS, PathPlane
from stabkit.running.grid import Grid
from stabkit.running.request import Request
from stabkit.running.surfaces import SurfaceRequest
from stabkit.spec import snapshot_steps


def landscape(options: LandscapeOptions, making: Making) -> Request:
    """The request of a landscape: the runs of two methods, and the surfaces around them."""
    models = [ranges.name("--model", options.model)]
    if options.against:
        models.append(ranges.name("--against", options.against))
    parsed = [methods.parse(model) for model in models]
    if len({methods.label(*one) for one in parsed}) < len(parsed):
        raise UsageError(f"--against {options.against} is --model itself; name another method, or '' for none")
    whole, rest = grids.parsed(models, options, making)
    grid = grids.single(whole, "a landscape")
    if len(grid.warmups) > 1 or len(grid.lrs) > 1:
        raise UsageError("a landscape takes one --warmup and one --lr; run it once for each value")
    if len({_gates(*one, grid) for one in parsed}) > 1:
        raise UsageError(
            f"{models[0]} and {models[1]} do not train the same matrices (a gate on attention adds one), and a common "
            "plane needs the same; draw each with its own command and --against ''"
        )
    wanted = surfaces(options, grid.base.train.steps, rest.device.partition(":")[0])
    kept = sorted({*snapshot_steps(grid.base), grid.base.train.steps})
    if wanted.at not in ("end", *map(str, kept)) and not (wanted.at == "init" and 0 in kept):
        count, have = ranges.text(options.snapshots), ", ".join(map(str, kept))
        raise UsageError(f"--at {wanted.at}: with --snapshots {count}, weights are kept at steps {have}")
    return replace(grids.request(whole, rest, many=options.yes), surfaces=wanted)


def _gates(key: str, options: Mapping[str, str], grid: Grid) -> tuple[str, ...]:
    """Which gates on attention a method trains, by site: the one matrix that not every method has, wirings' apart,
    which rest in a landscape."""
    method = methods.build(key, options)
    n, m = grid.depths[0]
    return tuple(method.gate(site) for site in sites(n, m, grid.base.model.hidden))


def surfaces(options: LandscapeOptions, steps: int, device: str) -> SurfaceRequest:
    """Which surfaces; `steps`: the last that `--at` may name."""
    points = ranges.whole("--points", options.points, 3, 1001)
    cut_points = ranges.whole("--cut-points", options.cut_points, 3, 100_001)
    for option, count in (("--points", points), ("--cut-points", cut_points)):
        if count % 2 == 0:
            raise UsageError(f"{option} must be odd, with one point in the middle; got {count}, use {count + 1}")
    at = ranges.text(options.at)
    if at not in ("init", "end"):
        at = str(ranges.whole("--at", options.at, 0, steps))
    return SurfaceRequest(
        at=at,
        points=points,
        reach=ranges.real("--range", options.range, 0.0, 1e6, above=True),
        cut_points=cut_points,
        direction_seeds=ranges.wholes("--direction-seeds", options.direction_seeds, 0, 2**31 - 1),
        normalise=ranges.choice("--normalise", options.normalise, NORMALISATIONS),
        one_dimensional=options.one_dimensional,
        path=ranges.choice("--path", options.path, get_args(PathPlane)),
        device=device,
    )
