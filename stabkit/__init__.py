"""stabkit: will this residual, normalisation and initialisation scheme stay stable at this depth?

`stabkit.sweep(…)`, `ablate`, `transfer` and `landscape` train tiny models and return what they
found; `transfer(factory)` says whether the best rate of a model of one's own carries over depth;
`stabkit.probe(factory, depths)` judges a model of one's own, `audit(factory)` holds it against a recipe,
`watch(model, optimizer)` records and warns in a training loop, `read_log(file)` reads the log of any training,
`loss_surface(model, loss)` draws the loss around any torch.nn.Module; `load_runs(out)` and `load_records(out)` read a
store. The command line (`stabkit --help`) calls the
same functions.
"""

from __future__ import annotations

from sys import modules
from typing import TYPE_CHECKING, Any

from stabkit.version import __version__

if TYPE_CHECKING:
    from stabkit.api import (
        ablate,
        audit,
        landscape,
        load_records,
        load_runs,
        probe,
        read_log,
        sweep,
        transfer,
        watch,
    )
    from stabkit.errors import Stuck
    from stabkit.surface.anymodel import LossSurface, loss_surface

__all__ = [
    "LossSurface",
    "Stuck",
    "__version__",
    "ablate",
    "audit",
    "landscape",
    "load_records",
    "load_runs",
    "loss_surface",
    "probe",
    "read_log",
    "sweep",
    "transfer",
    "watch",
]
_ELSEWHERE = {
    "LossSurface": "stabkit.surface.anymodel",
    "Stuck": "stabkit.errors",
    "loss_surface": "stabkit.surface.anymodel",
}


def __getattr__(name: str) -> Any:
    """What `__all__` names, imported when it is used: importing stabkit imports no torch."""
    from importlib import import_module

    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, "stabkit.api")), name)
    raise AttributeError(f"module 'stabkit' has no attribute {name!r}", name=name, obj=modules[__name__])


def __dir__() -> list[str]:
    """The public names, for whoever completes them."""
    return sorted(__all__)
