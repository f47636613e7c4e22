"""The classes in which a page colours forecasts, of our models and of users' alike."""

from __future__ import annotations

KINDS = {
    "likely trains": "likely-trains",
    "likely stuck": "likely-stuck",
    "open": "likely-open",
    "out of range": "beyond",
}
"""{word: class of the page's style}."""
