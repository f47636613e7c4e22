"""Numbers and names as text: what every sentence is made of. Knows no value of stabkit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any


def several(words: Sequence[str], of: int, kind: str = "methods") -> str:
    """`a`, `a and b`, `a, b and c`; of more than four names how many of how many."""
    if len(words) > 4:
        return f"all {of} {kind}" if len(words) == of else f"{len(words)} of {of} {kind}"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def number(value: Any) -> float:
    """A float of a JSON file, where non-finite numbers are the texts "nan", "inf" and "-inf"; NaN for anything else."""
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def listed(*parts: object) -> str:
    """`Post-LN, no warm-up, 18L-18L`: those of the parts that are not empty."""
    return ", ".join(text for part in parts if (text := str(part)))


def some(texts: Sequence[str], most: int, more: str = "; and {} more") -> str:
    """`a; b; and 3 more`: so many of them at most."""
    return "; ".join(texts[:most]) + (more.format(len(texts) - most) if len(texts) > most else "")


def plain(text: str) -> str:
    """A user's text, every character that does not print spelled out (`\\x1b`), so that it can be shown anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def short(value: float, digits: int = 2) -> str:
    """A number for reading: 0.75, 41, 1.3e-7, 1e-14; – for none and ∞."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if value == 0 or -3 <= power <= 4:
        return f"{float(f'{value:.{digits - 1}e}'):.{max(0, digits - 1 - power)}f}" if value else "0"
    return f"{float(mantissa):g}e{power}"


def percent(share: float) -> str:
    """`17%`; – for none."""
    return f"{share:.0%}" if math.isfinite(share) else "–"


def axis_words(axes: Iterable[str]) -> list[str]:
    """Along what runs lie out of the forecast's range, each once: `optimiser`, `warm-up`, `label smoothing`."""
    words = {"optimizer": "optimiser", "warmup": "warm-up", "base_init": "base initialisation", "vocab": "vocabulary"}
    bare = (name.rpartition(".")[2] for name in dict.fromkeys(axes))
    return [words.get(name, name.replace("_", " ")) for name in bare]


HEADLINE = 90
"""Characters of a page's first sentence, at most, without its full stop."""


def fitting(*texts: str) -> str:
    """The first of these sentences that is short enough for a headline; where none is, the last, cut."""
    given = [text for text in texts if text] or [""]
    return next(
        (text for text in given if len(text.rstrip(".")) <= HEADLINE),
        textwrap.shorten(given[-1], HEADLINE, placeholder="…"),
    )


def scientific(value: float, digits: int = 2) -> str:
    """`4e-3`, `6.3e-4`: so many digits at most and a bare exponent; `0`."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def grows(level: float) -> str:
    """`grows 5.8-fold`, `keeps its size`."""
    if math.isnan(level):
        return "has no size"
    if 0.9 < level < 1.1:
        return "keeps its size"
    return f"{'grows' if level > 1 else 'shrinks'} {level if level > 1 else 1 / level if level else math.inf:.2g}-fold"


def share(value: float) -> str:
    """`64 % of its size`, `40 times its size`."""
    return f"{100 * value:.0f} % of its size" if value < 9.99 else f"{value:.3g} times its size"


def updates(count: int) -> str:
    """`1 update`, `4 updates`."""
    return f"{count:,} update{'s' * (count != 1)}"


def times(value: float) -> str:
    """`0.41 of`, `1.4 times`, `39 times`, `nothing of`."""
    if not value:
        return "nothing of"
    return f"{short(value)} of" if value < 1 else f"{value:.2g} times" if value < 10 else f"{value:,.0f} times"


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.2g} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
