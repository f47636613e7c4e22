"""The ladder's page, second half: attention logits, LR sensitivity over depth and width, and the cells of others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stabkit.results import intervals
from stabkit.results.intervals import Interval
from stabkit.results.own.alarm import LOGIT
from studies.ladder import logits
from studies.ladder.curves import CurveRow, Training, sensitivity
from studies.ladder.logits import HURT, RateGroup
from studies.ladder.others import OtherCell
from studies.markdown import table_lines

EARLY, WARNED = 16, (64, 250, 2000)
"""Updates of which the page says something."""
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
    yield (
        "Do large attention logits warn of a rate that is too high? Wortsman et al. (2309.14322, Fig. 9) found them "
        "uninformative long before 2,000 updates of 100,000. Here: 8 layers, widths 64 and 128, seven rates, 2,000 "
        "updates, the largest logit of any layer on a fixed batch. A training is *hurt* if its rate is above the best "
        f"and it ends {HURT:g} nats or more worse."
    )
    yield ""
    yield (
        "![The largest attention logit over updates, a line a rate, a panel a width with and without QK-norm]"
        "(ladder_logits.png)"
    )
    yield ""
    some = logits.groups(rows, "logits", heads=False)
    yield f"Area under the curve for what is hurt, by the logit and by the rate after {EARLY} updates:"
    yield ""
    gains = []
    for name, groups in (("2,000", some), ("250", logits.groups(rows, "sensitivity"))):
        if groups:
            logit, rate = logits.areas(groups, EARLY)
            gains.append(logit - rate)
            yield f"- {len(groups)} models, {name} updates: {logit:.2f} and {rate:.2f}"
    more = "more" if gains and float(np.median(gains)) >= 0.02 else "no more"
    yield ""
    yield (
        f"So the logit tells {more} than the rate does. It is for trainings whose rate nobody knows to be too high. "
        f"The limit of the alarm `logits` is {logits.chosen(rows):,.0f}: the lowest that only hurt trainings pass, of "
        "those of 250 updates. On the trainings of 2,000 updates, which chose nothing:"
    )
    yield ""
    yield from table_lines(
        ("by update", *(f"{what}, {which}" for which in KINDS.values() for what in ("hurt, warned of", "not hurt"))),
        [(f"{t:,}", *(text for heads in KINDS for text in _shares(rows, t, heads=heads))) for t in WARNED if some],
    )
    yield ""


def _shares(rows: Sequence[CurveRow], update: int, *, heads: bool) -> tuple[str, str]:
    """Of what is hurt, and of what is not, how many are warned of by this update."""
    one = logits.alarmed(logits.groups(rows, "logits", heads=heads), LOGIT, update)
    return f"{one.found} of {one.hurt}", f"{one.false} of {one.well}"


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
    groups = logits.groups(rows, "sensitivity")
    every = [sensitivity(group.rows) for group in groups] or [math.nan]
    low, high = min(every), max(every)
    yield (
        "How much does a wrong rate cost? LR sensitivity (Wortsman et al., equation 1) is the mean over seven rates, "
        f"3e-4 to 3e-1, of min(ℓ, ℓ₀) − ℓ*. Here it is {low:.2f} to {high:.2f} nats: 3 to 24 layers, widths 64 to 256, "
        "250 updates, two seeds, without QK-norm."
    )
    yield ""

    def size(group: RateGroup) -> tuple[int, int]:
        own = group.rows[0].training
        return own.depth, own.width

    for axis, letter, mine in (
        ("depth", "N", [group for group in groups if size(group)[1] == 64]),
        ("width", "d", [group for group in groups if size(group)[0] == 6]),
    ):
        law, over = slope(mine, axis), slope(mine, axis, above=True)
        if law is None or over is None:
            yield f"- Over {axis}: no law yet, three sizes are not trained."
        else:
            yield (
                f"- Over {axis} the sensitivity goes as {letter}^{_number(law)}. What lies above the best rate goes "
                f"as {letter}^{_number(over)}: it {_goes(over)}."
            )
    yield ""
    yield (
        "Wortsman et al. found a rise with both, faster with depth, over 100,000 updates. After 250 updates the lowest "
        "rates are merely slow. Every loss and logit: [ladder_curves.csv](ladder_curves.csv)."
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
        "The grid of nanochat's pull request 644: width 256, 24 layers, μP, Muon's rate by weight decay. None of the "
        f"48 diverged. `stabkit probe --quick` ran on {len(cells)} by the published settings, with a batch 1,024 times "
        f"smaller. It gave **{alarms} false alarms**: {trains} are forecast to train, {len(cells) - alarms - trains} "
        "undecided. Rows: [ladder_others.csv](ladder_others.csv)."
    )
    yield ""
