"""What a method or a probe of anyone's is to keep, tried on models that take a second: the contracts of the tables, for
one that is not in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import valid
from stabkit.methods.base import Method, sites
from stabkit.methods.blocks import BLOCKS, Block
from stabkit.methods.count import parameters
from stabkit.methods.own import Texts, said
from stabkit.model import second
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes import PROBES
from stabkit.probes.tools import own
from stabkit.spec import Chosen, ModelConfig, Own, RunSpec, TaskConfig, TrainConfig, depth_text
from stabkit.tasks import objective
from stabkit.tasks.base import PAD, Task
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

SMALL = RunSpec(
    method="deepnorm",
    model=ModelConfig(encoder_layers=2, decoder_layers=2, hidden=16, ffn=32),
    train=TrainConfig(steps=2, max_tokens=64, warmup=0, dropout=0.1),
    task=TaskConfig(vocab=200),
)
"""A run that takes a tenth of a second, with everything that may be disturbed."""


def probe(one: Own, texts: Texts) -> str:
    """The name under which a probe of one's own is recorded. Raises UsageError, in one line, where it breaks the
    contract: sites, as many numbers, no bit of training or of another probe changed."""
    made, place = own.probe(one, texts), f"{one.file}:{one.name}"
    if made.name.removeprefix("own-") in {each.name for each in PROBES}:
        raise UsageError(f"{place}: the name {made.name[4:]!r} is a built-in probe's; give it another")
    task = Synthetic(vocab=SMALL.task.vocab, max_tokens=SMALL.train.max_tokens)
    try:
        model = train.build(SMALL, task, torch.device("cpu"))
        sites = made(model, Flat(model, model.parts())).sites
        if not isinstance(sites, tuple) or not sites or not all(isinstance(site, str) and site for site in sites):
            raise UsageError(f"{place} is a probe without sites: __init__ is to set self.sites, a tuple of names")
        if len(set(sites)) < len(sites):
            raise UsageError(f"{place}: two of its sites have one name")
        plain, watched = (train.run(replace(SMALL, probes=probes), task, texts=texts) for probes in ((), (one,)))
    except UsageError:
        raise
    except Exception as error:  # whatever a user's class raises
        raise UsageError(said(error, one.file)) from error
    shape = watched.records[made.name].values.shape
    if shape[1:] != (len(sites),):
        came = f"{shape[1]} numbers" if len(shape) == 2 else f"shape {shape[1:]}"
        raise UsageError(f"{place}: read() is to return a tensor of its {len(sites)} sites, and returned {came}")
    for name, table in plain.records.items():
        if not np.array_equal(table.values, watched.records[name].values, equal_nan=True):
            raise UsageError(f"{place} changes what it watches: {name} is other with it than without")
    return made.name


@dataclass(frozen=True, slots=True)
class Checked:
    """One sentence of the contract: what was tried, and what broke; "" where it holds."""

    what: str
    broke: str


ARCHITECTURES = ((1, 1), (1, 0), (0, 1))
"""(N, M) in units of layers: both stacks, an encoder, a decoder."""
AGREES = 1e-8
"""Largest difference of logits, of the size of the largest, between two implementations in float64."""


def method(chosen: Chosen, made: Method, texts: Texts) -> Iterator[Checked]:
    """The contract of the table of methods, sentence by sentence: what its slots say; at six layers, in every
    architecture and block, two updates that are finite at every tap and as many parameters as the slots count; the same
    logits as a second implementation; at a hundred layers a finite loss and gradient."""
    depths = [(n, m) for n, m in ARCHITECTURES if not made.undefined(n, m)]
    slips = [f"{depth_text(6 * n, 6 * m)}: {fault}" for n, m in depths for fault in valid.faults(made, 6 * n, 6 * m)]
    more = f", and {len(slips) - 1} more" if len(slips) > 1 else ""
    yield Checked("what its slots say", f"{slips[0]}{more}" if slips else "")
    if slips:
        return
    yield Checked("builds in an architecture", "" if depths else "it is defined in none")
    block: Block
    for block in BLOCKS:
        for n, m in depths:
            spec = _spec(chosen, block, 6 * n, 6 * m)
            yield _tried(f"{spec.depth}, {block}: two updates, finite at every tap", _trains, spec, texts)
            small = _spec(chosen, block, 2 * n, 3 * m)
            yield _tried(f"{small.depth}, {block}: a second implementation agrees", _agrees, small, texts)
    for n, m in depths:
        deep = _spec(chosen, "classic", 100 * n, 100 * m)
        yield _tried(f"{deep.depth}: builds, loss and gradient finite", _deep, deep, texts)


def _spec(chosen: Chosen, block: Block, n: int, m: int) -> RunSpec:
    config = replace(SMALL.model, encoder_layers=n, decoder_layers=m, **BLOCKS[block])
    train_config = replace(SMALL.train, dropout=0.0)
    return replace(SMALL, method=chosen.key, options=chosen.options, own=chosen.own, model=config, train=train_config)


def _tried(what: str, check: Callable[[RunSpec, Texts], str], spec: RunSpec, texts: Texts) -> Checked:
    try:
        return Checked(what, check(spec, texts))
    except Exception as error:  # whatever a user's method brings about
        return Checked(what, said(error, spec.own.file if spec.own else spec.method))


def _task(spec: RunSpec) -> Task:
    whole = Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens)
    return objective.of(whole, spec.model.encoder_layers, spec.model.decoder_layers)


def _trains(spec: RunSpec, texts: Texts) -> str:
    result = train.run(spec, _task(spec), texts=texts)
    names = [site.name for site in sites(spec.model.encoder_layers, spec.model.decoder_layers, spec.model.hidden)]
    for name in ("loss", "ln_input", "branch_ratio", "stream"):
        table = result.records[name]
        if not np.isfinite(table.values).all():
            return f"{name} is not finite"
        if name in ("ln_input", "branch_ratio") and [site for site in table.sites if "@" not in site] != names:
            return f"{name} did not see every tap"
    counted = parameters(methods.made(spec, texts), spec.model, spec.task.vocab)
    if result.parameters != counted:
        return f"the model has {result.parameters:,} parameters, its slots say {counted:,}"
    if not result.records["update"].at("state")[-1] > 0:
        return "two updates do not move its output"
    return ""


def _agrees(spec: RunSpec, texts: Texts) -> str:
    """Both implementations at weights of which nothing is 0 or 1 by chance."""
    model = Transformer(spec.model, methods.made(spec, texts), spec.task.vocab, spec.seed).double().eval()
    generator = torch.Generator().manual_seed(0)
    batch = _task(spec).probe()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(noise, alpha=0.2 / math.sqrt(max(1, parameter.ndim)))
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target_in)
        ours = model(source, target)[1].transpose(0, 1).numpy()
    theirs = second.logits(model.method, spec.model, model.arrays(), batch.source, batch.target_in)
    real = (batch.target_in if spec.model.decoder_layers else batch.source) != PAD
    apart = float(np.abs(ours - theirs)[real].max() / np.abs(theirs[real]).max())
    return "" if apart < AGREES else f"the logits are {apart:.1g} of the largest apart"


def _deep(spec: RunSpec, texts: Texts) -> str:
    task = _task(spec)
    model = train.build(spec, task, torch.device("cpu"), texts)
    flat = Flat(model, model.parts())
    loss = train.forward(model, task.train(0, 0), spec.train.label_smoothing).loss
    loss.backward()  # type: ignore[no-untyped-call]
    finite = bool(torch.isfinite(loss)) and bool(torch.isfinite(flat.grad).all())
    return "" if finite else f"the loss is {float(loss.detach()):.3g}, or its gradient is not finite"
