"""docs/verdict.md: what the verdict, the changes and the alarms are worth, from the committed rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results.own.cure import AND, BY_KEY
from stabkit.results.own.forecast import LINKS, OwnCoefficients, ours
from stabkit.results.own.measured import RAMP, TOP
from studies.forecast.scores import auc, auc_interval
from studies.markdown import table_lines
from studies.own import lookup
from studies.own.corpus import CorpusRow
from studies.own.cured import CuredRow
from studies.own.design import JUDGES
from studies.own.fit import labels, part, setting
from studies.own.judge import LEARNT, Counted, baselines, calibration, held_out, judged, late, share

WORDS = ("likely trains", "open", "likely stuck", "out of range")
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


def asked(counted: Counted) -> list[Asked]:
    """What the verdict is to reach on the judging part."""
    right, told = counted.stuck_right
    firm, soft = counted.found
    good, trains = counted.trains_right
    return [
        Asked("`likely stuck` comes true", 0.93, right, told),
        Asked("failures told `likely stuck` or `open`", 0.9, soft, counted.failing),
        Asked("failures told `likely stuck`", 0.75, firm, counted.failing),
        Asked("`likely trains` comes true", 0.93, good, trains),
        Asked("models told a firm word", 0.7, counted.decided, len(counted.rows)),
    ]


AREA = 0.93
"""Asked of the area under the curve."""


def page(
    rows: Sequence[CorpusRow],
    cured: Mapping[int, CuredRow],
    before: Mapping[int, str],
    by: OwnCoefficients | None = None,
) -> str:
    """The whole page."""
    counted = judged(rows, by)
    return "\n".join([*_head(rows), *_words(counted, rows), *_compared(counted, rows, before), *_groups(rows),
                      *_cures(cured, rows), *_alarms(rows), *_wrong(counted), *_again()]) + "\n"  # fmt: skip


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
        "The words are counted by the rules that the command itself calls (`stabkit/results/own/rules.py`). A row is "
        "of one depth, so that its stream has no law in depth: it fails by its head-room or its upper branches alone."
    )
    yield ""
    judge = sum(row.case.judge for row in rows)
    yield (
        f"Links and weights were chosen on the {len(rows) - judge} cases below number {JUDGES}; every number below is "
        f"of the {judge} from there on. (Seventeen of these had been trained when the three numbers were chosen, by a "
        "command that reads the others alone. An earlier forecast, of seven numbers and eight updates at three times "
        "the rate, was fitted on one half of the others and judged on the other half: right with 33 of 34 "
        "`likely stuck` and 56 of 61 `likely trains`, 95 of 193 decided, area 0.85.)"
    )
    yield ""


def _words(counted: Counted, rows: Sequence[CorpusRow]) -> Iterator[str]:
    yield "## Words against outcomes"
    yield ""
    unclear = [row for row in rows if row.case.judge and not row.clear]
    yield from _table(
        ("the probe says", "trains", "stuck", "diverged", "right"),
        [
            (
                f"`{said}`",
                *(sum(row.ends == end for row in told) for end in ("trains", "stuck", "diverged")),
                _right(said, told),
            )
            for said in WORDS
            for told in (counted.of(said),)  # type: ignore[arg-type]  # WORDS are those
        ],
    )
    yield f"Besides {len(unclear)} models whose outcome is unclear, which count nowhere."
    yield ""
    area, low, high = counted.auc
    yield from _table(
        ("asked", "at least", "is", ""),
        [
            *((one.name, one.asked, share(one.right, one.of), _holds(one.holds)) for one in asked(counted)),
            ("area under the curve", AREA, f"{area:.2f} ({low:.2f} to {high:.2f})", _holds(area >= AREA)),
        ],
    )
    lost = [row for row in counted.rows if late(row)]
    rest = [(row, p) for row, p in zip(counted.rows, counted.p, strict=True) if not late(row)]
    soon = Counted([row for row, _ in rest], [p for _, p in rest])
    area, low, high = soon.auc
    yield (
        f"{len(lost)} of the {counted.failing} failures had begun to learn (a training loss below {LEARNT:g} of that "
        "level within the first hundred updates) and lost it later: no look at sixteen updates sees those. Without "
        f"them `likely trains` comes true in {share(*soon.trains_right)}, `likely stuck` finds "
        f"{share(soon.found[0], soon.failing)}, and the area is {area:.2f} ({low:.2f} to {high:.2f})."
    )
    yield ""
    told_open = [row for row in counted.of("open") if row.fails]
    slow = [row for row in told_open if not late(row) and setting(row).rate < 1]
    yield (
        f"Where it is undecided: of the {len(told_open)} failures told `open`, {sum(map(late, told_open))} had begun "
        f"to learn and lost it, {len(slow)} more are at a rate below the usual one, where stuck means slow, and "
        f"{len(told_open) - len(slow) - sum(map(late, told_open))} lose their scores only beyond their own rate, or "
        "have learnt little yet, as models do that train later."
    )
    yield ""
    yield "Said and true, in five bins:"
    yield ""
    yield from _table(
        ("probability", "models", "said on average", "trained"),
        [
            (f"{own.low:g} to {own.high:g}", own.n, f"{own.probability:.2f}", f"{own.share:.2f}")
            for own in calibration(counted)
        ],
    )


def _right(said: str, told: Sequence[CorpusRow]) -> str:
    if said == "likely stuck":
        return share(sum(row.fails for row in told), len(told))
    return share(sum(not row.fails for row in told), len(told)) if said == "likely trains" else "–"


def _holds(holds: bool) -> str:
    return "holds" if holds else "**missed**"


BEFORE = ("fail", "cannot tell", "warn", "pass")
"""Words of the older probe, the worst first."""


def _compared(counted: Counted, rows: Sequence[CorpusRow], before: Mapping[int, str]) -> Iterator[str]:
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
    known = [row for row in counted.rows if before.get(row.case.number) in BEFORE]
    if known:
        p, label = np.array([BEFORE.index(before[row.case.number]) for row in known]), labels(known)
        found["the probe of 1.0.0 (8 updates on one batch, its four words)"] = (auc(p, label), *auc_interval(p, label))
    yield from _table(
        ("number", "area (95 %)"),
        [(name, f"{area:.2f} ({low:.2f} to {high:.2f})") for name, (area, low, high) in found.items()],
    )
    if known:
        yield "The older probe's words on the same rows:"
        yield ""
        yield from _table(
            ("it said", "trains", "fails"),
            [
                (f"`{said}`", sum(not row.fails for row in told), sum(row.fails for row in told))
                for said in reversed(BEFORE)
                for told in ([row for row in known if before[row.case.number] == said],)
            ],
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
        "of that group. The numbers that it is made of were chosen with all groups there."
    )
    yield ""
    table = []
    for one in held_out(rows):
        area, low, high = one.counted.auc
        right, told = one.counted.stuck_right
        good, trains = one.counted.trains_right
        given = f"{area:.2f} ({low:.2f} to {high:.2f})" if not math.isnan(area) else "–"
        table.append((one.axis, one.group, len(one.counted.rows), one.counted.failing, given,
                      f"{right} of {told}", f"{good} of {trains}"))  # fmt: skip
    yield from _table(
        ("held out", "group", "models", "fail", "area", "`likely stuck` right", "`likely trains` right"), table
    )


def _cures(cured: Mapping[int, CuredRow], rows: Sequence[CorpusRow]) -> Iterator[str]:
    yield "## The change that fixes it"
    yield ""
    if not cured:
        yield "Not yet counted."
        yield ""
        return
    named = [row for row in cured.values() if row.cure]
    clear = [row for row in named if row.ends != "unclear"]
    trains = [row for row in named if row.ends == "trains"]
    yield (
        f"Of {len(cured)} models of the judging part that are told `likely stuck` or `open`, a change makes "
        f"{len(named)} `likely trains`. Trained with the first that does, cheapest first, "
        f"{share(len(trains), len(named))} train ({len(named) - len(clear)} are unclear). Asked: 0.85 of at least 40 "
        f"models: {_holds(len(named) >= 40 and len(trains) / len(named) >= 0.85)}."
    )
    yield ""
    ends = {row.case.number: row.ends for row in rows}
    failing = [row for row in cured.values() if ends[row.number] != "trains"]
    fixed = [row for row in failing if row.cure and row.ends == "trains"]
    told = [row for row in failing if row.cure]
    yield (
        f"Many of these train without a change. Of the {len(told)} that do not and for which a change is named, "
        f"{share(len(fixed), len(told))} train with it; of all {len(failing)} that do not, {len(fixed)}."
    )
    yield ""
    before = {row.case.number: row.ends for row in rows}
    for said in ("likely stuck", "open"):
        told = [row for row in named if row.word == said]
        yield (
            f"Of the {len(told)} of these that were told `{said}`, "
            f"{sum(before[row.number] == 'trains' for row in told)} train as they are and "
            f"{sum(row.ends == 'trains' for row in told)} with the change."
        )
    yield ""
    pairs = sorted({row.cure for row in named if AND in row.cure})
    keys = [key for key in (*BY_KEY, *pairs) if any(row.cure == key for row in named)]
    yield from _table(
        ("change", "named", "trains", "unclear", "stuck or diverged"),
        [
            (
                " and ".join(BY_KEY[part].label for part in key.split(AND)),
                sum(row.cure == key for row in named),
                sum(row.cure == key and row.ends == "trains" for row in named),
                sum(row.cure == key and row.ends == "unclear" for row in named),
                sum(row.cure == key and row.ends in ("stuck", "diverged") for row in named),
            )
            for key in keys
        ],
    )
    tried = {key for row in cured.values() for key in row.tried}
    never = [change.label for key, change in BY_KEY.items() if key in tried and key not in keys]
    if never:
        yield f"Tried and never enough alone: {', '.join(never)}."
        yield ""


def _alarms(rows: Sequence[CorpusRow]) -> Iterator[str]:
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


def _first(row: CorpusRow, link: str) -> int | None:
    if link != "any":
        return row.alarms.get(link)
    steps = [step for name, step in row.alarms.items() if name in LINKS_OF_WATCH]
    return min(steps) if steps else None


def _wrong(counted: Counted) -> Iterator[str]:
    yield "## Where it was wrong"
    yield ""
    table = []
    for row, p, said in zip(counted.rows, counted.p, counted.words, strict=True):
        if (said == "likely stuck" and not row.fails) or (said == "likely trains" and row.fails):
            case = row.case
            way = (row.level - row.held_out) / (row.level - row.reference)
            training = f"{case.optimizer} {case.rate:g}, warm-up {case.warmup}"
            table.append((case.name, training, case.shape.init, said, f"{p:.2f}", row.ends, f"{way:.2f}"))
    yield from _table(("model", "optimiser", "initialisation", "said", "p", "became", "of the way"), table)


def _again() -> Iterator[str]:
    yield "## Again"
    yield ""
    yield "```console"
    yield "$ python -m studies.own train --data DIR --minutes 75     # docs/own_corpus.csv, until it has every case"
    yield f"$ python -m studies.own fit                               # coefficients, of cases below {JUDGES}"
    yield "$ python -m studies.own cure --data DIR --minutes 75      # docs/own_cures.csv"
    yield "$ python -m studies.own judge                             # this page, of the others"
    yield "```"
    yield ""
    yield "`docs/own_before.csv` holds the older probe's words, by a checkout of 6c266e7. The code that asked it, and"
    yield "that which chose the numbers of the forecast (`choose`), are at commit 686db662."
