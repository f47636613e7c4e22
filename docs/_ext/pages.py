"""Links out of the site's own pages: a committed report is copied into the site, a file of the repository is named.

`[text](../reports/x.html)` leads to the copy; `[text](../stabkit/x.py)` becomes its text and its path. A file that is
not there ends the build.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"
LINK = re.compile(
    r"(?<!!)\[([^\]]+)\]\((?:\.\./)+(reports|stabkit|benchmarks|tests|README\.md|CITATION\.cff)(/[^)#\s]*)?\)"
)

LINKED = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def there(app: Any) -> None:
    """Every page of `reports/` into what Sphinx copies as it is."""
    extra = Path(app.confdir) / "_build" / "extra" / "reports"
    shutil.rmtree(extra, ignore_errors=True)
    shutil.copytree(REPORTS, extra)
    shutil.copy(ROOT / "SKILL.md", extra.parent)
    (extra.parent / "llms.txt").write_text(llms(Path(app.confdir)), encoding="utf-8")


def llms(docs: Path) -> str:
    """The index that language models read (llmstxt.org): what the project is, every page with its first sentence."""
    lines = [
        "# stabkit",
        "",
        "> Will a deep Transformer train at this depth, and if not, what breaks and what fixes it?",
        "",
    ]
    lines += ["Read [SKILL.md](SKILL.md) first: what to run, how to read it, what not to conclude.", "", "## Pages", ""]
    for page in (page for room in ("*.md", "tutorials/*.md", "evidence/*.md") for page in sorted(docs.glob(room))):
        text = page.read_text(encoding="utf-8")
        prose = [part for part in text.split("\n\n") if part[:1].isalnum() or part[:2] in ("`s", "**")]
        first = re.split(r"(?<=[.!?])\s", " ".join(re.sub(LINKED, r"\1", prose[0]).split()))[0] if prose else ""
        where = page.relative_to(docs).with_suffix(".html").as_posix()
        lines.append(f"- [{text.splitlines()[0].removeprefix('# ')}]({where}): {first}")
    return "\n".join(lines) + "\n"


def lead(app: Any, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")

    def told(found: re.Match[str]) -> str:
        text, room, rest = found[1], found[2], found[3] or ""
        if not (ROOT / f"{room}{rest}").exists():
            raise FileNotFoundError(f"docs/{name}.md leads to {room}{rest}, which is not there")
        if room == "reports":
            return f'<a href="{up}reports{rest}">{text}</a>'
        return f"{text} (`{room}{rest}`)"

    source[0] = LINK.sub(told, source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", there)
    app.connect("source-read", lead)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
