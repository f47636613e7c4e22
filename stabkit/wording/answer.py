"""The sentence that answers: which methods train where, by verdict or by forecast, computed from the verdict matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from stabkit.results.conditions import Condition
from stabkit.results.forecast.measured import UPDATES
from stabkit.results.forecast.model import UNSEEN, WARMUP
from stabkit.results.matrix import Matrix, VerdictCell, VerdictRow
from stabkit.results.outcome import NEAR, NOT_JUDGED, displayed
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.words import axis_words, fitting, listed, scientific, several

VERBS = {
    "trains": ("trains", "train"),
    "forecast trains": ("is forecast to train", "are forecast to train"),
    "probably trains": ("probably trains", "probably train"),
    "some": ("trains in some seeds only", "train in some seeds only"),
    "stuck": ("is stuck", "are stuck"),
    "forecast fails": ("is forecast to fail", "are forecast to fail"),
    "probably fails": ("probably fails", "probably fail"),
    "diverged": ("diverges", "diverge"),
    "undecided": ("is undecided", "are undecided"),
    NOT_JUDGED: ("is not judged", "are not judged"),
    "failed": ("has no result", "have no result"),
}
"""Of one method and of several, in the order in which a headline has them."""
AGAIN = {"forecast trains": "to train", "forecast fails": "to fail"}
"""Of a forecast that follows another."""
MOST_CONDITIONS = 3
"""Conditions of which the sentence speaks, those in which something fails first; the matrix has all."""


def answer(verdicts: Matrix) -> str:
    """`Without warm-up at 5e-4, forecast for 250 updates from the first 16, 3 seeds, de-en. Post-LN is forecast to fail
    from 18L-18L on. …`; nothing where no cell has a verdict or a forecast."""
    cells = _answered(verdicts)
    if not cells:
        return ""
    if axes := _outside(cells):
        beyond = "the warm-up hides the answer; `--warmup 0` shows it" if WARMUP in axes else "no forecast is given"
        where = "" if verdicts.block == "classic" else f" in the block {verdicts.block}"
        outside = ", ".join(axis_words(axes))
        return f"These {UPDATES} updates{where} are outside the forecast's range ({outside}): {beyond}."
    conditions = list(dict.fromkeys(row.condition for row in verdicts.rows))
    ordered = sorted(verdicts.rows, key=lambda row: conditions.index(row.condition))
    of = [(condition, list(rows)) for condition, rows in groupby(ordered, lambda row: row.condition)]
    said = sorted(sorted(range(len(of)), key=lambda place: not _lost(of[place][1]))[:MOST_CONDITIONS])
    sentences = [_sentence(*of[place], verdicts.depths) for place in said]
    if (more := len(of) - MOST_CONDITIONS) > 0:
        sentences.append(f"The table has {more} more condition{'s' * (more > 1)}")
    lead, some = _lead(verdicts, cells), any(not math.isnan(cell.p_trains) for cell in cells)
    text = ". ".join([lead] * bool(lead) + sentences)
    if some and not all(cell.forecast for cell in cells):
        text += f". Forecasts are {_horizon(verdicts)}"
    return f"{text[0].upper()}{text[1:]}.{_near(verdicts)}{_unseen(verdicts)}"


def setting(verdicts: Matrix) -> str:
    """`Without warm-up at 2e-3, after 250 updates, 1 seed, synthetic task.`: what a sentence about these runs holds
    under, and which of them end near the limit."""
    lead = _lead(verdicts, _answered(verdicts))
    return f"{lead[:1].upper()}{lead[1:]}.{_near(verdicts)}"


def _lead(verdicts: Matrix, cells: Sequence[VerdictCell]) -> str:
    whole, some = all(cell.forecast for cell in cells), any(not math.isnan(cell.p_trains) for cell in cells)
    after = f"after {verdicts.updates[0]} updates" if len(verdicts.updates) == 1 and not some else ""
    seeds = f"{verdicts.seeds} seed{'s' * (verdicts.seeds != 1)}"
    data = {"synthetic": "synthetic task"}.get(verdicts.tasks[0], verdicts.tasks[0]) if len(verdicts.tasks) == 1 else ""
    return listed(_setting(verdicts), f"forecast {_horizon(verdicts)}" if whole else after, seeds, data)


def _horizon(verdicts: Matrix) -> str:
    past = " past the warm-up" if any(verdicts.warmups) else ""
    return f"for {verdicts.horizon} updates{past} from the first {UPDATES}"


def in_short(verdicts: Matrix) -> str:
    """The same at the deepest depth that has an answer, short enough for a headline: `At 100L-100L DeepNorm is forecast
    to train; Post-LN is forecast to fail.`"""
    rows = [row for row in verdicts.rows if any(cell.verdict not in WITHOUT for cell in row.cells)]
    words = {word for row in rows for cell in row.cells if (word := _word(cell))}
    if not rows:
        return ""
    names = [f"{row.label} ({row.condition})" if row.condition else row.label for row in rows]
    kind = "settings" if verdicts.has_conditions else "methods"
    if len(words) == 1:
        (word,) = words
        depths = "every depth" if len(verdicts.depths) > 1 else verdicts.depths[0]
        if axes := _outside(_answered(verdicts)):
            hidden = "The warm-up hides the answer; `--warmup 0` shows it."
            return hidden if WARMUP in axes else "Outside the forecast's range: no forecast is given."
        who = several(names, len(names), kind).replace("all ", "All ", 1)  # it begins the sentence
        return fitting(
            f"{who} {_verb(word, len(names))} at {depths}.",
            f"All {len(names)} {kind} {_verb(word, 2)} at {depths}.",
        )
    deepest = max(i for row in rows for i, cell in enumerate(row.cells) if cell.verdict not in WITHOUT)
    by: dict[str, list[str]] = {}
    for name, row in zip(names, rows, strict=True):
        if (cell := row.cells[deepest]).verdict not in WITHOUT:
            by.setdefault(str(_word(cell)), []).append(name)
    of = sum(map(len, by.values()))
    ranked = sorted(by.items(), key=lambda item: [*VERBS, item[0]].index(item[0]))
    named = [f"{several(labels, of, kind)} {_verb(word, len(labels))}" for word, labels in ranked]
    ends = [one for one, (word, _) in zip(named, ranked, strict=True) if word != "undecided"] or named
    brief = ""
    for before, (word, labels) in zip(["", *(word for word, _ in ranked)], ranked, strict=False):
        who, then = labels[0] if len(labels) == 1 else f"{len(labels)}", _again(before, word)
        brief += f"{', ' if then else '; '}{who} {then or _verb(word, len(labels))}"
    at = f"At {verdicts.depths[deepest]}"
    return fitting(
        f"{at} {'; '.join(named)}.",
        f"{at} {brief[2:]}.",
        f"{at} {'; '.join(dict.fromkeys((ends[0], ends[-1])))}.",
        f"{at} {ends[0]}.",
    )


def _again(before: str | None, word: str | None) -> str:
    """`to fail` of a forecast after a forecast, whose verb it shares; "" of anything else."""
    return AGAIN.get(word or "", "") if before in AGAIN else ""


def instead(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = ()) -> str:
    """What runs say of which no cell has a verdict or a forecast."""
    if not runs:
        return f"No run has a result: all {len(failed)} failed." if failed else "No run has a result yet."
    if all(run.spec.single_step for run in runs):
        from stabkit.wording import slope  # it needs pandas, which the terminal's table does not

        first, *more = slope.clauses(runs)
        return f"{'; '.join([first, *filter(None, [slope.promise(runs)]), *more])}."
    if all(run.spec.train.steps == 0 for run in runs):
        return "No update was made: these are measurements of untrained models."
    return f"No run has a verdict or a forecast: a forecast needs {UPDATES} recorded updates, a verdict more."


def _lost(rows: Sequence[VerdictRow]) -> bool:
    """Whether a cell of a condition does not train: of many conditions these are told first."""
    lost = "some", "stuck", "forecast fails", "probably fails", "diverged"
    return any(_word(cell) in lost for row in rows for cell in row.cells)


def _word(cell: VerdictCell) -> str | None:
    """A cell's verdict, a firm forecast told apart; `some` where one seed trains and another does not."""
    if cell.forecast:
        return f"forecast {cell.forecast}" if cell.forecast in ("trains", "fails") else cell.forecast
    ended = {word for word, _ in cell.outcomes}
    mixed = "trains" in ended and bool(ended & {"stuck", "diverged"})
    return "some" if mixed else cell.worst and displayed(cell.worst)


