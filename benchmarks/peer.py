"""stabkit sweep against the same work written by hand: benchmarks/peer.py PEER DATA [PAIRS] [STEPS] [DEPTHS].

PEER is a script that takes DATA STEPS MAX_TOKENS DEPTHS and trains four methods at each depth (16 steps, 512 tokens,
vocabulary 2,000, German–English). Both run as a user runs them, process start and stabkit's page included, alternating,
on an idle machine; the load average before each run is printed. The ratio is the median of the pairs' ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time


def timed(command: list[str]) -> float:
    load = os.getloadavg()[0]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    print(f"  {seconds:7.1f} s   load before {load:.2f}", flush=True)
    return seconds


def main(peer: str, data: str, pairs: str = "3", steps: str = "16", depths: str = "6,18,50,100") -> None:
    ratios = []
    for pair in range(int(pairs)):
        print(f"pair {pair + 1}: by hand, then stabkit")
        by_hand = timed([sys.executable, peer, data, steps, "512", depths])
        with tempfile.TemporaryDirectory() as out:
            sweep = [sys.executable, "-m", "stabkit", "sweep", "--depths", depths, "--steps", steps, "--out", out]
            ours = timed([*sweep, "--data", data, "--source", "de", "--target", "en"])
        ratios.append(by_hand / ours)
        print(f"  ratio {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f} (by hand / stabkit), {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*sys.argv[1:])
