"""What a probe of a user's model had said before, as a small file to commit, and what has become worse since.

    worse   a link that fails and did not; a model that fails and did not; a forecast that is no longer given;
            or a probability that fell by DROP or more, and by more than the file's own seeds lie apart

A probe is a function of the model, its data and the seeds, to the bit on one machine: what differs comes from a change.
But a change that draws the same weights in another order is one too, and moves the numbers as another seed does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stabkit.errors import UsageError
from stabkit.results import typed
from stabkit.results.forecast.logistic import WORDS, Word
from stabkit.results.own.judged import Judged
from stabkit.words import scientific

SCHEMA = "stabkit-baseline/2"
BEFORE = "stabkit-baseline/1"
OLDER: Mapping[str, Word] = {
    "likely trains": "trains", "open": "undecided", "out of range": "undecided", "likely stuck": "fails",
    "stuck": "fails",
}  # fmt: skip
"""The words of 1.1.0."""
REPORTED_LINKS = {
    "gradient": "gradient ratio",
    "scores": "information in the logits",
    "update": "update",
    "stream": "stream",
}
"""Links whose number is stored: what it is called."""
FOLD = 2.0
"""The factor from which on a change of a number is reported."""
DROP = 0.1
"""Of a probability: a tenth of a word's width in calibration (docs/verdict.md) is not a regression."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateBaseline:
    """The verdict at one rate."""

    lr: float | None
    """None: the factory's own."""
    rate: float
    """That was used; 0 where there is none."""
    verdict: Word
    probability: float | None
    apart: float
    """How far the probabilities of its seeds lie apart; 0 of one seed."""
    failing: tuple[str, ...]
    levels: Mapping[str, float]
    """{link: its number at the deepest}."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What a probe said, and of what."""

    factory: str
    depths: tuple[int | None, ...]
    seeds: tuple[int, ...]
    steps: int
    rates: tuple[RateBaseline, ...]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def of(judged: Judged, factory: str, depths: Sequence[int | None], seeds: Sequence[int], steps: int) -> Baseline:
    """Of what was judged now."""
    return Baseline(
        factory=factory,
        depths=tuple(depths),
        seeds=tuple(seeds),
        steps=steps,
        rates=tuple(
            RateBaseline(
                lr=verdict.lr or None,
                rate=_finite(next(cell.facts.rate for cell in judged.cells if cell.facts.lr == verdict.lr)),
                verdict=verdict.word,
                probability=None if (p := verdict.decision.probability) is None else round(p, 4),
                apart=round(_apart(judged.of_seeds(verdict.lr)), 4),
                failing=tuple(verdict.failing),
                levels={name: _finite(link.level) for name, link in verdict.links.items() if name in REPORTED_LINKS},
            )
            for verdict in judged.verdicts
        ),
    )


def _finite(number: float) -> float:
    """To four digits; 0 for what is none."""
    return float(f"{number:.4g}") if math.isfinite(number) and number > 0 else 0.0


def _apart(probabilities: Sequence[float | None]) -> float:
    known = [p for p in probabilities if p is not None]
    return max(known) - min(known) if known else 0.0


def read(path: Path) -> Baseline:
    """A file's; raises UsageError that names what is wrong with it and how to write it."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"--baseline {path}: there is no such file; --update-baseline writes it") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--baseline {path} cannot be read ({error}); --update-baseline writes it") from error
    try:
        if (schema := body.pop("schema")) == BEFORE:
            for rate in body["rates"]:
                rate["verdict"] = OLDER.get(rate["verdict"], rate["verdict"])
        elif schema != SCHEMA:
            raise ValueError(SCHEMA)
        return typed.read(Baseline, body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"--baseline {path} is not a baseline of this version; --update-baseline writes it") from error


def comparable(
    before: Baseline, depths: Sequence[int | None], seeds: Sequence[int], steps: int, lrs: Sequence[float | None]
) -> None:
    """Raises UsageError where a probe of these would be another than the baseline's."""
    asked = {"depths": tuple(depths), "seeds": tuple(seeds), "steps": steps}
    for name, is_ in asked.items():
        was = getattr(before, name)
        if was != is_:
            raise UsageError(
                f"the baseline was made with --{name} {_listed(was)}, this probe with {_listed(is_)}: "
                "give the same, or --update-baseline"
            )
    known = {rate.lr for rate in before.rates}
    if missing := [lr for lr in lrs if lr not in known]:
        rates = ", ".join("the factory's own" if lr is None else scientific(lr, 6) for lr in missing)
        raise UsageError(f"the baseline has no rate {rates}: give the same --lr, or --update-baseline")


def worse(before: Baseline, now: Baseline) -> list[str]:
    """What became worse, a sentence each; of two that are `comparable`."""
    known = {rate.lr: rate for rate in before.rates}
    return [sentence for rate in now.rates for sentence in _worse(known[rate.lr], rate)]


def steady(before: Baseline, now: Baseline) -> str:
    """Of a probe that is no worse: `trains (0.96 before, 0.97 now)`, a rate after the other."""
    known = {rate.lr: rate for rate in before.rates}
    return "; ".join(_beside(known[rate.lr], rate) for rate in now.rates)


def _beside(before: RateBaseline, now: RateBaseline) -> str:
    at = "" if now.lr is None else f"at {scientific(now.lr, 6)} "
    was, is_ = (_number(rate.probability) for rate in (before, now))
    if before.verdict == now.verdict:
        return f"{at}{now.verdict}" + (f" ({was} before, {is_} now)" if was and is_ else "")
    return f"{at}{before.verdict}{f' ({was})' if was else ''} before, {now.verdict}{f' ({is_})' if is_ else ''} now"


def _number(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.2f}"


def _worse(before: RateBaseline, now: RateBaseline) -> list[str]:
    at = "" if now.lr is None else f"at {scientific(now.lr, 6)} "
    found = []
    was, is_ = before.probability, now.probability
    later = WORDS.index(now.verdict) > WORDS.index(before.verdict)
    if was is not None and is_ is not None and now.verdict != "fails":
        later = was - is_ >= max(DROP, before.apart)
    if later:
        found.append(_beside(before, now))
    if broken := [name for name in now.failing if name not in before.failing]:
        found.append(f"{at}{' and '.join(broken)} fail{'s' * (len(broken) == 1)} and did not before")
    return found + ([f"{at}{told}" for told in _moved(before, now)] if found else [])


def _moved(before: RateBaseline, now: RateBaseline) -> list[str]:
    """What else is not as it was: the rate, and the link whose number moved the farthest, where it did FOLD-fold."""
    told = []
    if before.rate and now.rate and not math.isclose(before.rate, now.rate, rel_tol=1e-3):
        told.append(f"its rate is {scientific(now.rate)}, {scientific(before.rate)} before")
    both = {name: (before.levels[name], now.levels.get(name, 0.0)) for name in before.levels}
    ways = {name: abs(math.log(b / a)) for name, (a, b) in both.items() if a > 0 and b > 0}
    if ways and ways[name := max(ways, key=lambda each: ways[each])] >= math.log(FOLD):
        told.append(f"{REPORTED_LINKS[name]} {both[name][1]:.2g}, {both[name][0]:.2g} before")
    return told


def _listed(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return ",".join("–" if part is None else str(part) for part in value)
