"""Options of `stabkit landscape` (texts) → a Request with the surfaces that are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from stabkit import methods
from stabkit.cli import ranges
from stabkit.cli.parsing import grids
from stabkit.errors import UsageError
from stabkit.results.surface import NORMALISATIONS, Engine
from stabkit.running.request import Request
from stabkit.running.surfaces import PathPlane, SurfaceRequest
from stabkit.spec import snapshot_steps


def landscape(options: Mapping[str, Any]) -> Request:
    """The request of a landscape: the runs of two methods, and the surfaces around them."""
    text = {name: str(value) for name, value in options.items()}
    models = [text["model"], *([text["against"]] if text["against"] else [])]
    parsed = [methods.parse(model) for model in models]
    if len({methods.label(*one) for one in parsed}) < len(parsed):
        raise UsageError(f"--against {text['against']} is --model itself; name another method, or '' for none")
    whole, rest = grids.parsed({**options, "models": ",".join(models)})
    grid = grids.single(whole, "a landscape")
    if len(grid.warmups) > 1 or len(grid.lrs) > 1:
        raise UsageError("a landscape is of one --warmup and one --lr; run it once for each")
    wanted = surfaces(text, grid.base.train.steps, rest.device.partition(":")[0])
    kept = sorted({*snapshot_steps(grid.base), grid.base.train.steps})
    if wanted.at not in ("end", *map(str, kept)) and not (wanted.at == "init" and 0 in kept):
        have = ", ".join(map(str, kept))
        raise UsageError(f"--at {wanted.at}: with --snapshots {text['snapshots']} the weights of steps {have} are kept")
    return replace(grids.request(whole, rest, options), surfaces=wanted)


def depth(n: int, m: int) -> dict[str, str]:
    """--depths and --arch of a model of N encoder and M decoder layers."""
    if n and m:
        return {"depths": f"{n}x{m}", "arch": "encoder-decoder"}
    return {"depths": str(n or m), "arch": "encoder-only" if n else "decoder-only"}


def surfaces(text: Mapping[str, str], steps: int, device: str) -> SurfaceRequest:
    """Which surfaces; `steps`: the last that `--at` may name."""
    points = ranges.whole("--points", text["points"], 3, 1001)
    cut_points = ranges.whole("--cut-points", text["cut_points"], 3, 100_001)
    for option, count in (("--points", points), ("--cut-points", cut_points)):
        if count % 2 == 0:
            raise UsageError(f"{option} must be odd, so that one point is the middle; got {count}, use {count + 1}")
    at = text["at"]
    if at not in ("init", "end"):
        at = str(ranges.whole("--at", at, 0, steps))
    return SurfaceRequest(
        at=at,
        points=points,
        reach=ranges.real("--range", text["range"], 0.0, 1e6, above=True),
        cut_points=cut_points,
        direction_seeds=ranges.wholes("--direction-seeds", text["direction_seeds"], 0, 2**31 - 1),
        normalise=ranges.choice("--normalise", text["normalise"], NORMALISATIONS),
        one_dimensional=text["one_dimensional"] == "True",
        path=ranges.choice("--path", text["path"], get_args(PathPlane)),
        device=device,
        engine=ranges.choice("--engine", text["engine"], get_args(Engine)),
    )
