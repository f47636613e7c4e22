"""The constants of `running/cost.py` fitted anew, and how well runs that the fit has not seen keep to them.

    python benchmarks/cost.py [STORE…]      without a store it trains a mixed grid of forty runs first (five minutes)

Half of the runs are fitted (least squares of the relative error, no constant below 0), the other half judged: by the
fit, by the constants as they stand, and by those scaled with the `wall_seconds` of the first half, as `--dry-run` does.
Prints the processor, the constants to write down, and the share of runs within a factor of 1.5.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from stabkit.kernels import products
from stabkit.results.run import Run
from stabkit.running import cost
from stabkit.storage.store import Store

GRIDS = (
    "--depths 3,6,18,40 --models post-ln,deepnorm --steps 10 --max-tokens 128,512",
    "--depths 6,12 --models admin,sub-ln --steps 30 --hidden 64,128 --max-tokens 256",
    "--depths 6,24 --models deepnorm,post-ln --steps 12 --vocab 8000",
    "--depths 12,30 --models deepnorm,pre-ln --arch decoder-only --steps 16 --max-tokens 128,1024",
    "--depths 4,8 --models post-ln,admin --steps 60 --warmup 0 --max-tokens 128",
    "--depths 50 --models deepnorm,post-ln --steps 5",
)
NAMES = ("GIGAFLOPS", "OVERHEAD", "BUILD", "START")


def trained(out: str) -> None:
    for grid in GRIDS:
        print("stabkit sweep", grid, flush=True)
        sweep = [sys.executable, "-m", "stabkit", "sweep", *grid.split(), "--out", out]
        subprocess.run(sweep, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def usable(run: Run) -> bool:
    """Trained in one go to its last step."""
    return not run.environment.get("first_step") and run.outcome.steps == run.spec.train.steps


def fit(runs: list[Run]) -> np.ndarray:
    """The weights of `cost.parts`, none below 0: the worst is dropped until none is."""
    wall = np.array([float(run.environment["wall_seconds"]) for run in runs])
    rows = np.array([cost.parts(run.spec) for run in runs]) / wall[:, None]
    held = list(range(rows.shape[1]))
    while True:
        found = np.linalg.lstsq(rows[:, held], np.ones(len(rows)), rcond=None)[0]
        if (found >= 0).all():
            break
        held.pop(int(found.argmin()))
    weights = np.zeros(rows.shape[1])
    weights[held] = found
    return weights


def judged(name: str, runs: list[Run], weights: np.ndarray, pace: float = 1.0) -> None:
    ratio = np.array([float(run.environment["wall_seconds"]) / (pace * weights @ cost.parts(run.spec)) for run in runs])
    inside = np.mean((ratio < cost.FACTOR) & (ratio > 1 / cost.FACTOR))
    low, middle, high = np.quantile(ratio, (0.1, 0.5, 0.9))
    print(f"  {name:32} {inside:4.0%} within {cost.FACTOR}; took {low:.2f} to {high:.2f} of it, median {middle:.2f}")


def main(*stores: str) -> None:
    print(f"{products.processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as fresh:
        if not stores:
            trained(fresh)
        found = [Store(Path(store)) for store in stores or (fresh,)]
        runs = [run for store in found for run in map(store.load, store.ids()) if usable(run)]
    half = [int(hashlib.sha256(run.run_id.encode()).hexdigest(), 16) % 2 for run in runs]
    seen, unseen = ([run for run, side in zip(runs, half, strict=True) if side == which] for which in (0, 1))
    weights = fit(seen)
    values = (1 / weights[0] if weights[0] else np.inf, *weights[1:])
    print(", ".join(NAMES), "=", ", ".join(f"{value:.2g}" for value in values))
    print(f"fitted to {len(seen)} runs; of the {len(unseen)} others")
    judged("by this fit", unseen, weights)
    judged("by the constants as they stand", unseen, np.array(cost.weights()))
    judged("by those and the store's pace", unseen, np.array(cost.weights()), cost.pace(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
