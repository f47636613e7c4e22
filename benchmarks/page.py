"""How long a store's page takes, and which of its figures: best of several renderings in one process.

    python benchmarks/page.py OUT [--times 5]

The first rendering, with all that is read and cached for it, is told beside the best. Seconds of processor time stand
beside those of the clock: where they differ, something else ran.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

BEGUN = time.perf_counter()

from stabkit.claims import findings  # noqa: E402  # the imports are measured too
from stabkit.figures import FIGURES  # noqa: E402
from stabkit.figures.shared import svg  # noqa: E402
from stabkit.report import files, html  # noqa: E402, F401
from stabkit.storage.store import Store  # noqa: E402

IMPORTED = time.perf_counter() - BEGUN
PARTS = ("select", "draw", "save")


def watch(module: ModuleType, name: str, note: Callable[[float], None]) -> None:
    """Tell `note` how long every call of module.name takes."""
    function = getattr(module, name)

    def watched(*args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            note(time.perf_counter() - begun)

    setattr(module, name, watched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    store = Store(given.out)
    begun = time.perf_counter()
    runs = [run for run in map(store.load, store.ids()) if run.records]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{len(runs)} runs loaded in {time.perf_counter() - begun:.2f} s, imports {IMPORTED:.2f} s")
    parts: dict[tuple[str, str], list[float]] = {}
    current = [""]
    for figure in FIGURES:
        for name in PARTS[:2]:
            watch(figure, name, parts.setdefault((figure.NAME, name), []).append)
    to_page = svg.to_page
    svg.to_page = lambda figure, name="": (current.__setitem__(0, name), to_page(figure, name))[1]  # type: ignore
    watch(svg, "_bytes", lambda seconds: parts.setdefault((current[0], "save"), []).append(seconds))
    rounds = []
    with tempfile.TemporaryDirectory() as aside:
        for _ in range(given.times):
            marks = [(time.perf_counter(), time.process_time())]
            claimed = findings(runs)
            marks.append((time.perf_counter(), time.process_time()))
            files.write_page(runs, [], claimed, Path(aside) / "page.html", "stabkit sweep")
            marks.append((time.perf_counter(), time.process_time()))
            rounds.append([now - then for a, b in itertools.pairwise(marks) for then, now in zip(a, b, strict=True)])
    for name, place in (("claims", 0), ("page", 2)):
        clock, cpu = (min(each[place + i] for each in rounds) for i in (0, 1))
        print(f"{name:8} {clock:6.2f} s (processor {cpu:.2f} s), the first {rounds[0][place]:.2f} s")
    mean = {key: sum(seconds) / given.times for key, seconds in parts.items()}
    spent = {figure.NAME: [mean.get((figure.NAME, part), 0.0) for part in PARTS] for figure in FIGURES}
    for name, seconds in sorted(spent.items(), key=lambda item: -sum(item[1]))[:10]:
        told = (f"{part} {1000 * each:.0f}" for part, each in zip(PARTS, seconds, strict=True))
        print(f"  {name:18} {', '.join(told)} ms, on average")


if __name__ == "__main__":
    main()
