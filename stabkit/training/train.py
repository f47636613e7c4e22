"""The training loop: one run from θ₀ to its last step, with every probe read on the way. Touches no disk.

Runs of one shape may train at once (`vmapped.py`): the loop is the same, the passes are made together.

At every recorded step t: the training batch t forward and backward at θ_t, then the probe batch forward at θ_t, then,
at a few of them, the validation batches; then update t + 1. A run ends at its last step, or at the first loss that is
not finite: a diverged run is a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal, Protocol

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
from stabkit.results.schedule import rate
from stabkit.spec import Kernels, RunSpec, recorded_steps, snapshot_steps, validation_steps
from stabkit.streams import key
from stabkit.tasks.base import PAD, Batch, Task, unigram_loss
from stabkit.training import factors
from stabkit.training.optimizers import OPTIMIZERS
from stabkit.training.optimizers.base import Optimizer
from stabkit.training.state import VALIDATION, State, load_state_dict, state_dict

Tell = Callable[[int, float], None]
"""(step, training loss) after each step, for progress."""
TellOf = Callable[[int, int, float], None]
"""The same of several runs, the number of the run before."""


Save = Callable[[State], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run leaves: records, outcome, and weights by name; snapshots are whole vectors θ named `theta@step`."""

    records: Mapping[str, Table]
    outcome: Outcome
    weights: Mapping[str, np.ndarray]
    parameters: int
    kernels: str
    """What its passes were made by, as a run's environment has it: `Transformer.path_taken`."""


def build(
    spec: RunSpec,
    task: Task,
    device: torch.device,
    texts: Texts = {},  # noqa: B006  # a mapping that nothing writes to
    kernels: Kernels = "fused",
) -> Transformer:
    """The model of a run at θ₀: made on the device, drawn, and calibrated where the method profiles. `texts`: the files
    of methods of one's own."""
    method = methods.method_of(spec, texts)
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
        model.ran.clear()  # what is said of a run is said of its own passes
    return model


