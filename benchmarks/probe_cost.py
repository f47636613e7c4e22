"""What a probe of a user's model costs beside its own updates: python -m benchmarks.probe_cost loop [ROUNDS].

The README's GPT-2 and a healthy Pre-LN of 24 layers with the command as it is: processor seconds to the word, seconds
to the first word on the screen, and the ratio to a plain loop of as many updates, imports and all.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

from stabkit.results.own.measured import RAMP

HERE = Path(__file__).parents[1]


def taken(words: Sequence[str], where: Path) -> float:
    """Processor seconds of a Python process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=where, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def gpt2(depth: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=depth, n_embd=64, n_head=2, vocab_size=100, n_positions=32))


CASES = {
    "GPT-2": ("benchmarks.probe_cost:gpt2", (6, 12, 24), 1e-2),
    "Pre-LN": ("tests.own.probe_models:pre_ln", (24,), 3e-4),
}


def plain(name: str, updates: Sequence[int]) -> None:
    import torch

    from stabkit.own.factory import function
    from stabkit.own.probe.built_model import make

    torch.set_num_threads(1)
    factory, depths, lr = CASES[name]
    for depth, count in zip(depths, updates, strict=True):
        made = make(function("FACTORY", factory), factory, depth, 0, lr)
        for step in range(1, count + 1):
            made.optimizers[0].zero_grad(set_to_none=True)
            made.objective.at(made.model, step).backward()  # type: ignore[no-untyped-call]
            made.optimizers[0].step()


def beside_a_loop(rounds: int) -> None:
    for name, (factory, depths, lr) in CASES.items():
        asked = ["--depths", ",".join(map(str, depths)), "--lr", f"{lr:g}", "--no-fail", "--json"]
        rows = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as out:
                words = [sys.executable, "-m", "stabkit", "probe", factory, *asked, "--out", out]
                before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
                with subprocess.Popen(words, cwd=HERE, stdout=PIPE, stderr=PIPE, text=True) as run:
                    assert run.stderr is not None and run.stdout is not None
                    next(line for line in run.stderr if "; training on\n" in line or "[1/" in line)
                    first = time.monotonic() - begin
                    document = json.loads(run.stdout.read())
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
            probe = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            updates = [one["updates"] + RAMP for one in document["depths"]]
            loop = taken(["-c", f"from benchmarks.probe_cost import plain; plain({name!r}, {updates})"], HERE)
            rows.append((probe, loop, probe / loop, first))
            print(name, [(one["word"], one["updates"]) for one in document["depths"]], rows[-1], flush=True)
        middle = map(statistics.median, zip(*rows, strict=True))
        print("{}: {:.0f} s, a loop {:.0f} s, ratio {:.2f}; first word after {:.1f} s".format(name, *middle))


if __name__ == "__main__":
    beside_a_loop(*map(int, sys.argv[2:] or ["1"]))
