"""The pages of `stabkit paper`: an index of one screen and a page an item.

An item asked for alone has its page and no index. Links between the pages are file names, so that a folder of them can
be moved and put on any server.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.claims import Finding
from stabkit.claims.base import ORDER
from stabkit.figures.drawing import style
from stabkit.paper.item import Item
from stabkit.paper.items import BY_KEY, NOT_HERE
from stabkit.paper.part import Part
from stabkit.paper.section import brief, of_part, sentences
from stabkit.report import provenance
from stabkit.report.frame import shell, template
from stabkit.report.html import chain_rows, counted, group_switches, switches
from stabkit.results.readings import reference_step
from stabkit.results.run import Run
from stabkit.storage.folder import write_file
from stabkit.words import fitting, several

ASSETS = Path(__file__).parent / "assets"
TITLE = "Which figures and tables of the papers reproduce?"
ASIDE = ("--budget", "--out", "--workers")
"""Options that have no part in an item's result."""
FLAGS = ("--yes", "--quiet", "-q", "--json", "--retry-failed")
"""Options without a value."""
Left = Sequence[tuple[Item, str]]
"""What the budget left out, and what it would have taken."""


def write(parts: Sequence[Part], beyond: Left, path: Path, command: str) -> None:
    """Write the page at `path`; where it is an index (`index.html`), a page an item beside it."""
    sections = [of_part(part) for part in parts]
    if path.name == "index.html":
        for part in parts:
            write_file(path.with_name(f"{part.item.key}.html"), one(part, of_item(command, part.item), True).encode())
        text = index(sections, beyond, command)
    elif len(parts) == 1 and not beyond:
        text = one(parts[0], command, False)
    else:  # the one item that was asked for did not fit the budget
        text = index(sections, beyond, command)
    write_file(path, text.encode())


def answer(part: Part) -> list[str]:
    """What a command for one item ends with: whether it reproduces, and what the paper says beside the numbers."""
    section, item = of_part(part), part.item
    if section["stopped"] and not part.runs:
        return [f"{item.name} {'were' if item.many else 'was'} not run: {section['stopped']}"]
    if item.ours:
        return [fitting(section["said"][0])]
    became = f"{item.name} {comes_out(section['verdict'], [item])}"
    central = counted(section["claims"], ("central",))
    if section["verdict"] == NOT_ALL:
        words = [one.verdict for one in (*section["claims"], *section["untested"])]
        held, open_ = words.count("holds"), [f"{words.count(word)} {word}" for word in ORDER[3:] if word in words]
        became = f"{item.name}: {held} of {len(words)} claims hold{'s' * (held == 1)} here; {', '.join(open_)}"
    elif section["verdict"] in NOT_WHOLLY and central:
        became = fitting(f"{became} (central claims: {central}).", f"{became}.").removesuffix(".")
    return [f"{became}.", *sentences(section["claims"])]


@lru_cache(maxsize=64)
def one(part: Part, command: str, indexed: bool) -> str:
    """The page of an item."""
    section = of_part(part)
    first, *more = section["said"]
    headline = answer(part)[0]
    said = [headline, first, *more]
    if section["stopped"] and not part.runs:
        said = [headline, *more]
    elif not part.item.ours and (whole := fitting(f"{headline} {first}", headline)) != headline:
        said = [whole, *more]
    return template(ASSETS / "item.html.j2").render(
        **shell(
            f"{_place(part.item)}: {part.item.title}",
            command,
            [text if text.endswith("…") else f"{text.rstrip('.')}." for text in said],
            provenance.condition([run.spec for run in part.runs]),
        ),
        section=section,
        brief=brief,
        indexed=indexed,
        **_run(part.runs),
    )


def index(sections: Sequence[Mapping[str, Any]], beyond: Left, command: str) -> str:
    """One screen: every item and how its claims came out."""
    central, side = (
        _tally(sections, "The papers’ central claims", "central"),
        _tally(sections, "The side claims", "side"),
    )
    return template(ASSETS / "index.html.j2").render(
        **shell(
            TITLE,
            command,
            [fitting(central, _short(sections)), f"{_short(sections)} {side}"]
            if central
            else [fitting(_short(sections)), _lead(sections)],
        ),
        sections=sections,
        **_around(sections, beyond, command),
    )


def _tally(sections: Sequence[Mapping[str, Any]], what: str, weight: str) -> str:
    """`The papers’ central claims: 8 hold, 4 fail.`; "" where none of this weight was tested."""
    words = counted([claim for claim, _ in _claims(sections)], (weight,))
    return f"{what}: {words}." if words else ""


def of_item(command: str, item: Item) -> str:
    """`stabkit paper fig4 --data …`: the command of several items as it would be for one of them."""
    parts: list[str] = []
    skip = False
    for word in shlex.split(command):
        name, equals, _ = word.partition("=")
        if (
            skip
            or name in ASIDE
            or (word in ("all", *BY_KEY) and (parts[-1] in FLAGS or not parts[-1].startswith("-")))
        ):
            skip = name in ASIDE and not equals and not skip
            continue
        parts.append(word)
    place = parts.index("paper") + 1 if "paper" in parts else len(parts)
    return shlex.join([*parts[:place], item.key, *parts[place:]])


