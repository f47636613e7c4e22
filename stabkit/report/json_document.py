"""The documents of `--json`: strict, versioned, numbers that are not finite as the strings "nan", "inf", "-inf"."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit.report.verdict import legend
from stabkit.results.chain import gradient_ratio
from stabkit.results.records import jsonable
from stabkit.spec import RunSpec
from stabkit.storage.store import Run
from stabkit.surface.roughness import curvature, negative_curvature, roughness

if TYPE_CHECKING:
    from stabkit.claims import Finding
    from stabkit.claims.base import ClaimPlace
    from stabkit.report.summary import Summary
    from stabkit.report.verdict.matrix import Matrix
    from stabkit.storage.surfaces import Surface

SCHEMA = "stabkit/2"


def text(body: Any) -> str:
    """One document."""
    return json.dumps(jsonable(body), indent=1, allow_nan=False)


def sweep(summary: Summary, page: Path) -> str:
    """A sweep: its report, the sentence that answers, one word a method, condition and depth (of single steps neither),
    every run with its series, a failed run with its reason, every claim with its verdict, and every surface with its
    losses."""
    runs = summary.runs
    body = {
        "schema": SCHEMA,
        "report": str(page),
        "answer": summary.answer,
        "cells": cells(summary.matrix),
        "runs": [series(run) for run in runs]
        + [{**facts(spec), "outcome": "failed", "reason": reason, "steps": 0} for spec, reason in summary.failed],
        "claims": [claim(found) for found in summary.claims],
        **(slopes(runs) if any(run.spec.single_step for run in runs) else {}),
        **({"surfaces": [surface(one) for one in summary.surfaces]} if summary.surfaces else {}),
    }
    return text(body)


def cells(verdicts: Matrix) -> list[dict[str, Any]]:
    """The verdict matrix: one word a method, condition and depth."""
    return [
        {
            "model": row.method,
            "label": row.label,
            "condition": row.condition.text,
            "encoder_layers": cell.layers[0],
            "decoder_layers": cell.layers[1],
            "word": legend.said(cell),
            "p_trains": None if math.isnan(cell.p_trains) else cell.p_trains,
            "unseen": cell.unseen,
            "run_ids": list(cell.run_ids),
        }
        for row in verdicts.rows
        for cell in row.cells
        if cell.run_ids
    ]


def slopes(runs: Sequence[Run]) -> dict[str, Any]:
    """Single SGD steps: ‖ΔF‖/η by method, condition and depth, its range over seeds and its rank, 1 the least; and of
    runs at two rates how far their slopes are apart."""
    from stabkit.figures.depth import slope  # pandas

    rows = slope.table(slope.select(runs)).to_dict("records")
    apart = [{"run": name, "apart": share, "agrees": share <= slope.AGREE} for name, share in slope.agreement(runs)]
    return {"slopes": [{str(key): value for key, value in row.items()} for row in rows], "slope_agreement": apart}


def surface(drawn: Surface) -> dict[str, Any]:
    """A surface: where it lies, its losses (b down, a across), its path, how rough it is."""
    return {
        "surface_id": drawn.surface_id,
        "spec": drawn.spec.to_json(),
        "digest": drawn.digest,
        "loss": drawn.loss.tolist(),
        "roughness": roughness(drawn.loss),
        "curvature": curvature(drawn.loss),
        "negative_curvature": negative_curvature(drawn.loss),
        "path": {name: column.tolist() for name, column in drawn.path.items()},
        "facts": dict(drawn.facts),
    }


def claim(finding: Finding) -> dict[str, Any]:
    """A claim, its verdict, and what was measured at each place; a command where it is not decided."""
    return {
        "id": finding.claim.key,
        "sentence": finding.claim.sentence,
        "source": finding.claim.source,
        "weight": finding.claim.weight,
        "test": finding.claim.test,
        "verdict": finding.verdict,
        "measured": finding.measured,
        "reason": finding.reason,
        **({"command": finding.claim.command} if finding.verdict in ("untested", "undecided") else {}),
        "places": [place(one) for one in finding.places],
    }


def place(one: ClaimPlace) -> dict[str, Any]:
    """One place: its number over the seeds, the threshold, the verdict."""
    return {
        "where": one.measured.place,
        "condition": one.measured.condition.text,
        "steps": one.measured.steps,
        "seeds": list(one.measured.values),
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "threshold": asdict(one.threshold),
        "verdict": one.verdict,
        "reason": one.reason,
        "text": one.text,
    }


def facts(spec: RunSpec) -> dict[str, Any]:
    """What a run is, its whole spec included."""
    return {
        "run_id": spec.run_id,
        "spec": spec.to_json(),
        "model": spec.method,
        "encoder_layers": spec.model.encoder_layers,
        "decoder_layers": spec.model.decoder_layers,
        "seed": spec.seed,
        "alpha_scale": spec.alpha_scale,
        "beta_scale": spec.beta_scale,
        "warmup": spec.train.warmup,
    }


def seconds_a_step(run: Run) -> float:
    """Wall time of an update with all that is measured around it, over the steps of the last attempt; NaN where it is
    not known, and of a run without an update."""
    try:
        last = run.outcome.steps
        steps = last + 1 - int(run.environment["first_step"])
        return float(run.environment["wall_seconds"]) / steps if last else math.nan
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return math.nan


def ended(run: Run) -> dict[str, Any]:
    """How a run ended, by its name in the documents; `parameters` of its model."""
    outcome = {key: value for key, value in asdict(run.outcome).items() if key not in ("word", "risks", "chain")}
    return {
        "outcome": run.outcome.word,
        "detail": legend.detail(run.outcome),
        **outcome,
        "chain": asdict(run.outcome.chain),
        "parameters": run.parameters,
    }


def series(run: Run) -> dict[str, Any]:
    """What a run is, how it ended, and its series: one number a recorded step."""
    loss, validation = run.records["loss"], run.records["validation"]
    gradients = run.records.get("grad_norm")
    return {
        **facts(run.spec),
        **ended(run),
        "forecast": run.forecast.to_json() if run.forecast else None,
        "digest": run.digest,
        "lacks": list(run.lacks),
        "step": loss.steps.tolist(),
        "update": run.records["update"].at("state").tolist() if "update" in run.records else [],
        "loss": loss.at("train").tolist(),
        "probe_loss": loss.at("probe").tolist(),
        "grad_first_last_ratio": gradient_ratio(gradients).tolist() if gradients else [],
        "validation_step": validation.steps.tolist(),
        "validation": validation.at("validation").tolist(),
        "validation_nll": validation.at("nll").tolist(),
        "validation_accuracy": validation.at("accuracy").tolist(),
        "train_nll": loss.at("train@nll").tolist(),
        "seconds_a_step": seconds_a_step(run),
        "translations": [
            {
                "beam": one.spec.search.beam,
                "length_penalty": one.spec.search.length_penalty,
                "bleu": one.score.bleu,
                "signature": one.score.signature,
                "length_ratio": one.score.length_ratio,
                "sentences": len(one.hypotheses),
            }
            for one in run.translations
        ],
    }
