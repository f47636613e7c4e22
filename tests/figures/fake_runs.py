"""Runs as the store returns them, made by hand: plausible curves for pictures, exact ones for frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import methods
from stabkit.methods.base import sites as sites_of
from stabkit.results.chain import Chain
from stabkit.results.outcome import Outcome, Risk, Word
from stabkit.results.records import Table
from stabkit.results.run import Run
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig, recorded_steps

ENVIRONMENT: dict[str, Any] = {
    **dict(stabkit="0.1.0", python="3.12.3", torch="2.13.0", numpy="2.4.6", platform="Linux-6.1-x86_64"),
    **dict(processor="Some CPU @ 2.5GHz", cpu_capability="AVX512", threads=1, device="cpu", wall_seconds=12.5),
}

MEASURED = {  # ‖ΔF‖ at step 16 and the first/last decoder gradient, DESIGN.md's table
    "post-ln": ({6: 0.27, 18: 0.75, 50: 1.91, 100: 4.54}, {6: 0.2, 18: 1e-3, 50: 1e-7, 100: 1e-14}),
    "post-ln-init": ({6: 0.08, 18: 0.17, 50: 0.23, 100: 0.36}, {6: 0.9, 18: 0.6, 50: 0.4, 100: 0.3}),
    "admin": ({6: 0.17, 18: 0.43, 50: 0.56, 100: 0.83}, {6: 1.2, 18: 1.1, 50: 0.9, 100: 0.8}),
    "deepnorm": ({6: 0.02, 18: 0.04, 50: 0.07, 100: 0.11}, {6: 1.0, 18: 0.9, 50: 0.8, 100: 0.7}),
}


def spec(method: str = "deepnorm", encoder: int = 6, decoder: int | None = None, **changes: Any) -> RunSpec:
    """A spec with what a test needs changed: fields of the train and task configuration go by their own names."""
    train = {k: changes.pop(k) for k in list(changes) if k in TrainConfig.__dataclass_fields__}
    task = {k: changes.pop(k) for k in list(changes) if k in TaskConfig.__dataclass_fields__}
    model = ModelConfig(encoder_layers=encoder, decoder_layers=encoder if decoder is None else decoder)
    return RunSpec(method=method, model=model, train=TrainConfig(**train), task=TaskConfig(**task), **changes)


def run(
    run_spec: RunSpec,
    records: Mapping[str, Table],
    outcome: Word = "early",
    risks: tuple[Risk, ...] = (),
    environment: Mapping[str, Any] = ENVIRONMENT,
    **chain: float,
) -> Run:
    """A run of the store with the given records, as if it had been read."""
    links: dict[str, Any] = {"update_first": 0.01, "update_reference": 0.1, "reference_step": 16}
    links |= {"ln_input_growth": 1.1, "branch_ratio": 0.5, "gradient_ratio_start": math.nan}
    links |= {"gradient_ratio_lowest": 0.7, "frozen_layers": math.nan} | chain
    made = Run(
        path=Path("/nowhere/runs") / run_spec.run_id,
        spec=run_spec,
        kept={"unigram_loss": 6.0, "parameters": methods.parameters(run_spec)},
        records=dict(records),
        environment=environment,
        digest="ab" * 32,
    )
    made.__dict__["outcome"] = Outcome(  # not judged: the tests say how it ended
        word=outcome,
        risks=risks if outcome == "early" else None,
        steps=max((int(table.steps[-1]) for table in records.values() if len(table.steps)), default=0),
        unigram_loss=6.0,
        validation_loss=5.0 if outcome == "trains" else 6.1,
        perplexity=math.nan,
        token_accuracy=math.nan,
        chain=Chain(**links),
    )
    return made


def known(made: Run, **values: Any) -> Run:
    """The run with other values of its outcome."""
    made.__dict__["outcome"] = replace(made.outcome, **values)
    return made


def table(steps: list[int], columns: Mapping[str, list[float]]) -> Table:
    """A table written out: {site: its series}."""
    values = np.array(list(columns.values()), dtype=np.float64).reshape(len(columns), len(steps)).T
    return Table(np.array(steps, dtype=np.int64), tuple(columns), values)


def plausible(run_spec: RunSpec, *, outcome: str | None = None, until: int | None = None) -> Run:
    """A run that looks like a measured one; `until` makes it diverge after that step."""
    random = np.random.default_rng([run_spec.seed, *run_spec.method.encode(), run_spec.model.decoder_layers])
    depth = max(run_spec.model.encoder_layers, run_spec.model.decoder_layers, 1)
    updates, ratios = MEASURED.get(run_spec.method, MEASURED["deepnorm"])
    known = np.log(list(updates))
    update = math.exp(np.interp(math.log(depth), known, np.log(list(updates.values())))) * random.lognormal(0, 0.15)
    ratio = math.exp(np.interp(math.log(depth), known, np.log(list(ratios.values())))) * random.lognormal(0, 0.2)
    steps = [t for t in recorded_steps(run_spec) if until is None or t <= until]
    t = np.array(steps, dtype=float)
    state = update * (t / 16) ** 1.1 * random.lognormal(0, 0.03, len(t))
    state = 11.3 * state / (11.3 + state)
    state[0] = 0.0
    if until is not None:
        state[-1] = np.nan
    layers = run_spec.model.decoder_layers
    norms = 0.3 * ratio ** np.linspace(1, 0, max(layers, 1)) * random.lognormal(0, 0.05, (len(t), max(layers, 1)))
    sites = {f"decoder.{i + 1}": norms[:, i].tolist() for i in range(layers)}
    sites |= {f"encoder.{i + 1}": [0.1] * len(t) for i in range(run_spec.model.encoder_layers)}
    sites |= {f"decoder.{i + 1}.ffn": norms[:, i].tolist() for i in range(layers)}
    places = sites_of(run_spec.model.encoder_layers, run_spec.model.decoder_layers, run_spec.model.hidden)
    names = [site.name for site in places]
    omega = {"post-ln": 1.0, "post-ln-init": 1.0, "admin": 3.0}.get(run_spec.method, 2.0)
    branch = 0.9 / omega if run_spec.method != "admin" else 0.9
    ratios_by_site = [branch / math.sqrt(i + 1 if run_spec.method == "admin" else 1) for i in range(len(names))]
    raw = {n: [8 * omega * math.hypot(1, r)] * len(t) for n, r in zip(names, ratios_by_site, strict=True)}
    raw |= {f"{n}@omega": [math.hypot(1, r)] * len(t) for n, r in zip(names, ratios_by_site, strict=True)}
    moved = {n: [1e-3 * omega * math.sqrt(i + 1)] for i, n in enumerate(names)}
    squares = {f"{n}@branch": [(omega * r) ** 2] * len(t) for n, r in zip(names, ratios_by_site, strict=True)}
    squares |= {f"{n}@shortcut": [omega**2] * len(t) for n in names}
    loss = 8.4 - (2.4 if ratio < 1e-2 else 3.0) * t / (t + 60)
    when = [int(step) for step in (0, t[-1] // 2, t[-1])] if len(t) > 2 else [int(step) for step in t]
    when = sorted(set(when))
    final = np.interp(when, t, loss)
    records = {
        "update": table(steps, {"state": state.tolist(), "logits": (state * 2).tolist(), "state@step": state.tolist()}),
        "grad_norm": table(steps, sites),
        "ln_input": table(steps, raw),
        "branch_ratio": table(steps, {n: [r] * len(t) for n, r in zip(names, ratios_by_site, strict=True)} | squares),
        "perturbation": table([0], moved),
        "parameter_update": table(steps, {"embedding": (t * 1e-3).tolist()} | {n: (t * 1e-3).tolist() for n in names}),
        "loss": table(steps, {"train": loss.tolist(), "probe": loss.tolist(), "train@nll": (loss - 0.5).tolist()}),
        "validation": table(when, {"validation": final.tolist(), "nll": (final - 0.5).tolist()}),
    }
    word = outcome or ("diverged" if until is not None else "early")
    lost = ratio < 1e-2
    return run(
        run_spec,
        records,
        word,
        (Risk("gradient", ratio),) if lost else (),
        update_first=float(state[1]) if len(state) > 1 else math.nan,
        update_reference=float(state[min(16, len(state) - 1)]) if until is None else math.nan,
        gradient_ratio_lowest=float(ratio * 0.8),
        ln_input_growth=1.0 + update / 8,
        branch_ratio=0.9,
    )


def step(method: str, encoder: int, slope: float, lr: float = 1e-5, decoder: int | None = None, **changes: Any) -> Run:
    """One step of SGD at η = `lr` that moves the output by η times `slope`."""
    made = spec(method, encoder, decoder, optimizer="sgd", steps=1, warmup=0, lr=lr, **changes)
    return run(made, {"update": table([0, 1], {"state": [0.0, slope * lr]})}, update_first=slope * lr)


def sweep(depths: tuple[int, ...] = (6, 18, 50, 100), seeds: tuple[int, ...] = (0,), **changes: Any) -> list[Run]:
    """The default sweep, or the same with more seeds."""
    return [plausible(spec(m, n, seed=s, **changes)) for n in depths for s in seeds for m in MEASURED]


def plane(update: Callable[[float, float], float], outcome: Callable[[float, float], str], **changes: Any) -> list[Run]:
    """DeepNorm at 2L-2L with nine pairs of factors."""
    return [
        run(spec("deepnorm", 2, alpha_scale=a, beta_scale=b, **changes), {}, outcome(a, b), update_first=update(a, b))
        for a in (0.25, 1.0, 4.0)
        for b in (0.25, 1.0, 4.0)
    ]


def wide(run_spec: RunSpec, hidden: int) -> RunSpec:
    """The same model at another width, its feed-forward twice as wide."""
    return replace(run_spec, model=replace(run_spec.model, hidden=hidden, ffn=2 * hidden))


def ended(run_spec: RunSpec, outcome: Word = "trains", loss: float = 5.0, **values: Any) -> Run:
    """A run of which only its end is known: the outcome, the validation loss and what else is given."""
    return known(run(run_spec, {}, outcome), **{"validation_loss": loss, "steps": run_spec.train.steps, **values})


def at16(method: str, depth: int, value: float, outcome: str = "early", **more: object) -> Run:
    """A run of 16 updates with this ‖ΔF‖ at the last."""
    chain: dict[str, Any] = {"gradient_ratio_lowest": more.pop("ratio", 0.5)}
    made = spec(method, depth, **more)  # type: ignore[arg-type]
    return run(made, {"update": table([0, 16], {"state": [0.0, value]})}, outcome, (Risk("loss", value, 1.0),), **chain)  # type: ignore[arg-type]
