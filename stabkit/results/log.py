"""What a loss alone says of a training: where it stands, what happened on the way, and what the log does not show.

    diverged    the loss is no number at the end, or exactly 0 as some trainers log that; or it is three times the
                first; or its last tenth lies RISEN above its lowest part
    level       it lies within AT of what knowing frequencies alone costs, and does not fall
    slow        it has not moved from its first value, is still high and falls by less than QUICK in a third of it, or
                fell, by the classes alone, to no less than 1 − UNIFORM_AT of ln V
    learning    it has fallen, and none of these
    not enough  fewer than FEW entries that do not fall one after another, or EARLY updates; or, without a level, it
                hardly falls at more than TEXT[0] of a first loss above SCRATCH, where frequencies may have taken it

    spiked      an entry lies SPIKE spreads and a twentieth of the loss or more above the eleven before it, or one of
                the first eleven LEAPS times above the first
    restarted   steps go back, or the rate leaps while it decays; the curve is then that of what went on
    sum         the first loss is a whole number M ≥ 2 of times ln V, and the last no less than ln V; or it is far more
                than a uniform guess costs. Scores that are too large at the start look alike

The level is given, or counted from tokens; else ln V, the cost of a uniform guess between V classes, and of a
vocabulary TEXT of it, where texts' frequencies lie; else ln 2 for a loss that never moved from it. A spread is 1.48
times the median of |differences|/√2, which neither a trend nor a spike moves. The limits were chosen on trainings of
the corpus below number 420 and on the public logs that came before `fresh` (docs/evidence/log.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from stabkit.results.forecast.logistic import Array

Word = Literal["learning", "at the level of frequencies", "slow", "diverged", "not enough"]
EventKind = Literal["spiked", "restarted", "sum"]
Unit = Literal["update", "epoch", "entry"]
"""What steps count."""
FEW, EARLY, LATE = 10, 20, 64
"""Entries; updates; updates after which a loss is to have left its level."""
AT, UNIFORM_AT, FLAT, QUICK, NOTHING = 0.03, 0.015, 0.01, 0.02, 0.15
"""Of the level; of ln V; of the loss, what is no fall; what a third of a log is to fall by where the loss is still
high; of the level, what is no way yet."""
STILL_HIGH, SOME, SCRATCH = 0.55, 0.1, 3.0
"""Of the first loss; of it, what a training that goes on from trained weights falls by; nats that it seldom begins
with, so that a loss which begins higher and lies above TEXT of that may know frequencies alone."""
RISEN = 0.2, 0.05
"""Of the lowest part, and of the first loss."""
TEXT, VOCABULARY = (0.6, 0.86), 50
"""Of ln V: the level of frequencies of texts by characters, subwords and words (docs/evidence/log.md); V at least."""
FRESH = 5.0
"""Nats: the first loss of a model that knows nothing, where its classes are not known."""
SPIKE, LEAST_SPIKE, BACK, CLEAR, LEAPS = 8.0, 0.05, 11, 5.0, 2.0
RATE_LEAPS, NEARLY, ANY_START = 3.0, 0.02, 12.7
"""Times the rate before; the loss below which 0 is no surprise; ln of 330,000, more than any vocabulary has."""
WHOLE, TOO_MANY = (-0.04, 0.02), 8.5
"""How far the first loss may lie from M·ln V, over it: fresh scores cost a little more, means of the first updates a
little less; M beyond which many a number is near a whole one."""
COIN = math.log(2)
"""What a uniform guess between two classes costs."""
BLOCKS, DRAWN, AT_ONCE = 30, 400, 1 << 16
"""Parts that a curve is judged by, and that are drawn of it; entries that are looked at together."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values at their steps, in the order of the file."""

    steps: Array
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def at(self, chosen: Any) -> Series:
        """Those of a mask, or of indices."""
        return Series(self.steps[chosen], self.values[chosen])

    def means(self, parts: int) -> Series:
        """Of so many parts of about equally many entries: the first step of each, the mean of its values."""
        split = np.array_split(np.arange(len(self)), max(1, min(parts, len(self))))
        return Series(np.array([self.steps[own[0]] for own in split if len(own)]),
                      np.array([self.values[own].mean() for own in split if len(own)]))  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingLog:
    """The curves of one training."""

    name: str
    form: str
    """What the file is: `transformers' trainer_state.json`."""
    column: str
    """What the loss is called there."""
    unit: Unit
    loss: Series
    held_out: Series | None = None
    gradient: Series | None = None
    rate: Series | None = None
    classes: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogEvent:
    """What happened at a step."""

    kind: EventKind
    step: float
    before: float
    """The loss; of a sum what a uniform guess costs, NaN where V is not known."""
    after: float
    """The loss; of a sum M, NaN where it is none of them."""
    ends: float | None = None
    """The step at which a spike was over, None where it never was; of a restart the last step before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogJudgement:
    """What is said of one log."""

    log: TrainingLog
    curve: Series
    """Of the loss: restarts joined, what is no number left out."""
    whole: Series
    """The same with what is no number."""
    word: Word
    since: float | None = None
    """The step since when it is flat, or diverged."""
    first: float
    last: float
    """The mean of the last tenth."""
    begin: float
    """The mean of the first tenth."""
    drop: float
    """By how much the last tenth's mean lies below the first's, in their own spread."""
    spread: float
    """Of one entry."""
    level: float | None
    level_of: Literal["given", "counted", "classes", "text", "usual", ""]
    classes: int | None
    falls: bool = False
    """Whether the last third still falls."""
    lost: bool = False
    """Whether the loss is no number at the end, or exactly 0."""
    unplaced: bool = False
    """Whether frequencies alone may give what it fell by, and no level says what they give."""
    rises: bool = False
    """Whether the rate still rises at the end: in a warm-up a loss may lie flat."""
    events: tuple[LogEvent, ...] = ()
    lacks: tuple[str, ...] = ()
    """What was not there to look at: `gradient`, `rate`, `level`, the `shares` of few classes."""
    vanished: float | None = None
    """The step from which on the gradient's norm is below a thousandth of what it was."""

    @property
    def updates(self) -> float:
        """The last step."""
        return float(self.whole.steps.max())

    @property
    def moved(self) -> bool:
        """Whether the loss lies clearly below its first value."""
        far = self.first - self.last > FLAT * abs(self.first)
        return far and (self.first - self.last > 3 * self.spread or self.drop > CLEAR)


