"""What a shell offers after Tab: methods and the papers' items, by what has been typed of them."""

from __future__ import annotations


def method(incomplete: str) -> list[str]:
    """Methods that begin so."""
    from stabkit.methods import KEYS

    return [key for key in KEYS if key.startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """Lists of methods and their sets whose last word begins so."""
    before, comma, word = incomplete.rpartition(",")
    sets = [] if comma else ["papers", "today", "all"]
    return [f"{before}{comma}{name}" for name in (*sets, *method("")) if name.startswith(word)]


def items(incomplete: str) -> list[str]:
    """Items of `stabkit paper` that begin so."""
    from stabkit.paper.items import BY_KEY

    return [key for key in ("ls", "all", *BY_KEY) if key.startswith(incomplete)]
