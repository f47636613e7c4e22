"""stabkit: will this residual, normalisation and initialisation scheme stay stable at this depth?

`stabkit.sweep(…)` trains and returns a table, `stabkit.load_runs(out)` and `load_records(out)` read a store,
`stabkit.probe(factory, depths)` judges a model of one's own, `stabkit.watch(model, optimizer)` records and warns in a
training loop, `stabkit.loss_surface(model, loss)` draws the loss around any torch.nn.Module. All else is the command
line: `stabkit --help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabkit.version import __version__

if TYPE_CHECKING:
    from stabkit.library.own import probe
    from stabkit.library.runs import load_records, load_runs, sweep
    from stabkit.own.watch.watch import Watch as watch
    from stabkit.surface.anymodel import LossSurface, loss_surface

__all__ = [
    "LossSurface",
    "__version__",
    "load_records",
    "load_runs",
    "loss_surface",
    "probe",
    "sweep",
    "watch",
]
_WHERE = {
    "LossSurface": ("stabkit.surface.anymodel", "LossSurface"),
    "load_records": ("stabkit.library.runs", "load_records"),
    "load_runs": ("stabkit.library.runs", "load_runs"),
    "loss_surface": ("stabkit.surface.anymodel", "loss_surface"),
    "probe": ("stabkit.library.own", "probe"),
    "sweep": ("stabkit.library.runs", "sweep"),
    "watch": ("stabkit.own.watch.watch", "Watch"),
}


def __getattr__(name: str) -> Any:
    """The library's door, opened when it is used: importing stabkit imports no torch."""
    from importlib import import_module

    if name in _WHERE:
        module, own = _WHERE[name]
        return getattr(import_module(module), own)
    raise AttributeError(f"module 'stabkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The library's names, for whoever completes them."""
    return sorted(__all__)
