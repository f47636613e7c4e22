"""A store of thousands of runs: python benchmarks/many_runs.py STORE [SEEDS…], without a number 50 and 250.

Four methods at five depths (2 to 6 layers, width 16) with so many seeds each: 1,000 and 5,000 runs. They are trained
where STORE lacks them (a minute a thousand on two cores). Then, in a process each: `runs ls` before and after it has a
cache, `report`, a sweep of all of them that trains nothing, page and all, and its `--dry-run`. A line each: seconds,
the largest resident set, and the page's bytes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from stabkit.kernels import products

GRID = "--models post-ln,deepnorm,admin,pre-ln --depths 2,3,4,5,6 --steps 16 --warmup 4000 --hidden 16 --ffn 32"
GRID += " --vocab 128 --max-tokens 64 --yes"
PEAK = """
import resource, sys
from stabkit.__main__ import main
try: main()
finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def timed(*words: str) -> tuple[float, float]:
    """(seconds, gigabytes) of one command in a process of its own."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, int(done.stderr.split()[-1]) / 1e6


def main(store: str, *seeds: str) -> None:
    print(products.processor())
    for count in map(int, seeds or ("50", "250")):
        out = Path(store) / str(count)
        sweep = ("sweep", *GRID.split(), "--seeds", f"0..{count - 1}", "--out", str(out), "-q")
        seconds, _ = timed(*sweep)
        print(f"{20 * count} runs: trained, or read, and the page: {seconds:.0f} s", flush=True)
        (out / "runs" / ".index.json").unlink(missing_ok=True)
        for name, words in (
            ("runs ls, nothing cached", ("runs", "ls", "--out", str(out))),
            ("runs ls", ("runs", "ls", "--out", str(out))),
            ("report", ("report", "--store", str(out))),
            ("--dry-run", (*sweep, "--dry-run")),
            ("the sweep again: all read, the page", sweep),
        ):
            seconds, peak = timed(*words)
            print(f"  {name}: {seconds:.1f} s, {peak:.2f} GB", flush=True)
        newest = max((out / "reports").glob("*.html"), key=lambda page: page.stat().st_mtime)
        print(f"  the page: {newest.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
