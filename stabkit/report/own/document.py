"""The `--json` document of a probe of a user's model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit.report.own.links import anatomy, answer, notes
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.judged import Judged

if TYPE_CHECKING:
    from stabkit.running.plan import Done
    from stabkit.running.probes import ProbeRequest, ProbeSpec


def body(judged: Judged, done: Done[ProbeSpec, ModelCell], asked: ProbeRequest, path: Path) -> dict[str, Any]:
    """The `--json` document, without its schema."""

    def place(cell: Any) -> dict[str, Any]:
        return {"depth": cell.depth, "lr": cell.lr or None, "seed": cell.seed}

    worst = judged.worst
    return {
        "report": str(path),
        "answer": answer(judged),
        "forecast": worst.forecast.to_json(),
        "cures": [own.to_json() for own in judged.cures],
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
