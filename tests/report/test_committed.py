"""The pages that lie in `reports/`, and the page in `docs/` that is made as they are."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from benchmarks.evidence import PARTS, STORES
from stabkit.spec import ALGO_VERSION
from stabkit.version import __version__

REPORTS = Path(__file__).parents[2] / "reports"
PAGES = sorted(REPORTS.rglob("*.html"))
OLDER: tuple[str, ...] = ()
"""Not made anew yet by this version: `python3 dev.py evidence` with these names does."""
ROWS = json.loads((REPORTS / "evidence.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_shows_a_placeholder_or_a_python_value(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "{{" not in text and "{%" not in text
    for word in (">None<", ">nan<", "<function ", " object at 0x"):
        assert word not in text, word


@pytest.mark.parametrize("name", ROWS)
def test_a_page_that_was_made_anew_says_by_what_version_and_command(name: str) -> None:
    part, row = PARTS[name], ROWS[name]
    assert row["page"] == part.page and row["algorithm"] == ALGO_VERSION
    assert row["command"] == part.line(name)
    page = REPORTS.parent / part.page
    text = (page / "index.html" if part.page.endswith("/") else page).read_text(encoding="utf-8")
    assert row["version"] == ("1.0.0" if name in OLDER else __version__), "made anew: take it off OLDER"
    if page.suffix == ".md":  # the same bytes wherever the text lies and whoever made it
        assert f"`python3 dev.py evidence {name}`" in text
        return
    assert f'content="stabkit {row["version"]}"' in text
    assert f"<code>{html.escape(row['command'])}</code>" in text


def test_every_page_is_a_part_and_all_of_them_are_small() -> None:
    known = {part.page for part in PARTS.values()}
    for page in PAGES:
        name = page.relative_to(REPORTS.parent).as_posix()
        assert name in known or f"{name.rpartition('/')[0]}/" in known, name
    sizes = [page.stat().st_size for page in PAGES]
    assert sum(sizes) < 8e6
    assert STORES.name in (REPORTS.parent / ".gitignore").read_text(encoding="utf-8")
