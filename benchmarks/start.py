"""How long a user waits: benchmarks/start.py DATA [TIMES].

`sweep --data DATA` of one 6L-6L run of one update, typed TIMES + 1 times into one store (a new seed each time): seconds
until the first line on the screen, and until that run has ended. The first one also makes the vocabulary.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from stabkit.kernels import products


def typed(data: str, out: str, seed: int) -> tuple[float, float]:
    """(seconds to the first line, seconds to the end of the run)."""
    text = ["--data", data, "--source", "de", "--target", "en"]
    run = ["--depths", "6", "--models", "deepnorm", "--steps", "1", "--seeds", str(seed)]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "stabkit", "sweep", *run, *text, "--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    first = ended = 0.0
    for line in process.stderr or ():
        now = time.perf_counter() - begin
        first = first or now
        if line.startswith("[1/"):
            ended = now
    if process.wait() or not ended:
        raise SystemExit(f"the sweep failed with exit code {process.returncode}")
    return first, ended


def main(data: str, times: str = "3") -> None:
    print(f"{products.processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as out:
        for seed in range(int(times) + 1):
            first, ended = typed(data, out, seed)
            which = "again" if seed else "first"
            print(f"  {which}: first line after {first:.1f} s, first update within {ended:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
