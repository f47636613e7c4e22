"""A run by the fused kernels over the same run in torch's operations.

    python -m benchmarks.kernels [DATA [ROUNDS [DEPTH TOKENS]]]

Sixteen updates with all records and the validation of each of the four methods that `sweep` takes by default, in one
process that is set up as a worker is; in each round every method by both, the order turned from round to round. Printed
are the seconds of each round, and the median over the rounds of the ratio. After `ATEN_CPU_CAPABILITY=avx2` both take
what a processor without AVX-512 would. DATA: a folder with train.de and train.en; `-`: the synthetic task.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from stabkit.running import work

METHODS = ("post-ln", "post-ln-init", "admin", "deepnorm")


def main(data: str = "-", rounds: str = "3", depth: str = "18", tokens: str = "512") -> None:
    from stabkit.kernels import products
    from stabkit.kernels.native import Native, native
    from stabkit.spec import Kernels, ModelConfig, RunSpec, TrainConfig
    from stabkit.tasks.base import Task
    from stabkit.tasks.corpus import find
    from stabkit.tasks.synthetic import Synthetic
    from stabkit.tasks.text import ParallelText
    from stabkit.training import train

    work.prepare()
    size = int(tokens)
    task: Task = Synthetic(vocab=2000, max_tokens=size)
    if data != "-":
        task = ParallelText(corpus=find(Path(data), "de", "en"), vocab=2000, max_tokens=size)
    model, config = (
        ModelConfig(encoder_layers=int(depth), decoder_layers=int(depth)),
        TrainConfig(max_tokens=size, steps=16),
    )
    specs = [RunSpec(method=key, model=model, train=config) for key in METHODS]

    def seconds(kernels: Kernels) -> float:
        begin = time.perf_counter()
        for spec in specs:
            train.run(spec, task, kernels=kernels)
        return time.perf_counter() - begin

    found = native()
    library = found.processor if isinstance(found, Native) else found
    print(f"{products.processor()}, {library}; {depth}L-{depth}L, {tokens} tokens")
    seconds("fused")
    ratios = []
    for number in range(int(rounds)):
        order: list[Kernels] = ["fused", "python"] if number % 2 else ["python", "fused"]
        took = {kernels: seconds(kernels) for kernels in order}
        ratios.append(took["fused"] / took["python"])
        print(f"  fused {took['fused']:.2f} s, python {took['python']:.2f} s: {ratios[-1]:.3f}", flush=True)
    print(f"median {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in work.ENVIRONMENT.items()):
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.kernels", *sys.argv[1:]],
            {**os.environ, **work.ENVIRONMENT},
        )
    main(*sys.argv[1:])
