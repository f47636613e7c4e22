"""What a cell of the verdict matrix looks like, and what its words mean."""

from __future__ import annotations

import math

from stabkit.report.verdict.matrix import OUTCOMES, Cell, Matrix
from stabkit.results.forecast.measured import UPDATES
from stabkit.results.forecast.model import LIKELY, UNLIKELY
from stabkit.results.outcome import AT_UNIGRAM, NO_SIGN, SEEN, VANISHED

KINDS = {
    "likely trains": "likely-trains",
    "likely stuck": "likely-stuck",
    "open": "likely-open",
    "out of range": "beyond",
}
"""The colour of a forecast's word."""

MEANINGS = (
    ("trains", "trains", f"validation loss below {AT_UNIGRAM:g} of the unigram loss"),
    ("early", "early", "too short to judge; the words say how it stands"),
    (
        "risk",
        "early",
        f"at risk: gradient ratio below {VANISHED:g} ({SEEN}), layers frozen, or loss above that of the start",
    ),
    ("stuck", "stuck", "no gain, near the unigram loss or with a vanished gradient"),
    ("diverged", "diverged", "a loss that is not finite, or that rose by half and stayed there"),
    ("failed", "failed", "no result: see How it was run"),
    *(
        (KINDS[word], word, meaning)
        for word, meaning in (
            ("likely trains", f"forecast of the first {UPDATES} updates, dashed: it trains with p ≥ {LIKELY}"),
            ("likely stuck", f"forecast likewise: it is stuck or diverges, p ≤ {UNLIKELY} that it trains"),
            ("open", "forecast likewise: p between the two, or seeds that differ"),
            (
                "out of range",
                "no forecast: like no run of its fit, or of a method for which it was tested and often wrong",
            ),
        )
    ),
)
"""(colour, word, meaning), best first; the rules are `results/outcome.py`'s and `results/forecast`'s."""


def tint(cell: Cell) -> str:
    """The class that colours a cell: its forecast, else its worst word; an early run at risk stands apart."""
    if cell.forecast:
        return KINDS[cell.forecast]
    if cell.worst == "early" and cell.at_risk:
        return "risk"
    return cell.worst if cell.worst in (*OUTCOMES, "missing") else "early"


def notes(cell: Cell) -> list[str]:
    """The few words below a cell's curve: two of what its runs say, and how many say something else."""
    told = [text for text in (*cell.details, *cell.reasons) if text and not (cell.forecast and text == NO_SIGN)]
    if math.isfinite(cell.loss):  # which stands above them
        told = [text for text in told if not text.startswith("loss ")]
    texts = list(dict.fromkeys(told))
    shown = texts if len(texts) <= 2 else [texts[0], f"and {len(texts) - 1} more"]
    differ = cell.forecast == "open" and not math.isnan(cell.p_trains) and not UNLIKELY < cell.p_trains < LIKELY
    return ["the seeds differ", *shown] if differ else shown


def meanings(verdicts: Matrix) -> list[tuple[str, str, str]]:
    """(colour, word, meaning) of the words that the matrix uses, best first."""
    cells = [cell for row in verdicts.rows for cell in row.cells]
    plain_ = [cell for cell in cells if not cell.forecast]
    used = {word for cell in plain_ for word, _ in cell.outcomes} | {tint(cell) for cell in cells}
    return [(kind, word, meaning) for kind, word, meaning in MEANINGS if kind in used]
