"""What a probe of a user's model costs beside an older checkout's: benchmarks/probe_cost.py OLD [ROUNDS].

Processor seconds of `stabkit probe` of the tests' Pre-LN and Post-LN at 6, 12 and 24 layers, one seed, page and all;
each checkout by its own command, in turns; without changes and with the default time for them. Medians and ratios.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]
MODELS = {"trains": "pre_ln", "stuck": "post_ln"}


def seconds(checkout: Path, model: str, *more: str) -> float:
    """Of one command, its workers counted."""
    with tempfile.TemporaryDirectory() as out:
        words = ["probe", f"tests.own.probe_models:{model}", "--depths", "6,12,24", "--seeds", "0", "--no-fail"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "stabkit", *words, "--out", out, *more], cwd=checkout, check=True,
                       capture_output=True)  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(older: str, rounds: int = 5) -> None:
    for word, model in MODELS.items():
        found: dict[str, list[float]] = {"older": [], "without changes": [], "with changes": []}
        for _ in range(rounds):
            found["older"].append(seconds(Path(older), model))
            found["without changes"].append(seconds(HERE, model, "--no-cures"))
            found["with changes"].append(seconds(HERE, model))
        middle = {name: statistics.median(own) for name, own in found.items()}
        for name, value in middle.items():
            print(f"{model} ({word}), {name}: {value:.1f} s, {value / middle['older']:.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
