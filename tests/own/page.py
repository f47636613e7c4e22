"""The model and the change of docs/own_model.md, as the page has them."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "own_model.md").read_text(encoding="utf-8")
MODEL, CHANGE = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def gpt(depth):
    """The page's GPT."""
    names = {"__name__": "model"}
    exec(MODEL, names)  # our own page, not input
    return names["gpt"](depth)
