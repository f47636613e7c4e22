"""The page in a real browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stabkit.report.html import render
from tests.conftest import need
from tests.figures.fake_runs import plausible, spec, sweep

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    need("browser", BROWSER is not None, "no Chromium on this machine: the page was not opened in one")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def hostile_page() -> str:
    hostile = plausible(spec("post-ln", 2, name="<script>document.title='hacked'</script>" + "x" * 200))
    return render([*sweep((6, 18)), hostile], command="stabkit sweep " + "-" * 300, failed=[(spec(), "y" * 300)])


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (400, "dark"), (1600, "light")])
def test_the_page_opens_without_complaint_and_without_sideways_scrolling(
    browser: Any, hostile_page: str, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert complaints == [] and requests == [path.as_uri()]
    assert page.title().endswith("· stabkit")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink = page.evaluate("getComputedStyle(document.querySelector('.drawing text')).fill")
    assert ink == page.evaluate("getComputedStyle(document.body).color")
    assert page.locator(".drawing svg").count() == 3
    page.close()


def test_a_verdict_leads_to_its_run(browser: Any, hostile_page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.locator(".matrix td a").first.click()
    assert "Post-LN" in page.locator("tr:target").inner_text()
    page.close()