@contextmanager
def without_denormals() -> Iterator[None]:
    """Numbers too small for full precision (float32: below 1.2e-38) count as zero, on CPUs, in this thread.

    Where gradients vanish, as in the lower layers of a deep Post-LN, most of what is multiplied is such a number, and
    each costs a CPU a hundred times a normal one: without warm-up 100L-100L takes up to twice as long with them. Losses
    and ‖ΔF‖ stay the same to the bit; gradients of 1e-16 and less move by a few millionths (docs/reliability.md).
    """
    before = not float(torch.tensor(1e-40) * 1.0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@dataclass
class OneRun:
    """A run in training: its model, what updates it, what measures it, what it has left so far."""

    spec: RunSpec
    task: Task
    model: Transformer
    flat: Flat
    optimizer: Optimizer
    probes: list[Probe]
    recorder: Recorder
    unigram: float
    snapshots: dict[str, np.ndarray]
    ended: bool = False

    def result(self) -> Result:
        """What it leaves, as it stands."""
        records = self.recorder.tables()
        outcome = judge(records, unigram=self.unigram, warmup=self.spec.train.warmup)
        weights = {**self.model.arrays(), **self.snapshots}
        return Result(records, outcome, weights, self.flat.theta.numel(), self.model.path_taken())


class Passes(Protocol):
    """How the passes of the runs that train at once are made; what each returns is in the order of the runs."""

    def training(self, step: int, recorded: bool) -> list[Pass]:
        """Forward and backward over every run's batch of this step; recorded, past the probes of that pass."""

    def probe(self, trained: Sequence[Pass]) -> list[Pass]:
        """Forward over the probe batch, in eval mode."""

    def validation(self) -> list[list[float]]:
        """VALIDATION of every run."""


class SinglePasses:
    """Those of one run."""

    def __init__(self, only: OneRun) -> None:
        self.only, self.smoothing = only, only.spec.train.label_smoothing
        self.probe_batch, self.batches = only.task.probe(), only.task.validation()

    def training(self, step: int, recorded: bool) -> list[Pass]:
        only = self.only
        only.model.train()
        only.flat.grad.zero_()
        with watching(only.probes, "training", recorded):
            seen = forward(only.model, only.task.train(only.spec.seed, step), self.smoothing)
            seen.loss.backward()  # type: ignore[no-untyped-call]
        return [seen]

    def probe(self, trained: Sequence[Pass]) -> list[Pass]:
        self.only.model.eval()
        with torch.no_grad():
            known = (trained[0].loss.detach(), trained[0].nll())
            return [forward(self.only.model, self.probe_batch, self.smoothing, known)]

    def validation(self) -> list[list[float]]:
        return [evaluate(self.only.model, self.batches, self.smoothing)]


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
    only = begun(spec, task, torch.device(device), texts, kernels)
    told: TellOf = lambda one, step, loss: tell(step, loss)  # noqa: E731
    return trained([only], SinglePasses(only), told, start, save, every)[0]


def begun(
    spec: RunSpec,
    task: Task,
    device: torch.device,
    texts: Texts,
    kernels: Kernels,
    laid: Callable[[Flat], None] = lambda flat: None,
) -> OneRun:
    """A run at θ₀; `laid` may lay its vector elsewhere before anything holds it."""
    mine = [own.probe(one, texts) for one in spec.probes]
    model = build(spec, task, device, texts, kernels)
    flat = Flat(model, model.parts())
    laid(flat)
    row = OPTIMIZERS[spec.train.optimizer]
    optimizer = row.make(spec.train, flat.theta, flat.grad, factors.groups(model.method, model, flat, row.apart))
    chosen = (*(probe for probe in PROBES if probe.applies(model)), *mine)
    # those of step 0 last: one passes the batch again, and others would take what they then see for this pass
    probes = [probe(model, flat) for probe in sorted(chosen, key=lambda probe: probe.when == "start")]
    if any(needs_python(model, probe) for probe in probes if type(probe) in mine):
        model.only_python = model.only_python or "a user's probe"
    unigram = unigram_loss(task.target_counts(), task.validation(), spec.train.label_smoothing)
    return OneRun(spec, task, model, flat, optimizer, probes, Recorder(), unigram, {})


def needs_python(model: Transformer, probe: Probe) -> bool:
    """Whether a probe of one's own asks for what a fused pass does not have: the graph of a training pass, a hook on a
    module. Then no pass of its run is fused, since none may depend on who watches."""
    with probe.attached():
        return probe.watches == "training" or model.hooked()


def trained(
    runs: Sequence[OneRun],
    passes: Passes,
    tell: TellOf,
    start: State | None = None,
    save: Save = lambda state: None,
    every: int = 0,
) -> list[Result]:
    """Train runs of one length and one schedule of recording to their ends, measured; `start` and `save` are of one run
    alone."""
    first, config = runs[0], runs[0].spec.train
    record_at, validate_at, keep_at = (set(of(first.spec)) for of in (recorded_steps, validation_steps, snapshot_steps))
    torch.manual_seed(key(first.spec.seed, "dropout"))
    if start is not None:
        first.recorder = load_state_dict(start, first.spec, first.flat, first.optimizer, first.probes, first.snapshots)

    with ExitStack() as hooks:
        for one in runs:
            hooks.enter_context(watching(one.probes, "probe"))
        for step in range(start.step if start else 0, config.steps + 1):
            recorded = step in record_at
            seen = passes.training(step, recorded)
            losses = [float(each.loss.detach()) for each in seen]
            going = [i for i, one in enumerate(runs) if not one.ended]
            finite = [math.isfinite(loss) for loss in losses]
            if recorded or not all(finite[i] for i in going):
                for i in going:
                    if recorded or not finite[i]:
                        read(runs[i], "training", step, seen[i])
                probed = passes.probe(seen)
                for i in going:
                    if recorded or not finite[i]:
                        read(runs[i], "probe", step, probed[i])
                        finite[i] = finite[i] and bool(torch.isfinite(probed[i].loss))
            judged = [i for i in going if step in validate_at or not finite[i]]
            if judged:
                values = passes.validation()
                for i in judged:
                    runs[i].recorder.add("validation", step, VALIDATION, values[i])
            for i in going:
                one = runs[i]
                if step in keep_at:
                    one.snapshots[f"theta@{step}"] = one.flat.theta.cpu().numpy().copy()
                tell(i, step, losses[i])
                decided = i in judged and recorded and over(one.recorder.tables(), one.unigram, one.spec.train)
                one.ended = step == config.steps or not finite[i] or decided
            if all(one.ended for one in runs):
                break
            seen.clear()  # the graphs go, and what they worked in serves the next step
            for one in runs:
                if not one.ended:
                    updated(one, step)
            if every and (step + 1) % every == 0 and step + 1 < config.steps:
                save(
                    State(
                        step + 1, state_dict(first.flat, first.optimizer, first.probes, first.recorder, first.snapshots)
                    )
                )
    return [one.result() for one in runs]


def updated(one: OneRun, step: int) -> None:
    """Update `step` + 1 of a run, with the gradient as it stands."""
    config, grad = one.spec.train, one.flat.grad
    if config.clip:
        norm = torch.linalg.vector_norm(grad)
        grad.mul_(torch.clamp(config.clip / (norm + 1e-6), max=1.0))
    one.optimizer.step(rate(step + 1, config.lr, config.warmup, config.hold))


def forward(
    model: Transformer, batch: Batch, smoothing: float, training: tuple[torch.Tensor, torch.Tensor] | None = None
) -> Pass:
    """One pass over a batch: the loss a token (padding left out) and what probes read.

    `training`: (loss, nll) of the training batch at the same weights, where this is another pass.
    """
    source, target_in, target_out = tensors(batch, model.device)
    padded = bool((batch.source == PAD).any())
    states, logits, loss, right = model.score(source, target_in, target_out.t(), smoothing, padded)
    return passed(batch, (source, target_out), (states, logits, loss), right, training)


def passed(
    batch: Batch,
    on_device: tuple[torch.Tensor, torch.Tensor],
    made: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    right: torch.Tensor | None,
    training: tuple[torch.Tensor, torch.Tensor] | None,
) -> Pass:
    """What probes read of a pass: the batch's source and target_out on the device; the states, logits and loss."""
    (source, target_out), (states, logits, loss) = on_device, made
    target_TB = target_out.t()
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
    return mean((batch, forward(model, batch, smoothing)) for batch in batches)


def mean(each: Iterable[tuple[Batch, Pass]]) -> list[float]:
    """VALIDATION of passes over these batches, a mean over their tokens."""
    totals, tokens = [0.0] * len(VALIDATION), 0
    for batch, seen in each:
        count = int((batch.target_out != PAD).sum())
        values = (float(seen.loss), float(seen.nll()), float(seen.accuracy()))
        totals = [total + count * value for total, value in zip(totals, values, strict=True)]
        tokens += count
    return [total / tokens for total in totals]


def watching(probes: list[Probe], which: Literal["training", "probe"], on: bool = True) -> ExitStack:
    """The hooks of every probe that watches this pass."""
    hooks = ExitStack()
    for probe in probes:
        if on and probe.watches == which:
            hooks.enter_context(probe.attached())
    return hooks


def read(one: OneRun, which: Literal["training", "probe"], step: int, seen: Pass) -> None:
    """Every reading after a pass, into the record."""
    for probe in one.probes:
        if probe.watches == which and (probe.when == "recorded" or step == 0):
            one.recorder.add(probe.name, step, probe.sites, probe.read(seen).tolist())
