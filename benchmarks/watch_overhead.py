"""What `stabkit.watch` costs by model size, beside hooks on every gradient as experiment trackers set them.

    python benchmarks/watch_overhead.py [LAYERSxWIDTH…] [whole]        6x128 8x320 10x512 12x768

The GPT of docs/own_model.md, AdamW, 8 × 128 tokens an update, on an idle machine. Counted is the time inside what is
hooked, over the median time of an update without it: two trainings of one model may differ by more on a busy machine.

    between    in updates that are not read: gradients alone
    reading    what one reading adds, in updates
    1,000      both over a training of 1,000 updates, of which `every="log"` reads so many; with the watch's beginning
    tracked    a hook on each parameter that takes a histogram of 64 bins of its gradient at every update

With `whole` the smallest is trained for 1,000 updates with and without, in turns of ten.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import stabkit
from stabkit.own.watch.recording import reads
from stabkit.own.watch.watch import Watch
from tests.own.page import MODEL

SIZES = ("6x128", "8x320", "10x512", "12x768")
WORDS, ROWS, LENGTH = 1000, 8, 128
UPDATES, TIMED = 1000, 8


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

    def turn(self, updates: int) -> list[float]:
        """Seconds of each update."""
        spent = []
        for _ in range(updates):
            begin = time.perf_counter()
            logits = self.model(self.words[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), self.words[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            spent.append(time.perf_counter() - begin)
        return spent


class Clock:
    """Seconds inside functions."""

    def __init__(self) -> None:
        self.spent = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*given)
            finally:
                self.spent += time.perf_counter() - begin

        return timed

    def of(self, training: Training) -> float:
        """Seconds an update, the median of several."""
        found = []
        for _ in range(TIMED):
            self.spent = 0.0
            training.turn(1)
            found.append(self.spent)
        return statistics.median(found)


def tracked(training: Training, clock: Clock) -> None:
    """As wandb.watch(log="gradients", log_freq=1) does, without the sending."""

    def histogram(gradient: torch.Tensor) -> None:
        low, high = float(gradient.min()), float(gradient.max())
        torch.histc(gradient, 64, low, high).tolist()

    for parameter in training.model.parameters():
        parameter.register_hook(clock.around(histogram))


def one(size: str) -> None:
    """A line."""
    training, clock = Training(size), Clock()
    training.turn(1)
    update = statistics.median(training.turn(TIMED))
    readings = sum(reads("log", step) for step in range(UPDATES + 1))

    def begin(every: int, out: str) -> Watch:
        return stabkit.watch(training.model, training.optimizer, probe=training.words[:, :-1], out=out, every=every)

    spent: dict[int, float] = {}
    begun = 0.0
    for every in (10**9, 1):
        with tempfile.TemporaryDirectory() as out:
            clock.spent = 0.0
            watch = clock.around(begin)(every, out)
            begun = clock.spent
            for name in ("_before", "_after"):
                setattr(watch, name, clock.around(getattr(watch, name)))
            training.turn(1)
            spent[every] = clock.of(training)
            watch.close()
    tracked(training, clock)
    beside = clock.of(training)
    between, reading = spent[10**9], spent[1] - spent[10**9]
    whole = between + (begun + reading * (readings - 1)) / UPDATES  # the first reading is the beginning's
    count = sum(p.numel() for p in training.model.parameters())
    print(
        f"{count / 1e6:6.1f} M parameters, {1000 * update:6.0f} ms an update: between {100 * between / update:.1f} %, "
        f"a reading {reading / update:.2f} updates, {readings} of them in {UPDATES}: {100 * whole / update:.1f} %; "
        f"tracked {100 * beside / update:.1f} %",
        flush=True,
    )


def through(size: str) -> None:
    """1,000 updates with a watch over 1,000 without, as they are."""
    alone, own = Training(size), Training(size)
    spent = {"alone": 0.0, "own": 0.0}
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        watch = stabkit.watch(own.model, own.optimizer, probe=own.words[:, :-1], out=out)
        spent["own"] += time.perf_counter() - begin
        for _ in range(UPDATES // 10):
            spent["alone"] += sum(alone.turn(10))
            spent["own"] += sum(own.turn(10))
        begin = time.perf_counter()
        watch.close()
        spent["own"] += time.perf_counter() - begin
    print(f"{UPDATES} updates of {size}: {100 * (spent['own'] / spent['alone'] - 1):+.1f} % ({spent['alone']:.0f} s)")


def main(*given: str) -> None:
    warnings.simplefilter("ignore")
    print(f"{torch.get_num_threads()} threads")
    for size in [each for each in given if each != "whole"] or SIZES:
        one(size)
    if "whole" in given:
        through(SIZES[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
