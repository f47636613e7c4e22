"""The page: one file, nothing from outside, and no name that becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pandas as pd
import pytest

from stabkit.claims import CLAIMS, Finding
from stabkit.figures.drawing.style import EmptyFigure
from stabkit.report import cards, frame, html, order
from stabkit.report.summary import summarise
from tests.conftest import some
from tests.figures.fake_runs import ENVIRONMENT, plausible, run, spec, sweep
from tests.report.pages import render

COMMAND = "stabkit sweep --depths 6,18"


class Dom(HTMLParser):
    """The page's elements, attributes and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.shape: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in self.open, tag
        while self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


def page_of(*args: object, **kwargs: object) -> Dom:
    return Dom(render(*args, **{"command": COMMAND, **kwargs}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def page() -> str:
    return render(sweep((6, 18)), command=COMMAND, failed=[(spec("admin", 50), "killed by signal 9")])


@pytest.mark.slow
def test_nothing_is_loaded_from_outside(page: str) -> None:
    dom = Dom(page)
    for tag, name, value in dom.attributes:
        if name in ("href", "src", "xlink:href", "action", "srcset", "data"):
            assert value.startswith(("#", "data:")), (tag, name, value[:60])
        assert not name.startswith("on"), (tag, name)
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", page.replace("&#34;", ""))
    assert "@import" not in page


def test_the_policy_allows_the_pages_own_script_and_no_other(page: str) -> None:
    policy = next(v for tag, name, v in Dom(page).attributes if name == "content" and "default-src" in v)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert policy.split("; ")[:4] == [
        "default-src 'none'",
        "img-src data: blob:",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digest}'",
    ]


def test_ids_are_unique_and_every_link_within_the_page_arrives(page: str) -> None:
    attributes = Dom(page).attributes
    ids = Counter(value for _, name, value in attributes if name == "id")
    assert max(ids.values()) == 1
    links = {v[1:] for _, name, v in attributes if name in ("href", "aria-labelledby") and v[:1] == "#"}
    assert links <= set(ids)
    assert {v for _, name, v in attributes if name == "aria-labelledby"} <= set(ids)


def test_the_page_can_be_read_by_its_structure(page: str) -> None:
    dom = Dom(page)
    tags = Counter(tag for tag, _ in dom.shape)
    assert tags["main"] == tags["nav"] == tags["h1"] == 1 and ("html", "lang", "en") in dom.attributes
    assert tags["table"] == tags["caption"]
    assert all("scope" in names for tag, names in dom.shape if tag == "th")
    levels = [int(tag[1]) for tag, _ in dom.shape if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False))
    assert all("id" in names for tag, names in dom.shape if tag in ("h2", "h3"))


def test_the_first_screen_holds_the_sentence_the_command_and_the_matrix(page: str) -> None:
    text = " ".join(" ".join(Dom(page).text).split())
    order = ["No run has a verdict or a forecast", COMMAND, "Post-LN-init", "killed by signal 9"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_the_tables_for_the_csv_hold_all_that_is_drawn_to_four_digits(page: str) -> None:
    from stabkit.figures.catalogue import FIGURES
    from stabkit.figures.probes import recorded

    found = re.findall(r'<h3 id="figure-([^"]+)">.*?<script type="text/plain" data-packed>(.*?)</script>', page, re.S)
    runs = sweep((6, 18))
    figures = (*FIGURES, *recorded.of_runs(runs))
    drawn = [figure for figure in figures if not figure.optional or len(figure.select(runs))]
    assert "probe-perturbation-site" in {figure.name for figure in drawn}
    needs = [figure for figure in drawn if isinstance(figure.drawn(figure.select(runs)), EmptyFigure)]
    assert page.count('<span class="needs">') == len(needs)
    shown = {name: json.loads(zlib.decompress(base64.b64decode(text))) for name, text in found}
    assert set(shown) == {figure.name for figure in drawn if figure not in needs} and len(shown) == len(found)
    for figure in (one for one in drawn if one.name in shown):
        data = shown[figure.name]
        frame, packed = figure.select(runs), data["table"]
        rows = [[*packed["runs"][run], *(cells[i] for cells in packed["cells"])] for i, run in enumerate(packed["of"])]
        read = pd.DataFrame(rows, columns=[*packed["facts"], *packed["columns"]])[list(frame.columns)]
        numbers = {name: float for name in frame.columns if frame[name].dtype == float}  # a column of NaN alone is null
        read = read.astype(numbers)
        pd.testing.assert_frame_equal(read, frame.reset_index(drop=True), check_dtype=False, rtol=5e-4)


def test_one_line_says_which_pictures_need_other_runs() -> None:
    bare = plausible(spec("pre-ln", 2))
    bare.__dict__["records"] = {name: table for name, table in bare.records.items() if name != "ln_input"}
    text = render([bare], command=COMMAND)
    assert text.count('<span class="needs">') == 1 and "LN input (No run has recorded" in text


@pytest.mark.slow
def test_a_table_too_long_for_the_page_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "DATA_LIMIT", 100)
    text = render(sweep((6,)), command=COMMAND)
    assert '<button type="button" data-get="svg">' in text and '<button type="button" data-get="csv">' not in text
    assert "stabkit report --figures DIR" in text


HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{$ {{ 7*7 }}",
    "\x1b]0;x\x07 a\0b",
    '"><img src=x onerror=alert(1)> ]]>-->',
]


@pytest.mark.slow
@pytest.mark.parametrize("name", some(HOSTILE, 2))
def test_a_hostile_name_leaves_the_page_as_it_was(name: str) -> None:
    harmless, hostile = named("aname"), named(name)
    drawn = ("tspan", "text", "g", "use")  # a longer name leaves room for another number of ticks
    kept = [element for element in harmless.shape if element[0] not in drawn]
    assert sorted(element for element in hostile.shape if element[0] not in drawn) == sorted(kept)
    assert "\x1b" not in "".join(hostile.text) and "\0" not in "".join(hostile.text)
    assert name.encode("unicode_escape").decode().replace("\\\\", "\\") in "".join(hostile.text)


@cache
def named(word: str) -> Dom:
    """A page on which every text that a user or a machine can choose is `word`."""
    specs = [
        spec("post-ln", 2, name=word, source=word, target=word),
        spec("deepnorm", 2, name="synthetic", source=word, target=word),
    ]
    runs = [run(s, plausible(s).records, environment={**ENVIRONMENT, "platform": word}) for s in specs]
    strange = replace(plausible(spec("admin", 2)), digest=word)
    strange.__dict__["outcome"] = plausible(spec("admin", 2)).outcome
    return page_of([*runs, strange], command=word, title=word, failed=[(spec("deepnorm", 3, name=word), word)])


def test_a_hostile_outcome_or_method_is_only_text() -> None:
    bad = '"><b id=x>'
    made = spec("post-ln", 2, options={bad: bad})
    strange = run(replace(made, method=bad), plausible(made).records, bad)
    dom = page_of([strange])
    assert ("b", ("id",)) not in dom.shape and bad in " ".join(dom.text)


def test_the_page_of_nothing_says_so() -> None:
    assert "No run has a result yet." in "".join(page_of([]).text)
    text = "".join(page_of([], failed=[(spec("admin", 50), "out of memory")]).text)
    assert "all 1 failed" in text and "out of memory" in text


def test_mixed_environments_are_warned_about(undrawn: None) -> None:
    runs = [plausible(spec("post-ln", 2)), run(spec("admin", 2), {}, environment={**ENVIRONMENT, "torch": "3.0"})]
    assert "differ in torch" in " ".join(page_of(runs).text)
    assert "Mixed environments" not in " ".join(page_of(runs[:1]).text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "runs",
    [
        [plausible(spec("post-ln", 18), until=0)],
        [plausible(spec("post-ln", 6, 0)), plausible(spec("deepnorm", 0, 3))],
        [run(spec("admin", 6), {})],
        [plausible(spec("post-ln", n, m, warmup=w)) for n, m in ((6, 6), (12, 2)) for w in (0, 4000)],
    ],
)
def test_the_page_builds_for_any_runs(runs: list[object]) -> None:
    page_of(runs)


