"""One link of the chain as judged: a word, why, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from stabkit.results.depth_fit import DepthFit
from stabkit.results.own.forecast import Healthy

Word = Literal["pass", "cannot tell", "fail"]
ORDER: tuple[Word, ...] = ("pass", "cannot tell", "fail")
"""The worst is last."""

NAMES = {
    "gradient": "Gradient",
    "scores": "Logits",
    "update": "Update",
    "stream": "Stream",
    "tokens": "Tokens",
    "loss": "Loss",
    "finite": "Finite",
}
"""What each link is called."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A link's number at one depth."""

    depth: int | None
    value: float
    """Geometric mean over seeds."""
    seeds: tuple[float, ...]


class LinkJson(TypedDict):
    """One link of the chain."""

    verdict: Word
    certain: bool
    """Whether a model does not train for certain where this fails; else it is never more than `open`."""
    why: str
    level: float
    """Its number at the deepest."""
    exponent: float | None
    """Of its law in depth."""
    interval: tuple[float, float] | None
    fit: Literal["exponential", "power"] | None
    factor: float | None
    """A layer, where the law is exponential."""
    factor_interval: tuple[float, float] | None
    saturated: bool
    limit: float
    """That which decided, or would."""
    step: int
    """Of the level."""
    evidence: tuple[Evidence, ...]
    healthy: Healthy | None
    """The level among models that train."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkVerdict:
    """One link of the chain."""

    verdict: Word
    why: str
    """In words, with the numbers."""
    brief: str = ""
    """The same for the title of a picture, where it is too long for one."""
    level: float
    """At the deepest."""
    limit: float
    """That which decided, or would."""
    step: int
    """Of the level."""
    fit: DepthFit | None = None
    saturated: bool = False
    certain: bool = True
    """Whether a model does not train for certain where this fails; else it is never more than `open`."""
    evidence: tuple[Evidence, ...] = ()
    healthy: Healthy | None = None
    """The level among models that train; None where that is not known."""

    def to_json(self) -> LinkJson:
        fit = self.fit
        return {
            "verdict": self.verdict,
            "certain": self.certain,
            "why": self.why,
            "level": self.level,
            "exponent": fit.exponent if fit else None,
            "interval": (fit.low, fit.high) if fit else None,
            "fit": ("exponential" if fit.exponential else "power") if fit else None,
            "factor": fit.factor if fit else None,
            "factor_interval": (fit.factor_low, fit.factor_high) if fit else None,
            "saturated": self.saturated,
            "limit": self.limit,
            "step": self.step,
            "evidence": self.evidence,
            "healthy": self.healthy,
        }


def worst(links: Sequence[LinkVerdict]) -> LinkVerdict:
    """The worst word; of equal ones what is certain, then the number farthest from 1."""

    def away(link: LinkVerdict) -> float:
        return abs(math.log(link.level)) if 0 < link.level < math.inf else math.inf

    return max(links, key=lambda link: (ORDER.index(link.verdict), link.certain, away(link)))
