"""What a probe of a user's model costs beside an older checkout's: benchmarks/probe_cost.py OLD [ROUNDS].

Processor seconds of `stabkit probe` of the tests' Pre-LN and Post-LN at 6, 12 and 24 layers, one seed, page and all;
each checkout by its own command, in turns; without changes and with the default time for them. Medians and ratios.

    benchmarks/probe_cost.py gpt2 [ROUNDS]

The same of a GPT-2 of 124 million parameters (transformers' own, 4 × 128 tokens), beside a plain loop of as many
updates in a process of its own, imports and all.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
MODELS = {"trains": "pre_ln", "stuck": "post_ln"}


def seconds(checkout: Path, model: str, *more: str) -> float:
    """Of one command, its workers counted."""
    with tempfile.TemporaryDirectory() as out:
        words = ["probe", f"tests.own.probe_models:{model}", "--depths", "6,12,24", "--seeds", "0", "--no-fail"]
        return taken(["-m", "stabkit", *words, "--out", out, *more], checkout)


def taken(words: Sequence[str], where: Path) -> float:
    """Processor seconds of a Python process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=where, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def gpt2(depth: int | None = None) -> tuple[Any, ...]:
    """A factory: transformers' GPT-2 small, 124 million parameters, on random tokens that can be learnt."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=depth or 12, bos_token_id=0, eos_token_id=0))
    ends = torch.randint(0, 50257, (50257,), generator=torch.Generator().manual_seed(0))

    def loss(model: Any, step: int) -> Any:
        tokens = torch.randint(0, 50257, (4, 64), generator=torch.Generator().manual_seed(step))
        tokens = torch.stack([tokens, ends[tokens]], -1).flatten(1)
        return model(tokens, labels=tokens).loss

    return model, loss, torch.optim.AdamW(model.parameters(), lr=3e-4)


def plain() -> None:
    """As many updates, forwards and backwards as a probe makes, by hand."""
    import torch

    from stabkit.results.own.measured import RAMP, UPDATES

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, loss, optimizer = gpt2()
    for step in range(1, UPDATES + RAMP + 2):
        optimizer.zero_grad(set_to_none=True)
        loss(model, step).backward()
        if step <= UPDATES + RAMP:
            optimizer.step()


def beside_a_loop(rounds: int) -> None:
    words = ["-m", "stabkit", "probe", "benchmarks.probe_cost:gpt2", "--depths", "12", "--seeds", "0", "--no-fail"]
    found: dict[str, list[float]] = {"loop": [], "probe": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as out:
            found["loop"].append(taken(["-c", "from benchmarks.probe_cost import plain; plain()"], HERE))
            found["probe"].append(taken([*words, "--no-cures", "--out", out], HERE))
    ratio = statistics.median(probe / loop for probe, loop in zip(found["probe"], found["loop"], strict=True))
    print(f"GPT-2 of 124 M: {found}; probe over loop {ratio:.2f}")


def main(older: str, rounds: int = 5) -> None:
    for word, model in MODELS.items():
        found: dict[str, list[float]] = {"older": [], "without changes": [], "with changes": []}
        for _ in range(rounds):
            found["older"].append(seconds(Path(older), model))
            found["without changes"].append(seconds(HERE, model, "--no-cures"))
            found["with changes"].append(seconds(HERE, model))
        middle = {name: statistics.median(own) for name, own in found.items()}
        for name, value in middle.items():
            print(f"{model} ({word}), {name}: {value:.1f} s, {value / middle['older']:.2f}", flush=True)


if __name__ == "__main__":
    which, *rounds = sys.argv[1:]
    beside_a_loop(*map(int, rounds or ["1"])) if which == "gpt2" else main(which, *map(int, rounds))
