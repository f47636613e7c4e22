"""How people type lists: with commas or with spaces, `--depths 6 18` as `--depths 6,18`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

NUMBERS = ("depths", "seeds", "lr", "hidden", "widths", "warmup", "max-tokens", "predict", "alpha-scale", "beta-scale")
"""Options that take a list of numbers."""
NAMES = ("models", "probes")
"""Options that take a list of names."""
NUMBER = re.compile(r"[\d.]+(e[+-]?\d+)?([x.,:]+[\d.]+(e[+-]?\d+)?)*", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z][\w+-]*(\.py)?(:[\w.=+-]+)*")
POSSIBLE = re.compile(r"No such option: (?P<typed>\S+)(?: \(Possible options: (?P<near>.*)\))?(?P<rest>.*)")


def joined(arguments: Sequence[str]) -> list[str]:
    """The arguments with the items of such lists joined: what follows an option and looks like another item of it."""
    whole: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        whole.append(word)
        option = word.removeprefix("--")
        form = NUMBER if option in NUMBERS else NAME if option in NAMES else None
        if not word.startswith("--") or form is None or not left or left[0].startswith("-"):
            continue
        items = [left.pop(0)]
        while left and form.fullmatch(left[0]):
            items.append(left.pop(0))
        whole.append(",".join(item.strip(",") for item in items) if len(items) > 1 else items[0])
    return whole


def meant(message: str) -> str:
    """`no option --depth; did you mean --depths?` of what typer says of an option that there is not."""
    found = POSSIBLE.fullmatch(message)
    if not found:
        return message
    typed, names = found["typed"], (found["near"] or "").split(", ")
    near = sorted(filter(None, names), key=lambda name: -difflib.SequenceMatcher(None, typed, name).ratio())
    return f"no option {typed}{f'; did you mean {near[0]}?' if near else ''}{found['rest']}"
