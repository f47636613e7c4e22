"""One user's model at one depth, rate and seed: what was found, what was recorded, the numbers of its chain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import takewhile
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.own.guess import Guess
from stabkit.results.records import Table
from stabkit.results.typed import read

PROBE_VERSION = 2
"""Of what is recorded: a folder of another is probed again."""

COPIED = {256: (26, 24, 16, 31), 512: (10, 14, 5, 16)}
"""{a width: of models of it those for which the word of a copy of width 64 came true, at the same rate and at √(d/64)
times it; those for which that of --quick at its own width did; of so many with a clear outcome}: evidence/ladder.md."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sublayer:
    """A residual sub-layer of the model."""

    stack: str
    layer: int
    kind: str
    parameters: int
    """Tensors that count for it."""
    module: str = ""
    """What the model's code calls the smallest part that holds all its parameters, `transformer.h.5`; "" for none."""

    @property
    def name(self) -> str:
        return f"{self.stack}.{self.layer}.{self.kind}"

    @property
    def both_names(self) -> str:
        """Both names, for people."""
        return f"{self.name} ({self.module})" if self.module else self.name


def module_of(paths: Iterable[str]) -> str:
    """The smallest module that holds all of these: `h.5` of h.5.mlp.up and h.5.norm; "" where that is the model."""
    levels = zip(*(path.removeprefix("_orig_mod.").split(".") for path in paths), strict=False)
    return ".".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))


@dataclass(frozen=True, kw_only=True, slots=True)
class Broke:
    """The first number of a run that is not finite."""

    step: int
    where: str
    """`stream of decoder.5.ffn`."""
    detail: str = ""
    """How much of it: `1 of 8 rows; the loss is 4.61; 27 of 29 gradients are not finite`."""
    parameter: bool = False
    """Whether it is one of the model's as it was made: nothing that follows overflows."""

    def __str__(self) -> str:
        return f"step {self.step}, {self.where}" + (f" ({self.detail})" if self.detail else "")


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
    broke: Broke | None
    optimizer: str
    """Its class."""
    rate: float
    """The highest of its schedule, of the first group; NaN where that has none."""
    guess: Guess | None = None
    """What its scores were worth at the start; None where it has none, or was recorded before that was."""
    normed: tuple[str, ...] = ()
    """Stacks that end in a norm."""
    dtype: str = ""
    """What the last stack's output is of: `float16`; "" where that was not read."""
    unreached: str = ""
    """Matrices of sub-layers that no gradient but 0 ever arrived at, in words; "" for none."""
    unreached_share: float = 0.0
    """Of the sub-layers that have matrices to be trained: how many have one of those."""
    unregistered: str = ""
    """Which sub-layers' weights are not among the model's parameters; "" for none."""

    optimizers: tuple[str, ...] = ()
    """The classes of all that step it, in their order; empty of what was recorded before that was."""
    fresh: bool = False
    """Whether every update had a batch of its own."""
    warmup: int = 0
    """Updates until the rate is at its highest."""
    frequencies: float | None = None
    """The loss of who knows how often each answer comes and nothing else, nats; of a regression that of the best
    constant; None where that is not known."""
    regression: bool = False
    """Whether the loss is a mean squared error."""
    within: float = 0.0
    """Seconds after which a training ended that nothing else had ended; 0 of all others."""
    entropy: float | None = None
    """The loss of who knows all that can be learnt, nats; None where that is not known."""

    bounded: float = 1.0
    """Share of the sub-layers that a norm stands before, in or after."""
    changed: tuple[str, ...] = ()
    """How the names of the parameters end that the change is made on."""
    factors: tuple[float, ...] = ()
    """What the change multiplies or divides by, where it depends on the model."""
    normed_sums: bool = False
    """Whether a norm follows every sum whose branch the change scales."""
    drawn: float = 0.0
    """How large its matrices were drawn, the median over sub-layers' (`own/probe/loop.py`); 0 where not known."""
    times: float = 1.0
    """What every rate was multiplied by, in search of the highest that trains."""
    change: str = ""
    """What was changed to try a cure (`cure.py`); "" for the model as it is."""

    @property
    def layers(self) -> int:
        """Of the deepest stack."""
        return max(Counter(stack for stack, _ in {(own.stack, own.layer) for own in self.sublayers}).values())

    @property
    def room(self) -> int:
        """Bytes that the records can have: sixteen tables of a row an update, and of those of a ramp."""
        return 8 * 16 * (self.steps + 4096) * (8 * len(self.sublayers) + 64)

    def to_json(self) -> FactsJson:
        """Fields that have their default are left out: what 1.0.0 stored, which lacks them, is written as it was."""
        body = asdict(self)
        plain = {own.name: own.default for own in fields(self) if own.default is not MISSING}
        for name in ("detail", "parameter") if body["broke"] is not None else ():
            if not body["broke"][name]:
                del body["broke"][name]
        for own in body["sublayers"]:
            if not own["module"]:
                del own["module"]
        return {name: value for name, value in body.items() if name not in plain or getattr(self, name) != plain[name]}


