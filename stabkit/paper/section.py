"""An item as its page tells it: the paper's picture, ours, what is scaled down, its claims by weight, its figures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stabkit.claims import Finding
from stabkit.claims.base import ORDER, WEIGHTS
from stabkit.figures.catalogue import FIGURES, SURFACES
from stabkit.figures.picture import Picture
from stabkit.paper.part import Part
from stabkit.report import order, provenance
from stabkit.report.cards import Card, card
from stabkit.report.html import counted
from stabkit.report.order import source
from stabkit.results.landscape import Landscape
from stabkit.results.matrix import matrix
from stabkit.wording.answer import answer, instead
from stabkit.words import plain

BRIEF = 150
"""Signs of what stands beside a sentence; the folded table has all."""
DECIDED = ("holds", "mixed", "fails")
LEADING = 2
"""Figures whose titles say what came out, before the claims."""
COLOURS = {"reproduces": "holds", "holds where decided": "holds", "does not reproduce": "fails", "in part": "mixed"}
"""The colour of a claim in which an item's verdict is written; others in that of the untested."""
MOST_SENTENCES = 4
"""Of an answer; the claims below it are all of them."""
EVERY: tuple[Picture[Any], ...] = (*FIGURES, *SURFACES)
NAMED: Mapping[str, Picture[Any]] = {figure.name: figure for figure in EVERY}


@lru_cache(maxsize=64)  # the pages are rewritten after every item
@np.errstate(all="ignore")  # runs diverge as they like: what comes of it is NaN or infinity and is drawn as such
def of_part(part: Part) -> dict[str, Any]:
    """All that a template asks of an item."""
    claims, cards = part.judged(), _cards(part)
    word, told = verdict(claims), [one for one in cards if not one.needs]
    return {
        "part": part,
        "item": part.item,
        "said": [card.title for card in told[:LEADING]] or [answer(matrix(part.runs)) or instead(part.runs)],
        "commands": [plain(command) for command in part.commands],
        "instead": plain(part.instead),
        "notes": [plain(note) for note in dict.fromkeys(part.notes)],
        "stopped": plain(part.stopped),
        "claims": sorted((one for one in claims if one.verdict != "untested"), key=_rank),
        "untested": [one for one in claims if one.verdict == "untested"],
        "beside": [one for key in part.item.beside if (one := part.findings[key]).verdict != "untested"],
        "verdict": word,
        "weighed": by_weight(claims),
        "colour": COLOURS.get(word, "untested"),
        "leads": told[: order.FIRST],
        "more": told[order.FIRST :],
        "nothing": [one for one in cards if one.needs],
        "runs": len(part.runs),
        "texts": _texts(part),
        "failed": [(plain(spec.run_id), plain(reason)) for spec, reason in part.failed],
        "wall": provenance.duration(sum(map(provenance.wall_seconds, part.runs))),
        "sequences": sorted({run.spec.seed for run in part.runs}),
    }


def verdict(claims: Sequence[Finding]) -> str:
    """How an item's claims came out: it reproduces only where every one of them was decided and holds; where it has
    central ones and none of them is decided, the others do not decide it."""
    words = [one.verdict for one in claims]
    central = [one.verdict for one in claims if one.claim.weight == "central"]
    decided = [word for word in words if word in DECIDED]
    if not decided or (central and not set(central) & set(DECIDED)):
        words = central or words
        return next((word for word in ("undecided", "out of reach") if word in words), "drawn")
    if set(decided) == {"holds"}:
        return "reproduces" if len(decided) == len(words) else "holds where decided"
    return "does not reproduce" if set(decided) == {"fails"} else "in part"


def by_weight(claims: Sequence[Finding]) -> str:
    """`central: 2 hold, 1 undecided · side: 1 fails`: how many of each weight came out how, what holds first."""
    counts = {weight: counted(claims, (weight,)) for weight in WEIGHTS}
    return " · ".join(f"{weight}: {words}" for weight, words in counts.items() if words)


def brief(finding: Finding) -> str:
    """What a sentence's word rests on, so far as one line holds it: the number, and what was asked of one that fails,
    or why it is not decided."""
    claim, text = finding.claim, finding.measured if finding.verdict in DECIDED else finding.reason
    if finding.verdict == "fails" and not claim.parts and claim.scale != "share":
        text += f"; asked: {claim.threshold.words} {claim.tell(claim.threshold.value)}"
    return textwrap.shorten(text, BRIEF, placeholder=" …")


def sentences(claims: Sequence[Finding]) -> list[str]:
    """`Fails: “DeepNet's model update is nearly constant in depth”, here N^0.54 (asked: at most N^0.25).`: what the
    paper says beside the number that was measured, or why that does not decide, of the central claims; of the side
    ones where they alone are decided; where none is, why."""
    tested = sorted((one for one in claims if one.verdict != "untested"), key=_rank)
    decided = [one for one in tested if one.verdict in DECIDED]
    central = [one for one in tested if one.claim.weight == "central" and one.verdict in (*DECIDED, "undecided")]
    listed = (central if any(one in decided for one in central) else decided) or tested[:1]
    more = len(listed) - MOST_SENTENCES
    return [_sentence(one) for one in listed[:MOST_SENTENCES]] + [f"{more} more below."] * (more > 0)


def _sentence(finding: Finding) -> str:
    claim, word = finding.claim, finding.verdict.capitalize()
    quoted = f"{word}: “{claim.sentence.rstrip('.')}”"
    if finding.verdict not in DECIDED:
        return f"{quoted}: {finding.reason}."
    number = textwrap.shorten(finding.measured, LONGEST, placeholder=" …")
    asked = finding.verdict == "fails" and not claim.parts and claim.scale != "share"
    limit = f" (asked: {claim.threshold.words} {claim.tell(claim.threshold.value)})" if asked else ""
    return f"{quoted}, here {number}{limit}."


LONGEST = 160
"""Characters of what was measured; the table has all."""


def _rank(finding: Finding) -> tuple[int, int]:
    """Central claims first, and of those what holds."""
    return WEIGHTS.index(finding.claim.weight), ORDER.index(finding.verdict)


def _texts(part: Part) -> str:
    """What was learnt."""
    tasks = {run.spec.task for run in part.runs}
    names = [f"{plain(task.name)}, vocabulary {task.vocab}" for task in sorted(tasks, key=lambda task: task.name)]
    return "; ".join(dict.fromkeys(names))


def _cards(part: Part) -> list[Card]:
    drawn = []
    for name in part.item.figures:
        figure = NAMED[name]
        made_of: Any = Landscape(part.runs, part.surfaces) if figure in SURFACES else source(figure, part.runs)
        frame = figure.select(made_of)
        if not (figure.optional and frame.empty):
            drawn.append(card(figure, frame, made_of, f"{part.item.key}-"))
    return drawn
