"""The `--json` document of a sweep, and of what else trains a grid: its answer, cells, runs, claims and surfaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from stabkit.claims import Finding
from stabkit.claims.base import ClaimPlace, Threshold, Verdict, Weight
from stabkit.report.json_document import SCHEMA, Document, FactsOfRun, RunJson, facts, series
from stabkit.results.matrix import Matrix
from stabkit.results.run import Run
from stabkit.results.surface import Surface, SurfaceSpec
from stabkit.spec import RunSpec
from stabkit.surface.roughness import curvature, negative_curvature, roughness
from stabkit.wording import legend

if TYPE_CHECKING:
    from stabkit.report.summary import Summary


class FailedRunJson(FactsOfRun):
    """A run that has no result."""

    outcome: Literal["failed"]
    reason: str
    steps: int


class CellJson(TypedDict):
    """A cell of the verdict matrix: a method, condition and depth."""

    model: str
    label: str
    condition: str
    encoder_layers: int
    decoder_layers: int
    word: str
    """The forecast where there is one, else the outcomes."""
    basis: Literal["forecast", "seen"]
    p_trains: float | None
    """Of the least likely seed."""
    unseen: bool
    """Whether the forecast's fit has no run of its method."""
    run_ids: list[str]


class SlopeJson(TypedDict):
    """‖ΔF‖/η of single SGD steps: the median over seeds, its range, its rank, 1 the least."""

    label: str
    condition: str
    depth: str
    slope: float
    least: float
    greatest: float
    rank: int


class SurfaceJson(TypedDict):
    """A loss surface."""

    surface_id: str
    spec: SurfaceSpec
    digest: str
    loss: list[list[float]]
    """b down, a across."""
    roughness: float
    curvature: float
    negative_curvature: float
    path: dict[str, list[float]]
    facts: dict[str, float]


class MoreOfSweep(TypedDict):
    """Of single steps, and of surfaces."""

    slopes: NotRequired[list[SlopeJson]]
    surfaces: NotRequired[list[SurfaceJson]]


class ClaimPlaceJson(TypedDict):
    """A claim at one place."""

    where: str
    condition: str
    steps: int
    seeds: list[int]
    value: float
    """The median over seeds; of a share the mean."""
    low: float | None
    high: float | None
    """The least and the greatest of two to four seeds, a 95 % interval from five on; null of one."""
    threshold: Threshold
    verdict: Verdict
    reason: str
    text: str


class ClaimCommandJson(TypedDict):
    """What would decide a claim."""

    command: NotRequired[str]


class ClaimJson(ClaimCommandJson):
    """A sentence of a paper, and what became of it."""

    id: str
    sentence: str
    source: str
    weight: Weight
    test: str
    verdict: Verdict
    measured: str
    reason: str
    places: list[ClaimPlaceJson]


class SweepDocument(Document, MoreOfSweep):
    """`stabkit sweep`, `ablate` and `landscape`."""

    report: str
    """The page's path."""
    answer: str
    cells: list[CellJson]
    runs: list[RunJson | FailedRunJson]
    claims: list[ClaimJson]


def sweep(summary: Summary, page: Path) -> SweepDocument:
    """A sweep: its report, the sentence that answers, one word a method, condition and depth (of single steps neither),
    every run with its series, a failed run with its reason, every claim with its verdict, and every surface with its
    losses."""
    runs = summary.runs
    more: MoreOfSweep = slopes(runs) if any(run.spec.single_step for run in runs) else {}
    if summary.surfaces:
        more["surfaces"] = [surface(drawn) for drawn in summary.surfaces]
    return {
        "schema": SCHEMA,
        "report": str(page),
        "answer": summary.answer,
        "cells": cells(summary.matrix),
        "runs": [*map(series, runs), *(_failed(spec, reason) for spec, reason in summary.failed)],
        "claims": [claim(finding) for finding in summary.claims],
        **more,
    }


def _failed(spec: RunSpec, reason: str) -> FailedRunJson:
    return {**facts(spec), "outcome": "failed", "reason": reason, "steps": 0}


def cells(verdicts: Matrix) -> list[CellJson]:
    """The verdict matrix: one word a method, condition and depth."""
    return [
        {
            "model": row.method,
            "label": row.label,
            "condition": row.condition.text,
            "encoder_layers": cell.layers[0],
            "decoder_layers": cell.layers[1],
            "word": legend.word_of(cell),
            "basis": "forecast" if cell.forecast else "seen",
            "p_trains": None if math.isnan(cell.p_trains) else cell.p_trains,
            "unseen": cell.unseen,
            "run_ids": list(cell.run_ids),
        }
        for row in verdicts.rows
        for cell in row.cells
        if cell.run_ids
    ]


def slopes(runs: Sequence[Run]) -> MoreOfSweep:
    """Single SGD steps: ‖ΔF‖/η by method, condition and depth, its range over seeds and its rank, 1 the least; and of
    runs at two rates how far their slopes are apart."""
    from stabkit.results import slope  # pandas

    rows: Any = slope.table(slope.frame(runs)).to_dict("records")
    return {"slopes": rows}


def surface(drawn: Surface) -> SurfaceJson:
    """A surface: where it lies, its losses (b down, a across), its path, how rough it is."""
    return {
        "surface_id": drawn.surface_id,
        "spec": drawn.spec,
        "digest": drawn.digest,
        "loss": drawn.loss.tolist(),
        "roughness": roughness(drawn.loss),
        "curvature": curvature(drawn.loss),
        "negative_curvature": negative_curvature(drawn.loss),
        "path": {name: column.tolist() for name, column in drawn.path.items()},
        "facts": dict(drawn.facts),
    }


def claim(finding: Finding) -> ClaimJson:
    """A claim, its verdict, and what was measured at each place; a command where it is not decided."""
    undecided = finding.verdict in ("untested", "undecided")
    command: ClaimCommandJson = {"command": finding.claim.command} if undecided else {}
    return {
        "id": finding.claim.key,
        "sentence": finding.claim.sentence,
        "source": finding.claim.source,
        "weight": finding.claim.weight,
        "test": finding.claim.test,
        "verdict": finding.verdict,
        "measured": finding.measured,
        "reason": finding.reason,
        **command,
        "places": list(map(_place, finding.places)),
    }


def _place(one: ClaimPlace) -> ClaimPlaceJson:
    """One place: its number over the seeds, the threshold, the verdict."""
    return {
        "where": one.measured.place,
        "condition": one.measured.condition.text,
        "steps": one.measured.steps,
        "seeds": list(one.measured.values),
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "threshold": one.threshold,
        "verdict": one.verdict,
        "reason": one.reason,
        "text": one.text,
    }
