"""The training loop: one run from θ₀ to its last step, with every probe read on the way. Touches no disk.

At every recorded step t: the training batch t forward and backward at θ_t, then the probe batch forward at θ_t, then,
at a few of them, the validation batches; then update t + 1. A run ends at its last step, or at the first loss that is
not finite: a diverged run is a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods.own import Texts
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer, tensors
from stabkit.probes import PROBES, Pass, Probe
from stabkit.probes.tools import own
from stabkit.results.outcome import Outcome, judge, over
from stabkit.results.records import Recorder, Table
from stabkit.spec import Kernels, RunSpec, recorded_steps, snapshot_steps, validation_steps
from stabkit.streams import key
from stabkit.tasks.base import PAD, Batch, Task, unigram_loss
from stabkit.training import factors, optim
from stabkit.training.schedule import rate
from stabkit.training.state import VALIDATION, State, halt, resume

Tell = Callable[[int, float], None]
"""(step, training loss) after each step, for progress."""


Save = Callable[[State], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run leaves: records, outcome, and weights by name; snapshots are whole vectors θ named `theta@step`."""

    records: Mapping[str, Table]
    outcome: Outcome
    weights: Mapping[str, np.ndarray]
    parameters: int
    kernels: str
    """What its passes were made by, as a run's environment has it: `Transformer.made_by`."""


def build(
    spec: RunSpec,
    task: Task,
    device: torch.device,
    texts: Texts = {},  # noqa: B006  # a mapping that nothing writes to
    kernels: Kernels = "fused",
) -> Transformer:
    """The model of a run at θ₀: made on the device, drawn, and calibrated where the method profiles. `texts`: the files
    of methods of one's own."""
    method = methods.made(spec, texts)
    if reason := method.undefined(spec.model.encoder_layers, spec.model.decoder_layers):
        raise UsageError(f"{method.label} is not defined for {spec.depth}: {reason}")
    # made there, not moved: never two copies of it; on a CPU without torch's redirection of every call
    with torch.device(device) if device.type != "cpu" else nullcontext():
        dtype = getattr(torch, spec.dtype)
        model = Transformer(spec.model, method, task.vocab, spec.seed, spec.train.dropout, dtype, kernels)
    if method.calibrate is not None:
        torch.manual_seed(key(spec.seed, "calibration"))  # dropout has no generator of its own
        omegas = method.calibrate(model, task.calibration(spec.seed))
        for site, residual in model.residuals.items():
            residual.set_omega(omegas[site.name])
    return model


