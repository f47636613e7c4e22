"""What the store and the supervisor add to a sweep of runs of about ten seconds each: the time between the ends of two
runs on one worker, over what the worker itself counts inside each.

    python benchmarks/overhead.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from stabkit.running import plan, runs
from stabkit.running.executors import processes
from stabkit.running.executors.base import ExecutorOptions
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.storage.store import Store

SPECS = [
    RunSpec(
        method="deepnorm",
        model=ModelConfig(encoder_layers=18, decoder_layers=18),
        train=TrainConfig(steps=90),
        seed=seed,
    )
    for seed in range(6)
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, ends = Store(Path(folder)), []
        store.writable()
        plan.complete(
            runs.planned(SPECS, store, {"corpus": None, "device": "cpu", "checkpoint_every": None}),
            lambda jobs, tell: processes.map(jobs, tell, ExecutorOptions(workers=1)),
            lambda event: None,
            ended=lambda spec, ending: ends.append(time.perf_counter()),
        )
        inside = [store.load(spec.run_id).environment["wall_seconds"] for spec in SPECS]
        between = [b - a for a, b in zip(ends, ends[1:], strict=False)]
        print(f"between ends {sum(between):.2f} s, inside the runs {sum(inside[1:]):.2f} s")
        print(f"store and supervisor add {sum(between) / sum(inside[1:]) - 1:.1%}")


if __name__ == "__main__":
    main()
