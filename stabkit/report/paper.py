"""The page of `stabkit paper`: the papers' figures and tables beside what was measured here, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from stabkit import __version__
from stabkit.claims import Finding, findings
from stabkit.figures import FIGURES, SURFACES, style
from stabkit.figures.comparison import plain, reference_step, trained
from stabkit.figures.surfaces import Landscape
from stabkit.paper.items import NOT_HERE, Item
from stabkit.report import how
from stabkit.report.headline import headline
from stabkit.report.html import HERE, Card, card, chain_rows, group_switches, script_hash, switches, template

if TYPE_CHECKING:
    from stabkit.paper.command import Part

TITLE = "The papers’ figures and tables, rerun"
NAMED = {figure.NAME: figure for figure in (*FIGURES, *SURFACES)}


@np.errstate(all="ignore")  # runs diverge as they like: what comes of it is NaN or infinity and is drawn as such
def render(parts: Sequence[Part], beyond: Sequence[tuple[Item, str]], command: str) -> str:
    """The page; `beyond`: what the budget left out, and what it would have taken."""
    every = list({run.run_id: run for part in parts for run in part.runs}.values())
    script = (HERE / "page.js").read_text(encoding="utf-8")
    sections = [_section(part) for part in parts]
    environments = how.environments(every)
    return template("paper.html.j2").render(
        title=TITLE,
        lead=_lead(sections),
        command=plain(command),
        version=__version__,
        css=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        hashes=[script_hash(script)],
        sections=sections,
        beyond=[(item, need) for item, need in beyond],
        not_here=NOT_HERE,
        switches=switches(every),
        group_switches=group_switches(every),
        swatch=style.colour,
        environments=environments,
        mixed=how.mixed(environments),
        wall=how.duration(sum(map(how.wall_seconds, every))),
        duration=how.duration,
        every_row=chain_rows(every, reference_step(every)),
        count=len(every),
    )


def _section(part: Part) -> dict[str, Any]:
    """An item: the paper's picture, ours, what is scaled down, its claims, its figures."""
    found = {one.claim.key: one for one in findings(part.runs, part.surfaces)}
    claims = [found[key] for key in part.item.claims if key in found]
    tested = [one for one in claims if one.verdict != "untested"]
    return {
        "item": part.item,
        "ours": headline(part.runs, part.failed),
        "commands": [plain(command) for command in part.commands],
        "claims": tested,
        "untested": [one for one in claims if one.verdict == "untested"],
        "verdict": verdict(claims),
        "cards": _cards(part),
        "instead": plain(part.instead),
        "runs": len(part.runs),
        "failed": [(plain(spec.run_id), plain(reason)) for spec, reason in part.failed],
        "wall": how.duration(sum(map(how.wall_seconds, part.runs))),
        "sequences": sorted({run.spec.seed for run in part.runs}),
    }


def verdict(claims: Sequence[Finding]) -> str:
    """How an item's claims came out; it reproduces only where every one of them was tested and holds."""
    held, failed = (sum(one.verdict == word for one in claims) for word in ("holds", "fails"))
    if not held + failed:
        return "drawn"
    if not held:
        return "does not reproduce"
    return "reproduces" if held == len(claims) else "in part" if failed else "holds as far as tested"


def _cards(part: Part) -> list[Card]:
    drawn = []
    for name in part.item.figures:
        figure = NAMED[name]
        source: Any = Landscape(part.runs, part.surfaces) if figure in SURFACES else trained(part.runs)
        frame = figure.select(source)
        if not (getattr(figure, "OPTIONAL", False) and frame.empty):
            drawn.append(card(figure, frame, source, f"{part.item.key}-"))
    return drawn


def _lead(sections: Sequence[dict[str, Any]]) -> str:
    """The page's first sentence: how many items there are and how their claims came out."""
    held = sum(one.verdict == "holds" for section in sections for one in section["claims"])
    tested = sum(len(section["claims"]) for section in sections)
    count = len(sections)
    return (
        f"{count} figure{'s' if count != 1 else ''} and tables of two papers, rerun on a small machine’s models: "
        f"of {tested} claims tested, {held} hold{'s' if held == 1 else ''} and {tested - held} "
        f"do{'es' if tested - held == 1 else ''} not."
    )
