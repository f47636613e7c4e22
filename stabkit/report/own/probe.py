"""The page of `stabkit probe`: does this model stay stable with depth, and if not, which link of the chain breaks?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.figures.picture import Picture
from stabkit.figures.probe_curves import OWN
from stabkit.figures.shared.words import listed, plain, short
from stabkit.report.cards import card
from stabkit.report.frame import ASSETS, shell, template
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.judged import Judged
from stabkit.results.own.link import ORDER, LinkVerdict
from stabkit.results.own.series import uneven
from stabkit.results.own.verdict import Verdict
from stabkit.results.own.words import law, updates
from stabkit.results.tolerance import power
from stabkit.running.plan import Done
from stabkit.running.probes import ProbeRequest, ProbeSpec
from stabkit.storage.folder import write_file

TITLE = "Does your model stay stable with depth?"
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


def write(judged: Judged, done: Done[ProbeSpec, ModelCell], asked: ProbeRequest, command: str) -> Path:
    """Write the page; returns where."""
    name = asked.factory.replace(":", "-").replace(".", "-")[:60]
    words = (asked.depths, asked.seeds, asked.lrs, asked.steps, asked.blocks)
    key = hashlib.sha256(repr(words).encode()).hexdigest()[:4]
    path = asked.out / "reports" / f"{'-'.join(['probe', name, *_ends(asked.depths), key])}.html"
    write_file(path, render(judged, done, command).encode())
    return path


def _ends(depths: Sequence[int | None]) -> list[str]:
    """`6L`, `48L`: the first and the last, of a factory that takes a depth."""
    return [f"{depth}L" for depth in dict.fromkeys((*depths[:1], *depths[-1:])) if depth is not None]


@np.errstate(all="ignore")
def render(judged: Judged, done: Done[ProbeSpec, ModelCell], command: str) -> str:
    """The page as one HTML file."""
    worst = judged.worst
    return template(ASSETS / "probe.html.j2").render(
        **shell(TITLE, command, answer(judged)),
        word=worst.word,
        rates=rates(judged),
        several=len(judged.verdicts) > 1,
        names=NAMES,
        questions=QUESTIONS,
        cards=[card(figure, figure.select(judged), judged) for figure in _worst_first(judged)],
        anatomy=_anatomy(judged.cells),
        notes=notes(judged.cells),
        failed=[(_where(s.depth, s.lr, s.seed), plain(lost.reason), plain(lost.log)) for s, lost in done.lost],
        cells=[_cell(cell) for cell in judged.cells],
        switches=[],
        group_switches=[],
        lit=(),
    )


def _worst_first(judged: Judged) -> list[Picture[Judged]]:
    """The pictures in the order of the chain, that of the link that holds least first."""
    links = judged.worst.links
    return [OWN[name] for name in sorted(OWN, key=lambda name: -ORDER.index(links[name].verdict))]


def answer(judged: Judged) -> str:
    """One sentence: whether the chain holds, or which link breaks and by what numbers."""
    worst, first = judged.worst, judged.cells[0].facts
    depths = sorted({cell.facts.depth for cell in judged.cells if cell.facts.depth is not None})
    span = f" from {depths[0]} to {depths[-1]} layers" if len(depths) > 1 else ""
    span += f" at {power(worst.lr)}" if len(judged.verdicts) > 1 else ""
    who = first.factory.rpartition(":")[2]
    words = {
        "pass": f"{who} holds{span}: no link of the chain breaks",
        "warn": f"{who} holds{span}, with a warning",
        "cannot tell": f"Whether {who} holds{span} cannot be told from these runs",
        "fail": f"{who} does not hold{span}",
    }
    links = [link for link in worst.links.values() if link.verdict == worst.word]
    why = "" if worst.word == "pass" else ": " + "; ".join(link.why for link in links[:2])
    if len(judged.verdicts) == 1:
        return f"{words[worst.word]}{why}."
    others = [_elsewhere(one) for one in judged.verdicts if one is not worst]
    return f"{words[worst.word]}{why}. {'; '.join(others).capitalize()}."


def _elsewhere(one: Verdict) -> str:
    """`at 1e-3 update warns, gradient fails`."""
    verbs = {"warn": "warns", "fail": "fails", "cannot tell": "cannot be told"}
    words = [f"{name} {verbs[link.verdict]}" for name, link in one.links.items() if link.verdict != "pass"]
    return f"at {power(one.lr)} {listed(*words) or 'every link holds'}"


def rates(judged: Judged) -> list[dict[str, Any]]:
    """A table a rate: every link with its verdict, its exponent and its number at each depth."""
    return [_rate(one, judged) for one in judged.verdicts]


def _rate(one: Verdict, judged: Judged) -> dict[str, Any]:
    factses = [cell.facts for cell in judged.cells if cell.facts.lr == one.lr]
    depths = sorted({facts.depth for facts in factses}, key=lambda depth: depth or 0)
    facts = factses[0]
    return {
        "name": f"{facts.optimizer}, rate {power(facts.rate) if facts.rate > 0 else '–'}",
        "word": one.word,
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
            for name, link in one.links.items()
            for held in ({factses.depth: short(factses.value) for factses in link.evidence},)
        ],
    }


def _unit(name: str, link: LinkVerdict) -> str:
    when = f", after {updates(link.step)}" if link.step else ", before any update" if name == "gradient" else ""
    return f"{UNITS[name]}{when}" if link.evidence else ""


def _with_depth(link: LinkVerdict) -> str:
    if link.saturated:
        return "saturated"
    return law(link.fit) if link.fit else "–"


def _anatomy(cells: Sequence[ModelCell]) -> list[dict[str, str]]:
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


def _where(depth: int | None, lr: float, seed: int) -> str:
    return listed(f"{depth} layers" if depth is not None else "", f"rate {power(lr)}" if lr else "", f"seed {seed}")


def _cell(cell: ModelCell) -> dict[str, str]:
    facts, loss = cell.facts, cell.records["loss"]
    ratios = np.concatenate([cell.gradient_ratio(stack) for stack in cell.stacks])
    seen = [float(value) for value in ratios if np.isfinite(value)]
    return {
        "name": _where(facts.depth, facts.lr, facts.seed),
        "loss": f"{short(float(loss.values[0, 0]))} → {short(float(loss.values[-1, 0]))}",
        "updates": str(int(loss.steps[-1])),
        "growth": ", ".join(short(cell.growth(stack)) for stack in cell.stacks),
        "update": short(float(cell.update()[-1])),
        "gradient": short(max(seen, key=lambda value: abs(np.log(max(value, 1e-300))))) if seen else "–",
        "broke": plain(str(facts.broke)) if facts.broke else "–",
        "digest": cell.digest,
    }


def body(judged: Judged, done: Done[ProbeSpec, ModelCell], asked: ProbeRequest, path: Path) -> dict[str, Any]:
    """The `--json` document, without its schema."""

    def place(one: Any) -> dict[str, Any]:
        return {"depth": one.depth, "lr": one.lr or None, "seed": one.seed}

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
        "rates": [one.to_json() for one in judged.verdicts],
        "found": _anatomy(judged.cells),
        "notes": notes(judged.cells),
        "cells": [
            {**place(c.facts), "broke": asdict(c.facts.broke) if c.facts.broke else None, "digest": c.digest}
            for c in judged.cells
        ],
        "failed": [{**place(spec), "reason": lost.reason, "log": lost.log} for spec, lost in done.lost],
    }
