"""The same 25 × 25 surface at 18L-18L: our tiles on two warm workers against the library's own loop, in pairs.

    python benchmarks/landscape.py [PAIRS]

A: `stabkit` draws directions and evaluates every point, five tiles on two worker processes, timed from the moment that
the first of them is warm (has made a tile of another surface). B: `loss_landscapes.planar_interpolation` with its
defaults (torch's own number of threads) over the same plane, its imports done and its three models made; the directions
are given to it, so that its own slow normalisation is not held against it. Alternating, on the machine to itself; the
load average is printed beside each.
"""

from __future__ import annotations

import copy
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import landscape, work
from stabkit.executors import processes
from stabkit.executors.base import Place
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.store import Store
from stabkit.surface import directions
from stabkit.surface.evaluate import Evaluator
from stabkit.surface.shelf import Shelf
from stabkit.surface.spec import At, Plane, SurfaceSpec
from stabkit.tasks.synthetic import Synthetic

POINTS = 25
SPEC = RunSpec(
    method="deepnorm",
    model=ModelConfig(encoder_layers=18, decoder_layers=18),
    train=TrainConfig(steps=5, warmup=0),
    task=TaskConfig(digest=Synthetic(vocab=2000, max_tokens=512).digest),
)


def jobs(out: Path, seed: int, points: int) -> list[dict[str, Any]]:
    across = directions.axis(points, 1.0)
    origin = At(run=SPEC.run_id, step=SPEC.train.steps)
    spec = SurfaceSpec(origin=origin, plane=Plane(kind="random", seed=seed), a=across, b=across)
    context = {"out": str(out), "corpus": None, "device": "cpu", "together": 1}
    return landscape.plan([spec], Shelf(out), context).jobs


def ours(out: Path, seed: int) -> float:
    """Seconds from the first warm worker to the last tile; the warming tiles are of surfaces of their own."""
    warm = [*jobs(out, 1000 + seed, 3), *jobs(out, 2000 + seed, 3)]
    begin, done = 0.0, 0
    for _ in processes.map([*warm, *jobs(out, seed, POINTS)], lambda event: None, Place(workers=2)):
        done += 1
        if done == 1:
            begin = time.perf_counter()
    return time.perf_counter() - begin


def theirs(out: Path, seed: int) -> float:
    """Seconds of the library's loop over the same points."""
    import loss_landscapes
    import torch
    from loss_landscapes.metrics import Metric

    from stabkit import train

    class Loss(Metric):
        def __call__(self, wrapper: Any) -> float:
            with torch.no_grad():
                return float(train.forward(wrapper.modules[0], batch, 0.1).loss)

    task = Synthetic(vocab=2000, max_tokens=512)
    batch = task.probe()
    model = train.build(SPEC, task, torch.device("cpu")).eval()
    evaluator = Evaluator(model, float)
    first, second = directions.random_plane(evaluator.origin, evaluator.layout, seed)
    corners = []
    for theta in (
        evaluator.origin - first - second,
        evaluator.origin + first - second,
        evaluator.origin - first + second,
    ):
        corner = copy.deepcopy(evaluator.model)
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(torch.from_numpy(theta).float(), corner.parameters())
        corners.append(corner)
    begin = time.perf_counter()
    loss_landscapes.planar_interpolation(*corners, Loss(), POINTS)
    return time.perf_counter() - begin


def main(pairs: int) -> None:
    os.environ.update(work.ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        Store(out).runs.mkdir()
        job = {
            "kind": "run",
            "id": SPEC.run_id,
            "out": str(out),
            "spec": SPEC.to_json(),
            "corpus": None,
            "device": "cpu",
        }
        for _ in processes.map([job], lambda event: None, Place(workers=1)):
            pass
        ratios = []
        for pair in range(pairs):
            before = os.getloadavg()[0]
            a = ours(out, pair)
            between = os.getloadavg()[0]
            b = theirs(out, pair)
            ratios.append(b / a)
            print(f"stabkit {a:.2f} s (load {before:.2f}), library {b:.2f} s (load {between:.2f}): {b / a:.2f} times")
        print(f"median {statistics.median(ratios):.2f} times as fast over {pairs} pairs, {POINTS} × {POINTS} points")
    assert np.isfinite(ratios).all()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
