"""Surfaces with the runs they surround: what the pictures of `stabkit landscape` share.

A *ruler* says whose directions measure a surface: each method's own (filter normalisation makes them as long as its own
weights, so a method with small weights is moved less: the papers' ruler), or one method's for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from stabkit.results.conditions import Shown, depth_rank, shown
from stabkit.results.run import Run
from stabkit.results.surface import Surface, SurfaceSpec

Kind = Literal["surface", "cut", "path", "between"]


def kind_of(spec: SurfaceSpec) -> Kind:
    """Which picture a surface belongs to."""
    if spec.plane.kind == "between":  # stored by 1.1.0, drawn by nothing
        return "between"
    return "path" if spec.path else "cut" if len(spec.b) == 1 else "surface"


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Whose directions measure a surface."""

    donor: str = ""
    """The method whose directions serve both; "" where each has its own."""
    label: str = field(default="", compare=False)
    """What the donor's method is called."""
    normalised: bool = True
    """By the norms of filters, as the papers' directions are."""

    def __str__(self) -> str:
        return self.text

    @property
    def own(self) -> bool:
        """Whether each method is measured by its own directions."""
        return not self.donor

    @property
    def papers(self) -> bool:
        """Whether it is the papers' ruler."""
        return self.own and self.normalised

    @property
    def text(self) -> str:
        """`each its own directions, as in the papers`, `Post-LN's directions for both`."""
        if self.own:
            return "each with its own directions" + ", as in the papers" * self.normalised
        return f"{self.label}'s directions for both"

    @property
    def whose(self) -> str:
        """In few words: `each one's own directions`, `Post-LN's`."""
        if self.papers:
            return "each method's own directions"
        return f"{self.label}'s" if self.donor else self.text


@dataclass(frozen=True, slots=True)
class PlacedSurface:
    """A surface, its run with what places it, and its ruler."""

    surface: Surface
    shown: Shown
    ruler: Normalisation

    @property
    def how(self) -> str:
        """`step 100, filter-normalised, ±1`: what the command could have asked otherwise."""
        spec = self.surface.spec
        ruler = {"none": "raw"}.get(spec.plane.normalise, f"{spec.plane.normalise}-normalised")
        theirs = "" if spec.engine == "stabkit" else f", by {spec.engine}"
        return f"step {spec.origin.step}, {ruler} directions, ±{max(spec.a):g}{theirs}"

    @property
    def facts(self) -> dict[str, Any]:
        """The columns with which every frame begins; `run` is a surface under a ruler, of which one run has many."""
        return {**self.shown.facts(), "run": f"{self.surface.surface_id}, {self.ruler.text}"}

    def points(self) -> pd.DataFrame:
        """One row a point of the surface."""
        a, b = np.meshgrid(self.surface.spec.a, self.surface.spec.b)
        return pd.DataFrame({"a": a.ravel(), "b": b.ravel(), "loss": self.surface.loss.ravel()})


@dataclass(frozen=True, slots=True)
class Landscape:
    """What a command drew: its runs and their surfaces."""

    runs: Sequence[Run]
    surfaces: Sequence[Surface]

    def placed(self, kind: Kind = "surface") -> list[PlacedSurface]:
        """The surfaces of one kind: shallow before deep, ruler by ruler, method by method; a method's own directions
        count under its own ruler and under the one of its name."""
        by_run = {placed.run.run_id: placed for placed in shown(self.runs)}
        ranked: list[tuple[tuple[int, ...], PlacedSurface]] = []
        order = list(by_run)
        for surface in self.surfaces:
            spec = surface.spec
            if kind_of(spec) != kind or spec.origin.run not in by_run:
                continue
            placed = by_run[spec.origin.run]
            donor = spec.plane.of.run if spec.plane.of else spec.origin.run
            alone = len([run for run in by_run.values() if _beside(run, placed)]) == 1
            random = kind in ("surface", "cut")
            rulers = []
            if random and not alone and donor in order:
                rulers.append((1 + order.index(donor), Normalisation(by_run[donor].variant, by_run[donor].label)))
            if spec.plane.of is None:
                rulers.append((0, Normalisation(normalised=spec.plane.normalise == "filter")))
            for place, ruler in rulers:
                rank = (*depth_rank(placed.run.spec), placed.run.spec.seed, place, order.index(spec.origin.run))
                ranked.append(((*rank, spec.plane.seed), PlacedSurface(surface, placed, ruler)))
        return [one for _, one in sorted(ranked, key=lambda item: item[0])]

    def points(
        self, kind: Kind, columns: Sequence[str], facts: Callable[[PlacedSurface], Mapping[str, Any]]
    ) -> pd.DataFrame:
        """One row a point of every surface of a kind; `facts` are columns besides those of every frame."""
        parts = [seen.points().assign(**seen.facts, **facts(seen))[list(columns)] for seen in self.placed(kind)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))


def _beside(placed: Shown, other: Shown) -> bool:
    return (placed.shape, placed.run.spec.seed) == (other.shape, other.run.spec.seed)
