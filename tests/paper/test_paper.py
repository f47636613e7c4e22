"""`stabkit paper` from the command line: every item small, an interrupted run, what is refused."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from markupsafe import escape

from stabkit.claims import CLAIMS
from stabkit.claims.base import Finding, Verdict
from stabkit.cli.entry import main
from stabkit.errors import FailedRuns, StoreError
from stabkit.paper.items import BY_KEY, ITEMS
from stabkit.paper.page import comes_out, of_item
from stabkit.paper.section import BRIEF, brief, verdict
from stabkit.running import execute
from stabkit.words import HEADLINE

pytestmark = pytest.mark.usefixtures("undrawn")
REST = ("--steps", "3", "--vocab", "200", "--executor", "inline", "--quiet")
SMALL = ("--depths", "2", *REST)


def run(*words: str) -> int:
    """The exit code of a command, in this process: torch is loaded once for all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["stabkit", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


def paper(capsys, *words: str) -> tuple[int, str, str]:
    code = run("paper", *words)
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all items, as a user's: what items share is trained once."""
    return tmp_path_factory.mktemp("items")


@pytest.mark.slow
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.key)
def test_every_item_runs_at_few_layers_and_three_steps(item, shared: Path, capsys) -> None:
    depth = "1" if item.key == "start" else "2"  # it compares widths, up to 512
    command = (item.key, "--depths", depth, *REST, "--seeds", "0", "--json", "--out", str(shared))
    code, out, err = paper(capsys, *command)
    assert code == 0, err
    document = json.loads(out)
    (done,) = document["items"]
    assert done["item"] == item.key and done["runs"] and not done["failed"]
    code, out, _ = paper(capsys, *command, "--dry-run")
    assert code == 0 and [row["runs"] for row in json.loads(out)["plan"]] == [0], "nothing of it is left to train"
    page = Path(document["report"]).read_text()
    assert f'<h2 id="{item.key}">' in page and item.title in page
    assert f"<b>Scaled down.</b> This page was run with <code>--depths {depth} --steps 3" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page


def test_ls_names_every_item_and_what_is_out_of_reach(capsys) -> None:
    code, out, _ = paper(capsys, "ls")
    assert code == 0 and all(item.key in out for item in ITEMS) and "OPUS-100" in out
    code, out, _ = paper(capsys, "ls", "--json")
    assert [one["key"] for one in json.loads(out)["items"]] == [item.key for item in ITEMS]


def test_an_unknown_item_gets_the_nearest(capsys) -> None:
    code, _, err = paper(capsys, "fgi9")
    assert code == 2 and "did you mean 'fig9'" in err and "Traceback" not in err


def test_a_dry_run_trains_nothing_and_says_what_is_beyond_the_budget(tmp_path: Path, capsys) -> None:
    code, out, _ = paper(capsys, "all", "--dry-run", "--budget", "5m", "--workers", "2", "--out", str(tmp_path))
    assert code == 0 and "cheapest first" in out and "beyond the budget: table2" in out
    assert not list(tmp_path.iterdir())


def test_a_budget_that_fits_nothing_is_refused_with_the_cheapest_items_cost(tmp_path: Path, capsys) -> None:
    code, _, err = paper(capsys, "all", "--budget", "1s", "--out", str(tmp_path))
    assert code == 2 and "nothing fits; the cheapest item" in err and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_interrupted_paper_goes_on_where_it_stopped(tmp_path: Path, capsys, monkeypatch) -> None:
    words = ("table11", "fig9", *SMALL, "--out", str(tmp_path))
    real, begun = execute.run, []

    def breaks(request, store, *more, **named):
        begun.append(request)
        if len(begun) == 3:  # one item has one command and the other two: whichever is first has ended
            raise KeyboardInterrupt
        return real(request, store, *more, **named)

    monkeypatch.setattr(execute, "run", breaks)
    assert run("paper", *words) == 130
    first = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir() if path.name[0] != "."}
    (folder,) = (tmp_path / "reports").iterdir()
    index = (folder / "index.html").read_text()
    (done,) = {path.stem for path in folder.iterdir()} - {"index"}
    assert f'href="{done}.html"' in index, "what had ended is on a page already"
    assert "the same command with a larger budget continues" in index
    monkeypatch.setattr(execute, "run", real)
    code, out, _ = paper(capsys, *words)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir() if path.name[0] != "."}
    assert code == 0 and "report:" in out and first and len(after) > len(first)
    assert {name: after[name] for name in first} == first
    assert len(list((tmp_path / "reports").iterdir())) == 1


