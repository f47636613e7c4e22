"""The documents of `--json`: strict, versioned, numbers that are not finite as the strings "nan", "inf", "-inf".

What every one has, and a run in them. A document's type stands beside what makes it; `schema.py` makes a JSON Schema
of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from stabkit.results.chain import Chain, gradient_ratio
from stabkit.results.forecast.model import Forecast
from stabkit.results.outcome import Displayed, displayed
from stabkit.results.records import jsonable
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.wording import legend

SCHEMA: Literal["stabkit/2"] = "stabkit/2"


class Document(TypedDict):
    """What every document has."""

    schema: Literal["stabkit/2"]


def text(body: Mapping[str, Any]) -> str:
    """One document."""
    return json.dumps(jsonable(body), indent=1, allow_nan=False)


class FactsOfRun(TypedDict):
    """What a run is."""

    run_id: str
    spec: RunSpec
    model: str
    """The key of its method."""
    encoder_layers: int
    decoder_layers: int
    seed: int
    alpha_scale: float
    beta_scale: float
    warmup: int


class EndOfRun(TypedDict):
    """How a run ended."""

    outcome: Displayed
    detail: str
    steps: int
    unigram_loss: float
    """What the best constant predictor loses on the validation batches."""
    validation_loss: float
    perplexity: float
    """Without label smoothing."""
    token_accuracy: float
    chain: Chain
    parameters: int
    """How many its model holds."""


class RunJson(FactsOfRun, EndOfRun):
    """A run: what it is, how it ended, its series."""

    forecast: Forecast | None
    digest: str
    lacks: list[str]
    """The probes that it was stored without."""
    step: list[int]
    """Of `update`, `loss`, `probe_loss`, `grad_first_last_ratio` and `train_nll`."""
    update: list[float]
    """‖ΔF‖."""
    loss: list[float]
    probe_loss: list[float]
    grad_first_last_ratio: list[float]
    validation_step: list[int]
    """Of `validation`, `validation_nll` and `validation_accuracy`."""
    validation: list[float]
    validation_nll: list[float]
    validation_accuracy: list[float]
    train_nll: list[float]
    seconds_a_step: float


def facts(spec: RunSpec) -> FactsOfRun:
    """What a run is, its whole spec included."""
    return {
        "run_id": spec.run_id,
        "spec": spec,
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


def ended(run: Run) -> EndOfRun:
    """How a run ended, by its name in the documents; `parameters` of its model."""
    outcome = run.outcome
    return {
        "outcome": displayed(outcome.word),
        "detail": legend.detail(outcome),
        "steps": outcome.steps,
        "unigram_loss": outcome.unigram_loss,
        "validation_loss": outcome.validation_loss,
        "perplexity": outcome.perplexity,
        "token_accuracy": outcome.token_accuracy,
        "chain": outcome.chain,
        "parameters": run.parameters,
    }


def series(run: Run) -> RunJson:
    """What a run is, how it ended, and its series: one number a recorded step."""
    loss, validation = run.records["loss"], run.records["validation"]
    gradients = run.records.get("grad_norm")
    return {
        **facts(run.spec),
        **ended(run),
        "forecast": run.forecast,
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
    }