def _answered(verdicts: Matrix) -> list[VerdictCell]:
    return [cell for row in verdicts.rows for cell in row.cells if cell.verdict not in WITHOUT]


def _outside(cells: Sequence[VerdictCell]) -> list[str]:
    """Along which axes all lie out of the forecast's range; none where one does not, or was judged."""
    axes = dict.fromkeys(axis for cell in cells for axis in cell.axes)
    return list(axes) if all(cell.forecast and math.isnan(cell.p_trains) for cell in cells) else []


def _verb(word: str, count: int) -> str:
    return VERBS.get(word, (word, word))[count > 1]


def _near(verdicts: Matrix) -> str:
    """Which cells hang on a loss near the line between training and not; "" where none does."""
    near = [
        f"{row.label} at {depth}"
        for row in verdicts.rows
        for cell, depth in zip(row.cells, verdicts.depths, strict=True)
        if any(outcome.near_line for outcome in cell.ended)
    ]
    if not near:
        return ""
    differ = len(set(near)) == len(near) <= MOST_CONDITIONS  # of one method's factors the conditions alone differ
    names = several(near, len(near)) if differ else f"{len(near)} cells"
    ends = "ends" if len(near) == 1 else "end"
    return f" {names} {ends} within {NEAR:g} nats of the limit: train twice as long to decide."


