"""What a cell of the verdict matrix looks like, and what its words mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.results.forecast.logistic import LIKELY, PROBABLY, UNLIKELY
from stabkit.results.forecast.measured import UPDATES
from stabkit.results.matrix import OUTCOMES, Matrix, VerdictCell
from stabkit.results.outcome import AT_UNIGRAM, BY_EYE, NOT_JUDGED, VANISHED, Outcome, Risk, displayed
from stabkit.wording import links
from stabkit.words import axis_words, listed, scientific, short

NO_SIGN = "no warning sign"

MEANINGS = (
    ("trains", "trains", f"validation loss below {AT_UNIGRAM:g} of the unigram loss"),
    ("early", NOT_JUDGED, "too short to judge, without a forecast"),
    (
        "risk",
        NOT_JUDGED,
        f"too short to judge, and a link is broken: gradient ratio below {VANISHED:g} ({BY_EYE}), layers frozen, or "
        "loss above its start",
    ),
    ("stuck", "stuck", "no gain, near the unigram loss or with a vanished gradient"),
    ("diverged", "diverged", "loss not finite, or it rose by half and stayed there"),
    ("failed", "failed", "no result: see How it was run"),
    (
        "forecast trains",
        "trains",
        f"forecast from the first {UPDATES} updates, dashed: every seed ends below {AT_UNIGRAM:g} of the unigram loss "
        f"with a probability p ≥ {LIKELY}",
    ),
    ("forecast probably-trains", "probably trains", f"forecast: p ≥ {PROBABLY} that it trains"),
    ("forecast undecided", "undecided", f"forecast: p of {1 - PROBABLY:.2g} to {PROBABLY}, none, or seeds differ"),
    ("forecast probably-fails", "probably fails", f"forecast: p ≤ {1 - PROBABLY:.2g}"),
    ("forecast fails", "fails", f"forecast: p ≤ {UNLIKELY} that it trains; it gets stuck or diverges"),
)
"""(colour, word, meaning), best first; the rules are `results/outcome.py`'s and `results/forecast`'s."""


def tint(cell: VerdictCell) -> str:
    """The class that colours a cell: its forecast's two, else its worst word; or that of a short run's broken link."""
    if cell.forecast:
        return f"forecast {cell.forecast.replace(' ', '-')}"
    if cell.worst == "early" and cell.at_risk:
        return "risk"
    if cell.worst is None:
        return "missing"
    return cell.worst if cell.worst in OUTCOMES else "early"


def outcomes(cell: VerdictCell) -> str:
    """`trains`, `trains 3/3`, `diverged 1/3, trains 2/3`; `–` for none."""
    if cell.total <= 1:
        return displayed(cell.worst) if cell.worst else "–"
    return ", ".join(f"{displayed(word)} {count}/{cell.total}" for word, count in cell.outcomes)


def word_of(cell: VerdictCell) -> str:
    """The forecast where there is one, else the outcomes."""
    return cell.forecast or outcomes(cell)


def probability(cell: VerdictCell) -> str:
    """`0.93`, `> 0.99`: the forecast's, never a certainty; `0.06 to 0.96` where seeds differ; nothing where there is
    none."""
    if math.isnan(cell.p_trains):
        return ""
    return " to ".join(map(sure, cell.p_range)) if cell.seeds_differ else sure(cell.p_trains)


def sure(p: float) -> str:
    """Never a certainty, and on the side of the word that it has: 0.896 is no 0.90."""
    return "> 0.99" if p > 0.99 else "< 0.01" if p < 0.01 else links.probability(p)


def value(cell: VerdictCell) -> str:
    """What decides: the forecast's probability, the loss of what was judged, else ‖ΔF‖ if it is not saturated."""
    if cell.forecast:
        return probability(cell)
    if math.isfinite(cell.loss):
        return short(cell.loss, 3)
    return "" if cell.saturated else short(cell.update)


def detail(outcome: Outcome) -> str:
    """What is known of a run in a few words: `loss 5.42, unigram 5.97`; of an early one `gradient 1e-7`, `no warning
    sign`, or nothing where nothing was recorded to tell by."""
    if outcome.word != "early":
        return f"loss {outcome.validation_loss:.2f}, unigram {outcome.unigram_loss:.2f}"
    if outcome.risks is None:
        return ""
    return warning(outcome.risks) if outcome.risks else NO_SIGN


def warning(risks: Sequence[Risk]) -> str:
    """`gradient 1e-7, 3 of 18 layers frozen`."""
    texts = {
        "gradient": "gradient {power}",
        "frozen": "{risk.value:.0f} of {risk.of:.0f} layers frozen",
        "loss": "loss {risk.value:.1f}, {risk.of:.1f} at the start",
    }
    return ", ".join(texts[risk.link].format(risk=risk, power=scientific(risk.value, 1)) for risk in risks)


def _worst(risks: Sequence[Risk]) -> list[Risk]:
    """Of several seeds' the worst of each link: the lowest gradient, the highest of all else."""
    by = {risk.link: risk for risk in sorted(risks, key=lambda risk: risk.value * (-1) ** (risk.link == "gradient"))}
    return [by[link] for link in dict.fromkeys(risk.link for risk in risks)]


def chained(cell: VerdictCell) -> list[str]:
    """`warm-up 4000: ‖ΔF‖ 0.27, gradient 1e-7`, a line a warm-up."""
    return [
        listed(f"warm-up {row.warmup}: ‖ΔF‖ {short(row.update)}", warning(row.risks) if row.risks else "")
        for row in cell.chained
    ]


def notes(cell: VerdictCell) -> list[str]:
    """The few words below a cell's curve: why it has no probability, two of what its runs say, how many say more."""
    warned = [risk for outcome in cell.ended for risk in outcome.risks or ()]
    outside = [f"outside the forecast's range: {listed(*axis_words(cell.axes))}"] * bool(cell.axes)
    said = [
        detail(outcome)
        for outcome in cell.ended
        if not outcome.risks
        and not (cell.forecast and outcome.risks == ())  # a forecast says more than that nothing warns
        and not (math.isfinite(cell.loss) and outcome.word != "early")  # its loss stands above
    ]
    texts = list(dict.fromkeys(filter(None, (warning(_worst(warned)) if warned else "", *said, *cell.reasons))))
    shown = texts if len(texts) <= 2 else [texts[0], f"and {len(texts) - 1} more"]
    return [*["the seeds differ"] * cell.seeds_differ, *outside, *shown]


def meanings(verdicts: Matrix) -> list[tuple[str, str, str]]:
    """(colour, word, meaning) of the words that the matrix uses, best first."""
    cells = [cell for row in verdicts.rows for cell in row.cells]
    used = {tint(cell) for cell in cells} | {word for cell in cells if not cell.forecast for word, _ in cell.outcomes}
    return [(kind, word, meaning) for kind, word, meaning in MEANINGS if kind in used]
