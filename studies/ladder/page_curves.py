"""The ladder's page, second half: attention logits, LR sensitivity over depth and width, and the cells of others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stabkit.results import intervals
from stabkit.results.intervals import Interval
from stabkit.results.own.alarm import LOGIT
from stabkit.words import short
from studies.ladder import logits
from studies.ladder.curves import RATES, READ, CurveRow, Training, sensitivity
from studies.ladder.logits import HURT, LIMITS, RateGroup
from studies.ladder.others import DECAYS, OtherCell
from studies.markdown import table_lines
from studies.own.judge import share

KINDS = {False: "without QK-norm", True: "with QK-norm"}
Rows = Mapping[Training, CurveRow]


def lines(rows: Rows, cells: Sequence[OtherCell]) -> Iterator[str]:
    """All three sections, of what there is."""
    yield from _logits(list(rows.values()))
    yield from _sensitivity(list(rows.values()))
    yield from _others(cells)


def _logits(rows: Sequence[CurveRow]) -> Iterator[str]:
    yield "## Attention logits"
    yield ""
    some = logits.groups(rows, "logits", heads=False)
    short_ones = logits.groups(rows, "sensitivity")
    yield (
        "Wortsman et al. (2309.14322, Fig. 9) found their largest attention logit uninformative much earlier than "
        "2,000 updates of 100,000. In small: 8 layers, seven rates, 2,000 updates, a warm-up of 100. The largest logit "
        "of any layer on a fixed batch, beside the loss at the end:"
    )
    yield ""
    if some:
        yield (
            "![The largest attention logit over updates, a line a rate, a panel a width with and without QK-norm]"
            "(ladder_logits.png)"
        )
        yield ""
    heads = ("width", "QK-norm", "rate", *(f"after {t:,}" for t in READ if t), "loss at the end")
    table = []
    for row in rows:
        own = row.training
        if own.study == "logits":
            read = [short(row.largest[t]) if t in row.largest else "–" for t in READ if t]
            end = f"{row.end:.2f}" if math.isfinite(row.end) else f"diverged at {row.reached:,}"
            table.append((own.width, "yes" if own.heads else "no", f"{own.rate:g}", *read, end))
    yield from table_lines(heads, table)
    yield ""
    for name, groups in (("2,000 updates, without QK-norm", some), ("250 updates (below)", short_ones)):
        if groups:
            ranks = logits.ranks(groups)
            said = "; ".join(f"{t:,}: {rank:.2f}".replace("-", "−") for t, rank in ranks.items())
            yield (
                f"- {name}, {len(groups)} models: rank correlation of the logit with the loss at the end, over the "
                f"rates from the best one up, after so many updates: {said}."
            )
            by = {t: logits.areas(groups, t) for t in ranks}
            told = "; ".join(f"{t:,}: {logit:.2f}, {rate:.2f}" for t, (logit, rate) in by.items())
            more = float(np.median([logit - rate for logit, rate in by.values()])) >= 0.02
            yield (
                "- … over all these models, the area under the curve for what is *hurt*, by the logit and, of the "
                f"same trainings, by the rate alone: {told}. Here the logit tells {'more' if more else 'no more'} than "
                "the rate does; it is for trainings whose rate nobody can say to be too high."
            )
    yield ""
    yield (
        f"*Hurt* is a training at a rate above the best that ends {HURT:g} nats or more worse, whatever the cause. The "
        f"limit of the alarm `logits` is the lowest of {', '.join(f'{limit:,.0f}' for limit in LIMITS)} that no "
        f"training of 250 updates passes which is not hurt: {logits.chosen(rows):,.0f}. On those of 2,000, which chose "
        "nothing (a watch reads oftener):"
    )
    yield ""
    yield from table_lines(
        ("by update", *(f"{what}, {which}" for which in KINDS.values() for what in ("hurt, warned of", "not hurt"))),
        [(f"{t:,}", *(text for heads in KINDS for text in _shares(rows, t, heads=heads))) for t in READ if t and some],
    )
    yield ""


def _shares(rows: Sequence[CurveRow], update: int, *, heads: bool) -> tuple[str, str]:
    """Of what is hurt, and of what is not, how many are warned of by this update."""
    one = logits.alarmed(logits.groups(rows, "logits", heads=heads), LOGIT, update)
    return share(one.found, one.hurt), share(one.false, one.well)


def recall(rows: Sequence[CurveRow], update: int) -> tuple[int, int, int, int, int]:
    """What the package says of the alarm: `results.own.alarm.LOGIT_RECALL`."""
    plain = logits.alarmed(logits.groups(rows, "logits", heads=False), LOGIT, update)
    every = logits.alarmed(logits.groups(rows, "logits"), LOGIT, update)
    return plain.found, plain.hurt, every.false, every.well, update


def _goes(law: Interval) -> str:
    return "rises" if law.low > 0 else "falls" if law.high < 0 else "is not shown to rise or fall"


def slope(groups: Sequence[RateGroup], axis: str, *, above: bool = False) -> Interval | None:
    """p of the sensitivity ∝ size^p over all groups, by one line through their logarithms (95 %, Student's); None of
    fewer than three sizes. `above`: of what lies above the best rate."""
    if len({getattr(group.rows[0].training, axis) for group in groups}) < 3:
        return None
    x = np.log([float(getattr(group.rows[0].training, axis)) for group in groups])
    y = np.log([group.above if above else sensitivity(group.rows) for group in groups])
    fit, level = np.polyfit(x, y, 1)
    degrees = len(x) - 2
    error = math.sqrt(float(((y - fit * x - level) ** 2).sum()) / degrees / float(((x - x.mean()) ** 2).sum()))
    half = intervals.quantile(degrees) * error
    return Interval(float(fit), float(fit) - half, float(fit) + half)


def _sensitivity(rows: Sequence[CurveRow]) -> Iterator[str]:
    yield "## Depth against width"
    yield ""
    yield (
        "LR sensitivity (Wortsman et al., eq. 1): the mean over seven rates, 3e-4 to 3e-1, of min(ℓ, ℓ₀) − ℓ*. 250 "
        "updates, two seeds, without QK-norm:"
    )
    yield ""
    groups = logits.groups(rows, "sensitivity")

    def size(group: RateGroup) -> tuple[int, int]:
        own = group.rows[0].training
        return own.depth, own.width

    table = list[tuple[str, ...]]()
    for (depth, width), some in itertools.groupby(sorted(groups, key=size), size):
        own = list(some)
        each = ", ".join(f"{sensitivity(group.rows):.3f}" for group in own)
        above = ", ".join(f"{group.above:.3f}" for group in own)
        best = ", ".join(f"{group.best.training.rate:g}" for group in own)
        losses = [f"{float(np.mean([group.rows[i].loss for group in own])):.2f}" for i in range(len(RATES))]
        table.append((f"{depth} layers, width {width}", each, above, best, *losses))
    yield from table_lines(
        ("", "sensitivity, nats", "of it above the best rate", "best rate", *(f"loss at {rate:g}" for rate in RATES)),
        table,
    )
    yield ""
    for axis, letter, mine in (
        ("depth", "N", [group for group in groups if size(group)[1] == 64]),
        ("width", "d", [group for group in groups if size(group)[0] == 6]),
    ):
        law, over = slope(mine, axis), slope(mine, axis, above=True)
        if law is None or over is None:
            yield f"- Over {axis}: no law yet, three sizes are not trained."
        else:
            yield (
                f"- Over {axis} the sensitivity goes as {letter}^{_number(law)}, what of it lies above the best rate "
                f"as {letter}^{_number(over)}: the latter {_goes(over)}."
            )
    yield ""
    yield (
        "One line through all seeds and sizes, 95 %. After 250 updates the lowest rates are merely slow; that is the "
        "rest of the sensitivity. Wortsman et al. found it to rise with both, with depth faster (2.4 million to 4.8 "
        "billion parameters, 100,000 updates). `stabkit transfer` prints the whole number for a model of yours."
    )
    yield ""


def _number(law: Interval) -> str:
    value, low, high = (f"{number:.2f}".replace("-", "−") for number in (law.value, law.low, law.high))
    return f"{value} ({low} to {high})"


def _others(cells: Sequence[OtherCell]) -> Iterator[str]:
    yield "## 48 cells of others"
    yield ""
    if not cells:
        yield "Not run yet."
        yield ""
        return
    alarms = sum(cell.alarm for cell in cells)
    trains = sum(cell.word in ("trains", "probably trains") for cell in cells)
    yield (
        "The grid of nanochat's pull request 644: width 256, 24 layers, μP, Muon's rate by weight decay; none of the "
        f"48 diverged, {len(cells)} are probed. `stabkit probe --quick` by the published settings, on a batch 1,024 "
        "times smaller: "
        f"**{alarms} false alarms of {len(cells)}** (`fails` or `probably fails`), {trains} told to train or probably "
        f"to, {len(cells) - alarms - trains} undecided. The word, and the loss there:"
    )
    yield ""
    rates = sorted({cell.rate for cell in cells})
    by = {(cell.rate, cell.decay): cell for cell in cells}
    yield from table_lines(
        ("rate", *(f"decay {decay:g}" for decay in DECAYS)),
        [(f"{rate:g}", *(_cell(by.get((rate, decay))) for decay in DECAYS)) for rate in rates],
    )
    yield ""


def _cell(cell: OtherCell | None) -> str:
    if cell is None:
        return "–"
    p = f" {cell.probability:.2f}" if cell.probability is not None else ""
    return f"{cell.word}{p} ({cell.published:.2f})"
