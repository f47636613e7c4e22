"""What drawing a batch of the synthetic task costs: the median of fifty.

    python benchmarks/batches.py

0.5 ms on an Intel Xeon (family 6, model 207): nothing beside an update, which takes tens of milliseconds.
"""

from __future__ import annotations

import statistics
import time

from stabkit.tasks.synthetic import Synthetic


def main() -> None:
    """Print the median."""
    task = Synthetic()
    times = []
    for step in range(50):
        begin = time.perf_counter()
        task.train(0, step)
        times.append(time.perf_counter() - begin)
    print(f"{1000 * statistics.median(times):.2f} ms a batch")


if __name__ == "__main__":
    main()