def _place(item: Item) -> str:
    return f"{item.paper} {item.name}"


SINGULAR = {
    "reproduces": "reproduces",
    "does not reproduce": "does not reproduce",
    "in part": "reproduces in part",
    "holds where decided": "holds where it is decided",
}
PLURAL = {
    "reproduces": "reproduce",
    "does not reproduce": "do not reproduce",
    "in part": "reproduce in part",
    "holds where decided": "hold where they are decided",
}


NOT_ALL, NOT_WHOLLY = "holds where decided", ("in part", "does not reproduce")


def comes_out(verdict: str, items: Sequence[Item]) -> str:
    """`reproduces in part`, `are undecided here`: a verdict as the end of a sentence that begins with these items."""
    many = len(items) > 1 or items[0].many
    return (PLURAL if many else SINGULAR).get(verdict, f"{'are' if many else 'is'} {verdict} here")


def _around(sections: Sequence[Mapping[str, Any]], beyond: Left, command: str) -> dict[str, Any]:
    """What the index has besides the items."""
    findings = _claims(sections)
    central: dict[str, list[tuple[str, str]]] = {word: [] for word in ORDER}
    for claim, key in findings:
        if claim.claim.weight == "central":
            central[claim.verdict].append((claim.claim.sentence, key))
    return {
        "central": {word: own for word, own in central.items() if own},
        "shared": _shared(sections),
        "keys": {item.key: item.name for item in BY_KEY.values()},
        "beyond": [(item, need, of_item(command, item)) for item, need in beyond],
        "not_here": NOT_HERE,
    }


def _shared(sections: Sequence[Mapping[str, Any]]) -> str:
    """`A claim of several items, as “…” of Fig. 2 and Table 1, counts once in the headline.`; "" without."""
    held: dict[str, list[str]] = {}
    for section in sections:
        for finding in section["claims"]:
            if finding.claim.weight == "central":
                held.setdefault(finding.claim.sentence.rstrip("."), []).append(section["item"].name)
    twice = {sentence: names for sentence, names in held.items() if len(names) > 1}
    if not twice:
        return ""
    sentence, names = next(iter(twice.items()))
    return (
        f"A claim of several items, as “{sentence}” of {several(names, len(names) + 1)}, counts once in the headline."
    )


@np.errstate(all="ignore")
def _run(runs: Sequence[Run]) -> dict[str, Any]:
    """How runs were made, and the switches of their methods."""
    environments = provenance.environments(runs)
    return {
        "swatch": style.colour,
        "switches": switches(runs),
        "group_switches": group_switches(runs),
        "lit": (),
        "environments": environments,
        "mixed": provenance.mixed(environments),
        "wall": provenance.duration(sum(map(provenance.wall_seconds, runs))),
        "duration": provenance.duration,
        "every_row": chain_rows(runs, reference_step(runs)),
        "count": len(runs),
    }


def _lead(sections: Sequence[Mapping[str, Any]]) -> str:
    """`DeepNet Fig. 2, 3 and 4 reproduce in part. The papers’ central claims: 4 hold, 1 mixed, 4 fail. …`"""
    findings = [claim for claim, _ in _claims(sections)]
    central, others = counted(findings), counted(findings, ("side", "background"))
    by: dict[str, list[Item]] = {}
    for section in sections:
        if section["verdict"] in ("reproduces", "in part", "does not reproduce"):
            by.setdefault(section["verdict"], []).append(section["item"])
    named = {word: [f"{item.short} {item.name}" for item in items] for word, items in by.items()}
    lead = [f"{several(named[word], len(sections), 'items')} {comes_out(word, items)}" for word, items in by.items()]
    what = "; ".join(lead) or (
        f"None of {len(sections)} items was fully decided" if len(sections) > 1 else "The one item here was not decided"
    )
    kinds = (("The papers’ central claims", central), ("The side claims", others))
    parts = [f"{kind}: {words}" for kind, words in kinds if words]
    return f"{what}. {'. '.join(parts)}." if parts else f"{what}; none of the papers’ claims was tested."


def _short(sections: Sequence[Mapping[str, Any]]) -> str:
    """`Of 18 items 3 reproduce in part, 1 does not reproduce, 8 are undecided, 6 are out of reach.`"""
    words = [section["verdict"] for section in sections]
    told = [word for word in PLURAL if word in words]
    counts = [f"{words.count(word)} {(PLURAL if words.count(word) > 1 else SINGULAR)[word]}" for word in told]
    left = {word: words.count(word) for word in words if word not in PLURAL}
    counts += [f"{count} {'are' if count > 1 else 'is'} {word}" for word, count in left.items()]
    return f"Of {len(words)} items {', '.join(counts)}."


def _claims(sections: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Finding, str]]:
    """The tested claims of all items with the key of their item; one that several share once, by the first of those
    that decide it."""
    findings: dict[str, tuple[Finding, str]] = {}
    for section in sections:
        for claim in section["claims"]:
            before = findings.get(claim.claim.key)
            if before is None or (not _decided(before[0]) and _decided(claim)):
                findings[claim.claim.key] = (claim, section["item"].key)
    yield from findings.values()


def _decided(finding: Finding) -> bool:
    return finding.verdict in ("holds", "mixed", "fails")
