"""Options of a probe of a user's own model → a ProbeRequest, and where it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stabkit.errors import UsageError
from stabkit.options import machine, ranges
from stabkit.options.commands import ProbeOptions
from stabkit.own.factory import refuse_missing
from stabkit.results.own.measured import UPDATES
from stabkit.running.executors import ExecutorOptions
from stabkit.running.probes import ProbeRequest

MOST_CELLS = 400
"""Cells of one call."""


def probe(options: ProbeOptions) -> tuple[ProbeRequest, ExecutorOptions]:
    """What is asked, and where it runs; raises UsageError that names the option."""
    depths, rates = options.depths, options.lr
    asked = ProbeRequest(
        factory=name(options.factory),
        here=folder_of(options.factory) or os.getcwd(),
        depths=(None,) if depths in (None, "") else ranges.wholes("--depths", depths, 1, 10_000),
        seeds=ranges.wholes("--seeds", options.seeds, 0, 2**31),
        lrs=(0.0,) if rates in (None, "") else ranges.reals("--lr", rates, 0.0, 1e30, above=True),
        warmup=None if options.warmup is None else ranges.whole("--warmup", options.warmup, 0, 1_000_000),
        steps=ranges.whole("--steps", options.steps, 1, 10_000),
        blocks=options.blocks or "",
        time=ranges.real("--time", options.time, 0.0, 1e9),
        quick=options.quick,
        fresh=options.fresh,
        widths=_widths(options.widths, depths),
        predict=_predicted(options.predict, options.widths, options.steps),
        out=machine.output(options.out),
    )
    if asked.widths != (None,) and len(asked.lrs) > 1:
        raise UsageError("--widths compares models at one rate: give one --lr")
    if (count := len(asked.specs())) > MOST_CELLS:
        most = f"more than {MOST_CELLS}: give fewer --depths, --seeds or --lr"
        raise UsageError(f"that is {count} runs of your model, {most}")
    place = machine.place(options)
    workers = min(machine.workers(place.workers, "cpu"), len(asked.specs()))
    return asked, replace(place, workers=workers)


def _widths(given: Any, depths: Any) -> tuple[int | None, ...]:
    """Those asked for, at one depth; raises UsageError for one of them alone, and for several depths."""
    if given in (None, ""):
        return (None,)
    widths = ranges.wholes("--widths", given, 1, 1_000_000)
    if len(widths) < 2:
        raise UsageError(f"--widths needs several widths: --widths {widths[0]},{2 * widths[0]}")
    if depths in (None, "") or len(ranges.wholes("--depths", depths, 1, 10_000)) > 1:
        raise UsageError("--widths takes one depth: --depths 4")
    return tuple(sorted(widths))


def _predicted(given: Any, widths: Any, steps: Any) -> tuple[int, ...]:
    """Widths to say what is expected of; raises UsageError without --widths, and without a forecast."""
    if given in (None, ""):
        return ()
    if steps != UPDATES:
        raise UsageError(f"--predict needs forecasts, of --steps {UPDATES}")
    if widths in (None, ""):
        raise UsageError("--predict needs --widths: the law over them says what is expected at others")
    return tuple(sorted(ranges.wholes("--predict", given, 1, 1_000_000)))


def name(factory: str | Callable[..., Any]) -> str:
    """`module:function` of a factory; raises UsageError for one that a fresh process cannot import."""
    if isinstance(factory, str):
        refuse_missing("FACTORY", factory)
        return factory
    module, name = getattr(factory, "__module__", "__main__"), getattr(factory, "__qualname__", "")
    if module == "__main__" or not name.isidentifier():
        raise UsageError(
            f"stabkit runs {name or factory!r} in new processes, which cannot import it from here: put it in a "
            "file next to your script, mine.py, and give 'mine:function'"
        )
    return f"{module}:{name}"


def folder_of(factory: str | Callable[..., Any]) -> str:
    """The folder from which a function's module can be imported; "" of a name."""
    file = None if isinstance(factory, str) else getattr(sys.modules.get(factory.__module__), "__file__", None)
    return str(Path(file).absolute().parents[factory.__module__.count(".")]) if file else ""