@np.errstate(all="ignore")
def judged(
    log: TrainingLog, *, classes: int | None = None, level: float | None = None, counted: bool = False
) -> LogJudgement:
    """What a log says; `level` in the loss's own unit, given or `counted` from tokens."""
    classes = classes or log.classes
    curve, events = _joined(log.loss)
    lost = _lost(curve, log.gradient)
    good = curve.at(np.isfinite(curve.values) & (np.arange(len(curve)) < (len(curve) if lost is None else lost)))
    values, spread = good.values, _spread(good.values)
    events += _leaps(log.rate, good, spread) + _spikes(good, spread)
    uniform, of = (math.log(classes) if classes else None), ("counted" if counted else "given")
    first, few = (float(values[0]) if len(values) else math.nan), max(min(3, len(values)), len(values) // 10)
    begin, last = (float(own.mean()) if len(own) else math.nan for own in (values[:few], values[-few:]))
    times = _times(first, last, uniform)
    if times != 1 and level is None:
        events.append(LogEvent("sum", float(good.steps[0]), math.nan if uniform is None else uniform, times))
    if level is None and uniform is not None and (times == times or last < uniform):
        level, of = uniform * (times if times == times else 1.0), "classes"
    there = {"gradient": log.gradient, "rate": log.rate, "level": level}
    own = LogJudgement(
        log=log, curve=good, whole=curve, word="learning", first=first, last=last, spread=spread,
        begin=begin, drop=(begin - last) / max(spread * math.sqrt(2 / few), 1e-12) if few else 0.0,
        level=level, level_of=of if level is not None else "", classes=classes,  # type: ignore[arg-type]
        events=tuple(sorted(events, key=lambda one: one.step)),
        lacks=tuple(name for name, value in there.items() if value is None), vanished=_vanished(log.gradient),
    )  # fmt: skip
    if lost is not None:
        return replace(own, word="diverged", since=float(curve.steps[lost]), lost=True)
    short = len(values) < FEW and not (len(values) >= FEW / 2 and (np.diff(values) < 0).all())
    if short or (log.unit == "update" and good.steps[-1] - good.steps[0] < EARLY and len(values) < EARLY):
        return replace(own, word="not enough")
    placed = _placed(own, good.means(BLOCKS), spread / math.sqrt(max(1.0, len(values) / BLOCKS)))
    if placed.word in ("slow", "at the level of frequencies") and _rises(log.rate):
        return replace(own, word="not enough", rises=True)
    return placed


def _placed(own: LogJudgement, blocks: Series, noise: float) -> LogJudgement:
    """With the word of a loss that is a number to the end; `noise`: the spread of a block's mean."""
    means, lowest = blocks.values, int(blocks.values.argmin())
    best, top = float(means[lowest]), max(own.first, own.level or -math.inf)
    risen = best + max(RISEN[0] * abs(best), RISEN[1] * abs(own.first), 8 * noise)
    if own.last > 3 * top > 0 or own.first > NEARLY and bool((means[-max(2, len(means) // 10) :] > risen).all()):
        beyond = np.flatnonzero(means[lowest:] > min(risen, 3 * top)) + lowest
        return replace(own, word="diverged", since=float(blocks.steps[int(beyond[0]) if len(beyond) else 0]))
    since, fall = _flat_since(blocks, own.last, noise)
    own = replace(own, falls=fall > 0, since=None if fall > 0 else since)
    if own.level is None and not own.moved:
        coin = abs(own.last / COIN - 1) < FLAT / 2
        own = (
            replace(own, level=COIN, level_of="usual", lacks=tuple(one for one in own.lacks if one != "level"))
            if coin
            else own
        )
    level = own.level
    if level is not None and level > 0 and (own.log.unit != "update" or own.updates >= (LATE if own.moved else EARLY)):
        near_by = AT if own.level_of in ("given", "counted") else UNIFORM_AT
        if own.last > (1 - near_by) * level - noise and not (fall > 0 and own.last < (1 - near_by / 2) * level):
            return replace(own, word="at the level of frequencies", since=since)
    if level is not None and own.level_of == "classes" and own.last > (1 - UNIFORM_AT) * level:
        return replace(own, word="slow")  # however far it fell: it knows no more yet than a uniform guess
    if own.level_of in ("given", "counted") and level is not None:
        return own if own.moved and own.last < (1 - NOTHING) * level or fall > QUICK else replace(own, word="slow")
    share = own.last / level if level and own.level_of == "classes" else 0.0
    most = TEXT[1] if (own.classes or 0) >= VOCABULARY else 0.0 if own.moved else 1.0
    if TEXT[0] < share < most and fall <= 0:
        return replace(own, word="at the level of frequencies", level_of="text", since=since)
    many = own.log.unit == "update" and len(own.curve) >= FEW
    fresh = own.first > (STILL_HIGH * level if level else FRESH)  # what goes on from trained weights begins lower
    high = own.last > STILL_HIGH * (top if fresh else own.first)
    gains = fall > (QUICK if fresh else 0) or (not fresh and own.first - own.last > SOME * own.first)
    if own.moved and (not high or gains or len(own.curve) < FEW):
        if level is None and fall <= FLAT and own.first > SCRATCH and own.last > TEXT[0] * own.first and many:
            return replace(own, word="not enough", unplaced=True)
        few = own.level_of == "classes" and (own.classes or 0) < VOCABULARY and fall <= 0
        return replace(own, lacks=(*own.lacks, "shares")) if few else own
    return replace(own, word="slow")


def reached(own: LogJudgement, other: LogJudgement) -> tuple[float, float] | None:
    """(the step at which a log first was as low as at its end, the one at which the other was), or, of one that is
    lower than the other ever was, of the other's lowest; None where it is not yet as low as the other began, or they
    count otherwise."""
    mine, theirs = own.curve.means(DRAWN), other.curve.means(DRAWN)
    if own.log.unit != other.log.unit or not len(mine) or not len(theirs) or not own.last < theirs.values[0]:
        return None
    target = max(own.last, float(theirs.values.min()))
    before, at = np.flatnonzero(theirs.values <= target), np.flatnonzero(mine.values <= target)
    return (float(mine.steps[at[0]]), float(theirs.steps[before[0]])) if len(at) else None


def _flat_since(blocks: Series, last: float, noise: float) -> tuple[float, float]:
    """(the step since which no block lies clearly above the end, the share of it by which the last third lies below the
    one before, 0 where that is not clear)."""
    means = blocks.values
    above = np.flatnonzero(means > last + max(3 * noise, FLAT * abs(last)))
    since = float(blocks.steps[min(int(above[-1]) + 1, len(means) - 1) if len(above) else 0])
    third = max(1, len(means) // 3)
    before, after = float(np.median(means[-2 * third : -third])), float(np.median(means[-third:]))
    clear = before - after > max(3 * noise / math.sqrt(third), 0.5 * FLAT * abs(before))
    return since, (before - after) / max(abs(before), 1e-12) if clear else 0.0


def _joined(loss: Series) -> tuple[Series, list[LogEvent]]:
    """One curve, and where it was restarted: what was trained anew counts, and what was before it up to there. Entries
    of several processes in turn are sorted; steps that are counted anew in each epoch follow one another."""
    steps, values = loss.steps, loss.values
    back = np.flatnonzero(np.diff(steps) < 0) + 1
    begins = steps[np.concatenate([[0], back])]
    if len(back) and np.ptp(begins) <= 0.02 * steps.max() + 1 and _goes_on(values, back):
        spacing = np.diff(steps)
        spacing = np.where(spacing < 0, np.median(spacing[spacing > 0]) if (spacing > 0).any() else 1.0, spacing)
        anew = Series(np.concatenate([steps[:1], steps[0] + np.cumsum(spacing)]), values)
        return anew, [] if len(back) > 1 else [_restart(loss, int(back[0]))]
    if len(back) > 0.2 * len(steps):
        return loss.at(np.argsort(steps, kind="stable")), []
    kept, events = np.ones(len(steps), bool), list[LogEvent]()
    for at in back:
        kept[:at] &= steps[:at] < steps[at]
        events.append(_restart(loss, int(at)))
    return loss.at(kept), events


def _restart(loss: Series, at: int) -> LogEvent:
    before = float(np.mean(loss.values[max(0, at - 3) : at]))
    return LogEvent("restarted", float(loss.steps[at]), before, float(loss.values[at]), float(loss.steps[at - 1]))


def _goes_on(values: Array, back: Any) -> bool:
    """Whether the loss does not leap where steps go back."""
    limit = 6 * _spread(values)
    return all(values[at] < values[at - 1] + limit + 0.2 * (values[0] - values[at - 1]) for at in back)


def _lost(curve: Series, gradient: Series | None) -> int | None:
    """The entry from which on the loss is no number, or is exactly 0 as trainers log one that is none: at once, or with
    a gradient that is no number. A loss that is learnt to the last digit is 0 too."""
    bad, zero = ~np.isfinite(curve.values), curve.values == 0
    if len(bad) > 2 and zero[-1] and zero[-2]:
        there = curve.values[~zero & ~bad]
        if gradient is not None:
            bad |= zero & (not np.isfinite(gradient.values[-2:]).any())
        elif not len(there) or there[-1] > NEARLY:
            bad |= zero
    good = np.flatnonzero(~bad)
    begins = int(good[-1]) + 1 if len(good) else 0
    few = len(bad) - begins < 3 and bool(bad[:begins].any())  # some entries are no number, at the end too
    return begins if bad[-1] and not few else None


def _spread(values: Array) -> float:
    """Of one entry about its trend."""
    return float(1.4826 * np.median(np.abs(np.diff(values))) / math.sqrt(2)) if len(values) > 1 else 0.0


def _times(first: float, last: float, uniform: float | None) -> float:
    """Over how many a loss is a sum, by its first value; 1 for one that is not, NaN where that may be."""
    if not first > (ANY_START if uniform is None else 1.5 * uniform):
        return 1.0
    ratio = first / uniform if uniform is not None else math.inf
    if ratio < TOO_MANY and uniform is not None and WHOLE[0] < ratio / round(ratio) - 1 < WHOLE[1]:
        return float(round(ratio)) if last >= uniform else math.nan
    return math.nan if ratio > TOO_MANY else 1.0


def _spikes(curve: Series, spread: float) -> list[LogEvent]:
    """The largest three, each with where it was over."""
    values, found, over = curve.values, list[LogEvent](), 0
    if len(values) > BACK and (peak := float(values[:BACK].max())) > LEAPS * abs(values[0]):
        step, low = curve.steps[int(values[:BACK].argmax())], np.flatnonzero(values[BACK:] <= values[0])
        ends = float(curve.steps[BACK + int(low[0])]) if len(low) else None
        found.append(LogEvent("spiked", float(step), float(values[0]), peak, ends))
    for begin in range(BACK, len(values), AT_ONCE):
        windows = np.lib.stride_tricks.sliding_window_view(values[begin - BACK : begin + AT_ONCE - 1], BACK)
        windows = windows[: len(values) - begin]
        before = np.median(windows, axis=1)
        local = np.maximum(spread, 1.4826 * np.median(np.abs(windows - before[:, None]), axis=1))
        high = values[begin : begin + len(windows)] > before + np.maximum(SPIKE * local, LEAST_SPIKE * np.abs(before))
        for i in np.flatnonzero(high):
            at, usual = begin + int(i), float(before[i])
            if at < over:
                continue
            back = usual + max(0.25 * (float(values[at : at + 3].max()) - usual), 2 * float(local[i]))
            low = np.flatnonzero(values[at + 1 :] <= back)
            over = at + 1 + int(low[0]) if len(low) else len(values)
            peak, ends = float(values[at:over].max()), float(curve.steps[over]) if len(low) else None
            found.append(LogEvent("spiked", float(curve.steps[at]), usual, peak, ends))
    return sorted(found, key=lambda one: one.before - one.after)[:3]


def _leaps(rate: Series | None, curve: Series, spread: float) -> list[LogEvent]:
    """Where the rate leaps up although it was decaying, and the loss with it: a schedule that began anew."""
    found = list[LogEvent]()
    for i in range(3, 0 if rate is None else len(rate)):
        assert rate is not None
        before, now = rate.values[i - 1], rate.values[i]
        if not (now > RATE_LEAPS * before > 0 and before < rate.values[i - 3]):
            continue
        at = int(np.searchsorted(curve.steps, rate.steps[i]))
        near, after = curve.values[max(0, at - 5) : at], curve.values[at : at + 5]
        if len(near) and len(after) and after.mean() > near.mean() + 2 * spread:
            ends = float(rate.steps[i - 1])
            found.append(LogEvent("restarted", float(rate.steps[i]), float(near.mean()), float(after.mean()), ends))
    return found[:3]


def _rises(rate: Series | None) -> bool:
    if rate is None or len(rate) < 4:
        return False
    return bool(rate.values[-1] >= np.nanmax(rate.values) and rate.values[-1] > 1.2 * rate.values[len(rate) // 2])


def _vanished(gradient: Series | None) -> float | None:
    if gradient is None or len(gradient) < 2 * FEW:
        return None
    norms = np.where(np.isfinite(gradient.values), gradient.values, math.inf)
    below = norms < 1e-3 * np.median(norms[: max(FEW, len(norms) // 10)])
    return float(gradient.steps[np.flatnonzero(~below)[-1] + 1]) if below[-3:].all() and not below.all() else None
