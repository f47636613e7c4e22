"""What denormal numbers cost where gradients vanish: benchmarks/denormals.py [LAYERS] [STEPS] [ROUNDS].

Trains Post-LN without warm-up, with denormal numbers and without, in one process on one thread, by turns; tells the
ratio of the median steps and how far apart the records of both are.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

WITH = train.run.__wrapped__  # type: ignore[attr-defined]
"""The training loop as a caller without `without_denormals` would find it."""


def timed(loop: Callable[..., train.Result], spec: RunSpec, task: Synthetic) -> tuple[float, train.Result]:
    """(the median step's seconds in the second half, what was recorded)."""
    at = [time.perf_counter()]
    result = loop(spec, task, tell=lambda step, loss: at.append(time.perf_counter()))
    steps = np.diff(at)
    return float(np.median(steps[len(steps) // 2 :])), result


def apart(one: train.Result, other: train.Result) -> float:
    """The largest relative difference of anything recorded; infinite where one is a number, or zero, alone."""
    worst = 0.0
    for name, table in one.records.items():
        a, b = table.values, other.records[name].values
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(all="ignore"):
            difference = np.where(same, 0.0, np.abs(a - b) / np.abs(a))
        worst = max(worst, float(np.max(np.where(np.isnan(difference), np.inf, difference), initial=0.0)))
    return worst


def main(layers: int = 100, steps: int = 40, rounds: int = 1) -> None:
    torch.set_num_threads(1)
    task = Synthetic(vocab=2000, max_tokens=256)
    model = ModelConfig(encoder_layers=layers, decoder_layers=layers)
    training = TrainConfig(steps=steps, warmup=0, lr=1e-3, max_tokens=256)
    spec = RunSpec(method="post-ln", model=model, train=training)
    kept, zeroed = [], []
    for _ in range(rounds):
        seconds, with_them = timed(WITH, spec, task)
        kept.append(seconds)
        seconds, without = timed(train.run, spec, task)
        zeroed.append(seconds)
    one, other = statistics.median(kept), statistics.median(zeroed)
    print(
        f"Post-LN {spec.depth}, step {steps // 2} to {steps}: with denormal numbers {1000 * one:.0f} ms a step, "
        f"without {1000 * other:.0f} ms, ratio {one / other:.2f}"
    )
    print(f"largest relative difference of anything recorded: {apart(with_them, without):.1e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
