"""How much there is to read: words of README and of every page of docs/, and how many of their sentences are long.

`python docs/_ext/words.py [PAGE…]` prints a line a page, and each sentence of more than 25 words of the pages that are
named. A test holds the sums. Words are what `wc -w` counts, tables and code with them; sentences are those of prose and
lists, without code, tables, headings and pictures.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONG = 25
"""Words of the longest sentence that is read once."""
NOT_PROSE = re.compile(r"^```.*?^```|^\$\$.*?^\$\$|^ *\|.*?$|^#.*?$|!\[.*?\]\(.*?\)|^:::.*?^:::", re.S | re.M)
SHOWN = re.compile(r'<(?:p|h[1-4])\b(?! class="(?:legend|source|switches|note)")[^>]*>(.*?)</(?:p|h[1-4])>', re.S)
PARAGRAPH = re.compile(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )|\n(?=: )")
END = re.compile(r"(?<=[.!?])[\"”)*_]*\s+(?=[\W_]*[A-Z0-9`])")


def sentences(text: str) -> Iterator[str]:
    """Of Markdown, each on one line and without the targets of its links."""
    prose = re.sub(r"\]\([^)]*\)", "]", NOT_PROSE.sub("", text))
    for paragraph in PARAGRAPH.split(prose):
        yield from filter(None, (" ".join(one.split()) for one in END.split(paragraph)))


def sentences_of_page(text: str) -> Iterator[str]:
    """Of a report: its headings and paragraphs, without legends and source lines."""
    for block in SHOWN.findall(text):
        plain = html.unescape(re.sub(r"<(?:svg|script|style|code|button)\b.*?</[^>]*>|<[^>]+>", " ", block, flags=re.S))
        yield from filter(None, (" ".join(one.split()) for one in END.split(plain)))


def long(of: list[str]) -> list[str]:
    return [one for one in of if len(re.sub(r"`[^`]*`", "code", one).split()) > LONG]


def committed() -> list[Path]:
    """README and the pages of docs/ that are in the repository: those that git ignores are built."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    built = tuple(line.removeprefix("/") for line in lines if line.startswith("/docs/"))
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in pages if not page.relative_to(ROOT).as_posix().startswith(built))]


def main(named: list[str]) -> int:
    total = 0
    for path in map(Path, named) if named else committed():
        text = path.read_text(encoding="utf-8")
        every = list((sentences_of_page if path.suffix == ".html" else sentences)(text))
        total += len(text.split()) if "docs" in path.resolve().parts else 0
        print(f"{len(text.split()):6} words  {len(long(every)):3} of {len(every):3} sentences are long  {path}")
        if named:
            print(*(f"    {one}" for one in long(every)), sep="\n")
    print(f"{total:6} words of docs/")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
