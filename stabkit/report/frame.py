"""What every page has, whatever it shows: the shell of one self-contained HTML file, its style and its script. Knows no
figure and no claim. And how it is written.

Texts reach a page only through jinja2's escaping. No network, one script of our own, whose hash the page's policy has.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from stabkit.storage import locks
from stabkit.storage.folder import write_file
from stabkit.version import YEAR, __version__, commit
from stabkit.words import plain, short

ASSETS = Path(__file__).parent / "assets"


def shell(title: str, command: str, said: Sequence[str] = (), condition: str = "") -> dict[str, Any]:
    """What every page has, whatever it shows: the question, the answer and the condition that it holds under, command,
    style and script, and the script's hash. `said`: the headline, then the lines below it; what repeats it is left
    out."""
    headline, *answers = [text for text in said if text] or [""]
    script = _bare((ASSETS / "page.js").read_text(encoding="utf-8"))
    return {
        "title": plain(title),
        "headline": headline,
        "answers": list(filter(None, (_beyond(headline, text) for text in dict.fromkeys(answers)))),
        "said": plain(headline.replace("`", "")),
        "condition": plain(condition),
        "command": plain(command),
        "elsewhere": plain(elsewhere(command)),
        "version": __version__,
        "cite": _bibtex(plain(title), plain(condition), plain(command)),
        "css": Markup((ASSETS / "page.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "hashes": [script_hash(script)],
    }


def _bibtex(title: str, condition: str, command: str) -> str:
    """The entry that cites a page: version, commit, the condition with data and seeds, and the command."""
    by = ", ".join(filter(None, (f"stabkit {__version__}", commit() and f"commit {commit()}")))
    note = "; ".join(filter(None, (by, condition, command))).translate(BRACES)
    key = re.sub(r"\W+", "-", title.lower()).strip("-")[:40].strip("-")
    return (
        f"@misc{{stabkit-{key},\n  title = {{{title.translate(BRACES)}}},\n  author = {{The {{stabkit}} founders}},\n"
        f"  year = {{{YEAR}}},\n  note = {{{note}}},\n}}"
    )


BRACES = {ord("{"): "(", ord("}"): ")"}
"""What would end a field of BibTeX."""


def _beyond(headline: str, text: str) -> str:
    """An answer without the headline that it begins with."""
    if not headline or not text.startswith(headline.removesuffix(".")):
        return text
    rest = text.removeprefix(headline.removesuffix(".")).lstrip(",;. ")
    return (rest[:1].upper() if rest[:1].isascii() else rest[:1]) + rest[1:]  # no capital alpha


def elsewhere(command: str) -> str:
    """The command as somebody can run it who lacks its text; "" where it has none."""
    if "--data" not in command:
        return ""
    words, parts = shlex.split(command), list[str]()
    while words:
        word = words.pop(0)
        if word.partition("=")[0] not in ("--data", "--source", "--target", "--out"):
            parts.append(word)
        elif "=" not in word and words:
            words.pop(0)
    return shlex.join(parts)


def page(name: str, around: Mapping[str, Any], **contents: Any) -> str:
    """A page from its template, with the shell around its contents; without methods to switch."""
    return template(ASSETS / name).render(switches=[], group_switches=[], lit=(), **around, **contents)


@cache
def template(path: Path) -> Template:
    """A page, with the parts of this folder; whatever is put into it is escaped, and nothing may be missing."""
    environment = Environment(
        loader=FileSystemLoader([path.parent, ASSETS]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = short
    environment.filters["code"] = _code
    environment.filters["slim"] = slim
    return environment.get_template(path.name)


def _shown(value: Any) -> Any:
    """A text without characters that steer a terminal or break a document, wherever it came from."""
    if not isinstance(value, str):
        return value
    return type(value)(CONTROL.sub("�", str(value))) if CONTROL.search(value) else value


CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def _code(text: str) -> Markup:
    """A sentence whose commands stand between backticks, as in a terminal; a number is not broken at its hyphen."""
    whole = WHOLE.sub(r'<span class="whole">\g<0></span>', str(escape(text)))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", whole))


WHOLE = re.compile(r"[\d.]+e-\d+|[αβ] × [\d.]+")
"""What stays on one line."""


def slim(page: str) -> Markup:
    """A page whose drawings name their styles: hundreds of lines share a dozen of them, each of which then stands once,
    in `<style id="drawn">`, where the script finds it for a download. What else repeats is short: matplotlib's names of
    marks and clips, which are hashes, and the blank before the end of a tag."""
    names: dict[str, str] = {}
    marks: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        return f'class="{names.setdefault(found[1], f"q{len(names)}")}"'

    def marked(found: re.Match[str]) -> str:
        return marks.setdefault(found[0], f"d{len(marks)}")

    def slimmer(drawing: re.Match[str]) -> str:
        return _MARK.sub(marked, _STYLE.sub(named, drawing[0])).replace(" />", "/>")

    page = _DRAWING.sub(slimmer, page)
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return Markup(page.replace("</head>", f'<style id="drawn">{rules}</style>\n</head>', 1))


_DRAWING, _STYLE = re.compile("<svg.*?</svg>", re.DOTALL), re.compile('(?<= )style="([^"]*)"')
_MARK = re.compile(r"(?<=[\"#])[mp][0-9a-f]{10}(?=[\")])")


def _bare(script: str) -> str:
    """A script without its comments and margins, which no page needs fifty times."""
    return re.sub(r"(?m)^[ \t]*(?://.*\n)?", "", script)


def script_hash(script: str) -> str:
    """What the page's policy calls a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def once(out: Path, path: Path, found: Sequence[int], render: Callable[[], str]) -> Path:
    """Write the page of a command in the store `out`; returns where. Of commands that end together, with as much to
    show (`found`: results and losses), one writes, the others find it written."""
    before = _signature(path)
    with locks.awaited(out / "runs", "-".join(["page", path.stem, *map(str, found)])):
        if _signature(path) == before:
            write_file(path, render().encode())
    return path


def _signature(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_ino