def _unseen(verdicts: Matrix) -> str:
    """Whose forecasts come from a fit without a run of that method; "" where none does."""
    cells = {row.label: row.cells for row in verdicts.rows}
    names = [name for name, of in cells.items() if any(cell.unseen and not math.isnan(cell.p_trains) for cell in of)]
    said = unseen(names, verdicts.optimizers)
    return f" {said}" if said else ""


def unseen(names: Sequence[str], optimizers: Sequence[str]) -> str:
    """`The forecast's fit has no run of Keel. It tells with an AUC of 0.94 (Adam) which runs of methods unlike its own
    train.`; "" of no method."""
    if not names:
        return ""
    who = several(names, len(names)) if len(names) <= MOST_CONDITIONS else f"{len(names)} methods"
    known = [f"{UNSEEN[key][1]} ({UNSEEN[key][0]})" for key in optimizers if key in UNSEEN]
    worth = f": with methods that it had not seen, its AUC was {listed(*known)}" if known else ""
    return f"The forecast's fit has no run of {who}{worth}."


WITHOUT = (None, "early", "failed")
"""Verdicts without an answer."""


def _sentence(condition: Condition, rows: Sequence[VerdictRow], depths: Sequence[str]) -> str:
    """One condition: methods that share a fate together."""
    fates: dict[tuple[str | None, ...], list[str]] = {}
    for row in rows:
        fates.setdefault(tuple(map(_word, row.cells)), []).append(row.label)
    parts = [f"{several(labels, len(rows))} {_fate(fate, depths, len(labels) > 1)}" for fate, labels in fates.items()]
    return (f"{condition}: " if condition else "") + ". ".join(parts)


def _fate(fate: Sequence[str | None], depths: Sequence[str], many: bool) -> str:
    """`are forecast to train at every depth`, `trains to 18L-18L, is stuck from 50L-50L on`."""
    held = [(word, depth) for word, depth in zip(fate, depths, strict=True) if word]
    runs = [(word, [depth for _, depth in names]) for word, names in groupby(held, lambda pair: pair[0])]
    words = [word for word, _ in runs]
    verb = [_again(before, word) or _verb(word, 1 + many) for before, word in zip(["", *words], words, strict=False)]
    if len(runs) == 1:
        return f"{verb[0]} at {'every depth' if len(runs[0][1]) > 1 else runs[0][1][0]}"
    parts = []
    for i, (_, names) in enumerate(runs):
        last = i == len(runs) - 1
        if len(names) == 1:
            where = f"at {names[0]}"
        elif last:
            where = f"from {names[0]} on"
        else:
            where = f"from {names[0]} to {names[-1]}" if i else f"to {names[-1]}"
        parts.append(f"{verb[i]} {where}")
    return ", ".join(parts)


def _setting(verdicts: Matrix) -> str:
    """`without warm-up at 5e-4`, as far as all rows share it."""
    words = []
    if len(verdicts.warmups) == 1:
        words.append("without warm-up" if verdicts.warmups == (0,) else f"with a warm-up of {verdicts.warmups[0]}")
    if len(verdicts.rates) == 1:
        words.append(f"at {scientific(verdicts.rates[0], 6)}")
    if verdicts.block != "classic":
        words.append(f"in the block {verdicts.block}")
    return " ".join(words)
