"""Sides that train the same run in turn: what `products.py` and `fused.py` share.

A side is a name; the script that asks is started once more for each worker of each side, with that name, LAYERS and
STEPS, and trains once for every line that it reads (`answer`). The sides alternate, after one run of each that is not
counted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

from stabkit.model import library
from stabkit.running import work
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train


def answer(method: str, layers: int, steps: int) -> None:
    """In a worker: train once for every line read, and say the seconds that it took and ‖ΔF‖."""
    work.prepare()
    size = ModelConfig(encoder_layers=layers, decoder_layers=layers)
    spec, task = RunSpec(method=method, model=size, train=TrainConfig(steps=steps)), Synthetic()
    for _ in sys.stdin:
        begin = time.perf_counter()
        found = train.run(spec, task)
        print(time.perf_counter() - begin, found.outcome.chain.update_reference, flush=True)


def compare(script: str, one: str, other: str, layers: str, steps: str, pairs: str, workers: str) -> None:
    """Print every pair's seconds, and the median of other / one."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    where = {**os.environ, **work.ENVIRONMENT}
    command = [sys.executable, script]
    sides = {
        side: [subprocess.Popen([*command, side, layers, steps], env=where, **pipes) for _ in range(int(workers))]
        for side in (one, other)
    }

    def timed(side: str) -> tuple[float, str]:
        for process in sides[side]:
            print("go", file=process.stdin, flush=True)
        said = [process.stdout.readline().split() for process in sides[side]]
        return max(float(words[0]) for words in said), said[0][1]

    print(f"{library.processor()}; load {os.getloadavg()[0]:.2f}")
    updates = [timed(side)[1] for side in (one, other)]
    ratios = []
    for _ in range(int(pairs)):
        first, second = timed(one)[0], timed(other)[0]
        ratios.append(second / first)
        print(f"  {one} {first:6.2f} s   {other} {second:6.2f} s   ratio {ratios[-1]:.2f}", flush=True)
    print(f"{layers}L-{layers}L, {steps} steps, {workers} workers: median ratio {statistics.median(ratios):.2f}")
    print(f"‖ΔF‖ {updates[0]} and {updates[1]}")
    for process in (*sides[one], *sides[other]):
        process.kill()
