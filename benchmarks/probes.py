"""What the probes cost: benchmarks/probes.py [LAYERS] [STEPS].

Times training steps with every probe on and with none, in one process on one thread, alternating blocks of steps. Both
sides pay for the probe batch's forward pass; the rest of the difference is the probes'. A step is a training step:
forward, backward, update.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch

from stabkit.model.flat import Flat
from stabkit.probes import PROBES, Probe
from stabkit.results.records import Recorder
from stabkit.spec import ModelConfig, RunSpec
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from stabkit.training.optimizers.adam import Adam


def main(layers: int = 18, steps: int = 10) -> None:
    torch.set_num_threads(1)
    task = Synthetic(vocab=2000, max_tokens=512)
    spec = RunSpec(method="deepnorm", model=ModelConfig(encoder_layers=layers, decoder_layers=layers))
    model = train.build(spec, task, torch.device("cpu"))
    flat = Flat(model, model.parts())
    adam = Adam(flat.theta, flat.grad, 0.9, 0.98, 1e-8)
    probes = [probe(model, flat) for probe in PROBES]

    def step(i: int, on: list[Probe]) -> tuple[float, float]:
        """(seconds of the training step, seconds in all)."""
        with train.watching(on, "probe"):  # as in the loop: put on once, outside what is timed
            return timed(i, on)

    def timed(i: int, on: list[Probe]) -> tuple[float, float]:
        recorder = Recorder()
        begin = time.perf_counter()
        model.train()
        flat.grad.zero_()
        with train.watching(on, "training"):
            seen = train.forward(model, task.train(0, i), 0.1)
            seen.loss.backward()
        middle = time.perf_counter()
        train.read(recorder, on, "training", i, seen)
        model.eval()
        with torch.no_grad():
            seen = train.forward(model, task.probe(), 0.1, (seen.loss.detach(), seen.nll()))
        train.read(recorder, on, "probe", i, seen)
        before = time.perf_counter()
        adam.step(1e-4)
        end = time.perf_counter()
        return (middle - begin) + (end - before), end - begin

    plain, full, training = [], [], []
    for i in range(2 * steps):
        own, whole = step(i, [])
        training.append(own)
        plain.append(whole)
        full.append(step(i, probes)[1])
    extra = statistics.median(b - a for a, b in zip(plain[2:], full[2:], strict=True))
    base = statistics.median(training[2:])
    print(
        f"{layers}L-{layers}L: training step {base * 1e3:.1f} ms, all probes {extra * 1e3:.1f} ms: {extra / base:.1%}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
