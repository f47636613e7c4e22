"""A user's own model over depths from Python, as `stabkit probe` does it."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from stabkit.cli.commands import probe as command
from stabkit.errors import UsageError
from stabkit.library.options import read
from stabkit.results.own import series
from stabkit.results.own.judged import Judged, judged
from stabkit.running import probes
from stabkit.running.executors import EXECUTORS
from stabkit.storage.store import Store


def probe(factory: str | Callable[..., Any], depths: str | int | Sequence[int] = "", **options: Any) -> pd.DataFrame:
    """Whether a model of one's own stays stable with depth: a row a rate and link of the chain.

    `factory` is "package.module:function" or the function itself, if a fresh process can import it (not one of
    `__main__`); called with a depth it returns a model, (model, loss) or (model, loss, optimizer). Options have the
    command's names: seeds, steps, lr, blocks, out. Columns: lr, link (stream, update, gradient, finite), verdict
    (pass, warn, fail, cannot tell), exponent (of its law in depth; NaN where there is none), why. Raises UsageError
    where the factory cannot be called or gives no result at any depth; warns of each depth that has none.

    >>> import stabkit
    >>> found = stabkit.probe("tests.own.probe_models:pre_ln", depths=(2, 4, 8), seeds=0, steps=2, out=out)
    >>> sorted(found["link"])
    ['finite', 'gradient', 'stream', 'update']
    """
    asked, place = command.read({**read("probe", {"depths": depths, **options}), "factory": _name(factory)})
    asked = dataclasses.replace(asked, here=_where(factory) or asked.here)
    store = Store(asked.out)
    with store.writing():
        done = probes.run(
            asked,
            lambda jobs, tell: EXECUTORS["processes"](jobs, tell, place),
            lambda event: None,
            lambda *ended: None,
        )
    if not done.results:
        raise UsageError(f"{asked.factory} gave no result at any depth: {done.lost[0][1].reason}")
    series.refuse(done.results)
    for spec, lost in done.lost:
        warnings.warn(f"depth {spec.depth}, seed {spec.seed} has no result: {lost.reason}", stacklevel=2)
    return table(judged(done.results))


def table(found: Judged) -> pd.DataFrame:
    """One row a rate and link."""
    return pd.DataFrame(
        [
            {
                "lr": one.lr,
                "link": name,
                "verdict": link.verdict,
                "exponent": link.fit.exponent if link.fit else float("nan"),
                "why": link.why,
            }
            for one in found.verdicts
            for name, link in one.links.items()
        ]
    )


def _name(factory: str | Callable[..., Any]) -> str:
    if isinstance(factory, str):
        return factory
    module, name = getattr(factory, "__module__", "__main__"), getattr(factory, "__qualname__", "")
    if module == "__main__" or not name.isidentifier():
        raise UsageError(
            f"probe() runs {name or factory!r} in fresh processes, which cannot import it from here: put it into a "
            "file beside your script, mine.py, and give 'mine:function'"
        )
    return f"{module}:{name}"


def _where(factory: str | Callable[..., Any]) -> str:
    """The folder from which a function's module can be imported; "" of a name."""
    file = None if isinstance(factory, str) else getattr(sys.modules.get(factory.__module__), "__file__", None)
    return str(Path(file).absolute().parents[factory.__module__.count(".")]) if file else ""
