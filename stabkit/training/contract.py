"""What a probe of anyone's is to keep, tried on models that take a second: the contract of the table of probes, for
one that is not in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from stabkit.errors import UsageError
from stabkit.methods.own import Texts, located
from stabkit.model.flat import Flat
from stabkit.probes import PROBES, Probe
from stabkit.probes.tools import own
from stabkit.spec import ModelConfig, Own, RunSpec, TaskConfig, TrainConfig
from stabkit.tasks import objective
from stabkit.tasks.base import Task
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from stabkit.training.state import State

SMALL = RunSpec(
    method="deepnorm",
    model=ModelConfig(encoder_layers=2, decoder_layers=2, hidden=16, ffn=32),
    train=TrainConfig(steps=3, max_tokens=64, warmup=0, dropout=0.1),
    task=TaskConfig(vocab=200),
)
"""A run that takes a tenth of a second, with everything that may be disturbed."""


def probe(source: Own, texts: Texts, n: int = 1, m: int = 1) -> Own:
    """The probe with the name under which it is recorded and what it says of itself, for models with these stacks.

    Raises UsageError, in one line, where it breaks the contract: sites, a tensor of as many numbers, no bit of training
    or of another probe changed, and after a checkpoint the same records as without one.
    """
    made, place = own.probe(source, texts), f"{source.file}:{source.name}"
    name = made.name.removeprefix("own-")
    if name in {each.name for each in PROBES}:
        raise UsageError(f"{place}: the name {name!r} is a built-in probe's; give it another")
    model = replace(SMALL.model, encoder_layers=2 * bool(n), decoder_layers=2 * bool(m))
    plain = replace(SMALL, model=model)
    try:
        _reads(made, plain, place)
        _records(source, plain, texts, made.name, place)
    except UsageError:
        raise
    except Exception as error:  # whatever a user's class raises
        raise UsageError(located(error, source.file)) from error
    words = [line.strip() for line in (made.__doc__ or made.__base__.__doc__ or "").splitlines() if line.strip()]
    return replace(source, label=name, says=words[0].rstrip(".") if words else "")


def _reads(made: type[Probe], spec: RunSpec, place: str) -> None:
    """Sites, and one reading of one pass."""
    task = _task(spec)
    model = train.build(spec, task, torch.device("cpu"))
    probe = made(model, Flat(model, model.parts()))
    sites = getattr(probe, "sites", None)
    if not isinstance(sites, tuple) or not sites or not all(isinstance(site, str) and site for site in sites):
        raise UsageError(f"{place} is a probe without sites: __init__ must set self.sites, a tuple of names")
    if len(set(sites)) < len(sites):
        raise UsageError(f"{place}: two of its sites have the same name")
    model.train(probe.watches == "training")
    with train.watching([probe], probe.watches):
        seen = train.forward(model, task.probe(), spec.train.label_smoothing)
        seen.loss.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        values = probe.read(seen)
    asked = f"read() must return a tensor of its {len(sites)} site{'s' * (len(sites) > 1)}"
    if not isinstance(values, torch.Tensor):
        raise UsageError(f"{place}: {asked}, but returned {type(values).__name__}")
    if values.shape != (len(sites),):
        more = "; `.reshape(1)` makes one of a single number" if len(sites) == 1 else ""
        raise UsageError(f"{place}: {asked}, but returned one of shape {tuple(values.shape)}{more}")


def _records(source: Own, spec: RunSpec, texts: Texts, name: str, place: str) -> None:
    """The same run without it, with it, and with it from a checkpoint on; all on the path that it asks for."""
    task, states = _task(spec), list[State]()
    model = train.build(spec, task, torch.device("cpu"))
    asks = train.needs_python(model, own.probe(source, texts)(model, Flat(model, model.parts())))
    without = train.run(spec, task, kernels="python" if asks else "fused").records
    watched = replace(spec, probes=(source,))
    whole = train.run(watched, task, texts=texts, save=states.append, every=1).records
    for each, table in without.items():
        if not np.array_equal(table.values, whole[each].values, equal_nan=True):
            raise UsageError(f"{place} changes the training: {each} differs with it and without")
    again = train.run(watched, task, texts=texts, start=states[-1]).records
    if not np.array_equal(whole[name].values, again[name].values, equal_nan=True):
        raise UsageError(
            f"{place} remembers something that a checkpoint loses: give it `state` and `restore` (stabkit.probes.base)"
        )


def _task(spec: RunSpec) -> Task:
    """The synthetic language for these stacks."""
    whole = Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens)
    return objective.of(whole, spec.model.encoder_layers, spec.model.decoder_layers)
