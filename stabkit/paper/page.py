"""The page of `stabkit paper`: the papers' figures and tables beside what was measured here, in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.claims import Finding
from stabkit.claims.base import ORDER
from stabkit.figures import FIGURES, SURFACES
from stabkit.figures.shared.numbers import reference_step
from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.shared.words import plain
from stabkit.paper.item import Item
from stabkit.paper.items import NOT_HERE
from stabkit.paper.part import Part
from stabkit.report import how
from stabkit.report.cards import Card, card, source
from stabkit.report.html import chain_rows, group_switches, shell, switches, template
from stabkit.report.verdict.headline import headline
from stabkit.storage.store import Run

TITLE = "The papers’ figures and tables, rerun"
SAID = 2
"""Figures whose titles say what came out, before the claims."""
COLOURS = {"reproduces": "holds", "holds as far as decided": "holds", "does not reproduce": "fails", "in part": "mixed"}
"""The colour of a claim in which an item's verdict is written; others in that of the untested."""
NAMED = {figure.NAME: figure for figure in (*FIGURES, *SURFACES)}


@np.errstate(all="ignore")  # runs diverge as they like: what comes of it is NaN or infinity and is drawn as such
def render(parts: Sequence[Part], beyond: Sequence[tuple[Item, str]], command: str) -> str:
    """The page; `beyond`: what the budget left out, and what it would have taken."""
    every = list({run.run_id: run for part in parts for run in part.runs}.values())
    sections = [section(part) for part in parts]
    central = _central(sections)
    environments = how.environments(every)
    own = [part.item.title for part in parts if part.item.ours]
    alone = len(parts) == len(own) == 1 and not beyond
    return template(Path(__file__).with_name("paper.html.j2")).render(
        **shell(own[0] if alone else TITLE, command),
        lead=sections[0]["ours"] if alone else _lead(len(sections), central),
        alone=alone,
        central=central,
        sections=sections,
        beyond=beyond,
        not_here=NOT_HERE,
        switches=switches(every),
        group_switches=group_switches(every),
        lit=(),
        environments=environments,
        mixed=how.mixed(environments),
        wall=how.duration(sum(map(how.wall_seconds, every))),
        duration=how.duration,
        every_row=chain_rows(every, reference_step(every)),
        count=len(every),
    )


@lru_cache(maxsize=64)  # the page is written anew after every item
@np.errstate(all="ignore")
def section(part: Part) -> dict[str, Any]:
    """An item: the paper's picture, ours, what is scaled down, its claims, its figures."""
    claims, cards = part.judged(), _cards(part)
    word = verdict(claims)
    return {
        "item": part.item,
        "ours": ". ".join(card.title for card in cards[:SAID]) or headline(part.runs),
        "commands": [plain(command) for command in part.commands],
        "instead": plain(part.instead),
        "notes": [plain(note) for note in part.notes],
        "stopped": plain(part.stopped),
        "claims": [one for one in claims if one.verdict != "untested"],
        "untested": [one for one in claims if one.verdict == "untested"],
        "beside": [one for key in part.item.beside if (one := part.findings[key]).verdict != "untested"],
        "verdict": word,
        "named": named(claims),
        "colour": COLOURS.get(word, "untested"),
        "cards": cards,
        "runs": len(part.runs),
        "texts": _texts(part.runs),
        "failed": [(plain(spec.run_id), plain(reason)) for spec, reason in part.failed],
        "wall": how.duration(sum(map(how.wall_seconds, part.runs))),
        "sequences": sorted({run.spec.seed for run in part.runs}),
    }


def _texts(runs: Sequence[Run]) -> str:
    """What was learnt, and how many sentences were translated."""
    tasks = {run.spec.task for run in runs}
    sentences = {len(one.hypotheses) for run in runs for one in run.translations}
    names = [f"{plain(task.name)}, vocabulary {task.vocab}" for task in sorted(tasks, key=lambda task: task.name)]
    names = list(dict.fromkeys(names))
    return "; ".join([*names, *(f"{count} test sentences translated" for count in sorted(sentences))])


def verdict(claims: Sequence[Finding]) -> str:
    """How an item's claims came out; it reproduces only where every one of them was decided and holds."""
    words = [one.verdict for one in claims]
    decided = [word for word in words if word in ("holds", "mixed", "fails")]
    if not decided:
        return next((word for word in ("undecided", "out of reach") if word in words), "drawn")
    if set(decided) == {"holds"}:
        return "reproduces" if len(decided) == len(words) else "holds as far as decided"
    return "does not reproduce" if set(decided) == {"fails"} else "in part"


def named(claims: Sequence[Finding]) -> str:
    """`holds: stuck, order; fails: last-layer; untested: growth`: each by its key, what holds first."""
    by = {word: [one.claim.key for one in claims if one.verdict == word] for word in ORDER}
    return "; ".join(f"{word}: {', '.join(keys)}" for word, keys in by.items() if keys)


def _cards(part: Part) -> list[Card]:
    drawn = []
    for name in part.item.figures:
        figure = NAMED[name]
        made_of: Any = Landscape(part.runs, part.surfaces) if figure in SURFACES else source(figure, part.runs)
        frame = figure.select(made_of)
        if not (getattr(figure, "OPTIONAL", False) and frame.empty):
            drawn.append(card(figure, frame, made_of, f"{part.item.key}-"))
    return drawn


def _lead(count: int, central: Mapping[str, object]) -> str:
    """The page's first sentence: how many items there are, and whether any central claim was decided."""
    what = "1 item" if count == 1 else f"{count} figures and tables"
    end = "Of the central claims:" if central else "No central claim of theirs was decided."
    return f"{what} of the papers, rerun on a small machine’s models. {end}"


def _central(sections: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[str, str, str]]]:
    """{what became of them: (sentence, the item's key, its name) of every central claim that was decided}, those that
    hold first; one that several items share once, by its first item."""
    found: dict[str, tuple[str, tuple[str, str, str]]] = {}
    for each in sections:
        for one in each["claims"]:
            if one.claim.weight == "central":
                item = each["item"]
                found.setdefault(one.claim.key, (one.verdict, (one.claim.sentence, item.key, item.name)))
    by = {word: [told for verdict, told in found.values() if verdict == word] for word in ("holds", "mixed", "fails")}
    return {word: told for word, told in by.items() if told}
