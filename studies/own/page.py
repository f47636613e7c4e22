"""docs/evidence/verdict.md and the tables beside it: what verdict, changes and alarms are worth, from the rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results.forecast.logistic import WORDS
from stabkit.results.own.cure import BY_KEY
from stabkit.results.own.forecast import OwnCoefficients, ours
from stabkit.results.own.looks import KEYS
from stabkit.results.own.measured import RAMP, TOP
from studies.markdown import csv_text, table_lines
from studies.own import lookup
from studies.own.corpus import CorpusRow
from studies.own.cured import CHANGES_TRIED, CuredRow, candidates
from studies.own.design import JUDGES
from studies.own.fit import part
from studies.own.judge import Counted, HeldOut, baselines, calibration, chosen, held_out, judged, late, outlook, share

ENDS = {"trains": "train", "unclear": "are unclear", "stuck": "are stuck", "diverged": "diverged"}
LINKS_OF_WATCH = ("gradient", "step", "stream", "loss", "level", "jump", "finite", "start")


@dataclass(frozen=True)
class Asked:
    """One number that was asked for."""

    name: str
    asked: float
    right: int
    of: int

    @property
    def value(self) -> float:
        return self.right / self.of if self.of else math.nan

    @property
    def holds(self) -> bool:
        return self.value >= self.asked


def asked(counted: Counted, quick: Counted, cured: Mapping[int, CuredRow]) -> list[Asked]:
    """What the command is to reach on the judging part: with trainings, by its forecast alone, and with changes. A
    failure that is not told to be one gets no change."""
    named = [row for row in cured.values() if row.cure]
    so_far = counted.where(lambda row: row.case.number <= max(cured, default=0))
    untold = so_far.failing - len(candidates(so_far))
    right, told = counted.right("fails")
    good, trains = counted.right("trains")
    firm, within = counted.within
    return [
        Asked("decided, of what ends within 300 updates", 0.9, firm, within),
        Asked("`trains` comes true", 0.96, good, trains),
        Asked("`fails` comes true", 0.96, right, told),
        Asked("updates of a decision, in the median: 60 at most", 0.5, *counted.soon(60)),
        Asked("`--quick`, decided, of all (1.1.0: 0.54)", 0.53, quick.decided, len(quick.rows)),
        Asked("`--quick`, `trains` comes true (1.1.0: 0.92)", 0.92, *quick.right("trains")),
        Asked("`--quick`, `fails` comes true (1.1.0: 1.00)", 0.96, *quick.right("fails")),
        Asked("a failing model gets a change that is seen to train", 0.6, len(named), len(cured) + untold),
        Asked("… with which it trains to the end", 0.9, sum(row.ends == "trains" for row in named), len(named)),
    ]


def texts(
    rows: Sequence[CorpusRow], cured: Mapping[int, CuredRow], by: OwnCoefficients | None = None
) -> dict[str, str]:
    """{name of a file in docs/evidence/: what it holds}: the page, and its longer tables."""
    counted, quick = judged(rows, by), judged(rows, by, trained=False)
    rules, groups, wrong = _rules(rows, by), held_out(rows), _wrong(counted)
    parts = (
        _head(rows, counted, by),
        _words(counted, quick, rows, cured),
        _compared(quick, rows, rules, groups),
        _cures(cured, counted),
        _alarms(rows, by),
        _again(),
    )
    return {
        "verdict.md": "\n".join(line for section in parts for line in section) + "\n",
        "verdict_rules.csv": csv_text(RULES, rules),
        "verdict_groups.csv": csv_text(HELD_OUT, [_group(one) for one in groups]),
        "verdict_wrong.csv": csv_text(WRONG, wrong),
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield from table_lines(head, rows)
    yield ""


def _head(rows: Sequence[CorpusRow], counted: Counted, by: OwnCoefficients | None) -> Iterator[str]:
    ends, yours = Counter(row.ends for row in rows), judged(rows, by, key="forecast")
    (trains, told), (fails, warned) = (counted.right(word) for word in ("trains", "fails"))
    less = "{} of {} and {} of {}".format(*yours.right("trains"), *yours.right("fails"))
    yield "# How often is the verdict of a probe right?\n"
    yield (
        f"{len(rows)} models in plain PyTorch were probed, then trained for 300 updates (600 where that left it open). "
        f"Every number below is of the {sum(row.case.judge for row in rows)} from number {JUDGES} on, which no fit has "
        f"read. Of what was told `trains` {share(trains, told)} trained. Of what was told `fails` "
        f"{share(fails, warned)} failed. Of your model less is known, its level but not what a shallow one reaches: "
        f"with as little it is {less}. Of models "
        "wider than 256 and of longer trainings this says nothing. `python -m studies.own judge` writes this page."
    )
    yield ""
    yield (
        "The models are decoders, encoders and vision models of 4 to 48 layers, joined in thirty ways. There are seven "
        "initialisations and four optimisers. They learn words, letters, images or a regression. A probe makes sixteen "
        f"updates, and {RAMP} more while the rate rises to {TOP:g} times its highest. A model *trains* if its held-out "
        "loss goes half of the way from the unigram loss to that of a shallow reference. It is *stuck* below 0.15 of "
        "the way, and *unclear* between. "
        f"Of all, {', '.join(f'{ends[name]} {word}' for name, word in ENDS.items())}."
    )
    yield ""


def _words(counted: Counted, quick: Counted, rows: Sequence[CorpusRow], cured: Mapping[int, CuredRow]) -> Iterator[str]:
    yield "## Words against outcomes\n"
    unclear = [row for row in rows if row.case.judge and not row.clear]
    table = []
    for word in WORDS:
        for basis in ("forecast", "seen"):
            right, told = counted.right(word, basis=basis)
            of = [
                row
                for row, one in zip(counted.rows, counted.said, strict=True)
                if (one.word, one.basis) == (word, basis)
            ]
            ends = (sum(row.ends == end for row in of) for end in ("trains", "stuck", "diverged"))
            table += [(f"`{word}`, {basis}", *ends, share(right, told) if word != "undecided" else "–")] * bool(told)
    yield from _table(("the probe says", "trains", "stuck", "diverged", "right (95 %)"), table)
    yield f"{len(unclear)} models whose outcome is unclear count nowhere. *Seen*: the word is of a training."
    yield "A probe quotes of a forecast all with such a one (`--quick`), of a training those of which as much is known."
    yield ""
    yield from _table(
        ("asked", "at least", "is", ""),
        [
            (one.name, one.asked, f"{one.value:.2f} ({one.right} of {one.of})", _holds(one.holds))
            for one in asked(counted, quick, cured)
        ],
    )
    lost = [row for row in counted.rows if late(row)]
    wrong = [row for row in counted.of("trains") if row.fails]
    yield (
        f"{len(lost)} of the {counted.failing} failures had begun to learn and lost it later; so had "
        f"{sum(map(late, wrong))} of the {len(wrong)} wrong `trains`. A training that ends early is not seen to break. "
        f"A decision takes {counted.where(lambda row: row.fails).updates:g} updates in the median of what fails, "
        f"{counted.where(lambda row: not row.fails).updates:g} of what trains. Every wrong "
        "`trains` and `fails`: [verdict_wrong.csv](verdict_wrong.csv)."
    )
    yield ""
    yield "The forecast alone:"
    yield ""
    yield from _table(
        ("probability", "models", "said on average", "trained"),
        [
            (f"{own.low:g} to {own.high:g}", own.n, f"{own.probability:.2f}", f"{own.share:.2f}")
            for own in calibration(quick)
        ],
    )
    yield (
        "What grows over thousands of updates is not seen: attention and output logits, late spikes, bad data. The "
        "alarm for attention logits: [ladder.md](ladder.md#attention-logits)."
    )
    yield ""


_LEVELS = {
    "reference": "reference known",
    "guessed": "level guessed",
    "forecast": "level known",
    "neither": "level known",
}
RULES = ("told", "decided, of what ends within 300", "`trains` right", "`fails` right", "updates, median")


def _rules(rows: Sequence[CorpusRow], by: OwnCoefficients | None) -> list[tuple[str, ...]]:
    """The same models by the same function, told less: a loss of one's own has no reference, and where stabkit cannot
    read its targets, its level is guessed. The last two are of the cases below 420, by fits without their scheme."""
    table = [
        _ruled(f"{'forecast and ' * ('forecast' in key)}loss, {_LEVELS[key.split()[-1]]}", judged(rows, by, key=key))
        for key in KEYS
    ]
    return [
        *table,
        _ruled("of losses of regression", Counted.where(judged(rows, by), lambda row: row.case.regression)),
        _ruled("cases to choose on, schemes held out", chosen(rows)),
        _ruled("… the loss alone, no reference", chosen(rows, "neither")),
    ]


def _ruled(name: str, told: Counted) -> tuple[str, ...]:
    shares = (share(*told.within), share(*told.right("trains")), share(*told.right("fails")))
    return name, *shares, "–" if math.isnan(told.updates) else f"{told.updates:g}"


def _holds(holds: bool) -> str:
    return "holds" if holds else "**missed**"


HELD_OUT = (
    "held out", "group", "models", "fail", "area", "decided", "after, median", "`fails` right", "`trains` right",
)  # fmt: skip


def _group(one: HeldOut) -> tuple[object, ...]:
    area, low, high = one.counted.auc
    right, told = one.counted.right("fails")
    good, trains = one.counted.right("trains")
    given = f"{area:.2f} ({low:.2f} to {high:.2f})" if not math.isnan(area) else "–"
    return (one.axis, one.group, len(one.counted.rows), one.counted.failing, given, one.counted.decided,
            f"{one.counted.updates:g}", f"{right} of {told}", f"{good} of {trains}")  # fmt: skip


def _compared(
    counted: Counted, rows: Sequence[CorpusRow], rules: Sequence[tuple[str, ...]], groups: Sequence[HeldOut]
) -> Iterator[str]:
    yield "## Compared with what can be had without a probe"
    yield ""
    yield "Area under the curve (95 %) for separating what trains from what fails; 0.5 is chance."
    yield ""
    yield from _table(
        ("fitted", "the probe", "the settings alone, nothing trained"),
        [(name, _area(probe), _area(settings)) for name, probe, settings in lookup.compared(rows)],
    )
    yield (
        "Where a model's scheme is known, a lookup of its settings separates as well as the probe. The probe is for a "
        "new scheme or a new kind of norm. Single numbers, on the same models:"
    )
    yield ""
    yield from (f"- {name}: {area:.2f}" for name, (area, _, _) in baselines(rows).items())
    yield ""
    yield "## With less to go by, and for groups that no fit has seen"
    yield ""
    yield from _table(
        ("told", "`trains` right", "`fails` right"),
        [(one[0], *(_plain(text) for text in one[2:4])) for one in rules[:7]],
    )
    yield (
        "The level is the unigram loss. Where it is not known, the first loss or a uniform guess stands for it. "
        "Intervals, the share that is decided and the updates: [verdict_rules.csv](verdict_rules.csv)."
    )
    yield ""
    table = []
    for axis in dict.fromkeys(one.axis for one in groups):
        own = [one.counted for one in groups if one.axis == axis]
        areas = {one.group: one.counted.auc[0] for one in groups if one.axis == axis}
        worst = min((name for name, area in areas.items() if not math.isnan(area)), key=areas.__getitem__)
        sums = [[sum(of) for of in zip(*(one.right(word) for one in own), strict=True)] for word in ("trains", "fails")]
        rights = (f"{right} of {told}" for right, told in sums)
        table.append((axis, len(own), f"{areas[worst]:.2f} ({worst})", *rights))
    yield from _table(("held out in turn", "groups", "lowest area", "`trains` right", "`fails` right"), table)
    yield "Each group is judged by a fit without it. Every group: [verdict_groups.csv](verdict_groups.csv)."
    yield ""


def _plain(text: str) -> str:
    """`57 of 60`, of a share."""
    return text.partition("(")[2].partition(";")[0]


def _area(area: lookup.Area) -> str:
    return "{:.2f} ({:.2f} to {:.2f})".format(*area)


def _cures(cured: Mapping[int, CuredRow], counted: Counted) -> Iterator[str]:
    yield "## The change that fixes it"
    yield ""
    if not cured:
        yield "Not yet counted."
        yield ""
        return
    named = [row for row in cured.values() if row.cure]
    trains = [row for row in named if row.ends == "trains"]
    yield (
        f"{len(candidates(counted))} failing models are told so, surely or probably. {len(cured)} of them were tried, "
        f"with {CHANGES_TRIED} changes each at most. {share(len(named), len(cured))} get one that is seen to train. "
        f"With it {share(len(trains), len(named))} train to the end. Above, failures not told so count, too."
    )
    yield ""
    keys = [key for key in BY_KEY if any(key in row.tried for row in cured.values())]
    yield from _table(
        ("change", "tried", "seen to train", "trains to the end"),
        [
            (
                BY_KEY[key].label,
                sum(key in row.tried for row in cured.values()),
                sum(row.cure == key for row in named),
                sum(row.cure == key for row in trains),
            )
            for key in keys
        ],
    )


def _alarms(rows: Sequence[CorpusRow], by: OwnCoefficients | None) -> Iterator[str]:
    yield "## Alarms of a watch"
    yield ""
    own = part(rows, judge=True)
    failing, training = [row for row in own if row.fails], [row for row in own if not row.fails]
    yield (
        f"The same trainings with `stabkit.watch` on: {len(failing)} fail, {len(training)} train. The update is "
        "that of the first warning."
    )
    yield ""
    table = []
    for link in (*LINKS_OF_WATCH, "any"):
        at = [_first(row, link) for row in failing]
        hits = [step for step in at if step is not None]
        false = sum(_first(row, link) is not None for row in training)
        when = f"{np.median(hits):.0f}" if hits else "–"
        shares = share(len(hits), len(failing)), share(false, len(training))
        right, wrong = shares if link == "any" else map(_plain, shares)
        table.append((f"`{link}`" if link != "any" else "any of them", right, when, wrong))
    yield from _table(("alarm", "failures found", "median update", "false, of what trains"), table)
    said = [(row.fails, outlook(row, (by or ours()).looks)) for row in own]
    warned, noted = ([fails for fails, word in said if word == told] for told in ("fails", "trains"))
    yield (
        f"The outlook reads a training's losses alone, the level guessed. Of {len(own)} trainings it says that "
        f"{len(warned)} will not train, right {share(sum(warned), len(warned))}. It says that {len(noted)} will, right "
        f"{share(len(noted) - sum(noted), len(noted))}."
    )
    yield ""


def _first(row: CorpusRow, link: str) -> int | None:
    if link != "any":
        return row.alarms.get(link)
    steps = [step for name, step in row.alarms.items() if name in LINKS_OF_WATCH]
    return min(steps) if steps else None


WRONG = ("model", "optimiser", "initialisation", "said", "by, after", "became", "of the way")


def _wrong(counted: Counted) -> list[tuple[str, ...]]:
    table = list[tuple[str, ...]]()
    for row, one in zip(counted.rows, counted.said, strict=True):
        said = one.word
        if (said == "fails" and not row.fails) or (said == "trains" and row.fails):
            case = row.case
            way = (row.level - row.held_out) / (row.level - row.reference)
            training = f"{case.optimizer} {case.rate:g}, warm-up {case.warmup}"
            when = f"{one.basis}, {one.updates}"
            table.append((case.name, training, case.shape.init, said, when, row.ends, f"{way:.2f}"))
    return table


def _again() -> Iterator[str]:
    yield (
        f"Again: `python -m studies.own train --data DIR` ([own_corpus.csv](own_corpus.csv)), `fit` (of cases below "
        f"{JUDGES}), `cure --data DIR` ([own_cures.csv](own_cures.csv)), `judge`."
    )
