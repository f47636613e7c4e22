"""The list of sentences that people will quote: README, results.md and the committed pages say nothing else."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from stabkit import methods
from studies.findings import listed
from studies.markdown import csv_rows

ROOT = Path(__file__).parents[1]
LISTED = listed.read_list()
LABELS = sorted({methods.label(key, {}) for key in methods.KEYS}, key=len, reverse=True)
NAMED = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, LABELS))})(?![\w-])")
TRIED = (ROOT / "docs" / "evidence" / "findings.md").read_text(encoding="utf-8")
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "reports").rglob("*.html"))


def found(readme: str) -> str:
    return readme[readme.index("## What was found") : readme.index("## What a verdict is worth")]


def flat(text: str) -> str:
    return " ".join(text.split())


def test_results_are_written_from_the_list():
    assert listed.RESULTS.read_text() == listed.results(LISTED), "python -m studies.findings.listed"


def test_readme_says_what_the_list_says():
    readme = (ROOT / "README.md").read_text()
    said = [flat(item) for item in re.split(r"^- ", found(readme), flags=re.M)[1:]]
    said[-1] = said[-1].partition(" [All results]")[0]
    assert said == [one.readme for one in LISTED.findings if one.readme]


def test_no_other_sentence_of_readme_says_what_a_method_does():
    """A listing of what there is names methods too; what is found of them has a verb of outcome."""
    readme = (ROOT / "README.md").read_text()
    prose = re.sub(r"```.*?```", "", readme.replace(found(readme), ""), flags=re.S)
    prose = re.sub(r"!\[.*?\]\(.*?\)", "", prose, flags=re.S)
    verbs = re.compile(r"\b(trains?|stuck|learns?|grows?|lower|lowest|better|beats?|loses?)\b")
    for sentence in re.split(r"(?<=[.:!?])\s+", flat(prose)):
        if NAMED.search(sentence) and verbs.search(sentence):
            assert sentence in LISTED.beside, sentence


@pytest.mark.parametrize("one", LISTED.findings, ids=lambda one: one.key)
def test_a_statement_is_a_sentence_and_names_its_condition_its_seeds_its_command_and_its_file(one):
    assert one.sentence.endswith(".") and len(one.sentence) > 40 and one.sentence[0].isupper()
    assert one.condition and one.seeds and one.command and one.column
    assert (ROOT / one.file).exists(), one.file
    assert bool(one.tried) != bool(one.untried), "tried, or why not"
    assert not one.tried or f"**{one.short}**" in TRIED
    assert not one.untried or f"- {one.short}: {one.untried}" in TRIED
    assert one.section in {section.key for section in LISTED.sections}


def test_what_survived_is_what_the_cells_count():
    cells = csv_rows(listed.RESULTS.with_name("findings_cells.csv"))
    for short, holds, of in re.findall(r"^\| \*\*(.*?)\*\* \| (\d+) of (\d+) ", TRIED, re.M):
        own = [cell["becomes"] for cell in cells if cell["finding"] == short and cell["becomes"] != "not run"]
        assert (sum(word.startswith("holds") for word in own), len(own)) == (int(holds), int(of)), short


def test_every_page_has_its_headline_on_the_list():
    assert sorted(LISTED.headlines) == PAGES
    wrong = [file for file in PAGES if LISTED.headlines[file] != listed.headline(ROOT / file)]
    assert wrong == [], "a page was made anew: its headline goes on the list"


ON_PAGES = [one for one in LISTED.findings if one.file.endswith(".html")]


@pytest.mark.parametrize("one", ON_PAGES, ids=lambda one: one.key)
def test_the_numbers_of_a_statement_stand_on_its_page(one):
    """Percentages and decimals, as the page rounds them: a page made anew cannot leave an old number behind."""
    page = (ROOT / one.file).read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", page, flags=re.S)).replace(" %", "%")
    sentence = one.sentence.replace(" %", "%")
    numbers = re.findall(r"(?<![\w.])(\d+\.\d+|\d+(?=%| and \d+%))(?![\w.])", sentence)
    assert [number for number in numbers if not re.search(rf"(?<![\w.]){re.escape(number)}(?!\d)", text)] == []
