"""What a step costs, of Pre-LN's: python -m studies.today.step_cost [ROUNDS] writes docs/today_cost.csv.

Every method of the table in both blocks, decoder-only at 18 layers of 64-128-2 and 256 tokens a batch, one thread:
forward, backward, update, nothing recorded. In each round every method takes STEPS steps, the order turned by one from
round to round; a row is the median over rounds of its time over Pre-LN's in the same round, and the order statistics
that hold that median with 95 %. About three minutes; nothing else may run at the same time.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from stabkit.kernels.products import processor
from stabkit.methods.blocks import BLOCKS
from stabkit.model.flat import Flat
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import factors, train
from stabkit.training.optimizers.adam import Adam
from studies.today.design import COSTS, KEYS
from studies.today.table import REFERENCE

LAYERS, STEPS = 18, 4
TABLE = Path(__file__).resolve().parents[2] / "docs" / COSTS


def stepper(key: str, block: str, task: Synthetic) -> Callable[[int], None]:
    """A function that makes one update of a model of its own."""
    model = ModelConfig(encoder_layers=0, decoder_layers=LAYERS, **BLOCKS[block])  # type: ignore[index]
    spec = RunSpec(method=key, model=model, train=TrainConfig(max_tokens=256, lr=1e-4))
    network = train.build(spec, task, torch.device("cpu"))
    flat = Flat(network, network.parts())
    groups = factors.groups(network.method, network, flat)
    adam = Adam(flat.theta, flat.grad, 0.9, 0.98, 1e-8, groups)

    def step(i: int) -> None:
        network.train()
        flat.grad.zero_()
        train.forward(network, task.train(0, i), 0.1).loss.backward()  # type: ignore[no-untyped-call]
        adam.step(1e-4)

    return step


def measured(block: str, rounds: int, task: Synthetic) -> dict[str, list[float]]:
    """{method: its time over Pre-LN's, round by round}."""
    steppers = {key: stepper(key, block, task) for key in KEYS}
    for step in steppers.values():
        step(0)
    ratios: dict[str, list[float]] = {key: [] for key in KEYS}
    for number in range(rounds):
        turned = [*KEYS[number % len(KEYS) :], *KEYS[: number % len(KEYS)]]
        took = {}
        for key in turned:
            begin = time.perf_counter()
            for i in range(STEPS):
                steppers[key](1 + STEPS * number + i)
            took[key] = time.perf_counter() - begin
        for key in KEYS:
            ratios[key].append(took[key] / took[REFERENCE])
    return ratios


def interval(values: list[float]) -> tuple[float, float]:
    """The order statistics between which the median lies with 95 % at least, by the sign test's own binomial."""
    ordered, n = sorted(values), len(values)
    below = [sum(math.comb(n, k) for k in range(rank + 1)) / 2**n for rank in range(n // 2)]
    rank = max((rank for rank, share in enumerate(below) if share <= 0.025), default=0)
    return ordered[rank], ordered[n - 1 - rank]


def main(rounds: int = 26) -> None:
    torch.set_num_threads(1)
    task = Synthetic(vocab=2000, max_tokens=256)
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("block", "method", "layers", "rounds", "ratio", "low", "high", "processor"))
        for block in BLOCKS:
            for key, values in measured(block, rounds, task).items():
                numbers = (statistics.median(values), *interval(values))
                writer.writerow((block, key, LAYERS, rounds, *(f"{value:.4f}" for value in numbers), processor()))
                print(block, key, *(f"{value:.3f}" for value in numbers), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
