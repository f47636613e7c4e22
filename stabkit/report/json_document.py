"""The documents of `--json`: strict, versioned, numbers that are not finite as the strings "nan", "inf", "-inf"."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit.results.chain import gradient_ratio
from stabkit.results.records import jsonable
from stabkit.spec import RunSpec
from stabkit.storage.store import Run
from stabkit.surface.roughness import curvature, negative_curvature, roughness

if TYPE_CHECKING:
    from stabkit.claims import Finding
    from stabkit.claims.base import Place
    from stabkit.storage.surfaces import Surface

SCHEMA = "stabkit/2"


def text(body: Any) -> str:
    """One document."""
    return json.dumps(jsonable(body), indent=1, allow_nan=False)


def sweep(
    runs: Sequence[Run],
    failed: Sequence[tuple[RunSpec, str]],
    claimed: Sequence[Finding],
    page: Path,
    surfaces: Sequence[Surface] = (),
) -> str:
    """A sweep: its report, every run with its series, a failed run with its reason, every claim with its verdict, and
    every surface with its losses."""
    body = {
        "schema": SCHEMA,
        "report": str(page),
        **answered(runs, failed),
        "runs": [series(run) for run in runs]
        + [{**facts(spec), "outcome": "failed", "reason": reason, "steps": 0} for spec, reason in failed],
        "claims": [claim(found) for found in claimed],
        **(slopes(runs) if any(run.spec.single_step for run in runs) else {}),
        **({"surfaces": [surface(one) for one in surfaces]} if surfaces else {}),
    }
    return text(body)


def answered(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]]) -> dict[str, Any]:
    """The sentence that answers, and one word a method, condition and depth; of single steps neither."""
    from stabkit.report.verdict import answer  # figures, and with them matplotlib
    from stabkit.report.verdict.matrix import matrix

    trained = [run for run in runs if not run.spec.single_step]
    found = matrix(trained, [one for one in failed if not one[0].single_step])
    return {"answer": answer.answer(found), "cells": answer.cells(found)}


def slopes(runs: Sequence[Run]) -> dict[str, Any]:
    """Single SGD steps: ‖ΔF‖/η by method, condition and depth, its range over seeds and its rank, 1 the least; and of
    runs at two rates how far their slopes are apart."""
    from stabkit.figures.depth import slope  # pandas

    rows = slope.table(slope.select(runs)).to_dict("records")
    apart = [{"run": name, "apart": share, "agrees": share <= slope.AGREE} for name, share in slope.agreement(runs)]
    return {"slopes": [{str(key): value for key, value in row.items()} for row in rows], "slope_agreement": apart}


def surface(found: Surface) -> dict[str, Any]:
    """A surface: where it lies, its losses (b down, a across), its path, how rough it is."""
    return {
        "surface_id": found.surface_id,
        "spec": found.spec.to_json(),
        "digest": found.digest,
        "loss": found.loss.tolist(),
        "roughness": roughness(found.loss),
        "curvature": curvature(found.loss),
        "negative_curvature": negative_curvature(found.loss),
        "path": {name: column.tolist() for name, column in found.path.items()},
        "facts": dict(found.facts),
    }


def claim(found: Finding) -> dict[str, Any]:
    """A claim, its verdict, and what was measured at each place; a command where it is not decided."""
    return {
        "id": found.claim.key,
        "sentence": found.claim.sentence,
        "source": found.claim.source,
        "weight": found.claim.weight,
        "test": found.claim.test,
        "verdict": found.verdict,
        "measured": found.measured,
        "reason": found.reason,
        **({"command": found.claim.command} if found.verdict in ("untested", "undecided") else {}),
        "places": [place(one) for one in found.places],
    }


def place(one: Place) -> dict[str, Any]:
    """One place: its number over the seeds, the threshold, the verdict."""
    return {
        "where": one.measured.spot,
        "condition": one.measured.condition,
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
        last = int(run.outcome["steps"])
        steps = last + 1 - int(run.environment["first_step"])
        return float(run.environment["wall_seconds"]) / steps if last else math.nan
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return math.nan


def series(run: Run) -> dict[str, Any]:
    """What a run is, how it ended, and its series: one number a recorded step."""
    loss, validation = run.records["loss"], run.records["validation"]
    gradients = run.records.get("grad_norm")
    return {
        **facts(run.spec),
        **run.outcome,
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
