"""What a worker does for a surface: some of its rows, or its path. Reads runs, adds tiles, touches nothing else.

{"kind": "tile", "id": SURFACE_ID/NAME, "out": DIR, "spec": {...}, "name": "rows-0-1" | "path", "first": 0, "last": 1,
 "corpus": null | {"directory": DIR}, "device": "cpu", "kernels": "fused", "together": 1}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stabkit.errors import UsageError
from stabkit.results import surface as specs
from stabkit.results.run import Run
from stabkit.results.surface import PATH, At, Plane, SurfaceSpec
from stabkit.spec import Kernels, canonical
from stabkit.storage import weights
from stabkit.storage.jobs import Event, Job
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.surfaces import SURFACE, Tiles
from stabkit.surface import directions
from stabkit.surface.directions import Layout, Vector

if TYPE_CHECKING:
    from stabkit.surface.evaluate import Evaluator

ROWS = 1
"""Of a surface, in a tile: small, so that workers end together; a crash costs what was under way."""


def names(spec: SurfaceSpec) -> list[tuple[str, int, int]]:
    """(name, first row, last row + 1) of every tile; the path's stands first and has no rows."""
    rows = [
        (f"rows-{i}-{min(i + ROWS, len(spec.b))}", i, min(i + ROWS, len(spec.b))) for i in range(0, len(spec.b), ROWS)
    ]
    return [("path", 0, 0), *rows] if spec.path else rows


def tile(job: Job, tell: Callable[[Event], None], task: Callable[..., Any]) -> tuple[str, str]:
    """Compute one tile and keep it; `task` makes the task of a run's spec."""
    spec = specs.from_json(job["spec"])
    shelf = Shelf(SURFACE, Path(job["out"]))
    with shelf.hold(job["id"], job.get("over", "")):
        made = Tiles(shelf, spec).read(job["name"], job["first"], job["last"]) is not None
        if not made and shelf.load_if_sound(spec.surface_id) is None:  # nor whole by another command meanwhile
            Tiles(shelf, spec).save(job["name"], _computed(job, spec, task))
    return job["id"], "done"


def _computed(job: Job, spec: SurfaceSpec, task: Callable[..., Any]) -> dict[str, Any]:
    out = job["out"]
    where = (job["device"], job.get("kernels", "fused"), job["together"])
    evaluator = _evaluator(out, spec.origin.run, canonical(job["corpus"]), *where, task)
    origin, (first, second) = plane(Path(out), canonical(spec.to_json() | {"a": [], "b": []}), evaluator.layout)
    if job["name"] == "path":
        return _path(Path(out), spec, evaluator, origin, first, second)
    points = [(a, b) for b in spec.b[job["first"] : job["last"]] for a in spec.a]
    losses = evaluator.at(origin, (first, second), points)
    return {"first": np.array(float(job["first"])), "loss": losses.reshape(-1, len(spec.a))}


@lru_cache(maxsize=1)  # tiles come surface by surface, and a deep model and its planes are large
def _evaluator(
    out: str, run_id: str, corpus: str, device: str, kernels: Kernels, together: int, task: Callable[..., Any]
) -> Evaluator:
    """The model of a run, ready to be moved; kept between tiles."""
    import json

    import torch

    from stabkit.surface.evaluate import Evaluator
    from stabkit.training import train

    spec = Store(Path(out)).load(run_id).spec
    made = task(spec, json.loads(corpus), Path(out))
    batch = made.probe()
    model = train.build(spec, made, torch.device(device), kernels=kernels)
    return Evaluator(model, lambda moved: train.forward(moved, batch, spec.train.label_smoothing).loss, together)


