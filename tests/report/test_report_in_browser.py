"""The page in a real browser, where there is one: pages of none, one, sixteen and more runs, and a hostile one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from stabkit.figures.catalogue import FIGURES
from stabkit.figures.chain.step_curves import UPDATE
from stabkit.figures.probes import recorded
from stabkit.methods import KEYS
from stabkit.words import HEADLINE
from tests.figures.fake_runs import plausible, spec, step, sweep
from tests.report.pages import render

ONE = plausible(spec("post-ln", 18))
SHOWN = sum(not figure.optional or len(figure.select([ONE])) > 0 for figure in (*FIGURES, *recorded.of_runs([ONE])))
"""Pictures of plausible runs, short and unscaled."""
pytestmark = pytest.mark.slow
"""A browser is started; what a page holds is tested without one in `test_html.py`."""
NAMES = ["none", "one", "sixteen", "hostile", "twelve"]
HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=alert(1)>" + "x" * 200


@pytest.fixture(scope="session")
def pages(once: Callable[[str, Callable[[Path], None]], Path]) -> dict[str, Path]:
    return {page.stem: page for page in once("pages", write_pages).iterdir()}


def write_pages(folder: Path) -> None:
    hostile = plausible(spec("post-ln", 2, name=HOSTILE, source=HOSTILE))
    several = {
        "none": render([], command="stabkit report"),
        "one": render([ONE], command="stabkit sweep"),
        "sixteen": render(sweep(), command="stabkit sweep --depths 6,18,50,100"),
        "hostile": render(
            [*sweep((6,), (0, 1)), hostile],
            command="stabkit sweep " + "-" * 300,
            failed=[(spec(), HOSTILE + "y" * 300)],
        ),
    }
    judged = [plausible(spec(key, n), outcome="trains") for n in (2, 3) for key in KEYS]
    several["twelve"] = render(
        [*judged, *(step(key, n, 5.0) for n in (2, 3) for key in KEYS)], command="stabkit report"
    )
    for name, text in several.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    """What a page complained of, and what it asked of the network."""
    return []


@pytest.fixture(scope="module")
def loaded(browser: Any, pages: dict[str, Path], complaints: list[str]) -> Callable[..., Any]:
    """A page of this name and width: loaded once, for all who leave it as it was."""

    def load(name: str, width: int) -> Any:
        page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if _leaves(request.url) else None)
        page.goto(pages[name].as_uri())
        return page

    load.kept = cache(load)  # type: ignore[attr-defined]
    return load


def _leaves(url: str) -> bool:
    return not url.startswith(("file:///", "blob:null/"))


@pytest.fixture
def opened(loaded: Any, complaints: list[str]) -> Iterator[Callable[..., Any]]:
    """Opens a page, `anew` where the test changes it; on leaving, nothing may have been complained of and no request
    may have left."""

    def open_page(name: str, width: int = 1600, *, anew: bool = False) -> Any:
        return loaded(name, width) if anew else loaded.kept(name, width)

    yield open_page
    assert complaints == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [400, 1600])
def test_the_page_opens_without_complaint_and_without_sideways_scrolling(
    opened: Callable[..., Any], name: str, width: int
) -> None:
    page = opened(name, width, anew=True)
    inks = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        said = page.locator(".headline").inner_text()
        assert page.title() == f"{said} · stabkit" and len(said.rstrip(".")) <= HEADLINE
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if name != "none":
            shown = page.locator(".drawing > svg").count() + page.locator(".needs").count()
            assert shown == SHOWN + 2 * (name == "twelve")  # Table 1, the slopes
            ink = page.evaluate("getComputedStyle(document.querySelector('.drawing text')).fill")
            assert ink == page.evaluate("getComputedStyle(document.body).color")
            inks.add(ink)
    assert len(inks) == 2 * (name != "none"), "what is drawn follows the scheme"


def test_a_verdict_leads_to_its_run(opened: Callable[..., Any]) -> None:
    page = opened("hostile", anew=True)
    page.locator(".matrix td a").first.click()
    assert "Post-LN" in page.locator("tr:target").inner_text()


def test_pointing_at_a_curve_tells_its_run_its_step_and_its_value(opened: Callable[..., Any]) -> None:
    page = opened("sixteen")
    page.evaluate("location.hash = 'figure-update'")  # a link into what is folded opens it
    card = page.locator(".card", has=page.locator("#figure-update"))
    curve = page.evaluate(
        "unpacked([...document.querySelectorAll('.card')].find((c) => c.querySelector('#figure-update')))"
        ".then((found) => found.curves[0])"
    )
    svg = card.locator(".drawing svg")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    scale = box["width"] / page.evaluate("(svg) => svg.viewBox.baseVal.width", svg.element_handle())
    x, y = curve["p"][0][9], curve["p"][1][9]
    page.mouse.move(box["x"] + x * scale, box["y"] + y * scale)
    page.locator("#tip").wait_for(state="visible")
    told = page.locator("#tip").inner_text()
    assert told.startswith("Post-LN") and "seed 0" in told and "step 10: " in told
    assert float(told.rpartition(": ")[2]) == pytest.approx(curve["v"][1][9])
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()


def test_a_method_is_switched_off_and_on_in_the_whole_page(opened: Callable[..., Any]) -> None:
    page = opened("sixteen")
    curves = page.locator(".drawing svg [data-method='post-ln']")
    rows = page.locator("tr[data-method='post-ln']")
    assert curves.count() > 20 and rows.count() > 4 and rows.first.is_visible()
    button = page.locator("[data-switch='post-ln']")
    button.click()
    assert button.get_attribute("aria-pressed") == "false" and not rows.first.is_visible()
    assert all(not curve.is_visible() for curve in curves.all()[:5])
    page.locator("g[data-legend='post-ln']").first.dispatch_event("click")
    assert button.get_attribute("aria-pressed") == "true" and rows.first.is_visible()


def test_on_a_narrow_screen_no_switch_is_cut_and_none_stands_over_a_figure(opened: Callable[..., Any]) -> None:
    bar = opened("twelve", 400, anew=True).locator(".switches")
    assert bar.evaluate("bar => getComputedStyle(bar).position === 'static' && bar.scrollWidth <= bar.clientWidth")
    last = bar.locator("button").last
    before = last.get_attribute("aria-pressed")
    last.click()
    assert last.get_attribute("aria-pressed") != before
    assert opened("twelve").locator(".switches").bounding_box()["height"] < 60


def test_of_many_methods_three_are_in_colour_and_a_group_comes_into_it_whole(opened: Callable[..., Any]) -> None:
    page = opened("twelve")
    assert page.locator("[data-group]").all_inner_texts() == ["Post-LN", "No-LN", "Pre-LN", "DeepNorm", "Dual"]
    group, one = page.locator("[data-group^='rezero']"), page.locator("[data-switch='rezero']")

    def coloured(key: str) -> bool:
        curve = page.locator(f".drawing g[data-method='{key}']").first
        return bool(curve.evaluate("(one) => getComputedStyle(one).opacity") == "1")

    assert sum(coloured(key) for key in KEYS if page.locator(f".drawing g[data-method='{key}']").count()) == 3
    group.click()
    if group.get_attribute("aria-pressed") == "false":
        group.click()
    assert coloured("rezero") and coloured("t-fixup") and one.get_attribute("aria-pressed") == "true"
    one.click()
    assert not coloured("rezero") and coloured("t-fixup") and group.get_attribute("aria-pressed") == "false"
    group.click()
    assert coloured("rezero") and coloured("t-fixup"), "what is missing of a group comes first"
    group.click()
    assert not coloured("rezero") and not coloured("t-fixup")


@pytest.mark.parametrize("kind", ["svg", "png", "csv"])
def test_every_figure_downloads_whole(opened: Callable[..., Any], tmp_path: Path, kind: str) -> None:
    page = opened("sixteen")
    for name in ("update", "ln_input"):
        page.evaluate(f"location.hash = 'figure-{name}'")
        card = page.locator(".card", has=page.locator(f"#figure-{name}"))
        with page.expect_download() as waiting:
            card.locator(f"[data-get='{kind}']").click()
        assert waiting.value.suggested_filename == f"{name}.{kind}"
        waiting.value.save_as(tmp_path / f"{name}.{kind}")
        data = (tmp_path / f"{name}.{kind}").read_bytes()
        if kind == "png":
            assert data[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(data[16:20], "big") > 1500 and len(data) > 20_000
        elif kind == "svg":
            text = data.decode()
            assert text.startswith("<svg") and 'xmlns="http://www.w3.org/2000/svg"' in text and "Post-LN" in text
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO((tmp_path / "update.csv").read_text(encoding="utf-8"))))
        frame = UPDATE.select(sweep())
        assert len(rows) == len(frame) and set(rows[0]) == set(frame.columns)
        for row, (_, drawn) in zip(rows, frame.iterrows(), strict=True):
            assert row["run"] == drawn["run"] and int(row["step"]) == drawn["step"]
            assert float(row["update"]) == pytest.approx(drawn["update"], rel=5e-4)


def test_a_hostile_name_changes_nothing(opened: Callable[..., Any]) -> None:
    page = opened("hostile")
    figures = SHOWN - page.locator(".needs").count()
    assert page.locator("img").count() == 0 and page.locator("script").count() == figures + 1
    assert "hacked" not in page.title() and "document.title='hacked'" in page.locator("body").inner_text()


def test_on_paper_every_figure_stays_whole_and_no_button_is_left(opened: Callable[..., Any]) -> None:
    page = opened("sixteen", width=800, anew=True)
    page.emulate_media(media="print")
    assert all(card.is_visible() for card in page.locator(".card").all()), "what is folded on a screen is not on paper"
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).breakInside") == "avoid"
    assert all(not button.is_visible() for button in page.locator("button").all())
    assert len(page.pdf(format="A4")) > 100_000


def test_without_its_script_the_page_is_whole(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["sixteen"].as_uri())
    assert page.locator(".drawing svg").count() == SHOWN and page.locator("#claims").is_visible()
    assert all(not button.is_visible() for button in page.locator("button").all())
    context.close()


def test_on_a_phone_panels_stand_below_one_another(opened: Callable[..., Any]) -> None:
    page = opened("sixteen", width=400, anew=True)
    card = page.locator("article", has=page.locator("#figure-grad_norm"))
    card.scroll_into_view_if_needed()
    windows = card.locator(".pile > svg")
    panels = card.locator("[data-panel]").count()
    assert windows.count() >= panels > 1 and not card.locator(".drawing > svg").is_visible()
    assert all(windows.nth(i).bounding_box()["width"] <= 400 for i in range(windows.count()))
    order = page.locator("article", has=page.locator("#figure-chain_order"))
    assert order.locator(".pile > svg").count() == 2 + 4, "two lines of the legend, a window a depth"
    page.set_viewport_size({"width": 1200, "height": 900})
    assert card.locator(".drawing > svg").is_visible() and card.locator(".pile").count() == 0


@pytest.mark.parametrize(
    ("name", "scheme"), [("none", "light"), ("hostile", "light"), ("sixteen", "light"), ("sixteen", "dark")]
)
def test_axe_finds_nothing_that_would_keep_a_reader_out(opened: Callable[..., Any], name: str, scheme: str) -> None:
    """Landmarks, table heads, names of figures and buttons, contrast: all that is folded is open, and of rows that are
    alike three are left."""
    page = opened(name, width=1600, anew=True)
    page.emulate_media(color_scheme=scheme)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.evaluate("for (const each of document.querySelectorAll('.runs tbody tr:nth-child(n + 4)')) each.remove()")
    page.evaluate("for (const each of document.querySelectorAll('.drawing svg > *')) each.remove()")
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:100]) for one in found] == []


def test_rows_are_sorted_by_a_column_and_come_back(opened: Callable[..., Any]) -> None:
    page = opened("twelve", anew=True)
    rows = "[...document.querySelectorAll('.matrix tbody tr[data-method]')]"
    labels, ranks = (
        f"{rows}.map((row) => row.dataset.method)",
        f"{rows}.map((row) => Number(row.cells[1].dataset.rank))",
    )
    first, button = page.evaluate(labels), page.locator("button.sort").first
    button.click()
    after = page.evaluate(ranks)
    assert after == sorted(after) and sorted(page.evaluate(labels)) == sorted(first)
    button.click()
    assert page.evaluate(labels) == first
