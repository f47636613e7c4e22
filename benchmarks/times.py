"""What stabkit says a command takes, and what it takes: `python benchmarks/times.py` on an idle machine, 6 min.

Every command runs in a folder of its own, said by a machine that was timed anew. Prints the processor and a line a
command: the middle of the range that `--dry-run` said, the seconds that it took and their ratio, and what was left of
the training over what was said to be left, at a quarter, at half and at three quarters of it. Then how many of both lie
within a factor of 1.5.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import time
from functools import partial

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
LEFT = re.compile(r"all runs[^\n]*?\d+/\d+\s+([\d.]+) (s|min) left")
TERMINAL = {"TERM": "xterm", "COLUMNS": "150", "LINES": "50"}


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
        return cost.COMMAND + sum(float(step["seconds"]) for step in plan)
    return float(plan["seconds"] + plan["surfaces_seconds"])


def taken(command: str) -> tuple[float, list[float]]:
    """Seconds on a terminal; of the first bar of all runs, what was left over what it said."""
    begin, (ours, theirs) = time.monotonic(), pty.openpty()
    words = [sys.executable, "-m", "stabkit", *shlex.split(command)]
    running = subprocess.Popen(
        words, cwd=tempfile.mkdtemp(), env={**os.environ, **TERMINAL}, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    told, begun, end = list[tuple[float, float]](), 0, 0.0
    try:
        while text := os.read(ours, 65536).decode(errors="ignore"):
            now = time.monotonic() - begin
            begun += text.count("reused ")
            if begun > 1 or "surfaces:" in text:  # what comes next, with bars of its own
                break
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
            read = [float(value) * (60 if unit == "min" else 1) for value, unit in LEFT.findall(plain)]
            told += [(now, left) for left in read if left]
            end = now if "all runs" in plain else end
        while os.read(ours, 65536):
            pass
    except OSError:  # it has ended, and its terminal with it
        pass
    if running.wait():
        raise SystemExit(f"stabkit {command} ended with {running.returncode}")
    near = [min(told, key=partial(_off, part * end)) for part in (0.25, 0.5, 0.75) if told]
    return time.monotonic() - begin, [(end - at) / left for at, left in near]


def _off(moment: float, one: tuple[float, float]) -> float:
    return abs(one[0] - moment)


def main() -> None:
    print(products.processor())
    ratios, parts = list[float](), list[float]()
    for command in COMMANDS:
        expected = said(command)
        seconds, left = taken(command)
        ratios, parts = [*ratios, seconds / expected], [*parts, *left]
        of_left = " ".join(f"{part:4.2f}" for part in left)
        print(f"{expected:4.0f} s said {seconds:4.0f} s taken {ratios[-1]:5.2f}  left {of_left}  {command}", flush=True)
    for what, all_of in (("of", ratios), ("of what was left,", parts)):
        print(f"{sum(1 / 1.5 <= one <= 1.5 for one in all_of)} {what} {len(all_of)} within a factor of 1.5")


if __name__ == "__main__":
    main()
