"""Does a model begin as somebody who knows nothing? Its first loss against that of a uniform guess.

    uniform   ln V                              over V classes
    cost      mean of  ln Σ_j exp(z_j) − mean(z)   what the scores z that it begins with cost on average over all labels

Scores of variance σ² cost about ln V + σ²/2 (a normal, σ small). Whether a loss is a cross-entropy is not asked: it is
taken for one where it is near that cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FAR = 2.0
"""Nats above a uniform guess: scores of a standard deviation of 2."""
ALIKE = 0.3
"""How far a loss may be from the cost, over what the cost is above a uniform guess."""
MANY, SUMMED = 16, 1.8
"""Classes from which a first loss is compared with what the scores cost, and times that it is more than a mean."""
TRAINED = 0.8
"""Of what a uniform guess costs: weights whose first loss is below were trained before."""
WIDE = 1.5
"""Times 1/√d from which a head's standard deviation is named as the cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """The scores that a model begins with."""

    classes: int
    cost: float
    """Nats."""
    head: str
    """The matrix that makes them; "" where none was seen."""
    scale: float
    """Its standard deviation times √d."""

    @property
    def uniform(self) -> float:
        return math.log(self.classes)

    def summed(self, loss: float) -> float:
        """How many times what the scores cost this first loss is; 1 where it is near it. Labels that are not equally
        frequent move it by a tenth or so; a sum over micro-batches or tokens, or a second term, by more."""
        many = self.classes >= MANY and self.head and 0 < loss < math.inf and 0 < self.cost < math.inf
        return loss / self.cost if many and loss > SUMMED * self.cost else 1.0

    def high(self, loss: float = math.nan) -> str:
        """What is to be said of this loss, or of the scores where none is given; "" where they are near a guess."""
        above = self.cost - self.uniform
        if (times := self.summed(loss)) > 1:
            return (
                f"the loss at the start, {loss:.3g}, is {times:.2g} times what the logits cost, {self.cost:.3g}: a sum "
                "over micro-batches or tokens rather than their mean, or more than one term"
            )
        if not above > FAR or not math.isfinite(self.cost):
            return ""
        if math.isnan(loss):
            said = f"the initial scores cost {self.cost:.3g} nats, averaged over all labels"
        elif loss > self.uniform + FAR and abs(loss - self.cost) <= ALIKE * above + 0.25:
            said = f"the loss at the start is {loss:.3g}"
        else:
            return ""
        cause = f"; the standard deviation of {self.head} is {self.scale:.2g} × 1/√d" if self.scale > WIDE else ""
        chance = f"a uniform guess over {self.classes} classes gives ln {self.classes} = {self.uniform:.3g}"
        return f"{said}; {chance}{cause}"
