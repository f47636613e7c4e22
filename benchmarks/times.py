"""What `--dry-run` says a command takes, and what it takes: `python benchmarks/times.py` on an idle machine, 6 min.

Every command runs in a folder of its own, said by a machine that was timed anew. Prints the processor and a line a
command with the middle of the range that was said, the seconds that it took and their ratio, and how many lie within a
factor of 1.5.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

from stabkit.kernels import products
from stabkit.running import cost

COMMANDS = (
    "sweep",
    "sweep --depths 6,18,50",
    "sweep --depths 6,18 --steps 100 --warmup 0",
    "sweep --models pre-ln,admin --depths 30 --seeds 0..2",
    "sweep --models post-ln,deepnorm --arch decoder-only --block llama --depths 6,12 --steps 100 --warmup 0",
    "sweep --optimizer sgd --steps 1 --lr 1e-5 --dtype float64 --depths 6,18,50",
    "ablate --alpha-scale 0.5,1,2 --beta-scale 1",
    "landscape --depths 6 --models pre-ln --against post-ln",
    "landscape --depths 12 --points 15 --steps 50",
    "paper fig4",
    "paper fig3",
)


def said(command: str) -> float:
    """Seconds by `--dry-run`, the surfaces' with them."""
    done = subprocess.run(
        [sys.executable, "-m", "stabkit", *shlex.split(command), "--dry-run", "--json"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tempfile.mkdtemp(),
        env={**os.environ, "XDG_CACHE_HOME": tempfile.mkdtemp()},
    )
    plan = json.loads(done.stdout)["plan"]
    if isinstance(plan, list):
        return cost.COMMAND + sum(step["seconds"] for step in plan)
    return float(plan["seconds"] + plan["surfaces_seconds"])


def main() -> None:
    print(products.processor())
    within = 0
    for command in COMMANDS:
        expected, begin = said(command), time.monotonic()
        words = [sys.executable, "-m", "stabkit", *shlex.split(command), "--quiet"]
        subprocess.run(words, check=True, capture_output=True, cwd=tempfile.mkdtemp())
        taken = time.monotonic() - begin
        within += 1 / 1.5 <= taken / expected <= 1.5
        print(f"{expected:6.0f} s said {taken:6.0f} s taken {taken / expected:5.2f}  stabkit {command}", flush=True)
    print(f"{within} of {len(COMMANDS)} within a factor of 1.5")


if __name__ == "__main__":
    main()
