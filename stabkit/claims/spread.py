"""How far each claim's number spreads over five seeds: what one seed must lie off a threshold to decide.

`spread.csv` stands beside this file, made by `python benchmarks/spread.py DATA OUT`: one row a claim and place,
`spread` = the range over five seeds (of a ratio that of its natural logarithm; of a share 1 where the seeds disagree).
Of a place that it does not hold, ELSEWHERE times the widest of the claim's places counts; of a claim that it does not
hold nothing is known, and one seed decides nothing. Of outcomes, which seeds share at 6 layers and may not at 100, only
the place itself counts.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from stabkit.claims.base import Claim, Measurement, Scale, Threshold
from stabkit.figures.shared.words import short

FILE = "spread.csv"
SEEDS = 5
ELSEWHERE = 2.0
"""Seeds may lie farther apart at a depth, rate or batch where nobody has measured it."""
MORE = "`--seeds 0..4` decides"


def doubt(claim: Claim, measurement: Measurement, value: float, threshold: Threshold) -> str:
    """Why one seed does not decide here; nothing where it does."""
    spread = known(claim.key, measurement)
    if claim.scale == "share" and not _here(claim, measurement):
        return f"one seed, and five seeds were not compared here; {MORE}"
    if math.isnan(spread):
        return f"one seed, and the spread of seeds was not measured here; {MORE}"
    if off(value, threshold.value, claim.scale) > spread:
        return ""
    return f"one seed, within the spread of seeds from the threshold ({claim.tell(threshold.value)}); {MORE}"


def known(key: str, measurement: Measurement) -> float:
    """The spread at this place, else ELSEWHERE times the widest of the claim's; NaN where none was measured."""
    spreads = table().get(key, {})
    return spreads.get(measurement.key, ELSEWHERE * max(spreads.values(), default=math.nan))


def told(claim: Claim, measurement: Measurement) -> str:
    """What decides one seed, in words: `one seed; five lie within 1.4 times`, and of a place where nobody has measured
    it `…, twice what they do elsewhere`."""
    apart = known(claim.key, measurement)
    here = _here(claim, measurement)
    if claim.scale == "share":
        return "one seed; five end alike"
    width = f"{short(math.exp(apart), 3)} times" if claim.scale == "ratio" else short(apart)
    return (
        f"one seed; five lie within {width}"
        if here
        else f"one seed, farther from the threshold than {width}, twice what five seeds spread elsewhere"
    )


def _here(claim: Claim, measurement: Measurement) -> bool:
    """Whether five seeds were compared at this very place."""
    return measurement.key in table().get(claim.key, {})


def off(value: float, limit: float, scale: Scale) -> float:
    """How far apart a number and its threshold are, as their scale counts it."""
    if scale == "ratio":
        return abs(math.log(value) - math.log(limit)) if 0 < value < math.inf else math.inf
    return abs(value - limit)


def width(values: Sequence[float], scale: Scale) -> float:
    """The range of several seeds' numbers, as their scale counts it."""
    if scale == "ratio":
        return math.log(max(values)) - math.log(min(values)) if min(values) > 0 else math.inf
    return max(values) - min(values)


@cache
def table() -> Mapping[str, Mapping[tuple[str, str], float]]:
    """{claim: {Measurement.key: spread}}."""
    held: dict[str, dict[tuple[str, str], float]] = {}
    text = resources.files("stabkit.claims").joinpath(FILE).read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        held.setdefault(row["claim"], {})[row["where"], row["setting"]] = float(row["spread"])
    return held
