"""Pre-LN and Depth-μP with a rate of the embedding's own: a file of methods, as a user writes one.

    x ← x + g·f(N(x));   the layers' rate is the command's, that of embedding, head and last norm `times` as much

Depth-μP's layers learn at √(2/N) of the rate, its embedding at all of it: at 50 layers `times` = 5, at 100 7.1. So its
lead over Pre-LN may be the branches' factor, or an embedding that learns faster than the layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from stabkit.methods.base import Known, Method, Scale, Site
from stabkit.methods.today.completep import multiple

Times = Literal["1", "2", "4", "8", "16", "32", "64"]


def pre_ln(times: Times = "1") -> Method:
    """x ← x + f(N(x))."""
    return _made("pre-ln-embedding", "Pre-LN, own embedding rate", times, lambda site: 1.0)


def depth_mup(times: Times = "1") -> Method:
    """x ← x + √(2/N)·f(N(x))."""
    return _made("depth-mup-embedding", "Depth-μP, own embedding rate", times, lambda site: multiple(site) ** -0.5)


def _made(key: str, label: str, times: Times, gamma: Callable[[Site], float]) -> Method:
    def rate(site: Site, role: Known) -> float:
        return float(times) if role in ("outer", "embedding", "head") else 1.0

    return Method(
        key=key,
        label=label,
        source="Yang et al. 2023 eq. 1, Table 1, the embedding's rate apart",
        gamma=lambda site: Scale(init=gamma(site)),
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        rate=rate,
    )
