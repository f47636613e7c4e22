"""Runs a minute with several at once on one device: python benchmarks/at_once.py [DEVICE] [LAYERS] [STEPS] [K…].

DeepNorm encoder-decoders of the papers' size, other seeds, 512 tokens, everything recorded: K of them at once
(`training/vmapped.py`) against K one after another, after one that is not counted. A line each: seconds, runs a minute,
and the ratio to one at a time. What it is for is a GPU, where a model 64 wide waits for its next operation; on a CPU
there is nothing to gain, and `--kernels fused` is faster than either.
"""

from __future__ import annotations

import sys
import time

import torch

from stabkit.kernels import products
from stabkit.running import work
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train, vmapped


def main(device: str = "cpu", layers: str = "18", steps: str = "16", *counts: str) -> None:
    work.prepare()
    size, task = ModelConfig(encoder_layers=int(layers), decoder_layers=int(layers)), Synthetic()
    kind = device.partition(":")[0]
    where = torch.cuda.get_device_name(device) if kind == "cuda" else products.processor()
    print(f"{where}, torch {torch.__version__}, {layers}L-{layers}L, {steps} updates")

    def specs(count: int) -> list[RunSpec]:
        config = TrainConfig(steps=int(steps))
        return [RunSpec(method="deepnorm", model=size, train=config, seed=seed, device=kind) for seed in range(count)]

    def seconds(count: int) -> float:
        begin = time.perf_counter()
        vmapped.together(specs(count), [task] * count, device)
        return time.perf_counter() - begin

    train.run(specs(1)[0], task, device, kernels="python")
    begin = time.perf_counter()
    train.run(specs(1)[0], task, device, kernels="python")
    alone = time.perf_counter() - begin
    print(f"one at a time: {alone:.2f} s a run, {60 / alone:.1f} runs a minute")
    for count in map(int, counts or ("1", "4", "16")):
        took = seconds(count)
        print(
            f"{count:3} at once: {took:.2f} s, {60 * count / took:.1f} runs a minute, {alone * count / took:.2f} times"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
