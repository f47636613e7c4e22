"""docs/transfer.md: how often the rate predicted at the double depth is near the best there, and what it loses."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stabkit.report.frame import template
from stabkit.results.intervals import Interval
from stabkit.results.transfer import Transfer
from stabkit.results.valley import Valley
from stabkit.results.words import scientific
from studies.carried.cases import CASES, STEPS, CarriedCase
from studies.carried.rows import Rows
from studies.carried.study import predicted, transfers
from studies.markdown import table_lines

NEAR = 1.5
"""The factor within which a prediction is called right."""
HEADS = ("case", "fitted on", "best ∝ N^", "keeping it", "predicted", "best there", "off by", "loses")


@dataclass(frozen=True)
class HeldOut:
    """A case whose depth that was held out is searched."""

    case: CarriedCase
    fit: Transfer
    valley: Valley

    @cached_property
    def rate(self) -> Interval | None:
        """That is predicted, where all depths of the training set have a best rate."""
        return self.fit.predicted(self.valley.size) if all(valley.best for valley in self.fit.valleys) else None

    @property
    def off(self) -> float:
        """The greater of it and the best there over the smaller; NaN where one of both is none."""
        if self.rate is None or self.valley.best is None:
            return math.nan
        return math.exp(abs(math.log(self.rate.value / self.valley.best.value)))

    @property
    def off_kept(self) -> float:
        """The same of the best rate at the deepest of the training set, kept: what there is to beat."""
        last = self.fit.valleys[-1].best
        if last is None or self.valley.best is None:
            return math.nan
        return math.exp(abs(math.log(last.value / self.valley.best.value)))

    @property
    def lost(self) -> Interval | None:
        """Nats at the rung next to it, less those of the rung that the other seeds say is best, seed by seed; infinite
        where it does not train; None where none is predicted, or one beyond the rungs."""
        rung = predicted(self.fit, self.valley) if self.rate else None
        if rung is None or any((rung, seed) not in self.valley.trials for seed in self.valley.seeds):
            return None
        return self.valley.lost(rung)


def held_out(known: Rows) -> list[HeldOut]:
    """The cases whose search is over at every depth."""
    found = []
    for case in CASES:
        fit, valley = transfers(case, known)
        if all(one.found for one in (*fit.valleys, valley)):
            found.append(HeldOut(case, fit, valley))
    return found


def page(known: Rows) -> str:
    """The whole page."""
    cases = held_out(known)
    known_best = [case for case in cases if not math.isnan(case.off)]
    losses = [case.lost.value for case in known_best if case.lost]
    finite = [loss for loss in losses if math.isfinite(loss)]
    return template(Path(__file__).with_name("page.md.j2")).render(
        count=len(cases),
        cases=len(CASES),
        compared=len(known_best),
        near=sum(case.off <= NEAR for case in known_best),
        kept=sum(case.off_kept <= NEAR for case in known_best),
        further=f"{statistics.median(case.off for case in known_best):.2f}" if known_best else "",
        kept_further=f"{statistics.median(case.off_kept for case in known_best):.2f}" if known_best else "",
        inside=sum(map(_inside, known_best)),
        overlap=sum(map(_overlap, known_best)),
        factor=f"{NEAR:g}",
        median=_nats(statistics.median(finite)) if finite else "",
        worst=_nats(max(finite)) if finite else "",
        diverge=len(losses) - len(finite),
        beyond=len(known_best) - len(losses),
        steps=STEPS,
        table="\n".join(table_lines(HEADS, [_row(case) for case in cases])),
    )


def summary(known: Rows) -> str:
    """What docs/results.md says of it."""
    cases = held_out(known)
    judged = [case for case in cases if not math.isnan(case.off)]
    by_word = {word: sum(case.fit.verdict == word for case in cases) for word in ("carries", "drifts", "cannot tell")}
    near, count = sum(case.off <= NEAR for case in judged), len(judged)
    off, kept = (statistics.median(own) for own in zip(*((case.off, case.off_kept) for case in judged), strict=True))
    near_kept = sum(case.off_kept <= NEAR for case in judged)
    closer = sum(case.off < case.off_kept for case in judged)
    return (
        f"Of {len(cases)} methods and small models, each under an optimiser, keeping the shallowest's best rate four "
        f"times as deep carries in {by_word['carries']}, drifts in {by_word['drifts']} and cannot be told in "
        f"{by_word['cannot tell']} (three seeds, 300 updates). In {count} the law of three depths predicts the best "
        f"rate of the double depth, which it has not seen: within a factor of {NEAR:g} in {near}, off by {off:.2f} in "
        f"the median. Keeping the deepest's best rate is within it in {near_kept} and off by {kept:.2f}: that the law "
        f"is better is not shown (closer in {closer} of {count})."
    )


def _inside(one: HeldOut) -> bool:
    """Whether the best there lies within the interval that was predicted."""
    assert one.rate is not None and one.valley.best is not None
    return one.rate.low <= one.valley.best.value <= one.rate.high


def _overlap(one: HeldOut) -> bool:
    """Whether its interval and the predicted one have a rate in common."""
    assert one.rate is not None and one.valley.best is not None
    return one.rate.low <= one.valley.best.high and one.valley.best.low <= one.rate.high


def _row(one: HeldOut) -> tuple[str, ...]:
    rates = [scientific(valley.best.value) if valley.best else "–" for valley in one.fit.valleys]
    depths = ", ".join(f"{n}: {rate}" for n, rate in zip(one.case.depths, rates, strict=True))
    return (
        one.case.key,
        depths,
        _number(one.fit.drift),
        one.fit.verdict,
        f"{one.case.held_out}: {_rate(one.rate)}",
        _rate(one.valley.best),
        "–" if math.isnan(one.off) else f"{one.off:.2f}",
        _number(one.lost),
    )


def _rate(rate: Interval | None) -> str:
    return f"{scientific(rate.value)} ({scientific(rate.low)} to {scientific(rate.high)})" if rate else "–"


def _number(number: Interval | None) -> str:
    if number is None:
        return "–"
    if math.isinf(number.value):
        return "does not train"
    return f"{_nats(number.value)} ({_nats(number.low)} to {_nats(number.high)})"


def _nats(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")
