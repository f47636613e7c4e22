"""Thousands of tiny runs through the supervisor: does the parent grow? benchmarks/soak.py [RUNS].

The runs themselves, which a command keeps for its page (some 20 kB each), are not kept here.

Prints the parent's resident memory and open descriptors as it goes; memory after the first tenth is the baseline.
Every fiftieth run's worker is killed, so that spawning is soaked too. Exits 1 when the parent grew by 20 MB or more, or
holds more descriptors than at the baseline.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from stabkit.running import plan
from stabkit.running import runs as of_runs
from stabkit.running.executors import EXECUTORS, ExecutorOptions
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.storage.store import Store


def resident() -> float:
    """MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def main(runs: str = "2000") -> int:
    model = ModelConfig(encoder_layers=1, decoder_layers=1, hidden=8, ffn=8, heads=1)
    train = TrainConfig(steps=2, max_tokens=64)
    specs = [
        RunSpec(method="deepnorm", model=model, train=train, task=TaskConfig(vocab=128), seed=seed)
        for seed in range(int(runs))
    ]
    done, killed, baseline, held = 0, 0, 0.0, 0
    begin = time.monotonic()

    def finished(spec: RunSpec, answer: object) -> None:
        nonlocal done, killed, baseline, held
        done += 1
        if done % 50 == 0:
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGKILL)
            killed += 1
        if done == len(specs) // 10:
            baseline, held = resident(), descriptors()
        if done % (len(specs) // 10) == 0:
            print(
                f"{done:6} runs  {resident():7.1f} MB  {descriptors()} descriptors  {killed} workers killed", flush=True
            )

    with tempfile.TemporaryDirectory() as out:
        store = Store(Path(out))
        store.writable()
        planned = of_runs.planned(specs, store, {"corpus": None, "device": "cpu"})
        words = replace(planned.work, result=lambda spec, answer: answer)  # a command keeps its runs for its page
        done_all = plan.complete(
            replace(planned, work=words),
            lambda jobs, tell: EXECUTORS["processes"](jobs, tell, ExecutorOptions(workers=os.cpu_count() or 1)),
            lambda event: None,
            ended=finished,
        )
    grown, more = resident() - baseline, descriptors() - held
    seconds = time.monotonic() - begin
    print(f"{len(done_all.results)} of {len(specs)} runs, {killed} workers killed, {seconds:.0f} s")
    print(f"the parent grew by {grown:.1f} MB and {more} descriptors since run {len(specs) // 10}")
    return int(grown >= 20 or more > 0 or len(done_all.results) < len(specs))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