@contextmanager
def without_denormals() -> Iterator[None]:
    """Numbers too small for full precision (float32: below 1.2e-38) count as zero, on CPUs, in this thread.

    Where gradients vanish, as in the lower layers of a deep Post-LN, most of what is multiplied is such a number, and
    each costs a CPU a hundred times a normal one: without warm-up 100L-100L takes up to twice as long with them. Losses
    and ‖ΔF‖ stay the same to the bit; gradients of 1e-16 and less move by a few millionths (`benchmarks/denormals.py`).
    """
    before = not float(torch.tensor(1e-40) * 1.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@without_denormals()
def run(
    spec: RunSpec,
    task: Task,
    device: str = "cpu",
    tell: Tell = lambda step, loss: None,
    start: State | None = None,
    save: Save = lambda state: None,
    every: int = 0,
    texts: Texts = {},  # noqa: B006
    kernels: Kernels = "fused",
) -> Result:
    """Train one run and measure it; from `start`, if a state was saved, to the bit as if it had never stopped.

    After every `every` updates (0: never) the state is given to `save`. Raises ForeignState for a `start` that does not
    belong to this spec.
    """
    config = spec.train
    model = build(spec, task, torch.device(device), texts, kernels)
    flat = Flat(model, model.parts())
    groups = factors.groups(model.method, model, flat)
    optimizer = optim.OPTIMIZERS[config.optimizer](config, flat.theta, flat.grad, groups)
    chosen = (*PROBES, *(own.probe(one, texts) for one in spec.probes))
    # those of step 0 last: one passes the batch again, and others would take what they then see for this pass
    probes = [probe(model, flat) for probe in sorted(chosen, key=lambda probe: probe.when == "start")]
    recorder = Recorder()
    record_at, validate_at, keep_at = map(set, (recorded_steps(spec), validation_steps(spec), snapshot_steps(spec)))
    probe_batch, validation = task.probe(), task.validation()
    unigram = unigram_loss(task.target_counts(), validation, config.label_smoothing)
    snapshots: dict[str, np.ndarray] = {}
    torch.manual_seed(key(spec.seed, "dropout"))
    if start is not None:
        recorder = resume(start, spec, flat, optimizer, probes, snapshots)

    with watching(probes, "probe"):
        for step in range(start.step if start else 0, config.steps + 1):
            recorded = step in record_at
            model.train()
            flat.grad.zero_()
            with watching(probes, "training", recorded):
                seen = forward(model, task.train(spec.seed, step), config.label_smoothing)
                seen.loss.backward()  # type: ignore[no-untyped-call]
            loss = float(seen.loss.detach())
            finite = np.isfinite(loss)
            if recorded or not finite:
                read(recorder, probes, "training", step, seen)
                model.eval()
                with torch.no_grad():
                    seen = forward(model, probe_batch, config.label_smoothing, (seen.loss.detach(), seen.nll()))
                read(recorder, probes, "probe", step, seen)
                finite = finite and bool(torch.isfinite(seen.loss))
            judged = step in validate_at or not finite
            if judged:
                recorder.add("validation", step, VALIDATION, evaluate(model, validation, config.label_smoothing))
            if step in keep_at:
                snapshots[f"theta@{step}"] = flat.theta.cpu().numpy().copy()
            tell(step, loss)
            if step == config.steps or not finite:
                break
            if judged and recorded and over(recorder.tables(), unigram, config):
                break
            if config.clip:
                norm = torch.linalg.vector_norm(flat.grad)
                flat.grad.mul_(torch.clamp(config.clip / (norm + 1e-6), max=1.0))
            optimizer.step(rate(step + 1, config.lr, config.warmup, config.hold))
            if every and (step + 1) % every == 0 and step + 1 < config.steps:
                save(State(step + 1, halt(flat, optimizer, probes, recorder, snapshots)))

    records = recorder.tables()
    outcome = judge(records, unigram=unigram, warmup=config.warmup)
    return Result(records, outcome, {**model.arrays(), **snapshots}, flat.theta.numel(), model.made_by())


def forward(
    model: Transformer, batch: Batch, smoothing: float, training: tuple[torch.Tensor, torch.Tensor] | None = None
) -> Pass:
    """One pass over a batch: the loss a token (padding left out) and what probes read.

    `training`: (loss, nll) of the training batch at the same weights, where this is another pass.
    """
    source, target_in, target_out = tensors(batch, model.device)
    target_TB = target_out.t()
    padded = bool((batch.source == PAD).any())
    states, logits, loss, right = model.score(source, target_in, target_TB, smoothing, padded)
    train_loss, train_nll = training or (loss.detach(), loss.new_full((), math.nan))
    return Pass(
        batch=batch,
        loss=loss,
        train_loss=train_loss,
        train_nll=train_nll,
        states=states.detach(),
        logits=logits.detach(),
        right=right,
        target=target_TB,
        keep={"encoder": source.t() != PAD, "decoder": target_TB != PAD},  # of a model that has that stack
    )


@torch.no_grad()
def evaluate(model: Transformer, batches: tuple[Batch, ...], smoothing: float) -> list[float]:
    """VALIDATION over several batches, a mean over their tokens, in eval mode."""
    model.eval()
    totals, tokens = [0.0] * len(VALIDATION), 0
    for batch in batches:
        count = int((batch.target_out != PAD).sum())
        seen = forward(model, batch, smoothing)
        read = (float(seen.loss), float(seen.nll()), float(seen.accuracy()))
        totals = [total + count * value for total, value in zip(totals, read, strict=True)]
        tokens += count
    return [total / tokens for total in totals]


def watching(probes: list[Probe], which: Literal["training", "probe"], on: bool = True) -> ExitStack:
    """The hooks of every probe that watches this pass."""
    hooks = ExitStack()
    for probe in probes:
        if on and probe.watches == which:
            hooks.enter_context(probe.attached())
    return hooks


def read(recorder: Recorder, probes: list[Probe], which: Literal["training", "probe"], step: int, seen: Pass) -> None:
    """Every reading after a pass, into the record."""
    for probe in probes:
        if probe.watches == which and (probe.when == "recorded" or step == 0):
            recorder.add(probe.name, step, probe.sites, probe.read(seen).tolist())
