"""The default sweep of several programs, alternating: benchmarks/sweep.py DATA ROUNDS SIDE… [--depths 6,18,50,100].

A SIDE is a directory that holds a `stabkit` package (a checkout before a change, and one after it), or a script that
does the same work by hand and takes DATA STEPS MAX_TOKENS DEPTHS. Each runs as a user runs it, process start, workers
and page included, with an empty store, on an idle machine; printed are its seconds, the load before it, and the largest
resident set of a worker. At the end stands, for every side, the median over the rounds of the last side's time over its
own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stabkit.model import library


def timed(side: str, data: str, depths: str) -> tuple[float, float]:
    """(seconds, gigabytes of the largest worker; NaN for a script)."""
    where = dict(os.environ)
    with tempfile.TemporaryDirectory() as out:
        if os.path.isdir(side):
            where["PYTHONPATH"] = os.path.abspath(side)
            text = ["--data", data, "--source", "de", "--target", "en"]
            command = ["-P", "-m", "stabkit", "sweep", "--depths", depths, "--steps", "16", *text, "--out", out]
        else:
            command = [os.path.abspath(side), data, "16", "512", depths]
        begin = time.perf_counter()
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, *command], env=where, cwd=out, check=True, **silent)
        seconds = time.perf_counter() - begin
        said = [json.loads(file.read_text()) for file in Path(out).glob("runs/*/environment.json")]
        return seconds, max((one["peak_memory_bytes"] / 1e9 for one in said), default=float("nan"))


def main(data: str, rounds: str, *words: str) -> None:
    depths = words[words.index("--depths") + 1] if "--depths" in words else "6,18,50,100"
    sides = words[: words.index("--depths")] if "--depths" in words else words
    data = os.path.abspath(data)
    print(f"{library.processor()} ({library.library()}), {os.cpu_count()} cores; depths {depths}", flush=True)
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(int(rounds)):
        for side in sides:
            load = os.getloadavg()[0]
            seconds, peak = timed(side, data, depths)
            times[side].append(seconds)
            print(f"  {number + 1} {side}: {seconds:.1f} s, {peak:.2f} GB, load before {load:.2f}", flush=True)
    last = times[sides[-1]]
    for side in sides[:-1]:
        ratio = statistics.median(mine / theirs for mine, theirs in zip(last, times[side], strict=True))
        print(f"median ratio {ratio:.2f} of {side}: {1 / ratio:.2f} times as fast")


if __name__ == "__main__":
    main(*sys.argv[1:])