FactsJson = Annotated[dict[str, Any], Facts]
"""Facts without the fields that are at their defaults."""


def facts(body: Mapping[str, Any]) -> Facts:
    """Of JSON; raises TypeError, KeyError or ValueError for what is none."""
    found = read(Facts, body)
    if not found.sublayers:
        raise ValueError("it has no sub-layer")
    return found


@dataclass(frozen=True, slots=True)
class ModelCell:
    """Facts and records."""

    facts: Facts
    records: Mapping[str, Table]
    digest: str = ""

    @property
    def depth(self) -> int:
        """0 of a factory without one."""
        return self.facts.depth or 0

    @property
    def seed(self) -> int:
        return self.facts.seed

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(own.stack for own in self.facts.sublayers))

    def check(self) -> None:
        """Raise KeyError, ValueError or IndexError where the records are not those of these sub-layers."""
        self.update()
        for stack in self.stacks:
            for number in (self.growth, self.room, self.dilution, self.gradients, self.gradient_ratio):
                number(stack)

    def of(self, stack: str) -> list[Sublayer]:
        """Its sub-layers, lowest first."""
        return [own for own in self.facts.sublayers if own.stack == stack]

    def growth(self, stack: str) -> float:
        """rms(x_L)/rms(x_0) of a stack before any update."""
        stream = self.records["stream"]
        below = stream.at(stack)[0]
        return float(stream.at(self.of(stack)[-1].name)[0] / below) if below else math.inf

    def room(self, stack: str) -> float:
        """The least head-room of a stack at any step; NaN where none was read."""
        stream = self.records["stream"]
        site = f"{stack}@room"
        return float(np.min(stream.at(site))) if site in stream.sites else math.nan

    def dilution(self, stack: str) -> float:
        """The smallest ‖γ·f‖/‖x_i‖ among the branches of a stack's upper half, over the largest of its lower half; of
        each branch the largest at any step (one that starts at 0 counts from where it has moved). NaN where none was
        read or all are 0."""
        table, own = self.records.get("branch"), self.of(stack)
        if table is None or len(own) < 2:
            return math.nan
        with np.errstate(all="ignore"):
            most = [float(np.nanmax(table.at(place.name), initial=0.0)) for place in own]
        lower, upper = max(most[: len(own) // 2]), min(most[len(own) // 2 :])
        return upper / lower if lower else math.nan

    def update(self) -> NDArray[np.float64]:
        """‖ΔF‖/‖F(θ_0)‖ at every step."""
        return self.records["update"].at("state@relative")

    def gradients(self, stack: str) -> NDArray[np.float64]:
        """(steps × layers) ‖∂L/∂θ‖ over all parameters of a layer, lowest first; layers without any are left out."""
        table = self.records["gradient"]
        layers: dict[int, list[str]] = {}
        for sublayer in self.of(stack):
            if sublayer.parameters:
                layers.setdefault(sublayer.layer, []).append(sublayer.name)
        parts = [_together(table.select(names)) for names in layers.values()]
        return np.stack(parts, axis=1) if parts else np.empty((len(table.steps), 0))

    def gradient_ratio(self, stack: str) -> NDArray[np.float64]:
        """Lowest layer's gradient over the top layer's at every step. NaN without two layers, and at a step in which
        either has none (a layer skipped); 0 throughout where none ever arrives at the lowest."""
        norms = self.gradients(stack)
        if norms.shape[1] < 2:
            return np.full(len(norms), np.nan)
        low, top = norms[:, 0], norms[:, -1]
        if np.isnan(low).all():
            return np.where(np.isfinite(top), 0.0, np.nan)
        with np.errstate(all="ignore"):
            ratio: NDArray[np.float64] = low / top
        return ratio


def _together(norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """√Σ over those of a step that have a gradient; NaN where none has."""
    squares = np.where(np.isnan(norms), 0.0, norms) ** 2
    total: NDArray[np.float64] = np.where(np.isnan(norms).all(axis=1), np.nan, np.sqrt(squares.sum(axis=1)))
    return total


def last_of_all(cells: Sequence[ModelCell], probe: str) -> int:
    """The last step at which all of them have a reading: one that has learnt ends before the others."""
    steps = [set(cell.records[probe].steps.tolist()) for cell in cells]
    return int(max(set.intersection(*steps)))


def sublayer_counts(cells: Sequence[ModelCell]) -> list[tuple[int, int]]:
    """(depth, sub-layers), the shallowest first."""
    return sorted({c.facts.depth: len(c.facts.sublayers) for c in cells if c.facts.depth is not None}.items())
