"""The default sweep by two checkouts of stabkit: benchmarks/sweep.py BEFORE AFTER DATA [PAIRS] [DEPTHS].

BEFORE and AFTER are directories that hold a `stabkit` package each. Both run as a user runs them, process start,
workers and page included, alternating, with an empty store each time, on an idle machine; the load before each run is
printed, and the largest resident set of a worker. The ratio is the median of the pairs' ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from stabkit.model import library

PEAK = (
    "import glob, json, sys; "
    "print(max(json.load(open(p))['peak_memory_bytes'] for p in glob.glob(sys.argv[1] + '/runs/*/environment.json')))"
)


def timed(tree: str, data: str, depths: str) -> tuple[float, int]:
    """Seconds of a sweep, and the largest process's resident set in kilobytes."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as out:
        text = ["--data", data, "--source", "de", "--target", "en"]
        sweep = [sys.executable, "-P", "-m", "stabkit", "sweep", "--depths", depths, "--out", out, "--json", *text]
        begin = time.perf_counter()
        with open(os.path.join(out, "document.json"), "w") as document:
            where = {**os.environ, "PYTHONPATH": tree}
            subprocess.run(sweep, env=where, cwd=out, check=True, stdout=document, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        peak = subprocess.run([sys.executable, "-c", PEAK, out], capture_output=True, text=True, check=True)
    print(f"  {seconds:7.1f} s   peak {int(peak.stdout) / 1e6:.2f} GB a worker   load before {load:.2f}", flush=True)
    return seconds, int(peak.stdout)


def main(before: str, after: str, data: str, pairs: str = "3", depths: str = "6,18,50,100") -> None:
    print(f"{library.processor()} ({library.library()}), {os.cpu_count()} cores; depths {depths}")
    ratios = []
    for pair in range(int(pairs)):
        print(f"pair {pair + 1}: before, then after")
        (old, _), (new, _) = timed(before, data, depths), timed(after, data, depths)
        ratios.append(new / old)
        print(f"  ratio {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f} (after / before)")


if __name__ == "__main__":
    main(*sys.argv[1:])