@pytest.mark.slow
def test_an_item_is_told_by_its_own_figures(tmp_path: Path, capsys) -> None:
    paper(capsys, "fig4", *SMALL, "--out", str(tmp_path))
    (page,) = (path.read_text() for path in (tmp_path / "reports").iterdir())
    here, below = re.findall('<p class="(?:headline|answer)">([^<]*)</p>', page)[:2]
    titles = re.findall(r'<h3 id="figure-fig4-[a-z_]+"><a[^>]*>([^<]*)<', page)
    assert here.startswith("Fig. 4") and len(here) <= HEADLINE
    assert re.match(rf"(Fig\. 4\b[^.]*\. )?{re.escape(titles[0])}", below)


@pytest.mark.parametrize("option", ["--depths", "--seeds", "--steps", "--budget"])
def test_an_empty_value_is_refused(option: str, tmp_path: Path, capsys) -> None:
    code, _, err = paper(capsys, "fig9", option, "", "--dry-run", "--out", str(tmp_path))
    assert code == 2 and f"{option} has an empty value" in err


@pytest.mark.slow
def test_the_page_keeps_the_papers_order_whatever_the_plans(tmp_path: Path, capsys) -> None:
    _, out, _ = paper(capsys, "table11", "fig2", *SMALL, "--json", "--out", str(tmp_path))
    page = Path(json.loads(out)["report"]).read_text()
    assert page.index('href="fig2.html"') < page.index('href="table11.html"')


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_an_index_leads_to_a_page_an_item_and_back(tmp_path: Path, capsys) -> None:
    _, out, _ = paper(capsys, "fig2", "fig4", *SMALL, "--json", "--out", str(tmp_path))
    index = Path(json.loads(out)["report"])
    assert re.fullmatch(r"paper-fig2-fig4-[0-9a-f]{4}", index.parent.name) and index.name == "index.html"
    text = index.read_text()
    assert "<svg" not in text and 'class="card"' not in text
    for key in ("fig2", "fig4"):
        page = (index.parent / f"{key}.html").read_text()
        assert f'href="{key}.html"' in text and 'href="index.html"' in page and escape(BY_KEY[key].theirs) in page
        shown = page.partition('id="more-')[0].count('<article class="card"')
        assert 1 <= shown <= 3 and f"stabkit paper {key} --depths 2" in page
    assert len(text) < 300_000


def test_the_command_of_an_item_is_that_of_all_without_the_others() -> None:
    said = "stabkit paper all --budget 20m --data ../d --source de --out=o --quiet"
    assert of_item(said, BY_KEY["fig4"]) == "stabkit paper fig4 --data ../d --source de --quiet"
    assert of_item("stabkit paper fig1 fig4 --out fig1", BY_KEY["fig4"]) == "stabkit paper fig4"
    assert of_item("stabkit paper --yes fig4 fig2 --depths 2", BY_KEY["fig2"]) == "stabkit paper fig2 --yes --depths 2"


