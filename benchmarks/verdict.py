"""Time to a verdict: benchmarks/verdict.py DATA TREE… [--depths 6,18,50].

From the command to a verdict in every cell of the four methods at each depth, by training to one: 250 updates without
warm-up, runs that are decided end early. One sweep by each TREE, a directory that holds a `stabkit` package (before and
after a change), with an empty store, on an idle machine, in the order given; prints seconds, updates trained, and every
cell's verdict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from stabkit.kernels import products


def sweep(tree: str, data: str, depths: str) -> tuple[float, list[dict[str, object]]]:
    """(seconds, the runs of the document)."""
    text = ["--data", data, "--source", "de", "--target", "en"]
    verdict = ["--steps", "250", "--warmup", "0", "--stop-when-decided", "--depths", depths]
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "stabkit", "sweep", *verdict, *text, "--out", out, "--json"],
            env={**os.environ, "PYTHONPATH": tree},
            cwd=out,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - begin, json.loads(done.stdout)["runs"]


def main(data: str, *words: str) -> None:
    depths = words[words.index("--depths") + 1] if "--depths" in words else "6,18,50"
    trees = words[: words.index("--depths")] if "--depths" in words else words
    print(f"{products.processor()} ({products.library()}), {os.cpu_count()} cores; depths {depths}", flush=True)
    times, verdicts = [], []
    for tree in trees:
        load = os.getloadavg()[0]
        seconds, runs = sweep(tree, data, depths)
        cells = {f"{run['model']} {run['encoder_layers']}L": (run["outcome"], run["steps"]) for run in runs}
        times.append(seconds)
        verdicts.append({cell: word for cell, (word, _) in cells.items()})
        updates = sum(steps for _, steps in cells.values())
        print(
            f"{tree}: {seconds:.0f} s for {len(cells)} verdicts, {updates} updates, load before {load:.2f}", flush=True
        )
        print("  " + ", ".join(f"{cell} {word} ({steps})" for cell, (word, steps) in cells.items()), flush=True)
    if len(trees) > 1:
        same = all(one == verdicts[0] for one in verdicts)
        print(f"last / first {times[-1] / times[0]:.2f}; verdicts {'equal' if same else 'DIFFER'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
