"""Numbers and names as a page writes them."""

from __future__ import annotations

import math
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


def plain(text: str) -> str:
    """A user's text, every character that does not print spelled out (`\\x1b`), so that it can be shown anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float, digits: int = 2) -> str:
    """A number for reading: 0.75, 41, 1.3·10⁻⁷, 10⁻¹⁴; – for none and ∞."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if value == 0 or -3 <= power <= 4:
        return f"{float(f'{value:.{digits - 1}e}'):.{max(0, digits - 1 - power)}f}" if value else "0"
    lead = mantissa.rstrip("0").rstrip(".")
    ten = "10" + str(power).translate(SUPERSCRIPT)
    return ten if lead == "1" else f"{lead}·{ten}"


def percent(share: float) -> str:
    """`17%`; – for none."""
    return f"{share:.0%}" if math.isfinite(share) else "–"


def axis_words(axes: Iterable[str]) -> list[str]:
    """Along what runs lie out of the forecast's range, each once: `optimiser`, `warm-up`, `label smoothing`."""
    words = {"optimizer": "optimiser", "warmup": "warm-up", "base_init": "base initialisation", "vocab": "vocabulary"}
    bare = (name.rpartition(".")[2] for name in dict.fromkeys(axes))
    return [words.get(name, name.replace("_", " ")) for name in bare]
