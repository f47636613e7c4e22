"""The headline of `stabkit ablate`: how many factors on α and β train, and which ends lowest."""

from __future__ import annotations

import pandas as pd

from stabkit.results.scales import cells, groups
from stabkit.words import fitting, short


def in_short(every: pd.DataFrame) -> str:
    """Of the first judged setting how many factors train and, of one axis, which ends lowest, medians over seeds, in a
    headline: `DeepNorm trains with 4 of 5 factors on α, best with α × 4 (4.89; as published 5.6), not with α × 0.25.`;
    "" where none is judged."""
    rows = next((rows for _, rows in groups(every) if any(cell.word != "undecided" for cell in cells(rows))), None)
    if rows is None:
        return ""
    counted = cells(rows)
    failing = [cell.name for cell in counted if cell.word in ("stuck", "diverged", "some")]
    whole = [cell for cell in counted if cell.word == "trains"]
    on = {"α": len({cell.a for cell in counted}), "β": len({cell.b for cell in counted})}
    what = "pairs of factors on α and β" if min(on.values()) > 1 else f"factors on {max(on, key=lambda one: on[one])}"
    lead = f"{rows['label'].iloc[0]} trains with {len(whole)} of {len(counted)} {what}"
    ends = {(cell.a, cell.b): float(cell.runs["validation_loss"].median()) for cell in whole}
    best = min(whole, key=lambda cell: ends[cell.a, cell.b], default=None)
    own = f"; as published {short(ends[1.0, 1.0], 3)}" if (1.0, 1.0) in ends else ""
    ranked = [""]
    if best is not None and len(whole) > 1 and min(on.values()) == 1:
        where, beside = ("as published", "") if best.a == best.b == 1 else (f"with {best.name}", own)
        ranked = [f", best {where} ({short(ends[best.a, best.b], 3)}{more})" for more in (beside, "")] + ranked
    which = f", not with {' or with '.join(failing)}" if 0 < len(failing) <= 2 else ""
    return fitting(
        f"{lead}{ranked[0]}{which}.", *(f"{lead}{one}." for one in ranked[:-1]), f"{lead}{which}.", f"{lead}."
    )
