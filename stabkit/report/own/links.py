"""What a probe of a user's model says, for terminal, page, Python and JSON alike: the sentence, the links of every
rate, what was found on the way. Knows no figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stabkit.figures.shared.words import listed, plain, short
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.judged import Judged
from stabkit.results.own.link import LinkVerdict
from stabkit.results.own.series import uneven
from stabkit.results.own.verdict import Verdict
from stabkit.results.words import law, scientific, updates
from stabkit.running.plan import Done
from stabkit.running.probes import ProbeRequest, ProbeSpec

NAMES = {"stream": "Stream", "update": "Update", "gradient": "Gradient", "finite": "Finite"}
UNITS = {
    "stream": "rms of the last layer's output ÷ first's input",
    "update": "‖ΔF‖ ÷ ‖F‖",
    "gradient": "lowest ÷ top layer's",
    "finite": "",
}
QUESTIONS = {
    "stream": "Does the residual stream grow with depth, before any update?",
    "update": "Does an update move a deeper model's output farther?",
    "gradient": "Does the gradient reach the lowest layer?",
    "finite": "Is every number finite?",
}


def answer(judged: Judged) -> str:
    """One sentence: whether the chain holds, or which link breaks and by what numbers."""
    worst, first = judged.worst, judged.cells[0].facts
    depths = sorted({cell.facts.depth for cell in judged.cells if cell.facts.depth is not None})
    span = f" from {depths[0]} to {depths[-1]} layers" if len(depths) > 1 else ""
    span += f" at {scientific(worst.lr)}" if len(judged.verdicts) > 1 else ""
    who = first.factory.rpartition(":")[2]
    words = {
        "pass": f"{who} holds{span}: no link of the chain breaks",
        "warn": f"{who} holds{span}, with a warning",
        "cannot tell": f"Whether {who} holds{span} cannot be told from these runs",
        "fail": f"{who} does not hold{span}",
    }
    links = [link for link in worst.links.values() if link.verdict == worst.word]
    why = "" if worst.word == "pass" else ": " + "; ".join(link.why for link in links[:2])
    others = [_elsewhere(verdict) for verdict in judged.verdicts if verdict is not worst]
    deepest = max((cell.facts for cell in judged.cells), key=lambda facts: facts.depth or 0)
    high = deepest.guess.high(deepest.start) if deepest.guess is not None else ""
    sentences = [f"{words[worst.word]}{why}", "; ".join(others).capitalize(), high[:1].upper() + high[1:]]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _elsewhere(verdict: Verdict) -> str:
    """`at 1e-3 update warns, gradient fails`."""
    verbs = {"warn": "warns", "fail": "fails", "cannot tell": "cannot be told"}
    words = [f"{name} {verbs[link.verdict]}" for name, link in verdict.links.items() if link.verdict != "pass"]
    return f"at {scientific(verdict.lr)} {listed(*words) or 'every link holds'}"


def rates(judged: Judged) -> list[dict[str, Any]]:
    """A table a rate: every link with its verdict, its exponent and its number at each depth."""
    return [_rate(verdict, judged) for verdict in judged.verdicts]


def _rate(verdict: Verdict, judged: Judged) -> dict[str, Any]:
    alike = [cell.facts for cell in judged.cells if cell.facts.lr == verdict.lr]
    depths = sorted({facts.depth for facts in alike}, key=lambda depth: depth or 0)
    facts = alike[0]
    return {
        "name": f"{facts.optimizer}, rate {scientific(facts.rate) if facts.rate > 0 else '–'}",
        "word": verdict.word,
        "depths": [str(depth or "–") for depth in depths],
        "links": [
            {
                "name": NAMES[name],
                "unit": _unit(name, link),
                "question": QUESTIONS[name],
                "verdict": link.verdict,
                "why": link.why,
                "exponent": _with_depth(link),
                "values": [held.get(depth, "–") for depth in depths],
            }
            for name, link in verdict.links.items()
            for held in ({point.depth: short(point.value) for point in link.evidence},)
        ],
    }


def _unit(name: str, link: LinkVerdict) -> str:
    when = f", after {updates(link.step)}" if link.step else ", before any update" if name == "gradient" else ""
    return f"{UNITS[name]}{when}" if link.evidence else ""


def _with_depth(link: LinkVerdict) -> str:
    if link.saturated:
        return "saturated"
    return law(link.fit) if link.fit else "–"


def anatomy(cells: Sequence[ModelCell]) -> list[dict[str, str]]:
    """What was found at each depth: stacks, sub-layers by kind."""
    rows: dict[int | None, dict[str, str]] = {}
    for cell in cells:
        kinds: dict[str, int] = {}
        for sublayer in cell.facts.sublayers:
            kinds[sublayer.kind] = kinds.get(sublayer.kind, 0) + 1
        rows.setdefault(
            cell.facts.depth,
            {
                "depth": str(cell.facts.depth or "–"),
                "model": plain(cell.facts.model),
                "parameters": f"{cell.facts.parameters:,}",
                "stacks": ", ".join(cell.stacks),
                "found": plain(cell.facts.how),
                "kinds": listed(*(f"{count} {kind}" for kind, count in kinds.items())),
                "span": plain(f"{cell.facts.sublayers[0].name} … {cell.facts.sublayers[-1].name}"),
            },
        )
    return list(rows.values())


def notes(cells: Sequence[ModelCell]) -> list[str]:
    """What was found on the way, each once."""
    notes: dict[str, str] = {}
    for cell in reversed(cells):  # of notes that differ in their numbers alone that of the deepest
        for note in cell.facts.notes:
            notes.setdefault(re.sub(r"\d+", "", note), plain(note))
    batches = {(cell.facts.seed, cell.facts.batch) for cell in cells}
    if len(batches) > len({seed for seed, _ in batches}):
        notes["batch"] = (
            "the batch differs between depths of one seed: draw it before the model is built, "
            "or from a stream of its own"
        )
    return [*notes.values(), *filter(None, [uneven(cells)])]


def body(judged: Judged, done: Done[ProbeSpec, ModelCell], asked: ProbeRequest, path: Path) -> dict[str, Any]:
    """The `--json` document, without its schema."""

    def place(cell: Any) -> dict[str, Any]:
        return {"depth": cell.depth, "lr": cell.lr or None, "seed": cell.seed}

    worst = judged.worst
    return {
        "report": str(path),
        "answer": answer(judged),
        "factory": asked.factory,
        "depths": sorted({c.facts.depth for c in judged.cells if c.facts.depth is not None}),
        "seeds": sorted({c.facts.seed for c in judged.cells}),
        "steps": asked.steps,
        "links": {name: link.to_json() for name, link in worst.links.items()},
        "verdict": worst.word,
        "rates": [verdict.to_json() for verdict in judged.verdicts],
        "found": anatomy(judged.cells),
        "notes": notes(judged.cells),
        "cells": [
            {**place(c.facts), "broke": asdict(c.facts.broke) if c.facts.broke else None, "digest": c.digest}
            for c in judged.cells
        ],
        "failed": [{**place(spec), "reason": lost.reason, "log": lost.log} for spec, lost in done.lost],
    }
