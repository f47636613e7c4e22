"""Which surface: the weights, the plane and the points. Frozen, JSON, known by the hash of everything that decides it.

Weights are those of a stored run at one of its steps; a run's id already stands for all that made it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from stabkit.spec import RUN_ID, canonical, sparse, within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Normalise = Literal["filter", "layer", "model", "none"]
NORMALISATIONS: tuple[Normalise, ...] = ("filter", "layer", "model", "none")
Engine = Literal["stabkit", "loss-landscapes"]
"""Who walks the plane: we, or the `loss_landscapes` library (`surface/library.py`), which walks whole squares alone."""
PathPlane = Literal["pca", "hao", "none"]
"""The plane that a path of training is drawn in."""

SURFACE_VERSION = 1
"""Raised whenever the same spec would give other losses than before."""

MOST_POINTS = 1_000_001


@dataclass(frozen=True, kw_only=True, slots=True)
class At:
    """The weights of a run after a number of updates."""

    run: str
    """run_id."""
    step: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Plane:
    """Two directions through the origin."""

    kind: Literal["random", "pca", "hao", "between"]
    """`between`: to other weights, a line or a triangle, as 1.1.0 stored them; no longer made."""
    seed: int = 0
    normalise: Normalise = "filter"
    of: At | None = None
    """Random: whose weights give the directions their length. None: those at the origin."""
    one_dimensional: bool = False
    orthogonalise: bool = True
    to: tuple[At, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SurfaceSpec:
    """The loss on the held-out probe batch at origin + a·δ + b·η for every a and b."""

    origin: At
    plane: Plane
    a: tuple[float, ...]
    b: tuple[float, ...] = (0.0,)
    """(0,) for a one-dimensional cut."""
    path: bool = False
    """Whether the run's snapshots are measured too: at their own weights, and at their projection into the plane."""
    device: str = "cpu"
    engine: Engine = "stabkit"
    """Another stands in stores of 1.1.0."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for documents and jobs."""
        return asdict(self)

    def stored(self) -> dict[str, Any]:
        """What spec.json holds and the id hashes: without the fields at their defaults."""
        return sparse(self)

    @property
    def surface_id(self) -> str:
        """`deepnorm-18L-18L-s0-random-1a2b3c4d5e6f`."""
        text = canonical({"surface_version": SURFACE_VERSION, "spec": self.stored()})
        return f"{prefix(self.origin.run)}{self.plane.kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def prefix(run_id: str) -> str:
    """How the ids of the surfaces around a run begin: as its own, without the hash."""
    return run_id[:-12]


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(SurfaceSpec)


def from_json(value: Any) -> SurfaceSpec:
    """A spec from JSON values, types checked; raises ValueError on anything that is not exactly one."""
    spec: SurfaceSpec = _adapter().validate_python(value)
    places = [spec.origin, *spec.plane.to, *([spec.plane.of] if spec.plane.of else [])]
    if not all(RUN_ID.fullmatch(place.run) and place.step >= 0 for place in places):
        raise ValueError("its weights are not those of a run")
    if not spec.a or not spec.b or len(spec.a) * len(spec.b) > MOST_POINTS or len(spec.plane.to) > 2:
        raise ValueError(f"it has {len(spec.a)} × {len(spec.b)} points")
    if not all(map(math.isfinite, (*spec.a, *spec.b))):
        raise ValueError("its coordinates are not finite")
    if not within(value, spec.to_json()):
        raise ValueError("it holds keys or values that a surface does not have")
    return spec


PATH = ("step", "a", "b", "outside", "loss", "projected")
"""The path's columns: updates done, coordinates in the plane, share of the displacement outside it, loss at the
snapshot's own weights, loss at its projection."""


@dataclass(frozen=True)
class Surface:
    """One finished surface."""

    spec: SurfaceSpec
    loss: NDArray[np.float64]
    """(b, a)."""
    path: Mapping[str, NDArray[np.float64]]
    """PATH's columns; empty where the path was not asked for."""
    facts: Mapping[str, float]
    """`explained_1`, `explained_2` of a path's plane; of another nothing."""
    digest: str

    @property
    def surface_id(self) -> str:
        return self.spec.surface_id
