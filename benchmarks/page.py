"""How long a store's page takes, and which of its figures: benchmarks/page.py OUT [TIMES].

Several renderings in one process: the best, and the first with all that is read and cached for it. Where seconds of the
processor differ from those of the clock, something else ran.
"""

from __future__ import annotations

import itertools
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

BEGUN = time.perf_counter()

from stabkit.claims import findings  # noqa: E402  # the imports are measured too
from stabkit.figures.catalogue import FIGURES  # noqa: E402
from stabkit.figures.drawing import svg  # noqa: E402
from stabkit.report import cards, files, html  # noqa: E402, F401
from stabkit.storage.store import Store  # noqa: E402

IMPORTED = time.perf_counter() - BEGUN
PARTS = ("select", "draw", "save")


def watch(module: ModuleType, name: str, spent: dict[str, float], key: str) -> None:
    """Add up how long every call of module.name takes; `key` of its second argument where it is empty."""
    function = getattr(module, name)

    def watched(*args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            place = key or f"{args[1]} save"
            spent[place] = spent.get(place, 0.0) + time.perf_counter() - begun

    setattr(module, name, watched)


def main(out: str, times: str = "5") -> None:
    store = Store(Path(out))
    begun = time.perf_counter()
    runs = [run for run in map(store.load, store.ids()) if run.records]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{len(runs)} runs loaded in {time.perf_counter() - begun:.2f} s, imports {IMPORTED:.2f} s")
    spent: dict[str, float] = {}
    for figure in FIGURES:
        for part in PARTS[:2]:
            watch(figure, part, spent, f"{figure.NAME} {part}")
    watch(svg, "to_page", spent, "")
    rounds = []
    with tempfile.TemporaryDirectory() as aside:
        for _ in range(int(times)):
            marks = [(time.perf_counter(), time.process_time())]
            claimed = findings(runs)
            marks.append((time.perf_counter(), time.process_time()))
            files.write_page(runs, [], claimed, Path(aside) / "page.html", "stabkit sweep")
            marks.append((time.perf_counter(), time.process_time()))
            rounds.append([now - then for a, b in itertools.pairwise(marks) for then, now in zip(a, b, strict=True)])
    for name, place in (("claims", 0), ("page", 2)):
        clock, cpu = (min(each[place + i] for each in rounds) for i in (0, 1))
        print(f"{name:8} {clock:6.2f} s (processor {cpu:.2f} s), the first {rounds[0][place]:.2f} s")
    by_figure = {figure.NAME: [spent.get(f"{figure.NAME} {part}", 0.0) for part in PARTS] for figure in FIGURES}
    for name, seconds in sorted(by_figure.items(), key=lambda item: -sum(item[1]))[:10]:
        told = (f"{part} {1000 * each / len(rounds):.0f}" for part, each in zip(PARTS, seconds, strict=True))
        print(f"  {name:18} {', '.join(told)} ms, on average")


if __name__ == "__main__":
    main(*sys.argv[1:])