@lru_cache(maxsize=1)
def plane(out: Path, spec_json: str, tensors: tuple[directions.Tensor, ...]) -> tuple[Vector, tuple[Vector, Vector]]:
    """(origin, (δ, η)) of a surface; raises UsageError where the weights that it needs are not there or not alike."""
    import json

    value = json.loads(spec_json)
    spec = specs.from_json({**value, "a": [0.0], "b": [0.0]})
    store, chosen = Store(out), spec.plane
    origin = _weights(store.load(spec.origin.run), spec.origin, tensors)
    if chosen.kind == "random":
        of = origin if chosen.of is None else _donated(store.load(chosen.of.run), chosen.of, tensors, chosen)
        return origin, directions.random_plane(
            of, tensors, chosen.seed, chosen.normalise, chosen.one_dimensional, chosen.orthogonalise
        )
    path_axes = axes(store.load(spec.origin.run), chosen.kind, tensors)
    return origin, (path_axes.first, path_axes.second)


def axes(run: Run, kind: str, tensors: Layout) -> directions.Axes:
    """The plane of a run's path; raises UsageError where it kept too few weights."""
    path = [_weights(run, At(run=run.run_id, step=step), tensors) for step in weights.snapshots(run)]
    try:
        return directions.pca(path) if kind == "pca" else directions.hao(path)
    except ValueError as error:
        raise UsageError(f"{run.run_id}: {error}; --snapshots keeps more") from error


def _weights(run: Run, at: At, tensors: Layout) -> Vector:
    by_name = {tensor.name: tensor for tensor in directions.layout(weights.shapes(run))}
    mine = [by_name[tensor.name] for tensor in tensors if tensor.name in by_name]
    mine += [tensor for name, tensor in by_name.items() if name not in {tensor.name for tensor in tensors}]
    if unlike := directions.difference(tensors, mine):
        raise UsageError(f"{run.run_id} has other weights: {unlike}")
    return weights.at(run, at.step, [tensor.name for tensor in tensors])


def _donated(run: Run, at: At, tensors: Layout, plane: Plane) -> Vector:
    """Another run's weights in the places of these tensors: what its directions are as long as.

    Two methods may differ in their norms and single numbers, which rest, and which are 0 here where the other has none;
    matrices must be the same. Raises UsageError where they are not, or where what differs would move.
    """
    if plane.one_dimensional:
        return _weights(run, at, tensors)
    donor = _layout(run)
    matrices = [tuple(tensor for tensor in layout if not tensor.rests) for layout in (tensors, donor)]
    if {(t.name, t.shape) for t in matrices[0]} != {(t.name, t.shape) for t in matrices[1]}:
        raise UsageError(f"{run.run_id} has other matrices: {directions.difference(*matrices)}")
    theta = weights.at(run, at.step, [tensor.name for tensor in donor])
    parts = {(tensor.name, tensor.shape): theta[tensor.part] for tensor in donor}
    return np.concatenate([parts.get((t.name, t.shape), np.zeros(t.size)) for t in tensors])


def _layout(run: Run) -> Layout:
    """A run's tensors in the order in which its model uses them: that of its snapshots, not of its file."""
    from stabkit import methods
    from stabkit.model.transformer import Transformer

    spec = run.spec
    method = methods.build(spec.method, spec.options, spec.alpha_scale, spec.beta_scale)
    model = Transformer(spec.model, method, spec.task.vocab, spec.seed)
    return directions.layout([(name, tuple(p.shape)) for name, p in model.named_parameters()])


def _path(
    out: Path, spec: SurfaceSpec, evaluator: Evaluator, origin: Vector, first: Vector, second: Vector
) -> dict[str, Any]:
    """PATH's columns, and what is worth knowing of the plane."""
    run = Store(out).load(spec.origin.run)
    rows: list[Sequence[float]] = []
    for step in weights.snapshots(run):
        theta = weights.at(run, step, [tensor.name for tensor in evaluator.layout])
        a, b, outside = directions.project(theta, origin, first, second)
        (loss,) = evaluator.at(theta, (), [()])
        (projected,) = evaluator.at(origin, (first, second), [(a, b)])
        rows.append((float(step), a, b, outside, loss, projected))
    columns = {f"path.{name}": np.array(column) for name, column in zip(PATH, zip(*rows, strict=True), strict=True)}
    if spec.plane.kind in ("pca", "hao"):
        explained = axes(run, spec.plane.kind, evaluator.layout).explained
        columns |= {f"fact.explained_{i}": np.array(share) for i, share in enumerate(explained, 1)}
    return columns
