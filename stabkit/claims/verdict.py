"""From numbers to a verdict: a place by its threshold and its seeds, a claim by its places.

One seed decides a place only where it lies off the threshold by more than that quantity's range over five seeds
(`Claim.spread`); of a place where nobody has measured it ELSEWHERE times the widest of the claim's places counts, and
of outcomes, which seeds share at 6 layers and may not at 100, only the place itself. Two to four seeds decide where all
are on one side; from five on a 95 % interval does: Student's t of the mean (of the logarithms, for a ratio), Wilson's
for the share of the seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from stabkit.claims.base import Claim, ClaimPlace, Finding, Measurement, Scale, Spot, Threshold, Verdict
from stabkit.results import intervals
from stabkit.results.readings import centre
from stabkit.words import short, some

ELSEWHERE = 2.0
"""Seeds may lie farther apart at a depth, rate or batch where nobody has measured it."""
MORE = "--seeds 0..4 tells more"


def judge(claim: Claim, measured: Any) -> Finding:
    """The verdict of these runs, or of these surfaces, on one claim."""
    with np.errstate(all="ignore"):  # diverged runs hold infinities; what comes of them is NaN, and is no evidence
        measurements = [one for one in claim.find(measured) if one.values]
    places = tuple(place(claim, one) for one in measurements)
    if not places:
        return Finding(claim=claim, verdict="untested", measured="", reason=f"needs {claim.needs}", places=())
    verdict = whole(claim, places)
    text, reason = _summary(claim, verdict, places)
    return Finding(claim=claim, verdict=verdict, measured=text, reason=reason, places=places)


def whole(claim: Claim, places: Sequence[ClaimPlace]) -> Verdict:
    """Of a claim: holding and failing places alone decide; without any it is undecided, else out of reach."""
    words = {one.verdict for one in _deciding(places)}
    if {"holds", "fails"} <= words:
        return "mixed"
    if "fails" in words:
        return "fails"
    if "holds" in words:
        return "undecided" if _open_parts(claim, places) else "holds"
    return "undecided" if "undecided" in words else "out of reach"


def _deciding(places: Sequence[ClaimPlace]) -> list[ClaimPlace]:
    """Without what holds by one limit of a number and fails by its other: far worse is not “slightly worse”."""
    lost = [(one.measured.key, one.measured.values) for one in places if one.verdict == "fails"]
    return [one for one in places if one.verdict != "holds" or (one.measured.key, one.measured.values) not in lost]


def _open_parts(claim: Claim, places: Sequence[ClaimPlace]) -> list[Spot]:
    """The parts of a claim that no place has decided."""
    decided = {one.measured.part for one in places if one.verdict in ("holds", "fails")}
    return [part for part in claim.parts if part not in decided]


def place(claim: Claim, measurement: Measurement) -> ClaimPlace:
    """One place: its number over the seeds, its range, its verdict."""
    threshold = measurement.threshold or claim.threshold
    values = list(measurement.values.values())
    value = middle(values, claim.scale)
    low, high = interval(values, claim.scale)
    verdict: Verdict = "holds" if threshold.met(value) else "fails"
    reason = _doubt(claim, measurement, value, low, high, threshold)
    if reason:
        verdict = "undecided"
    if measurement.beyond:
        verdict, reason = "out of reach", measurement.beyond
    single = len(values) == 1
    return ClaimPlace(
        measured=measurement,
        value=value,
        low=None if single else low,
        high=None if single else high,
        threshold=threshold,
        verdict=verdict,
        reason=reason,
        alone=_alone(claim, measurement) if single and verdict in ("holds", "fails") else "",
        text=_text(claim, measurement, value, low, high),
    )


def middle(values: Sequence[float], scale: Scale) -> float:
    """What several seeds make together, for a ratio as on the whole page (`numbers.centre`)."""
    if scale == "share":
        return statistics.fmean(values)
    if scale == "ratio" and all(0 < value < math.inf for value in values):
        return centre(values)
    return statistics.median(values)


def interval(values: Sequence[float], scale: Scale) -> tuple[float, float]:
    """What several seeds leave open: the range of up to four, from five on a 95 % interval."""
    count = len(values)
    if scale == "share":
        return intervals.wilson(statistics.fmean(values), count) if count >= 5 else (min(values), max(values))
    if count < 5 or not all(map(math.isfinite, values)):
        return min(values), max(values)
    if scale == "ratio" and min(values) > 0:
        low, high = _student([math.log(value) for value in values])
        return math.exp(low), math.exp(high)
    return _student(values)


def _student(values: Sequence[float]) -> tuple[float, float]:
    mean, half = statistics.fmean(values), intervals.half(values)
    return mean - half, mean + half


def _doubt(claim: Claim, measurement: Measurement, value: float, low: float, high: float, threshold: Threshold) -> str:
    """Why a place is not decided; nothing where it is."""
    if len(measurement.values) == 1:
        return _doubt_of_one(claim, measurement, value, threshold)
    if threshold.met(low) == threshold.met(value) == threshold.met(high):
        return ""
    beside = f"on both sides of the threshold, {claim.tell(threshold.value)}"
    if len(measurement.values) < 5:
        return f"its {len(measurement.values)} seeds lie {beside}"
    return f"{claim.tell(value)}, 95 % interval {claim.tell(low)} to {claim.tell(high)}: {beside}"


def _doubt_of_one(claim: Claim, measurement: Measurement, value: float, threshold: Threshold) -> str:
    """Why one seed does not decide here; nothing where it does."""
    spread, here = _spread(claim, measurement)
    if claim.scale == "share" and not here:
        return f"one seed, and five seeds were not compared here; {MORE}"
    if math.isnan(spread):
        return f"one seed, and the spread of seeds was not measured here; {MORE}"
    if _off(value, threshold.value, claim.scale) > spread:
        return ""
    return f"one seed, within the spread of seeds from the threshold ({claim.tell(threshold.value)}); {MORE}"


def _alone(claim: Claim, measurement: Measurement) -> str:
    """What decides one seed, in words: `one seed; five lie within 1.4 times`."""
    spread, here = _spread(claim, measurement)
    if claim.scale == "share":
        return "one seed; five end alike"
    width = f"{short(math.exp(spread), 3)} times" if claim.scale == "ratio" else short(spread)
    if here:
        return f"one seed; five lie within {width}"
    return f"one seed, off the threshold by more than {width}: twice the spread of five seeds elsewhere"


def _spread(claim: Claim, measurement: Measurement) -> tuple[float, bool]:
    """(the range over five seeds, whether it was measured at this very place); NaN where none of the claim was."""
    where, setting = measurement.key
    spreads = claim.spread.get(setting, {})
    widest = max((each for places in claim.spread.values() for each in places.values()), default=math.nan)
    return (spreads[where], True) if where in spreads else (ELSEWHERE * widest, False)


def _off(value: float, limit: float, scale: Scale) -> float:
    """How far apart a number and its threshold are, as their scale counts it."""
    if scale == "ratio":
        return abs(math.log(value) - math.log(limit)) if 0 < value < math.inf else math.inf
    return abs(value - limit)


def _text(claim: Claim, measurement: Measurement, value: float, low: float, high: float) -> str:
    """`27 times (16 to 34), 8.1 against 0.30`; of a share `2 of 3 runs`."""
    count = len(measurement.values)
    if claim.scale == "share":
        text = f"{round(value * count)} of {count}" if count > 1 else ("yes" if value else "no")
    else:
        text = claim.tell(value)
        if count > 1 and claim.tell(low) != claim.tell(high):
            ends = [claim.tell.digits(end) for end in (low, high)]
            how = "95 % " * (count >= 5 and all(map(math.isfinite, measurement.values.values())))
            text += f" ({how}{ends[0]} to {ends[1]})"
    return f"{text}, {measurement.beside}" if measurement.beside else text


def _summary(claim: Claim, verdict: Verdict, places: Sequence[ClaimPlace]) -> tuple[str, str]:
    """(what was measured, why it is not decided) of a whole claim."""
    by = {
        word: [one for one in places if one.verdict == word] for word in ("holds", "fails", "undecided", "out of reach")
    }
    open_ = f"; undecided at {_spots(by['undecided'])}: {_range(by['undecided'])}" if by["undecided"] else ""
    if verdict == "mixed":
        sides = (f"{word} at {_spots(by[word])}: {_range(by[word])}" for word in ("holds", "fails"))
        return "; ".join(sides) + open_, ""
    if verdict == "undecided" and by["holds"]:
        tried = {one.measured.part for one in places}
        untested = [part for part in _open_parts(claim, places) if part not in tried]
        reason = (
            f"not tested: {', '.join(part.text for part in untested)}"
            if untested
            else (by["undecided"] + by["out of reach"])[0].reason
        )
        return f"{_range(by['holds'])} ({_spots(by['holds'])}){open_}", reason
    deciding = by[verdict]
    text = f"{_range(deciding)} ({_spots(deciding)})"
    return (text, deciding[0].reason) if verdict in ("undecided", "out of reach") else (text + open_, "")


def _range(places: Sequence[ClaimPlace]) -> str:
    """The number of one place, or the least and the greatest of several."""
    ordered = sorted(places, key=lambda one: one.value)
    low, high = ordered[0], ordered[-1]
    return low.text if low.text == high.text else f"{low.text} to {high.text}"


def _spots(places: Sequence[ClaimPlace]) -> str:
    return some(list(dict.fromkeys(one.measured.place for one in places)), 4, " and {} more")
