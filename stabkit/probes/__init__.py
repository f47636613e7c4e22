"""The probes: one diagnostic a file, one row in `results/sites.py`, which says what a run records without torch."""

from __future__ import annotations

from importlib import import_module

from stabkit.probes.base import Pass, Probe
from stabkit.results import sites


def _probe(name: str) -> type[Probe]:
    """The class of this name in the file of this name."""
    classes = [value for value in vars(import_module(f"stabkit.probes.{name}")).values() if isinstance(value, type)]
    (probe,) = (value for value in classes if issubclass(value, Probe) and getattr(value, "name", "") == name)
    return probe


PROBES: tuple[type[Probe], ...] = tuple(_probe(row.name) for row in sites.PROBES)

__all__ = ["PROBES", "Pass", "Probe"]
