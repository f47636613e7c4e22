"""The `--json` documents of a user's model: of a probe, and of a probe over width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from stabkit.report.json_document import SCHEMA, Document
from stabkit.results.forecast.logistic import Word
from stabkit.results.intervals import IntervalJson
from stabkit.results.own.cell import Broke, Facts, ModelCell
from stabkit.results.own.cure import Cure
from stabkit.results.own.forecast import Healthy, OwnForecastJson
from stabkit.results.own.judged import Judged
from stabkit.results.own.looks import Basis
from stabkit.results.own.rules import Evidence, LinkVerdict, LinkWord
from stabkit.results.own.verdict import Verdict as OwnVerdict
from stabkit.results.own.widths import AtWidthJson, ExpectedJson, Widths
from stabkit.wording import chain
from stabkit.wording.anatomy import FoundJson, anatomy, notes
from stabkit.wording.links import answer

if TYPE_CHECKING:
    from stabkit.running.plan import Done
    from stabkit.running.probes import ProbeRequest, ProbeSpec


class ProbePlaceJson(TypedDict):
    """Where a model was probed."""

    depth: int | None
    lr: float | None
    """null: the optimiser's own."""
    seed: int


class ProbedCellJson(ProbePlaceJson):
    """A model at one depth, rate and seed."""

    broke: Broke | None
    digest: str


class LostCellJson(ProbePlaceJson):
    """One without a result."""

    reason: str
    log: str
    """The file with the traceback."""


class LinkJson(TypedDict):
    """One link of the chain."""

    verdict: LinkWord
    certain: bool
    """Whether a model does not train for certain where this fails; else its forecast is `undecided` at best."""
    why: str
    level: float
    """Its number at the deepest."""
    exponent: float | None
    """Of its law in depth."""
    interval: tuple[float, float] | None
    fit: Literal["exponential", "power"] | None
    factor: float | None
    """A layer, where the law is exponential."""
    factor_interval: tuple[float, float] | None
    saturated: bool
    limit: float
    """That which decided, or would."""
    step: int
    """Of the level."""
    evidence: tuple[Evidence, ...]
    healthy: Healthy | None
    """The level among models that train."""


class DepthWordJson(TypedDict):
    """The word of one depth, of the seed that is least likely to train."""

    depth: int | None
    word: Word
    basis: Basis
    probability: float | None
    updates: int
    """That the word rests on."""
    diverges: bool
    """Whether a number was lost."""
    seed: int


class RateJson(TypedDict):
    """The verdict at one rate."""

    lr: float | None
    """null: the optimiser's own."""
    verdict: Word
    depths: list[DepthWordJson]
    forecast: OwnForecastJson
    links: dict[str, LinkJson]


class BaselineJson(TypedDict):
    """What `--baseline` says."""

    file: str
    worse: list[str]


class ProbeDocument(Document):
    """`stabkit probe`."""

    report: str
    """The page's path."""
    answer: str
    forecast: OwnForecastJson
    """Of the worst rate, as `links`."""
    cures: tuple[Cure, ...]
    """Changes in the order in which they were tried."""
    factory: str
    depths: list[DepthWordJson]
    """Of the worst rate, the shallowest first."""
    seeds: list[int]
    steps: int
    links: dict[str, LinkJson]
    verdict: Word
    """The deepest's at the worst rate."""
    seconds: float
    """That the command took."""
    rates: list[RateJson]
    found: list[FoundJson]
    notes: list[str]
    cells: list[ProbedCellJson]
    failed: list[LostCellJson]
    baseline: BaselineJson | None


def body(
    judged: Judged,
    done: Done[ProbeSpec, ModelCell],
    asked: ProbeRequest,
    path: Path,
    seconds: float,
    baseline: BaselineJson | None = None,
) -> ProbeDocument:
    """That of a probe."""

    def place(cell: Facts | ProbeSpec) -> ProbePlaceJson:
        return {"depth": cell.depth, "lr": cell.lr or None, "seed": cell.seed}

    worst = judged.worst
    return {
        "schema": SCHEMA,
        "report": str(path),
        "answer": answer(judged),
        "forecast": worst.forecast.to_json(),
        "cures": judged.cures,
        "factory": asked.factory,
        "depths": _depths(worst),
        "seeds": sorted({c.facts.seed for c in judged.cells}),
        "steps": asked.steps,
        "links": _links(worst),
        "verdict": worst.word,
        "seconds": seconds,
        "rates": [_rate(verdict) for verdict in judged.verdicts],
        "found": anatomy(judged.cells),
        "notes": notes(judged.cells),
        "cells": [{**place(c.facts), "broke": c.facts.broke, "digest": c.digest} for c in judged.cells],
        "failed": [{**place(spec), "reason": lost.reason, "log": lost.log} for spec, lost in done.lost],
        "baseline": baseline,
    }


def _rate(verdict: OwnVerdict) -> RateJson:
    return {
        "lr": verdict.lr or None,
        "verdict": verdict.word,
        "depths": _depths(verdict),
        "forecast": verdict.forecast.to_json(),
        "links": _links(verdict),
    }


def _depths(verdict: OwnVerdict) -> list[DepthWordJson]:
    return [
        {
            "depth": own.depth,
            "word": own.decision.word,
            "basis": own.decision.basis,
            "probability": own.decision.probability,
            "updates": own.decision.updates,
            "diverges": own.decision.diverges,
            "seed": own.seed,
        }
        for own in verdict.depths
    ]


def _links(verdict: OwnVerdict) -> dict[str, LinkJson]:
    return {name: _link(link) for name, link in verdict.links.items()}


def _link(link: LinkVerdict) -> LinkJson:
    fit = link.fit
    return {
        "verdict": link.verdict,
        "certain": link.certain,
        "why": chain.why(link),
        "level": link.level,
        "exponent": fit.exponent if fit else None,
        "interval": (fit.low, fit.high) if fit else None,
        "fit": ("exponential" if fit.exponential else "power") if fit else None,
        "factor": fit.factor if fit else None,
        "factor_interval": (fit.factor_low, fit.factor_high) if fit else None,
        "saturated": link.saturated,
        "limit": link.limit,
        "step": link.step,
        "evidence": link.evidence,
        "healthy": link.healthy,
    }


class WidthsDocument(Document):
    """`stabkit probe --widths`."""

    report: str
    """The page's path."""
    answer: str
    words: list[AtWidthJson]
    highest: IntervalJson | None
    """p of the highest rate that trains ∝ width^p."""
    expected: list[ExpectedJson]
    """Of the widths that --predict names; none without a law."""


def widths(words: Widths, predict: Sequence[int], sentence: str, path: Path) -> WidthsDocument:
    """That of a probe over width; `sentence`: its answer."""
    expected = [one for width in predict if (one := words.expected(width)) is not None]
    return {
        "schema": SCHEMA,
        "report": str(path),
        "answer": sentence,
        "words": [row.to_json() for row in words.rows],
        "highest": words.law.to_json() if words.law else None,
        "expected": [one.to_json() for one in expected],
    }
