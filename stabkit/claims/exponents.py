"""Numbers made of the exponents that are fitted over depths (`figures/shared/depth_fit.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabkit.claims.base import Measurement, Spot, power_of_n
from stabkit.figures.shared import depth_fit
from stabkit.figures.shared.comparison import setting
from stabkit.storage.store import Run

NEARLY = 0.25
"""The exponent up to which growth counts as nearly none: over 6 to 50 layers a factor of 1.7."""


def of_lines(
    apart: str,
    runs: Sequence[Run],
    line: depth_fit.DepthLine,
    values: Mapping[int, float],
    of: Spot | None = None,
    **more: object,
) -> Measurement:
    """A number made of fitted exponents, by seed; `of` whose, where a claim has a place a method."""
    ends = f"{line.shallowest:g}", f"{line.deepest:g}"
    return Measurement(
        where=(*([of] if of else []), Spot("-".join(ends), f"{'–'.join(ends)} layers")),
        apart=apart,
        condition=setting(runs[0].spec),
        steps=min(run.spec.train.steps for run in runs),
        values=values,
        **more,  # type: ignore[arg-type]
    )


def sizes(line: depth_fit.DepthLine) -> dict[int, float]:
    """How far each seed's exponent lies from 0, up or down."""
    return {seed: abs(exponent) for seed, exponent in line.seeds.items()}


def falling(line: depth_fit.DepthLine) -> str:
    """Says so where an exponent of which the size is told falls."""
    return f"falling: {power_of_n(line.exponent)}" if line.exponent < 0 else ""
