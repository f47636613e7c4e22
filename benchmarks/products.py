"""One run with its matrix products by each library in turn: benchmarks/products.py [LAYERS] [STEPS] [PAIRS] [WORKERS].

WORKERS processes a side train the same run at once, as a sweep's workers do; the sides alternate, after one run of each
that is not counted. Prints the processor, what `model/library.py` chooses on it, and each pair's ratio MKL / oneDNN.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

import torch

from stabkit.model import kernels, library
from stabkit.running import work
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train


def worker(side: str, layers: int, steps: int) -> None:
    """Train once for every line read, and answer with the seconds it took."""
    import time

    work.prepare()
    kernels._ONEDNN = torch.ops.mkldnn._linear_pointwise if side == "oneDNN" else None
    task = Synthetic(vocab=2000, max_tokens=512)
    size = ModelConfig(encoder_layers=layers, decoder_layers=layers)
    spec = RunSpec(method="post-ln", model=size, train=TrainConfig(steps=steps))
    for _ in sys.stdin:
        begin = time.perf_counter()
        train.run(spec, task)
        print(time.perf_counter() - begin, flush=True)


def main(layers: str = "50", steps: str = "4", pairs: str = "3", workers: str = "2") -> None:
    sides = {
        side: [
            subprocess.Popen(
                [sys.executable, __file__, side, layers, steps],
                env={**os.environ, **work.ENVIRONMENT},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(int(workers))
        ]
        for side in ("oneDNN", "MKL")
    }

    def timed(side: str) -> float:
        for process in sides[side]:
            print("go", file=process.stdin, flush=True)
        return max(float(process.stdout.readline()) for process in sides[side])

    print(f"{library.processor()}: stabkit chooses {library.library()}; load {os.getloadavg()[0]:.2f}")
    for side in sides:
        timed(side)
    ratios = []
    for _ in range(int(pairs)):
        one, mkl = timed("oneDNN"), timed("MKL")
        ratios.append(mkl / one)
        print(f"  oneDNN {one:6.2f} s   MKL {mkl:6.2f} s   ratio {ratios[-1]:.2f}   load {os.getloadavg()[0]:.2f}")
    print(f"{layers}L-{layers}L, {steps} steps, {workers} workers: median ratio {statistics.median(ratios):.2f}")
    for process in (*sides["oneDNN"], *sides["MKL"]):
        process.kill()


if __name__ == "__main__":
    if sys.argv[1:2] in (["MKL"], ["oneDNN"]):
        worker(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(*sys.argv[1:])
