"""How long a store's page takes, and which of its figures: benchmarks/page.py OUT [TIMES [all]].

With the figures that answer, as a command writes it, or with all. Several renderings in one process: the best, and the
first with all that is read and cached for it. Where seconds of the processor differ from those of the clock, something
else ran.
"""

from __future__ import annotations

import itertools
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

BEGUN = time.perf_counter()

from stabkit.figures.catalogue import FIGURES  # noqa: E402  # the imports are measured too
from stabkit.figures.drawing import svg  # noqa: E402
from stabkit.report import files, html, order  # noqa: E402, F401
from stabkit.report.summary import summarise  # noqa: E402
from stabkit.storage.store import Store  # noqa: E402

IMPORTED = time.perf_counter() - BEGUN
PARTS = ("select", "draw", "save")


def timed(function: Callable[..., Any], spent: dict[str, float], key: Callable[[tuple[Any, ...]], str]) -> Any:
    """The function, adding up how long its calls take; `key` of their arguments."""

    def call(*args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*args, **options)
        finally:
            place = key(args)
            spent[place] = spent.get(place, 0.0) + time.perf_counter() - begun

    return call


def main(out: str, times: str = "5", figures: str = "") -> None:
    store = Store(Path(out))
    begun = time.perf_counter()
    runs = [run for run in map(store.load, store.ids()) if run.records]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{len(runs)} runs loaded in {time.perf_counter() - begun:.2f} s, imports {IMPORTED:.2f} s")
    spent: dict[str, float] = {}
    order.FIGURES = tuple(
        replace(
            figure,
            select=timed(figure.select, spent, lambda _, name=figure.name: f"{name} select"),
            draw=timed(figure.draw, spent, lambda _, name=figure.name: f"{name} draw"),
        )
        for figure in FIGURES
    )
    svg.to_page = timed(svg.to_page, spent, lambda args: f"{args[1]} save")
    rounds = []
    with tempfile.TemporaryDirectory() as aside:
        page = Path(aside) / "page.html"
        for _ in range(int(times)):
            marks = [(time.perf_counter(), time.process_time())]
            summary = summarise(runs)
            marks.append((time.perf_counter(), time.process_time()))
            files.write_page(summary, page, "stabkit sweep", all_figures=figures == "all")
            marks.append((time.perf_counter(), time.process_time()))
            rounds.append([now - then for a, b in itertools.pairwise(marks) for then, now in zip(a, b, strict=True)])
        print(f"{page.stat().st_size:,} bytes")
    for name, place in (("summary", 0), ("page", 2)):
        clock, cpu = (min(row[place + i] for row in rounds) for i in (0, 1))
        print(f"{name:8} {clock:6.2f} s (processor {cpu:.2f} s), the first {rounds[0][place]:.2f} s")
    by_figure = {figure.name: [spent.get(f"{figure.name} {part}", 0.0) for part in PARTS] for figure in FIGURES}
    for name, seconds in sorted(by_figure.items(), key=lambda item: -sum(item[1]))[:10]:
        texts = (f"{part} {1000 * value / len(rounds):.0f}" for part, value in zip(PARTS, seconds, strict=True))
        print(f"  {name:18} {', '.join(texts)} ms, on average")


if __name__ == "__main__":
    main(*sys.argv[1:])
