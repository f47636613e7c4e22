"""docs/evidence/verdict.md: what the verdict, the changes and the alarms are worth, from the committed rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results.forecast.logistic import WORDS
from stabkit.results.own.cure import BY_KEY
from stabkit.results.own.forecast import LINKS, OwnCoefficients, ours
from stabkit.results.own.looks import KEYS
from stabkit.results.own.measured import RAMP, TOP
from stabkit.wording.anatomy import UNSEEN, WHY
from studies.markdown import table_lines
from studies.own import lookup
from studies.own.corpus import CorpusRow
from studies.own.cured import CHANGES_TRIED, CuredRow, candidates
from studies.own.design import JUDGES
from studies.own.fit import part
from studies.own.judge import LEARNT, Counted, baselines, calibration, chosen, held_out, judged, late, outlook, share

ENDS = ("trains", "unclear", "stuck", "diverged")
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


def page(
    rows: Sequence[CorpusRow],
    cured: Mapping[int, CuredRow],
    by: OwnCoefficients | None = None,
) -> str:
    """The whole page."""
    counted, quick = judged(rows, by), judged(rows, by, trained=False)
    parts = (
        _head(rows),
        _words(counted, quick, rows, cured),
        _rules(rows, by),
        _compared(quick, rows),
        _groups(rows),
        _cures(cured, counted),
        _alarms(rows, by),
        _unseen(),
        _wrong(counted),
        _again(),
    )
    return "\n".join(line for section in parts for line in section) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield from table_lines(head, rows)
    yield ""


def _head(rows: Sequence[CorpusRow]) -> Iterator[str]:
    ends = Counter(row.ends for row in rows)
    yield "# What a verdict is worth"
    yield ""
    yield (
        f"`stabkit probe` was counted on {len(rows)} trainings of models as other people write them: decoders, "
        "encoders and vision models in plain PyTorch, 64 to 256 wide, 4 to 48 layers deep, joined in thirty ways "
        "(published ones, wrong constants, no norms), seven initialisations, AdamW, SGD, Lion, and Muon with AdamW, "
        "rates over three decades, warm-ups of 0, 50 and 200 updates; on a chain of words, on letters of English text, "
        "on hidden words and on images (`studies/own/design.py`, drawn by a seed before any was trained)."
    )
    yield ""
    yield (
        f"Each was probed for sixteen updates, and for {RAMP} more while its rate rises to {TOP:g} times its highest; "
        "then it was trained for 300 (with a warm-up half of it more), and where that left it open for 300 more. It "
        "**trains** where its held-out loss has gone at least half of the way from the level of who knows frequencies "
        "alone to that of a shallow reference, is **stuck** where it has gone 0.15 of it at most, **unclear** between. "
        f"{', '.join(f'{ends[name]} {name}' for name in ENDS)}."
    )
    yield ""
    yield (
        "The words are said by the function that the command itself calls (`stabkit/results/own/decided.py`). A row is "
        "of one depth, so that its stream has no law in depth: it fails by its head-room or its upper branches alone."
    )
    yield ""
    judge = [row for row in rows if row.case.judge]
    regressed = sum(row.case.regression for row in judge)
    yield (
        f"Links, weights and limits were chosen on the {len(rows) - len(judge)} cases below number {JUDGES}; every "
        f"number below is of the {len(judge)} from there on, {regressed} of them with a loss of regression (the next "
        "numbers of a series, the noise in an image), of which no training was fitted."
    )
    yield ""


def _words(counted: Counted, quick: Counted, rows: Sequence[CorpusRow], cured: Mapping[int, CuredRow]) -> Iterator[str]:
    yield "## Words against outcomes"
    yield ""
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
    yield from _table(("the probe says", "trains", "stuck", "diverged", "right"), table)
    yield f"Besides {len(unclear)} models whose outcome is unclear, which count nowhere."
    yield ""
    yield from _table(
        ("asked", "at least", "is", ""),
        [(one.name, one.asked, share(one.right, one.of), _holds(one.holds)) for one in asked(counted, quick, cured)],
    )
    lost = [row for row in counted.rows if late(row)]
    wrong = [row for row in counted.of("trains") if row.fails]
    yield (
        f"{len(lost)} of the {counted.failing} failures had begun to learn (a training loss below {LEARNT:g} of the "
        f"level within the first hundred updates) and lost it later. Of the {len(wrong)} wrong `trains` "
        f"{sum(map(late, wrong))} are of these: a training that was stopped as learning is not seen to break. A "
        f"decision takes {counted.where(lambda row: row.fails).updates:g} updates in the median of what fails, "
        f"{counted.where(lambda row: not row.fails).updates:g} of what trains; longest where a task is learnt late."
    )
    yield ""
    yield "The forecast alone, said and true, in five bins:"
    yield ""
    yield from _table(
        ("probability", "models", "said on average", "trained"),
        [
            (f"{own.low:g} to {own.high:g}", own.n, f"{own.probability:.2f}", f"{own.share:.2f}")
            for own in calibration(quick)
        ],
    )


_LEVELS = {
    "reference": "reference known",
    "guessed": "level guessed",
    "forecast": "level known",
    "neither": "level known",
}


def _rules(rows: Sequence[CorpusRow], by: OwnCoefficients | None) -> Iterator[str]:
    yield "## The rule that ends a training, and what less of it gives"
    yield ""
    yield (
        "The same models by the same function, told less. Without a reference, as with a loss of your own, the way is "
        "measured from the level to 0; where stabkit cannot read a loss' targets, its level is guessed: the first "
        "loss, or a uniform guess. Without a forecast, as with a regression, the loss alone decides. The last two rows "
        "are the limits' own: each case below number 420 by fits that have not seen its scheme."
    )
    yield ""
    table = [
        _ruled(f"{'forecast and ' * ('forecast' in key)}loss, {_LEVELS[key.split()[-1]]}", judged(rows, by, key=key))
        for key in KEYS
    ]
    table += [
        _ruled("of losses of regression", Counted.where(judged(rows, by), lambda row: row.case.regression)),
        _ruled("cases to choose on, schemes held out", chosen(rows)),
        _ruled("… the loss alone, no reference", chosen(rows, "neither")),
    ]
    head = ("told", "decided, of what ends within 300", "`trains` right", "`fails` right", "updates, median")
    yield from _table(head, table)


def _ruled(name: str, told: Counted) -> tuple[object, ...]:
    shares = (share(*told.within), share(*told.right("trains")), share(*told.right("fails")))
    return name, *shares, "–" if math.isnan(told.updates) else f"{told.updates:g}"


def _holds(holds: bool) -> str:
    return "holds" if holds else "**missed**"


def _compared(counted: Counted, rows: Sequence[CorpusRow]) -> Iterator[str]:
    yield "## Compared with what can be had without a probe"
    yield ""
    yield "Area under the curve for separating what trains from what fails, on the same rows; 0.5 is chance."
    yield ""
    table = lookup.compared(rows)
    yield from _table(
        ("fitted", "the probe (95 %)", "the settings alone, nothing trained"),
        [(name, _area(probe), _area(settings)) for name, probe, settings in table],
    )
    yield (
        "The settings are scheme, kind of norm, initialisation, optimiser, task, kind, rate, depth, width and warm-up "
        "(`studies/own/lookup.py`). Where a model's scheme is one of the thirty, such a lookup separates them as well "
        "as the probe does. The probe is for what no table has: a new scheme, a new kind of norm."
    )
    yield ""
    yield "Single numbers:"
    yield ""
    area, low, high = counted.auc
    found = {"the probe": (area, low, high), **baselines(rows)}
    yield from _table(
        ("number", "area (95 %)"),
        [(name, f"{area:.2f} ({low:.2f} to {high:.2f})") for name, (area, low, high) in found.items()],
    )
    by = ours()
    weights = ", ".join(f"{link.label} {weight:.2f}" for link, weight in zip(LINKS, by.logistic.weight, strict=True))
    yield f"What it is made of, with its weight (log-odds of a standard deviation): {weights}."
    yield ""


def _area(area: lookup.Area) -> str:
    return "{:.2f} ({:.2f} to {:.2f})".format(*area)


def _groups(rows: Sequence[CorpusRow]) -> Iterator[str]:
    yield "## Groups that the fit has not seen"
    yield ""
    yield (
        "For each group the fit is made again on the fitting part without it, and judged on the judging part's models "
        "of that group; the area is the forecast's. The numbers that it is made of were chosen with all groups there."
    )
    yield ""
    table = []
    for one in held_out(rows):
        area, low, high = one.counted.auc
        right, told = one.counted.right("fails")
        good, trains = one.counted.right("trains")
        given = f"{area:.2f} ({low:.2f} to {high:.2f})" if not math.isnan(area) else "–"
        table.append((one.axis, one.group, len(one.counted.rows), one.counted.failing, given, one.counted.decided,
                      f"{one.counted.updates:g}", f"{right} of {told}", f"{good} of {trains}"))  # fmt: skip
    yield from _table(
        ("held out", "group", "models", "fail", "area", "decided", "after, median", "`fails` right", "`trains` right"),
        table,
    )


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
        f"Of {len(candidates(counted))} models of the judging part that fail and are told so, or that they probably "
        f"do, {len(cured)} were tried so far, {CHANGES_TRIED} changes each at most. {share(len(named), len(cured))} of "
        f"these get one that is seen to train; trained to the end with it, {share(len(trains), len(named))} train."
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
        f"The same trainings with `stabkit.watch` on: {len(failing)} of the judging part fail, {len(training)} train. "
        "Found: warned of before the end; the update is that of the first warning."
    )
    yield ""
    table = []
    for link in (*LINKS_OF_WATCH, "any"):
        at = [_first(row, link) for row in failing]
        hits = [step for step in at if step is not None]
        false = sum(_first(row, link) is not None for row in training)
        when = f"{np.median(hits):.0f}" if hits else "–"
        table.append((f"`{link}`" if link != "any" else "any of them", share(len(hits), len(failing)), when,
                      share(false, len(training))))  # fmt: skip
    yield from _table(("alarm", "failures found", "median update", "false, of what trains"), table)
    said = [(row.fails, outlook(row, (by or ours()).looks)) for row in own]
    warned, noted = ([fails for fails, word in said if word == told] for told in ("fails", "trains"))
    yield (
        f"The outlook is of a training's losses alone, the level guessed. Of {len(own)} trainings it says of "
        f"{len(warned)} that they will not train, right {share(sum(warned), len(warned))}; and of {len(noted)} that "
        f"they will, right {share(len(noted) - sum(noted), len(noted))}."
    )
    yield ""


def _first(row: CorpusRow, link: str) -> int | None:
    if link != "any":
        return row.alarms.get(link)
    steps = [step for name, step in row.alarms.items() if name in LINKS_OF_WATCH]
    return min(steps) if steps else None


def _unseen() -> Iterator[str]:
    yield "## What sixteen updates cannot see"
    yield ""
    yield f"{WHY}. Each by name, with the alarm of `stabkit.watch` that would:"
    yield ""
    yield from _table(
        ("what", "alarm", "from when on"),
        [(one.what, f"`{one.alarm}`".replace(", ", "`, `") if one.alarm else "none", one.when) for one in UNSEEN],
    )
    yield (
        "Attention logits: [ladder.md](ladder.md#attention-logits) has the curve, and the largest logit after 4 to "
        "2,000 updates beside what became of the training (Wortsman et al. 2309.14322, Fig. 9, in small)."
    )
    yield ""


def _wrong(counted: Counted) -> Iterator[str]:
    yield "## Where it was wrong"
    yield ""
    table = list[tuple[object, ...]]()
    for row, one in zip(counted.rows, counted.said, strict=True):
        said = one.word
        if (said == "fails" and not row.fails) or (said == "trains" and row.fails):
            case = row.case
            way = (row.level - row.held_out) / (row.level - row.reference)
            training = f"{case.optimizer} {case.rate:g}, warm-up {case.warmup}"
            when = f"{one.basis}, {one.updates}"
            table.append((case.name, training, case.shape.init, said, when, row.ends, f"{way:.2f}"))
    yield from _table(("model", "optimiser", "initialisation", "said", "by, after", "became", "of the way"), table)


def _again() -> Iterator[str]:
    yield "## Again"
    yield ""
    yield "```console"
    yield "$ python -m studies.own train --data DIR --minutes 75     # evidence/own_corpus.csv, until it has every case"
    yield f"$ python -m studies.own fit                               # coefficients, of cases below {JUDGES}"
    yield "$ python -m studies.own cure --data DIR --minutes 75      # docs/evidence/own_cures.csv"
    yield "$ python -m studies.own judge                             # this page, of the others"
    yield "```"
    yield ""
    yield "What chose the numbers of the forecast (`choose`), and words of an older probe, are at commit 686db662."
