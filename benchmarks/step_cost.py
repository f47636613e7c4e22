"""What a step costs, by method and by optimiser: python -m benchmarks.step_cost [ROUNDS] writes evidence/step_cost.csv.

Decoder-only models of 64-128-2 in llama's block, 18 layers, 256 tokens, one thread: forward, backward, update, nothing
recorded. Of every method of 2026 under AdamW the time of a step over Pre-LN's, and what the same step takes on the path
in Python alone, its second implementation, over ours; of every optimiser the time of a step of Pre-LN over Adam's, and
what torch's own update takes over ours (– where torch has none). In each round everything takes STEPS steps, the order
turned by one from round to round; a number is the median over rounds of a ratio within a round, with the order
statistics that hold that median with 95 %. Two minutes; nothing else may run at the same time.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from stabkit import methods
from stabkit.kernels.products import processor
from stabkit.methods.blocks import BLOCKS
from stabkit.spec import DECAY, MOMENTUM, Kernels, ModelConfig, Optimizer, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import factors, train
from stabkit.training.optimizers import OPTIMIZERS
from stabkit.training.optimizers.base import Group

LAYERS, STEPS, REFERENCE = 18, 3, "pre-ln"
TABLE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "step_cost.csv"
COLUMNS = ("kind", "name", "ratio", "low", "high", "second", "second_low", "second_high", "rounds", "processor")
TASK = Synthetic(vocab=2000, max_tokens=256)
Step = Callable[[int], None]


def begun(key: str, optimizer: Optimizer = "adamw", kernels: Kernels = "fused") -> train.OneRun:
    """A run at θ₀."""
    config = TrainConfig(
        max_tokens=256,
        lr=1e-4,
        optimizer=optimizer,
        weight_decay=DECAY.get(optimizer, 0.0),
        momentum=MOMENTUM.get(optimizer, 0.0),
    )
    model = ModelConfig(encoder_layers=0, decoder_layers=LAYERS, **BLOCKS["llama"])
    return train.begun(RunSpec(method=key, model=model, train=config), TASK, torch.device("cpu"), {}, kernels)


def stepper(one: train.OneRun) -> Step:
    """One step of training."""

    def step(i: int) -> None:
        one.model.train()
        one.flat.grad.zero_()
        train.forward(one.model, TASK.train(0, i), 0.1).loss.backward()  # type: ignore[no-untyped-call]
        one.optimizer.step(1e-4)

    return step


def updates(name: Optimizer) -> tuple[Step, Step] | None:
    """(our update alone, torch's own) of the same tensors; None where torch has none."""
    one = begun(REFERENCE, name)
    one.flat.grad.normal_(std=1e-3)
    held = factors.groups(one.model.method, one.model, one.flat, "matrices")
    matrices, rest = (
        [p for group in held if bool(group.shape) is own for p in _parameters(one, group)] for own in (True, False)
    )
    torchs = _torchs(name, matrices, rest)
    if not torchs:
        return None

    def theirs(i: int) -> None:
        for each in torchs:
            each.step()

    return lambda i: one.optimizer.step(1e-4), theirs


def _parameters(one: train.OneRun, group: Group) -> list[torch.nn.Parameter]:
    """A group's matrices or vectors as torch's optimisers take them: copies, with their gradients."""
    theta, grad = (group.of(vector) for vector in (one.flat.theta.detach(), one.flat.grad))
    if group.shape:
        theta, grad = (list(torch.cat(parts).view(-1, *group.shape).clone()) for parts in (theta, grad))
    found = [torch.nn.Parameter(part.clone()) for part in theta]
    for parameter, part in zip(found, grad, strict=True):
        parameter.grad = part.clone()
    return found


Parameters = list[torch.nn.Parameter]


def _torchs(name: Optimizer, matrices: Parameters, rest: Parameters) -> list[torch.optim.Optimizer]:
    def adamw(some: Parameters, decay: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(some, lr=1e-4, betas=(0.9, 0.98), weight_decay=decay, fused=True)

    every = [*matrices, *rest]
    match name:
        case "adam":
            return [torch.optim.Adam(every, lr=1e-4, betas=(0.9, 0.98), fused=True)]
        case "adamw":
            return [adamw(matrices, 0.1), adamw(rest, 0.0)]
        case "muon" | "muon-original":
            adjust = "match_rms_adamw" if name == "muon" else "original"
            own = torch.optim.Muon(matrices, lr=1e-4, weight_decay=0.1, momentum=0.95, adjust_lr_fn=adjust)
            return [own, adamw(rest, 0.0)]
        case "sgd":
            return [torch.optim.SGD(every, lr=1e-4, fused=True)]
        case "radam" | "radam-torch":
            return [torch.optim.RAdam(every, lr=1e-4, betas=(0.9, 0.98))]
    return []


def rounds_of(steps: Mapping[str, Step], rounds: int) -> dict[str, list[float]]:
    """{name: seconds of STEPS steps, round by round}."""
    names = list(steps)
    for step in steps.values():
        step(0)
    took: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for name in [*names[number % len(names) :], *names[: number % len(names)]]:
            begin = time.perf_counter()
            for i in range(STEPS):
                steps[name](1 + STEPS * number + i)
            took[name].append(time.perf_counter() - begin)
    return took


def ratio(some: Sequence[float], over: Sequence[float]) -> tuple[float, float, float]:
    """(median, low, high) of the ratios of the rounds."""
    values = sorted(a / b for a, b in zip(some, over, strict=True))
    n = len(values)
    below = [sum(math.comb(n, k) for k in range(rank + 1)) / 2**n for rank in range(n // 2)]
    rank = max((rank for rank, share in enumerate(below) if share <= 0.025), default=0)
    return statistics.median(values), values[rank], values[n - 1 - rank]


def by_method(rounds: int) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
    """(method, its step over Pre-LN's, the path in Python over ours), each with its interval."""
    keys = methods.SETS["2026"]
    steps = {
        f"{key} {kernels}": stepper(begun(key, kernels=kernels)) for key in keys for kernels in ("fused", "python")
    }
    took = rounds_of(steps, rounds)
    ours = {key: took[f"{key} fused"] for key in keys}
    return [(key, ratio(ours[key], ours[REFERENCE]), ratio(took[f"{key} python"], ours[key])) for key in keys]


def by_optimizer(rounds: int) -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
    """(optimiser, a step of Pre-LN over Adam's, torch's update over ours), likewise; NaN where torch has none."""
    whole = rounds_of({name: stepper(begun(REFERENCE, name)) for name in OPTIMIZERS}, rounds)
    alone = {name: both for name in OPTIMIZERS if (both := updates(name))}
    took = rounds_of({f"{name} {i}": each for name, both in alone.items() for i, each in enumerate(both)}, rounds)
    return [
        (
            name,
            ratio(whole[name], whole["adam"]),
            ratio(took[f"{name} 1"], took[f"{name} 0"]) if name in alone else (math.nan,) * 3,
        )
        for name in OPTIMIZERS
    ]


def main(rounds: int = 12) -> None:
    torch.set_num_threads(1)
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for kind, found in (("method", by_method(rounds)), ("optimizer", by_optimizer(rounds))):
            for name, numbers, second in found:
                texts = [f"{value:.4g}" if math.isfinite(value) else "" for value in (*numbers, *second)]
                writer.writerow((kind, name, *texts, rounds, processor()))
                print(kind, name, *texts, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
