"""How the time and the memory of a run grow with depth: python benchmarks/scale.py [DEPTHS]

One DeepNorm encoder-decoder a depth (64-128-2, 256 tokens, everything recorded), each in a worker of its own, one after
the other, ten updates. A line a depth from what its run recorded of itself; the last has the exponents, fitted in
logarithms over all depths. What a process needs before there is a model is in both, so that the exponents are below
those of the model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DEPTHS = "6,18,50,100,250,500"
"""Layers of each stack; 500 is a thousand in all."""
STEPS = 10


def measured(depth: int, out: Path) -> tuple[float, float]:
    """(seconds an update, peak memory in bytes) of a run of so many layers a stack."""
    words = f"sweep --models deepnorm --depths {depth} --steps {STEPS} --warmup 0 --workers 1 --yes -q --out".split()
    subprocess.run([sys.executable, "-m", "stabkit", *words, str(out)], check=True, stdout=subprocess.DEVNULL)
    (file,) = out.glob("runs/*/environment.json")
    told = json.loads(file.read_text(encoding="utf-8"))
    return float(told["wall_seconds"]) / (STEPS + 1), float(told["peak_memory_bytes"])


def main(depths: str = DEPTHS) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    rows = []
    for depth in map(int, depths.split(",")):
        with tempfile.TemporaryDirectory() as out:
            seconds, size = measured(depth, Path(out))
        rows.append((depth, seconds, size))
        print(f"{2 * depth:5} layers: {seconds:.3f} s an update, {size / 1e9:.2f} GB at most", flush=True)
    layers, seconds_, sizes = np.log(np.array(rows)).T
    print(f"time ∝ N^{np.polyfit(layers, seconds_, 1)[0]:.2f}, memory ∝ N^{np.polyfit(layers, sizes, 1)[0]:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
