"""One link of the chain as judged: a word, why, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from stabkit.results.depth_fit import DepthFit
from stabkit.results.own.forecast import Healthy

Word = Literal["pass", "cannot tell", "fail"]
ORDER: tuple[Word, ...] = ("pass", "cannot tell", "fail")
"""The worst is last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A link's number at one depth."""

    depth: int | None
    value: float
    """Geometric mean over seeds."""
    seeds: tuple[float, ...]


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

    def to_json(self) -> dict[str, Any]:
        fit = self.fit
        return {
            "verdict": self.verdict,
            "certain": self.certain,
            "why": self.why,
            "level": self.level,
            "exponent": fit.exponent if fit else None,
            "interval": [fit.low, fit.high] if fit else None,
            "fit": ("exponential" if fit.exponential else "power") if fit else None,
            "factor": fit.factor if fit else None,
            "factor_interval": [fit.factor_low, fit.factor_high] if fit else None,
            "saturated": self.saturated,
            "limit": self.limit,
            "step": self.step,
            "evidence": [asdict(own) for own in self.evidence],
            "healthy": asdict(self.healthy) if self.healthy else None,
        }


def worst(links: Sequence[LinkVerdict]) -> LinkVerdict:
    """The worst word; of equal ones what is certain, then the number farthest from 1."""

    def away(link: LinkVerdict) -> float:
        return abs(math.log(link.level)) if 0 < link.level < math.inf else math.inf

    return max(links, key=lambda link: (ORDER.index(link.verdict), link.certain, away(link)))