@pytest.mark.slow
def test_the_default_sweep_makes_a_small_page() -> None:
    page = render(sweep(), command=COMMAND)
    assert len(page.encode()) < 1_500_000


@pytest.mark.slow
def test_equal_runs_make_equal_pages(
    page: str, drawings: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "drawing", drawings)
    assert page == render(sweep((6, 18)), command=COMMAND, failed=[(spec("admin", 50), "killed by signal 9")])


def test_groups_can_be_switched_where_there_are_several_of_many_methods(undrawn: None) -> None:
    def buttons(*keys: str) -> list[tuple[str, str]]:
        return html.group_switches([run(spec(key, 2, seed=seed), {}) for key in keys for seed in (0, 1)])

    many = ("deepnorm", "post-ln", "admin", "rezero", "t-fixup", "pre-ln", "tomorrow")
    assert buttons(*many) == [
        ("Post-LN", "post-ln admin"),
        ("No-LN", "rezero t-fixup"),
        ("Pre-LN", "pre-ln"),
        ("DeepNorm", "deepnorm"),
        ("other", "tomorrow"),
    ]
    assert buttons(*many[:5]) == [] == buttons("post-ln") and len(buttons(*many[:6])) == 4
    assert buttons("post-ln", "post-ln-init", "ds-init", "admin") == []
    page = page_of([run(spec(key, 2), {}) for key in many])
    drawn = [value for tag, name, value in page.attributes if tag == "button" and name == "data-group"]
    assert drawn == [keys for _, keys in buttons(*many)]
    assert "data-group" not in {name for _, name, _ in page_of([run(spec("post-ln", 2), {})]).attributes}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("stabkit sweep --depths 6", ""),
        ("stabkit sweep --data D --source de --target en --depths 6 --out o", "stabkit sweep --depths 6"),
        ("stabkit sweep --data=D --source=de --target=en --seeds 0..2", "stabkit sweep --seeds 0..2"),
    ],
)
def test_a_reader_without_the_text_has_a_command_too(command: str, told: str, undrawn: None) -> None:
    page = "".join(page_of([], command=command).text)
    assert frame.elsewhere(command) == told and (told in page) == bool(told) or not told
    assert ("Without this text" in page) == bool(told)


@pytest.mark.slow
def test_claims_that_no_such_run_could_decide_are_one_line_not_a_row_each() -> None:
    first, second, third = [claim for claim in CLAIMS if claim.weight == "central"][:3]
    deep = "its paper has at most 60 layers"
    findings = [
        Finding(claim=first, verdict="out of reach", measured="1.0", reason=deep, places=()),
        Finding(claim=second, verdict="out of reach", measured="1.0", reason=deep, places=()),
        Finding(claim=third, verdict="holds", measured="2.0", reason="", places=()),
    ]
    page = render(sweep(), command=COMMAND, claims=findings)
    (line,) = re.findall(r'<p class="note">Out of reach of these runs.*?</p>', page)
    assert first.key in line and second.key in line and line.count("60 layers") == 1
    rows = re.findall(r'<table class="claims">.*?</table>', page, re.S)
    assert len(rows) == 1 and "out of reach" not in rows[0] and "1 holds, 2 out of reach" in page


def test_a_page_draws_what_answers_and_names_the_rest_with_the_command_that_draws_it() -> None:
    summary = summarise(sweep((6, 18)))
    short, whole = (html.render(summary, command="stabkit sweep", all_figures=every) for every in (False, True))
    drawn = [page.count('<article class="card"') for page in (short, whole)]
    assert drawn[0] == order.FIRST < drawn[1], drawn
    assert "<code>stabkit sweep --all-figures</code>" in short and "--all-figures" not in whole
    answers = [page.partition('id="figures">')[2].split("</article>")[: order.FIRST] for page in (short, whole)]
    assert answers[0] == answers[1], "the figures that answer are the same"
