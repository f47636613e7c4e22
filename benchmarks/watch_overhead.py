"""What `stabkit.watch` costs by model size, beside hooks on every gradient as experiment trackers set them.

    python benchmarks/watch_overhead.py [LAYERS×WIDTH…]        6x128 8x320 10x512 12x768

The GPT of docs/own_model.md, AdamW, 8 × 128 tokens an update, on an idle machine. Trainings of one model take turns of
a few updates each, so that what else the machine does hits all alike; medians of the turns' ratios:

    between    updates that are not read: gradients alone, over an update without a watch
    reading    what one reading adds, in updates
    1,000      both over a training of 1,000 updates, of which `every="log"` reads so many; with the watch's beginning
    tracked    a hook on each parameter that takes a histogram of 64 bins of its gradient at every update

With `whole` as argument the smallest is trained for 1,000 updates with and without, turns of ten.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from typing import Any

import torch
from torch.nn import functional

import stabkit
from stabkit.own.watch.schedule import reads
from tests.own.page import MODEL

SIZES = ("6x128", "8x320", "10x512", "12x768")
WORDS, ROWS, LENGTH = 1000, 8, 128
UPDATES = 1000


class Training:
    """One model and its optimiser, trained a few updates at a time."""

    def __init__(self, size: str) -> None:
        layers, width = map(int, size.split("x"))
        names: dict[str, Any] = {"__name__": "model"}
        exec(MODEL, names)  # our own page, not input
        torch.manual_seed(0)
        self.model = names["GPT"](layers, width, width // 64, WORDS, LENGTH)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.words = torch.randint(0, WORDS, (ROWS, LENGTH + 1))

    def turn(self, updates: int) -> float:
        """Seconds an update."""
        begin = time.perf_counter()
        for _ in range(updates):
            logits = self.model(self.words[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), self.words[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return (time.perf_counter() - begin) / updates


def tracked(training: Training) -> None:
    """As wandb.watch(log="gradients", log_freq=1) does, without the sending."""

    def histogram(gradient: torch.Tensor) -> None:
        low, high = float(gradient.min()), float(gradient.max())
        torch.histc(gradient, 64, low, high).tolist()

    for parameter in training.model.parameters():
        parameter.register_hook(histogram)


def ratios(alone: Training, other: Training, turns: int, updates: int) -> float:
    """Median over turns of the second's time over the first's."""
    alone.turn(1), other.turn(1)
    return statistics.median(other.turn(updates) / alone.turn(updates) for _ in range(turns))


def main(*given: str) -> None:
    warnings.simplefilter("ignore")
    readings = sum(reads("log", step) for step in range(1, UPDATES + 1))
    print(f"{torch.get_num_threads()} threads; {readings} readings in {UPDATES} updates, and one before them")
    for size in [one for one in given if one != "whole"] or SIZES:
        alone = Training(size)
        count = sum(p.numel() for p in alone.model.parameters())
        alone.turn(1)
        update = alone.turn(3)
        updates = max(2, min(20, round(2 / update)))
        turns = max(3, min(9, round(20 / update / updates / 2)))
        own = Training(size)
        with tempfile.TemporaryDirectory() as out:
            begin = time.perf_counter()
            watch = stabkit.watch(own.model, own.optimizer, probe=own.words[:, :-1], out=out, every=10**9)
            begun = time.perf_counter() - begin
            between = ratios(alone, own, turns, updates)
            watch.close()
            with stabkit.watch(own.model, own.optimizer, probe=own.words[:, :-1], out=out, every=1):
                reading = ratios(alone, own, turns, updates) - between
        hooked = Training(size)
        tracked(hooked)
        beside = ratios(alone, hooked, turns, updates)
        whole = between - 1 + (reading * readings + begun / update) / UPDATES
        print(
            f"{count / 1e6:6.1f} M parameters, {1000 * update:6.0f} ms an update: "
            f"between {100 * (between - 1):+.1f} %, a reading {reading:.2f} updates, begun in {begun / update:.1f}, "
            f"over {UPDATES} updates {100 * whole:+.1f} %; tracked {100 * (beside - 1):+.1f} %",
            flush=True,
        )
    if "whole" in given:
        through(SIZES[0])


def through(size: str) -> None:
    """1,000 updates with a watch over 1,000 without, as they are."""
    alone, own = Training(size), Training(size)
    spent = {"alone": 0.0, "own": 0.0}
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        watch = stabkit.watch(own.model, own.optimizer, probe=own.words[:, :-1], out=out)
        spent["own"] += time.perf_counter() - begin
        for _ in range(UPDATES // 10):
            spent["alone"] += 10 * alone.turn(10)
            spent["own"] += 10 * own.turn(10)
        begin = time.perf_counter()
        watch.close()
        spent["own"] += time.perf_counter() - begin
    print(f"{UPDATES} updates of {size}: {100 * (spent['own'] / spent['alone'] - 1):+.1f} % ({spent['alone']:.0f} s)")


if __name__ == "__main__":
    main(*sys.argv[1:])
