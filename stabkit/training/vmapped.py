"""Runs of one shape trained at once on one device: seeds, rates, factors on α and β, methods that differ in numbers.

A model 64 wide keeps a GPU waiting for its next small operation; K of them in one operation cost nearly what one does.
Their vectors θ are the rows of a matrix (K, P), the passes are one model's under `torch.vmap` with these rows in the
place of its parameters, and each run keeps its own optimiser, schedule, probes and record (`train.OneRun`): what probes
watch leaves the vmapped pass as tensors (K, …), a slice of which passes every run's own taps. Equal to the runs one by
one to rounding (`tests/training/test_vmapped.py`); never to the bit, and a run's environment says so.

Batches of several seeds differ in shape: they are padded to the largest, what is read is cut back to each run's own.
Sentences that a smaller batch lacks are a word that nobody is asked about.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from stabkit.methods.own import Texts
from stabkit.model.bound import bound, places
from stabkit.model.flat import Flat
from stabkit.model.tap import Tap
from stabkit.model.transformer import Transformer
from stabkit.probes import Pass
from stabkit.spec import RunSpec
from stabkit.tasks.base import EOS, PAD, Batch, Task, Tokens
from stabkit.training.train import OneRun, Result, TellOf, begun, mean, passed, trained, watching, without_denormals


@without_denormals()
def together(
    specs: Sequence[RunSpec],
    tasks: Sequence[Task],
    device: str = "cpu",
    tell: TellOf = lambda one, step, loss: None,
    texts: Texts = {},  # noqa: B006
) -> list[Result]:
    """Train runs at once and measure each; their shapes must be alike (`running/grouping.py`), without dropout."""
    theta, grad, row = torch.empty(0), torch.empty(0), 0

    def laid(flat: Flat) -> None:
        nonlocal theta, grad, row
        if not row:
            theta = flat.theta.new_empty((len(specs), len(flat.theta)))
            grad = torch.zeros_like(theta)
        flat.into(theta[row], grad[row])
        row += 1

    there = torch.device(device)
    runs = [begun(spec, task, there, texts, "python", laid) for spec, task in zip(specs, tasks, strict=True)]
    results = trained(runs, VmappedPasses(runs, theta, grad), tell)
    return [replace(result, kernels=f"python, {len(runs)} runs at once") for result in results]


class VmappedPasses:
    """The passes of K runs as one."""

    def __init__(self, runs: Sequence[OneRun], theta: torch.Tensor, grad: torch.Tensor) -> None:
        """`theta` and `grad` (K, P): of which the runs' vectors are the rows."""
        self.runs, first = runs, runs[0]
        self.smoothing, self.device = first.spec.train.label_smoothing, first.model.device
        self.theta = theta.detach().requires_grad_()  # the same numbers, and a leaf
        self.theta.grad = grad
        self.template = copy.deepcopy(first.model)
        theirs, ours = list(first.model.parameters()), list(self.template.parameters())
        known = {id(p): q for p, q in zip(theirs, ours, strict=True)}
        self.parts = [(known[id(p)], part) for p, part in first.flat.places()]
        self.places = places(self.template)
        self.taps = _taps(self.template)
        self.of_run = [_taps(one.model) for one in runs]
        self.dims = _dims(self.template)
        self.scales = self._scales()
        self.probe_batch, self.batches = first.task.probe(), first.task.validation()

    def _scales(self) -> list[tuple[Any, str, torch.Tensor]]:
        """(residual of the template, `omega` or `gamma`, its number in every run) of those that are numbers."""
        held = []
        for site, residual in self.template.residuals.items():
            for name in ("omega", "gamma"):
                values = [getattr(one.model.residuals[site], name) for one in self.runs]
                if isinstance(values[0], float) and len(set(values)) > 1:
                    held.append((residual, name, self.theta.new_tensor(values)))
        return held

    def training(self, step: int, recorded: bool) -> list[Pass]:
        batches = [one.task.train(one.spec.seed, step) for one in self.runs]
        assert self.theta.grad is not None
        self.theta.grad.zero_()
        with ExitStack() as hooks:
            for one in self.runs:
                hooks.enter_context(watching(one.probes, "training", recorded))
            seen, shifts = self._pass(batches, True)
            torch.stack([each.loss for each in seen]).sum().backward()  # type: ignore[no-untyped-call]
            for place, shift in shifts.items():
                for k, taps in enumerate(self.of_run):
                    for see in taps[place].gradients:
                        see(self._cut(shift.grad[k], place, batches[k]))  # type: ignore[index]
        return seen

    def probe(self, trained: Sequence[Pass]) -> list[Pass]:
        known = [(each.loss.detach(), each.nll()) for each in trained]
        return self._evaluated(self.probe_batch, known)

    def validation(self) -> list[list[float]]:
        by_batch = [self._evaluated(batch, None) for batch in self.batches]
        return [
            mean((batch, seen[k]) for batch, seen in zip(self.batches, by_batch, strict=True))
            for k in range(len(self.runs))
        ]

    @torch.no_grad()
    def _evaluated(self, batch: Batch, known: Sequence[tuple[torch.Tensor, torch.Tensor]] | None) -> list[Pass]:
        return self._pass([batch] * len(self.runs), False, known)[0]

    def _pass(
        self,
        batches: Sequence[Batch],
        training: bool,
        known: Sequence[tuple[torch.Tensor, torch.Tensor]] | None = None,
    ) -> tuple[list[Pass], dict[int, torch.Tensor]]:
        """A pass of every run, past its taps; and zeros by the taps whose gradient is asked for."""
        source, target_in, target_out = (
            self._padded([getattr(b, name) for b in batches], filler) for name, filler in FILLED
        )
        for model in (self.template, *(one.model for one in self.runs)):
            model.train(training)
        padded = bool((source == PAD).any()) if training else any((b.source == PAD).any() for b in batches)
        shifts = self._shifts(source, target_in) if training else {}
        theta = self.theta if training else self.theta.detach()
        views = [theta[:, part].view(len(self.runs), *p.shape) for p, part in self.parts]
        views = [v if p.requires_grad else v.detach() for v, (p, _) in zip(views, self.parts, strict=True)]
        keys: list[tuple[int, str]] = []

        def one(
            views: list[torch.Tensor],
            scales: list[torch.Tensor],
            shifts: dict[int, torch.Tensor],
            source: torch.Tensor,
            target_in: torch.Tensor,
            target_out: torch.Tensor,
        ) -> tuple[torch.Tensor, ...]:
            tensors = {id(p): view for (p, _), view in zip(self.parts, views, strict=True)}
            collected: list[torch.Tensor] = []
            keys.clear()
            with bound(self.places, tensors), ExitStack() as stack:
                self._collect(stack, training, collected, keys)
                for (residual, name, _), value in zip(self.scales, scales, strict=True):
                    stack.callback(setattr, residual, name, getattr(residual, name))
                    setattr(residual, name, value)
                for place, shift in shifts.items():
                    stack.callback(setattr, self.taps[place], "shift", None)
                    self.taps[place].shift = shift
                states, logits, loss, _ = self.template.score(source, target_in, target_out.t(), self.smoothing, padded)
            return states, logits, loss, *collected

        numbers = [values for *_, values in self.scales]
        states, logits, losses, *collected = torch.vmap(one)(views, numbers, shifts, source, target_in, target_out)
        for (place, what), values in zip(keys, collected, strict=True):
            for k, taps in enumerate(self.of_run):
                tap = taps[place]
                value = self._cut(values[k], place, batches[k])
                for watch in (tap.watchers if what == "x" else tap.lengths)[training]:
                    watch(value)
        last = self.template.stacks[-1]
        seen = []
        for k, batch in enumerate(batches):
            b, t = batch.source.shape if last == "encoder" else batch.target_in.shape
            on_device = tuple(torch.from_numpy(a).to(self.device) for a in (batch.source, batch.target_out))
            made = (states[k, :t, :b], logits[k, :t, :b], losses[k])
            seen.append(passed(batch, on_device, made, None, None if known is None else known[k]))  # type: ignore[arg-type]
        return seen, shifts

    def _padded(self, each: Sequence[Tokens], filler: int) -> torch.Tensor:
        """(K, B, L) of arrays (B_k, L_k): PAD on the right of sentences, and further sentences of one word."""
        rows, length = max(len(a) for a in each), max(a.shape[1] for a in each)
        out = np.full((len(each), rows, length), PAD)
        for k, array in enumerate(each):
            out[k, : len(array), : array.shape[1]] = array
            out[k, len(array) :, :1] = filler
        return torch.from_numpy(out).to(self.device)

    def _collect(
        self, stack: ExitStack, mode: bool, collected: list[torch.Tensor], keys: list[tuple[int, str]]
    ) -> None:
        """Within the stack's `with`, what any run's probes ask of a tap of the template goes into `collected`."""
        for place, tap in enumerate(self.taps):
            for what, asked in (("x", "watchers"), ("lengths", "lengths")):
                if any(getattr(taps[place], asked)[mode] for taps in self.of_run):

                    def keep(value: torch.Tensor, place: int = place, what: str = what) -> None:
                        keys.append((place, what))
                        collected.append(value)

                    getattr(tap, asked)[mode].append(keep)
                    stack.callback(getattr(tap, asked)[mode].remove, keep)

    def _shifts(self, source: torch.Tensor, target_in: torch.Tensor) -> dict[int, torch.Tensor]:
        """{tap: zeros (K, T, B, D)} of those whose gradient a probe asks for."""
        found = {}
        for place in range(len(self.taps)):
            if any(taps[place].gradients for taps in self.of_run):
                k, b, t = (source if self.dims[place][0] == "encoder" else target_in).shape
                shape = (k, t, b, self.template.config.hidden)
                found[place] = torch.zeros(shape, dtype=self.theta.dtype, device=self.device, requires_grad=True)
        return found

    def _cut(self, value: torch.Tensor, place: int, batch: Batch) -> torch.Tensor:
        """What of a run's slice is its own: (T, B, …), of scores (B·H, T, S)."""
        stack, keys = self.dims[place]
        (b, t), s = (batch.source if stack == "encoder" else batch.target_in).shape, batch.source.shape[1]
        if not keys:
            return value[:t, :b]
        return value[: b * self.template.config.heads, :t, : t if keys == "self" else s]


FILLED = (("source", EOS), ("target_in", EOS), ("target_out", PAD))
"""The arrays of a batch, and the word of sentences that a smaller batch lacks."""


def _taps(model: Transformer) -> list[Tap]:
    return [module for module in model.modules() if isinstance(module, Tap)]


def _dims(model: Transformer) -> list[tuple[str, str]]:
    """Of every tap its stack, and of those that scores pass the kind of attention; "" of states."""
    where: dict[int, tuple[str, str]] = {}
    for site, residual in model.residuals.items():
        for module in residual.modules():
            if isinstance(module, Tap):
                where[id(module)] = (site.stack, "")
        if site.kind != "ffn":
            where[id(residual.g.scores.logits)] = (site.stack, site.kind)  # type: ignore[union-attr]  # an Attention
    for name, tap in [*model.states("sub-layer").items(), *model.reads().items()]:
        where[id(tap)] = (name.partition(".")[0], "")
    for stack, wiring in model.history.items():
        where |= {id(module): (stack, "") for module in wiring.modules() if isinstance(module, Tap)}
    return [where[id(tap)] for tap in _taps(model)]
