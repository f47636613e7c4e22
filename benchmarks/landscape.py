"""The same 25 × 25 surface at 18L-18L: our tiles on two warm workers against the library's own loop, in pairs.

    python benchmarks/landscape.py [PAIRS]

A: `stabkit` draws directions and evaluates every point, 25 tiles on two worker processes, timed from the moment that
the first of them is warm (has made a tile of another surface). B: the library's own directions (`rand_u_like` and
`filter_normalize_`, its default) and `planar_interpolation` with its defaults (torch's own number of threads) over as
many points, its imports done. Alternating, on the machine to itself; the load average is printed beside each, and the
ratio without B's directions.
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

from stabkit.results.surface import At, Plane, SurfaceSpec
from stabkit.running import surfaces, work
from stabkit.running.executors import processes
from stabkit.running.executors.base import ExecutorOptions
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.storage.store import Store
from stabkit.surface import directions
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
    context = {"corpus": None, "device": "cpu", "together": 1}
    return [job for _, job in surfaces.planned([spec], out, context).jobs]


def ours(out: Path, seed: int) -> float:
    """Seconds from the first warm worker to the last tile; the warming tiles are of surfaces of their own."""
    warm = [*jobs(out, 1000 + seed, 3), *jobs(out, 2000 + seed, 3)]
    begin, done = 0.0, 0
    for _ in processes.map([*warm, *jobs(out, seed, POINTS)], lambda event: None, ExecutorOptions(workers=2)):
        done += 1
        if done == 1:
            begin = time.perf_counter()
    return time.perf_counter() - begin


def theirs(out: Path, seed: int) -> tuple[float, float]:
    """(seconds of the library's directions, of its loop)."""
    import loss_landscapes
    import torch
    from loss_landscapes.metrics import Metric
    from loss_landscapes.model_interface.model_parameters import ModelParameters, orthogonal_to, rand_u_like

    from stabkit.training import train

    class Loss(Metric):
        def __call__(self, wrapper: Any) -> float:
            with torch.no_grad():
                return float(train.forward(wrapper.modules[0], batch, 0.1).loss)

    task = Synthetic(vocab=2000, max_tokens=512)
    batch = task.probe()
    model = train.build(SPEC, task, torch.device("cpu")).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # filter_normalize_ divides by what a fresh bias is
            parameter.add_(1e-3 * torch.randn_like(parameter))
    torch.manual_seed(seed)
    begin = time.perf_counter()
    with torch.no_grad():
        weights = ModelParameters(list(model.parameters()))
        one = rand_u_like(weights)
        two = orthogonal_to(one)
        for direction in (one, two):
            direction.filter_normalize_(weights)
        corners = []
        for signs in ((-1, -1), (1, -1), (-1, 1)):
            corner = copy.deepcopy(model)
            for sign, direction in zip(signs, (one, two), strict=True):
                for parameter, move in zip(corner.parameters(), direction.parameters, strict=True):
                    parameter.add_(move, alpha=sign)
            corners.append(corner)
    drawn = time.perf_counter()
    loss_landscapes.planar_interpolation(*corners, Loss(), POINTS)
    return drawn - begin, time.perf_counter() - drawn


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
        for _ in processes.map([job], lambda event: None, ExecutorOptions(workers=1)):
            pass
        ratios = []
        for pair in range(pairs):
            before = os.getloadavg()[0]
            a = ours(out, pair)
            between = os.getloadavg()[0]
            drawing, loop = theirs(out, pair)
            ratios.append((drawing + loop) / a)
            print(
                f"stabkit {a:.2f} s (load {before:.2f}), library {drawing:.2f} + {loop:.2f} s (load {between:.2f}): "
                f"{ratios[-1]:.2f} times, {loop / a:.2f} without its directions"
            )
        print(f"median {statistics.median(ratios):.2f} times as fast over {pairs} pairs, {POINTS} × {POINTS} points")
    assert np.isfinite(ratios).all()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
