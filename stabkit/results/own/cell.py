"""One user's model at one depth, rate and seed: what was found, what was recorded, the numbers of its chain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.records import Table

PROBE_VERSION = 1
"""Of what is recorded: a folder of another is probed again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sublayer:
    """A residual sub-layer of the model."""

    stack: str
    layer: int
    kind: str
    parameters: int
    """Tensors that count for it."""

    @property
    def name(self) -> str:
        return f"{self.stack}.{self.layer}.{self.kind}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What is known of a cell besides its records; JSON."""

    factory: str
    depth: int | None
    """None: the factory takes none."""
    lr: float
    """0: its optimiser's own."""
    seed: int
    steps: int
    """Updates asked for."""
    sublayers: tuple[Sublayer, ...]
    how: str
    """`sums x + f(x)`, or the blocks that stand for them."""
    notes: tuple[str, ...]
    model: str
    """Its class."""
    parameters: int
    width: int
    tokens: int
    batch: str
    """Digest of what the model was called with."""
    start: float
    """The loss at θ_0, in eval mode."""
    broke: str
    """The first number that is not finite: `step 3, stream of decoder.5.ffn`; "" for none."""
    optimizer: str
    """Its class."""
    rate: float
    """Of its first group; NaN where that has none."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def facts(body: Mapping[str, Any]) -> Facts:
    """Of JSON; raises TypeError, KeyError or ValueError for what is none."""
    parts = tuple(Sublayer(**own) for own in body["sublayers"])
    numbers = {name: float(body[name]) for name in ("lr", "start", "rate")}  # "nan" in JSON
    return Facts(**{**body, **numbers, "sublayers": parts, "notes": tuple(map(str, body["notes"]))})


@dataclass(frozen=True, slots=True)
class Cell:
    """Facts and records."""

    facts: Facts
    records: Mapping[str, Table]
    digest: str = ""

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(own.stack for own in self.facts.sublayers))

    def of(self, stack: str) -> list[Sublayer]:
        """Its sub-layers, lowest first."""
        return [own for own in self.facts.sublayers if own.stack == stack]

    def growth(self) -> float:
        """rms(x_L)/rms(x_0) before any update, of the stack in which it is farthest from 1."""
        stream = self.records["stream"]
        found = [_ratio(stream.at(self.of(s)[-1].name)[0], stream.at(s)[0]) for s in self.stacks]
        return max(found, key=lambda value: abs(math.log(value)) if 0 < value < math.inf else math.inf)

    def update(self) -> NDArray[np.float64]:
        """‖ΔF‖/‖F(θ_0)‖ at every step."""
        return self.records["update"].at("state@relative")

    def gradients(self, stack: str) -> NDArray[np.float64]:
        """(steps × layers) ‖∂L/∂θ‖ over all parameters of a layer, lowest first; layers without any are left out."""
        table = self.records["gradient"]
        layers: dict[int, list[str]] = {}
        for own in self.of(stack):
            if own.parameters:
                layers.setdefault(own.layer, []).append(own.name)
        parts = [_together(table.select(names)) for names in layers.values()]
        return np.stack(parts, axis=1) if parts else np.empty((len(table.steps), 0))

    def gradient_ratio(self) -> NDArray[np.float64]:
        """Lowest layer's gradient over the top layer's at every step, of the stack in which it is farthest from 1; NaN
        at a step in which either has none (a layer skipped), 0 throughout where none ever arrives at the lowest."""
        found = [np.full(len(self.records["gradient"].steps), np.nan)]
        with np.errstate(all="ignore"):
            for stack in self.stacks:
                norms = self.gradients(stack)
                if norms.shape[1] > 1:
                    low, top = norms[:, 0], norms[:, -1]
                    cut = bool(np.isnan(low).all() and np.isfinite(top).any())
                    found.append(np.where(np.isfinite(top), 0.0, np.nan) if cut else low / top)
            stacked = np.array(found)
            away = np.abs(np.log(np.maximum(stacked, 1e-300)))
            worst = np.argmax(np.where(np.isnan(stacked), -1.0, away), axis=0)
        ratio: NDArray[np.float64] = stacked[worst, np.arange(stacked.shape[1])]
        return ratio


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below else math.inf


def _together(norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """√Σ over those of a step that have a gradient; NaN where none has."""
    squares = np.where(np.isnan(norms), 0.0, norms) ** 2
    total: NDArray[np.float64] = np.where(np.isnan(norms).all(axis=1), np.nan, np.sqrt(squares.sum(axis=1)))
    return total
