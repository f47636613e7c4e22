"""No wording decides anything: with every outcome, label, condition, risk and reason reworded, a command ends with the
same colours, places, verdicts, exit code and next command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from stabkit import methods
from stabkit.claims import base
from stabkit.cli import tables
from stabkit.figures.picture import Picture
from stabkit.figures.shared.comparison import Condition
from stabkit.report import cards, json_document
from stabkit.report.summary import Summary, summarise
from stabkit.report.verdict import answer, headline, legend
from stabkit.results.outcome import Outcome, Risk
from tests.commands import TINY, stabkit
from tests.figures.fake_runs import at16, plausible, spec, sweep
from tests.report.pages import render

SUFFIX = " (reworded)"
WORDS = ("trains", "stuck", "diverged", "early", "failed", "likely trains", "likely stuck", "open", "out of range")


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text that is made of a value says one thing more."""

    def longer(owner: Any, name: str) -> None:
        plain = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **named: f"{plain(*given, **named)}{SUFFIX}")

    longer(methods, "label_of")
    longer(legend, "warning")
    text = Condition.text.fget
    assert text is not None
    monkeypatch.setattr(Condition, "text", property(lambda self: f"{told}{SUFFIX}" if (told := text(self)) else told))
    monkeypatch.setattr(legend, "WORDS", {word: f"{word}{SUFFIX}" for word in WORDS})
    monkeypatch.setattr(legend, "NO_SIGN", f"{legend.NO_SIGN}{SUFFIX}")
    verbs = {word: tuple(f"{verb}{SUFFIX}" for verb in both) for word, both in answer.VERBS.items()}
    monkeypatch.setattr(answer, "VERBS", verbs)
    monkeypatch.setattr(headline, "FATES", {ends: f"{verb}{SUFFIX}" for ends, verb in headline.FATES.items()})
    spot = base.Spot.__init__

    def said(self: base.Spot, key: str, text: str) -> None:
        spot(self, key, f"{text}{SUFFIX}")

    monkeypatch.setattr(base.Spot, "__init__", said)


def runs() -> list[Any]:
    """Early, judged, diverged, at risk, with and without warm-up, at two rates, several seeds; two that failed."""
    cold = [
        plausible(spec(method, depth, seed=seed, warmup=0, steps=250, lr=lr), outcome=outcome)
        for method, outcome in (("post-ln", "stuck"), ("deepnorm", "trains"), ("admin", "trains"))
        for depth in (6, 18)
        for seed in (0, 1)
        for lr in (5e-4, 1e-3)
    ]
    lost = [plausible(spec("pre-ln", 18, seed=seed, warmup=0, steps=250), until=9) for seed in (0, 1)]
    return [*sweep((6, 18)), *cold, *lost, at16("r-fixup", 18, 3.0)]


def summary(reason: str) -> Summary:
    return summarise(runs(), [(spec("rezero", 18), reason), (spec("dlcl", 6), reason)])


class Skeleton(HTMLParser):
    """What a page is without its words: its elements with their classes, methods, links and places in an order."""

    KEPT = ("class", "data-method", "data-depth", "data-rank", "data-switch", "id", "href", "aria-pressed")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(item for item in attrs if item[0] in self.KEPT)))


def document(plain: Summary) -> str:
    """What `--json` says of verdicts and claims."""
    claims = [json_document.claim(finding) for finding in plain.claims]
    return json_document.text({"cells": json_document.cells(plain.matrix), "claims": claims})


def values(document: str) -> Any:
    """A document without its sentences: what a program would act on."""
    words = {"answer", "label", "condition", "detail", "reason", "measured", "text", "where", "word", "report"}

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept(inner) for key, inner in value.items() if key not in words}
        return [kept(inner) for inner in value] if isinstance(value, list) else value

    return kept(json.loads(document))


@pytest.fixture(scope="module", autouse=True)
def _sketched() -> Iterator[None]:
    """Pictures are drawn, for what a card says that it needs, and not written: their words change how they are laid
    out."""

    def drawing(figure: Picture[Any], frame: pd.DataFrame, name: str) -> tuple[str, list[Any], str]:
        return "<svg></svg>", [], str(figure.draw(frame).get_label() or "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "drawing", drawing)
        yield


@pytest.fixture(scope="module")
def before() -> tuple[Summary, str, str]:
    """The summary, its document and its page, in the words that they have."""
    plain = summary("killed by signal 9")
    return plain, document(plain), render(runs(), command="x", failed=plain.failed)


def test_colours_places_and_verdicts_stay(before: tuple[Summary, str, str], reworded: None) -> None:
    plain, told, _ = before
    after = summary(f"killed by signal 9{SUFFIX}")
    assert after.answer != plain.answer and after.headline != plain.headline, "the words are other ones"
    pairs = [
        (mine, theirs)
        for ours, others in zip(plain.matrix.rows, after.matrix.rows, strict=True)
        for mine, theirs in zip(ours.cells, others.cells, strict=True)
    ]
    assert [row.method for row in plain.matrix.rows] == [row.method for row in after.matrix.rows]
    assert {legend.tint(mine) for mine, _ in pairs} >= {"stuck", "trains", "diverged", "risk", "failed", "missing"}
    for mine, theirs in pairs:
        assert (mine.run_ids, mine.verdict, mine.outcomes) == (theirs.run_ids, theirs.verdict, theirs.outcomes)
        assert legend.tint(mine) == legend.tint(theirs) and tables._colour(mine) == tables._colour(theirs)
    assert plain.matrix.lit == after.matrix.lit and plain.matrix.lowest == after.matrix.lowest
    found = [[(one.claim.key, one.verdict, len(one.places)) for one in each.claims] for each in (plain, after)]
    assert found[0] == found[1] and {"holds", "fails"} <= {verdict for _, verdict, _ in found[0]}
    keys = [[place.measured.key for one in each.claims for place in one.places] for each in (plain, after)]
    assert keys[0] == keys[1]
    assert values(told) == values(document(after))


def test_the_page_has_the_same_elements(before: tuple[Summary, str, str], reworded: None) -> None:
    page = render(runs(), command="x", failed=[(s, f"{reason}{SUFFIX}") for s, reason in before[0].failed])
    assert page.count(SUFFIX) > 100
    assert Skeleton(page).found == Skeleton(before[2]).found


def test_a_command_ends_with_the_same_code_and_the_same_next_one(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    line = ("sweep", *TINY, "--models", "post-ln,deepnorm", "--warmup", "0,4", "--out", tmp_path)
    stabkit(*line)
    first = stabkit(*line)
    request.getfixturevalue("reworded")
    second = stabkit(*line)
    following = [
        next(text for text in done.stdout.splitlines() if text.startswith("next: ")) for done in (first, second)
    ]
    assert SUFFIX in second.stdout and first.returncode == second.returncode and following[0] == following[1]


def test_a_risk_is_told_by_its_value() -> None:
    early = plausible(spec("post-ln", 18)).outcome
    assert isinstance(early, Outcome) and early.at_risk and early.risks and isinstance(early.risks[0], Risk)
