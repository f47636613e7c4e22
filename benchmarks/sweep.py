"""The default sweep of several programs, alternating: benchmarks/sweep.py DATA ROUNDS SIDE… [OPTION…].

A SIDE is a directory that holds a `stabkit` package (a checkout before a change, and one after it), or a script that
does the same work by hand and takes DATA STEPS MAX_TOKENS DEPTHS; `SIDE@1` gives it one thread. Each runs as a user
runs it, process start, workers and page included, with an empty store, on an idle machine; printed are its seconds, the
seconds of processor time that it and its workers took, the load before it, and the largest resident set of a worker. At
the end stands, for every side, the median over the rounds of the last side's time and processor time over its own.

    --depths 6,18,50,100     --max-tokens 512     --warmup 4000     of every side; the peer knows no warm-up
    --models all four papers' of `sweep`; the peer trains these
    --runs                   in the place of processor time the seconds of the runs alone, as their workers noted them:
                             of one worker on an idle machine the same, without start and page
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from stabkit.kernels import products


@dataclass(frozen=True, slots=True)
class Took:
    """Of one command: seconds, seconds of processor time, gigabytes of the largest worker (NaN for a script)."""

    seconds: float
    processor: float
    peak: float


def timed(side: str, data: str, options: argparse.Namespace) -> Took:
    """The sweep by one side."""
    side, _, threads = side.partition("@")
    where = dict(os.environ) | ({"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads} if threads else {})
    with tempfile.TemporaryDirectory() as out:
        if os.path.isdir(side):
            where["PYTHONPATH"] = os.path.abspath(side)
            text = ["--data", data, "--source", "de", "--target", "en", "--max-tokens", options.max_tokens]
            how = ["--depths", options.depths, "--steps", "16", "--warmup", options.warmup, "--out", out]
            how += ["--workers", options.workers] if options.workers else []
            command = [
                "-P",
                "-m",
                "stabkit",
                "sweep",
                *how,
                *text,
                *(["--models", options.models] if options.models else []),
            ]
        else:
            command = [os.path.abspath(side), data, "16", options.max_tokens, options.depths]
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, *command], env=where, cwd=out, check=True, **silent)
        seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        said = [json.loads(file.read_text()) for file in Path(out).glob("runs/*/environment.json")]
        if options.runs and said:
            processor = sum(one["wall_seconds"] for one in said)
        return Took(seconds, processor, max((one["peak_memory_bytes"] / 1e9 for one in said), default=float("nan")))


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("data")
    parser.add_argument("rounds", type=int)
    parser.add_argument("sides", nargs="+")
    for name, default in (
        ("depths", "6,18,50,100"),
        ("max-tokens", "512"),
        ("warmup", "4000"),
        ("models", ""),
        ("workers", ""),
    ):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--runs", action="store_true")
    options = parser.parse_args()
    data = os.path.abspath(options.data)
    print(f"{products.processor()} ({products.library()}), {os.cpu_count()} cores; {vars(options)}", flush=True)
    took: dict[str, list[Took]] = {side: [] for side in options.sides}
    for number in range(options.rounds):
        for side in options.sides:
            load = os.getloadavg()[0]
            one = timed(side, data, options)
            took[side].append(one)
            times = f"{one.seconds:.1f} s, processor {one.processor:.1f} s, {one.peak:.2f} GB"
            print(f"  {number + 1} {side}: {times}, load before {load:.2f}", flush=True)
    last = took[options.sides[-1]]
    for side in options.sides[:-1]:
        whole = statistics.median(a.seconds / b.seconds for a, b in zip(last, took[side], strict=True))
        core = statistics.median(a.processor / b.processor for a, b in zip(last, took[side], strict=True))
        print(
            f"median ratio {whole:.2f} of {side}: {1 / whole:.2f} times as fast;"
            f" processor time {core:.2f}: {1 / core:.2f}"
        )


if __name__ == "__main__":
    main()
