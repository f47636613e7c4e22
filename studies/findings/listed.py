"""The list of sentences that people will quote, docs/evidence/findings.toml, and the pages that are made of it.

results.md beside it is written from it; of README the bullets under "What was found" are its `readme`, in its order;
the headline of every committed page stands in it. A test finds no sentence that is not on it.

    python -m studies.findings.listed [--headlines]
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "evidence" / "findings.toml"
RESULTS = ROOT / "docs" / "evidence" / "results.md"
HEADLINE = re.compile(r'<p class="headline">(.*?)</p>', re.S)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedFinding:
    """One sentence, or the few that make one statement."""

    key: str
    section: str
    sentence: str
    short: str
    """In a table."""
    condition: str
    """Rate, warm-up, updates, batch, shape, text."""
    seeds: str
    command: str
    file: str
    """That it is computed from, in the repository."""
    column: str
    """Of that file, or the figure of that page."""
    tried: str = ""
    """Its row in docs/evidence/findings.md, which begins with `short`."""
    untried: str = ""
    """Why it has none."""
    readme: str = ""
    """As README has it; "" where it does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedSection:
    """A part of docs/evidence/results.md."""

    key: str
    title: str
    before: str = ""
    """Markdown above its findings: a picture."""
    after: str = ""
    """Markdown below."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The whole list."""

    sections: tuple[ListedSection, ...]
    findings: tuple[ListedFinding, ...]
    headlines: dict[str, str]
    """{committed page: its first sentence}."""
    beside: tuple[str, ...]
    """README's sentences with a method and an outcome in them, beside its bullets."""


def read_list(path: Path = FILE) -> Listed:
    """The list as it stands."""
    body = tomllib.loads(path.read_text(encoding="utf-8"))
    return Listed(
        tuple(ListedSection(**one) for one in body["section"]),
        tuple(ListedFinding(**one) for one in body["finding"]),
        body["headline"],
        tuple(body["beside"]),
    )


def results(of: Listed) -> str:
    """docs/evidence/results.md."""
    parts = [
        "# What was found?",
        f"{len(of.findings)} statements on 64-128-2 models, each with its condition, seeds and file. What became of "
        "them at other rates, seeds, tasks and lengths: [findings.md](findings.md). Of other sizes and longer "
        "trainings they say nothing. [findings.toml](findings.toml) has the command of each; `python -m "
        "studies.findings.listed` writes this page of it.",
    ]
    for section in of.sections:
        parts += [f"## {section.title}", *filter(None, [section.before])]
        parts += [paragraph(one) for one in of.findings if one.section == section.key]
        parts += filter(None, [section.after])
    return "\n\n".join(part.strip() for part in parts) + "\n"


def paragraph(one: ListedFinding) -> str:
    """`sentence *Condition; seeds …* ([page](…))`."""
    seeds = f"; {one.seeds}" if one.seeds else ""
    where = f"[{Path(one.file).name}]({_from_results(one.file)})"
    return f"{one.sentence}  \n*{one.condition[0].upper()}{one.condition[1:]}{seeds}.* {where}"


def headline(page: Path) -> str:
    """The first sentence of a committed page, plain."""
    found = HEADLINE.search(page.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", found[1]))).strip() if found else ""


def _from_results(file: str) -> str:
    return Path(os.path.relpath(ROOT / file, RESULTS.parent)).as_posix()


def with_headlines(text: str) -> str:
    """The list's text with the headlines of the pages that are committed now."""
    pages = sorted((ROOT / "reports").rglob("*.html"))
    rows = [f"{json.dumps(_name(page))} = {json.dumps(headline(page), ensure_ascii=False)}" for page in pages]
    return text[: text.index("[headline]")] + "\n".join(["[headline]", *rows]) + "\n"


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def main(arguments: Sequence[str]) -> int:
    """Write docs/evidence/results.md; with `--headlines` the pages' into the list first."""
    if "--headlines" in arguments:
        FILE.write_text(with_headlines(FILE.read_text(encoding="utf-8")), encoding="utf-8")
    RESULTS.write_text(results(read_list()), encoding="utf-8")
    print(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
