"""The pages that lie in `reports/`."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "reports").glob("*.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_shows_a_placeholder_or_a_python_value(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "{{" not in text and "{%" not in text
    for word in (">None<", ">nan<", "<function ", " object at 0x"):
        assert word not in text, word
