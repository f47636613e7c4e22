"""The version of stabkit, and the commit where it runs from a clone. Imports nothing of stabkit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__version__ = "1.2.0"
YEAR = 2026
"""Of this version, for a citation."""


@cache
def commit() -> str:
    """The first eight digits of the commit of a clone, or of what a wheel was built of; "" where neither is known."""
    git = Path(__file__).parents[1] / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head[:8]
        if (git / name).exists():
            return (git / name).read_text(encoding="utf-8")[:8]
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        built = Path(__file__).with_name("_commit")
        return built.read_text(encoding="utf-8") if built.exists() else ""
    return next((line[:8] for line in packed if line.endswith(f" {name}")), "")
