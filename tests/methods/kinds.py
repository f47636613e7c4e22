"""Methods that fill, between them, every slot in every way: what a test runs over in place of the whole table."""

from __future__ import annotations

from dataclasses import fields

from stabkit import methods
from stabkit.methods.base import Method, defined, sites

TEXTS = ("key", "label", "source", "constants", "group", "assumes", "recipe", "also")
"""Fields that no model is made of."""
PLAIN = Method(key="", label="", source="")


def ways(key: str) -> set[tuple[str, str]]:
    """(slot, in which way it is filled): a norm by its kind, a scale by its shape and whether it is trained."""
    method = methods.build(key, {})
    n, m = defined(method, 2)
    found = set()
    for slot in (own.name for own in fields(Method) if own.name not in TEXTS):
        value = getattr(method, slot)
        if value == getattr(PLAIN, slot):
            continue
        if slot in ("norm_in", "norm_branch", "norm_out"):
            found |= {(slot, str(value(site))) for site in sites(n, m, 16)}
        elif slot == "inner":
            places = ("first", "mid", "last")
            found |= {(slot, f"{at} {part}") for site in sites(n, m, 16) for at in places if (part := value(site, at))}
        elif slot in ("omega", "gamma"):
            scales = [value(site) for site in sites(n, m, 16)]
            found |= {(slot, f"{own.vector} {own.trainable} {own.shared}") for own in scales}
        else:
            found.add((slot, str(value) if isinstance(value, str) else getattr(value, "formula", "filled")))
    return found


def keys() -> list[str]:
    """A few of the methods: the one that adds most ways first, until all are there."""
    left = {key: ways(key) for key in methods.KEYS}
    wanted, chosen = set.union(*left.values()), list[str]()
    while wanted:
        best = max(left, key=lambda key: len(left[key] & wanted))
        wanted -= left[best]
        chosen.append(best)
    return chosen


KEYS = keys()
