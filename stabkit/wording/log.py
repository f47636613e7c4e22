"""What `stabkit log` says: one sentence of each log, what happened on the way, what was not there to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabkit.results.log import TEXT, LogEvent, LogJudgement
from stabkit.results.stop import FIRST, LOOKS, WARMUP, Reason, Stop
from stabkit.words import listed, plain, short

HEADS = ("says", "first loss", "last loss", "level", "to", "on the way")
UNITS = {"update": "updates", "epoch": "epochs", "entry": "entries"}
LACKS = {
    "gradient": "no gradient norm: vanishing was not looked at (`stabkit.watch` records it in the loop)",
    "rate": "no learning rate: restarts of its schedule were not looked at",
    "level": "no number of classes and no level: whether it knows more than frequencies is not known (`--classes`, "
    "`--tokens FILE` or `--level`)",
    "shares": "no counts of the classes: a flat loss may be what their shares give (`--tokens FILE` or `--level`)",
}


WHY: Mapping[Reason, str] = {
    "level": "it needs --classes, --level or --tokens",
    "unit": "its log has no updates, and the bound looks at them",
    "losses": "it looks at the means of twenty updates, and there are no two losses in any",
    "rises": f"its rate rises until update {{about:,.0f}}; it was counted on warm-ups up to {WARMUP}",
    "late": f"its first loss stands after update {FIRST}: whether the weights were trained before is not known",
    "low": "its first losses average {about:.3g}, far below a uniform guess ({level:.3g}), as trained weights do",
    "high": "its first losses average {about:.3g}, far above a uniform guess ({level:.3g})",
}


def answer(own: LogJudgement, before: Sequence[str] = (), after: Sequence[str] = ()) -> str:
    """`run.csv: at the level of frequencies. The loss is 6.05 since update 300 …`; what the bound says comes before its
    word where that ends it."""
    said = [*before, f"By its losses alone: {_word(own)}" if before else _word(own), *sentences(own), *after]
    return f"{plain(own.log.name)}: {' '.join(f'{one}.' for one in said)}"


def in_short(all_of: Sequence[LogJudgement]) -> str:
    """Of one log its word and where it stands, of several how many are what."""
    if len(all_of) == 1:
        return f"{_word(all_of[0]).capitalize()}: {_stands(all_of[0])}."
    counts = {own.word: sum(one.word == own.word for one in all_of) for own in all_of}
    return f"Of {len(all_of)} logs {listed(*(f'{count} {word}' for word, count in counts.items()))}."


def _word(own: LogJudgement) -> str:
    """What it says; of one that fell and lies flat since before the half of it, that."""
    flat = own.word == "learning" and own.since is not None and own.since < own.updates / 2
    perhaps = f"{'perhaps ' * (own.level_of == 'text')}{own.word}{' to say' * own.unplaced}"
    return "fell, then flat" if flat else perhaps


def sentences(own: LogJudgement) -> list[str]:
    """Where it stands, against what level, what happened."""
    stands = _stands(own)
    spikes = [one for one in own.events if one.kind == "spiked"]
    largest = max(spikes, key=lambda one: one.after - one.before, default=None)
    shown = [one for one in own.events if one.kind != "spiked" or one is largest]
    none = len(own.whole) - len(own.curve)
    parts = [stands[:1].upper() + stands[1:], _level(own), *(event(one, own.log.unit) for one in shown)]
    if none and not own.lost:
        parts.append(f"{none} of {len(own.whole)} entries are no number")
    if own.vanished is not None:
        parts.append(
            f"The gradient's norm is below a thousandth of what it was since {own.log.unit} {at(own.vanished)}"
        )
    return [one for one in parts if one]


def _stands(own: LogJudgement) -> str:
    first, last, unit = value(own.first), value(own.last), own.log.unit
    by = f"by {unit} {at(own.updates)}"
    match own.word:
        case "not enough" if own.rises:
            return f"the loss is {last} {by}, and its rate still rises: it is too early to say"
        case "not enough" if own.unplaced:
            goes = "hardly falls" if own.since is None else f"is flat since {unit} {at(own.since)}"
            flat = f"the loss fell from {first} to {last} {by} and {goes}"
            return f"{flat}: stuck, or all that can be learnt; --classes, --tokens or --level tells which"
        case "not enough":
            return f"{len(own.curve)} entr{'ies' if len(own.curve) != 1 else 'y'} {by} are too few to say"
        case "diverged" if own.lost:
            zero = own.log.loss.values[-1] == 0
            before = f"; it was {last} before" if len(own.curve) else ""
            why = ". Trainers log one that is no number as 0; if yours can reach 0, it is learnt" if zero else ""
            return f"the loss is {'exactly 0' if zero else 'no number'} from {unit} {at(own.since)} on{before}{why}"
        case "diverged":
            low = value(float(own.curve.values.min()))
            return f"the loss is {last} {by} and was {low}: it went up from {unit} {at(own.since)} on and stayed"
        case "at the level of frequencies":
            return f"the loss is {last} {by}, and flat since {unit} {at(own.since)}"
        case "slow" if not own.moved:
            return f"the loss has not clearly moved {by}: its first tenth has {value(own.begin)}, its last {last}"
    goes = "is flat" if own.since is not None else "falls by little" if own.word == "slow" else "still falls"
    flat = f" since {unit} {at(own.since)}" if own.since is not None else ""
    return f"the loss fell from {first} to {last} {by} and {goes}{flat}"


def _level(own: LogJudgement) -> str:
    if own.level is None or own.word in ("diverged", "not enough"):
        return ""
    classes, level = f"{own.classes:,}" if own.classes else "", value(own.level)
    if own.word == "at the level of frequencies":
        return {
            "text": f"That is {own.last / own.level:.2f} of ln {classes}. By frequencies alone texts and uneven "
            "classes cost {} to {} of it; `--tokens FILE` counts them".format(*TEXT),
            "counted": f"Knowing only how often each token occurs costs {level}",
            "given": f"The level that was given is {level}",
            "usual": f"A uniform guess between two classes costs {level}: of balanced ones nothing is known yet",
        }.get(own.level_of, f"A uniform guess between {classes} classes costs {level}: it knows no more than that")
    if own.level_of == "classes" and (not own.moved or own.last > own.level):
        return f"A uniform guess between {classes} classes costs {level}"
    if own.level_of == "classes" and own.word == "slow" and own.since is not None:
        return (
            f"That is {own.last / own.level:.2f} of ln {classes}: frequencies alone may cost it; `--tokens FILE` tells"
        )
    return f"Its level is {level}" if own.level_of in ("given", "counted") else ""


def event(one: LogEvent, unit: str) -> str:
    """What happened at a step."""
    before, after, step = value(one.before), value(one.after), f"{unit} {at(one.step)}"
    match one.kind:
        case "spiked":
            over = "and was not back by the end" if one.ends is None else f"and was back by {unit} {at(one.ends)}"
            return f"It spiked at {step}: {after} from {before}, {over}"
        case "restarted":
            ends = one.ends or 0.0
            back = f"steps go back from {at(ends)}" if ends >= one.step else "the rate leaps up again"
            back += " to the beginning, as of another run in one file" if one.step < 0.02 * ends else ""
            return f"It restarted at {step}: {back}, the loss went from {before} to {after}"
    many, start = f"{one.after:.0f}", "or scores that are too large at the start"
    if one.after == one.after:
        return f"Its first value is {many} times ln of the classes ({before}): a sum over {many}, {start}"
    sums = "a sum over tokens or batches"
    return f"If it is a cross-entropy, its first value is far above a uniform guess: {sums}, {start}"


def on_the_way(own: LogJudgement) -> str:
    """The same as far as a cell holds it."""
    return listed(*(_short(one) for one in own.events)) or "–"


def _short(one: LogEvent) -> str:
    if one.kind != "sum":
        return f"{one.kind} {at(one.step)}"
    return f"a sum over {one.after:.0f}?" if one.after == one.after else "a high start"


def lacks(all_of: Sequence[LogJudgement]) -> list[str]:
    """What was not looked at in any of them."""
    return [why for name, why in LACKS.items() if all(name in own.lacks for own in all_of)]


def row(own: LogJudgement) -> tuple[str, ...]:
    """Of a table: its name, and what HEADS name."""
    level, by = "–" if own.level is None else value(own.level), f"{own.log.unit} {at(own.updates)}"
    return plain(own.log.name), _word(own), value(own.first), value(own.last), level, by, on_the_way(own)


def against(own: LogJudgement, other: LogJudgement, reached: tuple[float, float] | None) -> str:
    """`reaches at update 900 what healthy.csv had at 300`"""
    name = plain(other.log.name)
    if reached is None:
        if own.log.unit != other.log.unit:
            return f"It counts {UNITS[own.log.unit]}, and {name} {UNITS[other.log.unit]}: they are not compared"
        return f"It is not yet below what {name} began with"
    mine, theirs = reached
    many = f", {mine / theirs:.3g} times as late" if mine > 1.5 * theirs > 0 else ""
    ends = f"It ends at {value(own.last)}, {name} at {value(other.last)}"
    return f"{ends}: at {own.log.unit} {at(mine)} it reaches what the other had at {at(theirs)}{many}"


def stop(found: Stop, level_of: str = "given") -> str:
    """What the bound says of one log; `level_of`: where its level is from."""
    if found.diverged:
        return f"Stop it: it diverged, at {at(found.step)}"
    if found.why is not None:
        return f"The bound says nothing: {WHY[found.why].format(about=found.about, level=found.level)}"
    if found.step is None:
        looks = f"at all {found.looks} looks that it has had, of {len(LOOKS)} to update {LOOKS[-1]}"
        band = f"--stop lets it go on: it is in the band of those that train {looks}"
        if level_of not in ("given", "counted"):
            return f"--stop sees no reason by ln V alone, {looks}: --level or --tokens FILE tell more"
        return f"{band}. It does not judge the rate: --against a log of another does"
    return f"Stop it: at update {at(found.step)} it is out of the band of those that train"


def bound(found: Stop | None) -> str:
    """What the band is; "" where none was asked for."""
    if found is None or not found.looks:
        return ""
    wrong, n = found.counted
    return (
        f"The band is to hold {1 - found.alpha:.0%} of trainings that train, over all looks; of {n} held-out ones "
        f"{wrong} left it. That is of trainings drawn like stabkit's, from scratch, within 300 updates."
    )


def value(number: float) -> str:
    """Three digits."""
    return short(number, 3)


def at(step: float | None) -> str:
    """A step with its thousands."""
    return "–" if step is None else f"{step:,.0f}" if step == round(step) else f"{step:,.1f}"
