"""What a probe of a user's model had said before, as a small file to commit, and what has become worse since.

    worse   a link that fails and did not; a model that fails and did not; a forecast that is no longer given; a
            probability that fell by DROP or more, and by more than the file's own seeds lie apart: of the deepest;
            or a shallower model that fails, and trained or probably did

A probe is a function of the model, its data and the seeds, to the bit on one machine: what differs comes from a change.
But a change that draws the same weights in another order is one too, and moves the numbers as another seed does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stabkit.errors import UsageError
from stabkit.results import typed
from stabkit.results.forecast.logistic import WORDS, Word
from stabkit.results.own.judged import Judged
from stabkit.results.own.measured import SILENT
from stabkit.results.own.rules import NAMES
from stabkit.version import __version__
from stabkit.words import plain, scientific

SCHEMA = "stabkit-baseline/5"
ANEW = "--update-baseline writes it"
LARGEST = 1_000_000
"""Bytes: a baseline has a page."""
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
"""Of a probability: a tenth of a word's width in calibration (docs/evidence/verdict.md) is not a regression."""


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
    words: Mapping[str, Word]
    """{depth: its word}, of the shallower depths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What a probe said, and of what."""

    stabkit: str
    """The version that wrote it."""
    factory: str
    depths: tuple[int | None, ...]
    seeds: tuple[int, ...]
    steps: int
    quick: bool
    """Whether its words are forecasts alone."""
    rates: tuple[RateBaseline, ...]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def of(
    judged: Judged, factory: str, depths: Sequence[int | None], seeds: Sequence[int], steps: int, *, quick: bool
) -> Baseline:
    """Of what was judged now."""
    return Baseline(
        stabkit=__version__,
        factory=factory,
        depths=tuple(depths),
        seeds=tuple(seeds),
        steps=steps,
        quick=quick,
        rates=tuple(
            RateBaseline(
                lr=verdict.lr or None,
                rate=_finite(next(cell.facts.rate for cell in judged.cells if cell.facts.lr == verdict.lr)),
                verdict=verdict.word,
                probability=None if (p := verdict.decision.probability) is None else round(p, 4),
                apart=round(_apart([one.probability for one in verdict.depths[-1].seeds]), 4),
                failing=tuple(verdict.failing),
                levels={name: _finite(link.level) for name, link in verdict.links.items() if name in REPORTED_LINKS},
                words={str(own.depth): own.decision.word for own in verdict.depths[:-1]},
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


def parse(option: str, text: str) -> Baseline:
    """Of a file's text, every type and range checked; raises UsageError that names what is wrong."""
    try:
        body = json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
        if body.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        found = typed.read(Baseline, body)
        _check(found)
        return found
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        why = plain(" ".join(str(error).split())[:200])
        raise UsageError(f"{option[:200]} is not a baseline of this version ({why}); {ANEW}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(body := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice in it")
    return body


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no number of a baseline")


def _check(found: Baseline) -> None:
    """Raises ValueError where a value cannot have been written."""

    def sound(holds: bool, name: str) -> None:
        if not holds:
            raise ValueError(f"{name} is out of range")

    sound(0 < len(found.factory) <= 1000, "factory")
    sound(
        0 < len(found.depths) <= LARGEST_COUNT and all(d is None or 0 < d <= LARGEST_COUNT for d in found.depths),
        "depths",
    )
    sound(0 < len(found.seeds) <= LARGEST_COUNT and min(found.seeds) >= 0, "seeds")
    sound(0 < found.steps <= LARGEST_COUNT, "steps")
    sound(0 < len(found.rates) == len({rate.lr for rate in found.rates}), "rates")
    for rate in found.rates:
        sound(rate.lr is None or 0 < rate.lr < math.inf, "lr")
        sound(0 <= rate.rate < math.inf, "rate")
        sound(rate.probability is None or 0 <= rate.probability <= 1, "probability")
        sound(0 <= rate.apart <= 1, "apart")
        sound(set(rate.failing) <= set(NAMES), "failing")
        sound(set(rate.levels) <= set(REPORTED_LINKS), "levels")
        sound(all(0 <= level < math.inf for level in rate.levels.values()), "levels")
        sound(set(rate.words.values()) <= set(WORDS), "words")


LARGEST_COUNT = 1_000_000
"""Of depths, seeds and updates."""


def comparable(
    before: Baseline,
    factory: str,
    depths: Sequence[int | None],
    seeds: Sequence[int],
    steps: int,
    lrs: Sequence[float | None],
    *,
    quick: bool,
) -> None:
    """Raises UsageError where a probe of these would be another than the baseline's."""
    if before.stabkit != __version__:
        theirs = plain(before.stabkit[:20])
        raise UsageError(f"the baseline was made by stabkit {theirs}, this is {__version__}: --update-baseline once")
    if _plain(before.factory) != _plain(factory):
        raise UsageError(
            f"the baseline is of {plain(before.factory[:200])}, not of {factory}: name its file, or another"
        )
    asked = {"depths": tuple(depths), "seeds": tuple(seeds), "steps": steps}
    for name, is_ in asked.items():
        was = getattr(before, name)
        if was != is_:
            raise UsageError(
                f"the baseline was made with --{name} {_listed(was)}, this probe with {_listed(is_)}: "
                "give the same, or --update-baseline"
            )
    if before.quick != quick:
        was, is_ = ("with --quick" if one else "without --quick" for one in (before.quick, quick))
        raise UsageError(f"the baseline was made {was}, this probe {is_}: give the same, or --update-baseline")
    known = {rate.lr for rate in before.rates}
    if missing := [lr for lr in lrs if lr not in known]:
        rates = ", ".join("the factory's own" if lr is None else scientific(lr, 6) for lr in missing)
        raise UsageError(f"the baseline has no rate {rates}: give the same --lr, or --update-baseline")


def _plain(factory: str) -> str:
    """`pack/model.py:made` is `pack.model:made`."""
    module, _, name = factory.partition(":")
    return f"{module.removesuffix('.py').removeprefix('./').replace('/', '.')}:{name}"


def worse(before: Baseline, now: Baseline) -> list[str]:
    """What became worse, a sentence each; of two that are `comparable`."""
    known = {rate.lr: rate for rate in before.rates}
    return [sentence for rate in now.rates for sentence in _worse(known[rate.lr], rate)]


def steady(before: Baseline, now: Baseline) -> str:
    """Of a probe that is no worse: `trains (0.96 before, 0.97 now)`, a rate after the other."""
    known = {rate.lr: rate for rate in before.rates}
    lower = any(WORDS.index(rate.verdict) > WORDS.index(known[rate.lr].verdict) for rate in now.rates)
    allowed = f"; a fall of less than {DROP:g} is allowed" * lower
    return "; ".join(_beside(known[rate.lr], rate) for rate in now.rates) + allowed


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
        found.append(f"{at}broken, and not before: {' and '.join(broken)}")
    found += [
        f"{at}at {depth} layers {before.words[depth]} before, fails now"
        for depth, word in now.words.items()
        if word == "fails" and before.words.get(depth) in ("trains", "probably trains")
    ]
    return found + ([f"{at}{told}" for told in _moved(before, now)] if found else [])


def _moved(before: RateBaseline, now: RateBaseline) -> list[str]:
    """What else is not as it was: the rate, and the link whose number moved the farthest, where it did FOLD-fold."""
    told = []
    if before.rate and now.rate and not math.isclose(before.rate, now.rate, rel_tol=1e-3):
        told.append(f"its rate is {scientific(now.rate)}, {scientific(before.rate)} before")
    both = {name: (before.levels[name], now.levels.get(name, 0.0)) for name in before.levels}
    ways = {name: abs(math.log(b / a)) for name, (a, b) in both.items() if a > 0 and b > 0}
    if ways and ways[name := max(ways, key=lambda each: ways[each])] >= math.log(FOLD):
        silent = 1.01 * SILENT if name == "scores" else 0.0
        was, is_ = ("0" if value <= silent else f"{value:.2g}" for value in both[name])
        told.append(f"{REPORTED_LINKS[name]} {is_}, {was} before")
    return told


def _listed(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return ",".join("–" if part is None else str(part) for part in value)