@pytest.mark.slow
def test_an_item_that_fails_is_on_the_page_beside_the_others(tmp_path: Path, capsys, monkeypatch) -> None:
    real, begun = execute.run, []

    def breaks(request, store, *more, **named):
        begun.append(request)
        if len(begun) == 1:
            raise StoreError("the disk is full")
        return real(request, store, *more, **named)

    monkeypatch.setattr(execute, "run", breaks)
    code, out, err = paper(capsys, "table11", "fig2", *SMALL, "--out", str(tmp_path))
    assert code == FailedRuns.exit_code and "did not finish" in err and "report:" in out
    (folder,) = (tmp_path / "reports").iterdir()
    pages = {path.stem: path.read_text() for path in folder.iterdir()}
    assert set(pages) == {"index", "fig2", "table11"}
    (stopped,) = (key for key, page in pages.items() if "the disk is full" in page)
    assert "Not finished" in pages[stopped] and ">stopped</b>" in pages["index"]


def test_items_that_are_refused_are_left_out_of_several_with_the_reason(tmp_path: Path, capsys) -> None:
    many = ("--seeds", "0..400", "--out", str(tmp_path / "out"))
    code, out, err = paper(capsys, "fig2", "fig3", "--dry-run", *many)
    assert code == 0 and "fig2 is left out" in err and "this grid is large" in err and "fig3" in out
    code, _, err = paper(capsys, "fig2", *many)
    assert code != 0 and "this grid is large" in err and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_pages_of_other_settings_do_not_overwrite_each_other(tmp_path: Path, capsys) -> None:
    for steps in ("2", "3"):
        paper(capsys, "fig2", *SMALL, "--steps", steps, "--out", str(tmp_path))
    assert len(list((tmp_path / "reports").iterdir())) == 2


class Found:
    def __init__(self, verdict: str, weight: str = "side") -> None:
        self.verdict, self.claim = verdict, SimpleNamespace(weight=weight)


@pytest.mark.parametrize(
    ("claims", "word"),
    [
        ((), "drawn"),
        (("untested",), "drawn"),
        (("holds", "holds"), "reproduces"),
        (("holds", "untested"), "holds where decided"),
        (("holds", "undecided"), "holds where decided"),
        (("holds", "fails"), "in part"),
        (("mixed",), "in part"),
        (("fails", "untested"), "does not reproduce"),
        (("undecided", "out of reach"), "undecided"),
        (("out of reach", "untested"), "out of reach"),
    ],
)
def test_an_item_reproduces_only_where_every_claim_was_decided_and_holds(claims, word: str) -> None:
    assert verdict([Found(one) for one in claims]) == word  # type: ignore[misc]
    beside = [Found("out of reach", "central"), Found("fails")]
    assert verdict(beside) == "out of reach", "a side claim does not decide it"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "items", "told"),
    [
        ("does not reproduce", ["tables67"], "do not reproduce"),
        ("does not reproduce", ["table1"], "does not reproduce"),
        ("in part", ["fig2", "fig3"], "reproduce in part"),
        ("undecided", ["tables67"], "are undecided here"),
        ("out of reach", ["fig6"], "is out of reach here"),
    ],
)
def test_how_items_came_out_is_told_of_one_and_of_several(word: str, items: list[str], told: str) -> None:
    assert comes_out(word, [BY_KEY[key] for key in items]) == told


@pytest.mark.parametrize(
    ("key", "word", "told"),
    [
        ("smaller", "holds", "31 times"),
        ("smaller", "fails", "31 times; asked: at least 2.0 times"),
        ("initialisation", "out of reach", "both have gone too far"),
        ("table1-pre-ln", "fails", "31 times"),  # of several parts, each with its own
    ],
)
def test_a_sentence_stands_beside_what_its_word_rests_on(key: str, word: Verdict, told: str) -> None:
    claim = next(one for one in CLAIMS if one.key == key)
    finding = Finding(claim=claim, verdict=word, measured="31 times", reason="both have gone too far", places=())
    assert brief(finding) == told
    long = replace(finding, measured="so many words " * 40, reason="so many words " * 40)
    assert len(brief(long)) <= BRIEF and brief(long).endswith("…")
