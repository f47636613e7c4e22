"""Every section, figure, table and theorem that a claim cites stands in the text of its paper."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from stabkit.claims import CLAIMS, OF_STEPS, OF_SURFACES
from stabkit.claims.base import Claim
from tests.conftest import need

PAPERS = Path(os.environ.get("STABKIT_PAPERS", Path(__file__).parents[2] / "shared" / "papers"))
TITLES = {
    "DeepNet": "DeepNet: Scaling Transformers to 1,000 Layers",
    "Very Deep Transformers": "Very Deep Transformers for Neural",
}
EVERY = (*CLAIMS, *OF_STEPS, *OF_SURFACES)
"""Today's methods have papers of their own, which do not lie here."""


@cache
def text(paper: str) -> str:
    """The journal version of DeepNet (the one with numbered section headings), or Very Deep Transformers."""
    files = sorted(PAPERS.glob("*.txt"))
    need("papers", bool(files), f"{PAPERS} (set STABKIT_PAPERS)")
    found = [file.read_text(encoding="utf-8") for file in files]
    held = [one for one in found if TITLES[paper] in one[:400] and re.search(r"^#* *2 [A-Z]", one, re.M)]
    assert held, paper
    return held[0]


def headings(cited: str, paper: str) -> list[str]:
    """Patterns of what must stand in the text."""
    kind, number = cited.rsplit(" ", 1) if " " in cited else ("§", cited[1:])
    if kind == "§":
        return [rf"^#* *{re.escape(number)} [A-Z]"]
    if kind == "footnote":
        return [rf"sup>{number}</sup>|^{number}\. "]
    name = {"Fig.": r"Fig(\.|ure)", "Table": r"T(ABLE|able)", "Theorem": "Theorem", "Lemma": "Lemma"}[kind]
    whole, letter = re.match(r"(\d+)(?:\((\w)\))?", number).groups()  # type: ignore[union-attr]
    found = [rf"^(\*\*)?{name} {whole}\b"]
    return found + ([rf"\({letter}\)"] if letter else [])


def cited(source: str) -> list[tuple[str, str]]:
    """(paper, what) of `DeepNet §7, Table 6 and §8, Table 7`."""
    paper = next(name for name in TITLES if name in source)
    rest = source.split(paper, 1)[1]
    found = re.findall(r"§[\d.]+\d|§\d+|Fig\. \d+(?:\(\w\))?|Table \d+|Theorem \d+|footnote \d+", rest)
    for kind, first, second in re.findall(r"(Fig\.|Theorem)s? (\d+(?:\(\w\))?) and (\d+(?:\(\w\))?)", rest):
        found += [f"{kind} {first}", f"{kind} {second}"]
    found += [f"§{second}" for second in re.findall(r"§[\d.]+ (?:and|to) §([\d.]+\d|\d+)", rest)]
    return [(paper, one) for one in dict.fromkeys(found)]


@pytest.mark.parametrize(
    "claim", [claim for claim in EVERY if not claim.source.startswith("stabkit")], ids=lambda claim: claim.key
)
def test_what_a_claim_cites_stands_in_its_paper(claim: Claim) -> None:
    places = cited(claim.source)
    assert places, claim.source
    for paper, what in places:
        for pattern in headings(what, paper):
            assert re.search(pattern, text(paper), re.M), (claim.source, what, pattern)


def test_no_claim_cites_what_is_not_there() -> None:
    assert not re.search(headings("§3.9", "DeepNet")[0], text("DeepNet"), re.M)
    assert not re.search(headings("Fig. 12", "DeepNet")[0], text("DeepNet"), re.M)
