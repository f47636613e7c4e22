"""What every method is to keep, tried on models that take a second, sentence by sentence: the contract of the table of
methods, for one that is in it or for one of your own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from stabkit import methods
from stabkit.methods import validate
from stabkit.methods.base import Method, sites
from stabkit.methods.blocks import BLOCKS
from stabkit.methods.count import parameters
from stabkit.methods.own import Texts, located
from stabkit.methods.wirings import Wired, wired
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.model.wirings.base import ChainWiring
from stabkit.results.sites import main_sites
from stabkit.spec import Block, Chosen, Kernels, RunSpec, depth_text
from stabkit.tasks import objective
from stabkit.tasks.base import PAD, Task
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from stabkit.training.contract import SMALL


@dataclass(frozen=True, slots=True)
class Checked:
    """One sentence of the contract: what was tried, and what broke; "" where it holds."""

    what: str
    broke: str


ARCHITECTURES = ((1, 1), (1, 0), (0, 1))
"""(N, M) in units of layers: both stacks, an encoder, a decoder."""
AGREES = 1e-8
"""Largest difference of logits, of the size of the largest, between two paths in float64."""


def checks(chosen: Chosen, made: Method, texts: Texts) -> Iterator[Checked]:
    """The contract of the table of methods, sentence by sentence: what its slots say; at six layers, in every
    architecture and block, two updates that are finite at every tap and as many parameters as the slots count; the same
    logits by both paths of the model; at a hundred layers a finite loss and gradient."""
    slips = []
    for n, m in [(layers * n, layers * m) for layers in (6, 100) for n, m in ARCHITECTURES]:
        try:
            slips += [f"{depth_text(n, m)}: {fault}" for fault in validate.faults(made, n, m)]
        except Exception as error:  # whatever a slot raises
            slips.append(f"{depth_text(n, m)}: {located(error, chosen.own.file if chosen.own else made.key)}")
    depths = [] if slips else [(n, m) for n, m in ARCHITECTURES if not made.undefined(n, m)]
    more = f", and {len(slips) - 1} more" if len(slips) > 1 else ""
    yield Checked("what its slots say", f"{slips[0]}{more}" if slips else "")
    if slips:
        return
    yield Checked("builds in an architecture", "" if depths else "it is defined in none")
    for n, m in depths if isinstance(made.wiring, Wired) else ():
        spec = _spec(chosen, "classic", 2 * n, 2 * m)
        check = _tried(f"{spec.depth}: its wiring passes on its states and keeps none", _passes_on, spec, texts)
        yield check
        if check.broke:
            return
    block: Block
    for block in BLOCKS:
        for n, m in depths:
            spec = _spec(chosen, block, 6 * n, 6 * m)
            yield _tried(f"{spec.depth}, {block}: two updates, finite at every tap", _trains, spec, texts)
            small = _spec(chosen, block, 2 * n, 3 * m)
            yield _tried(f"{small.depth}, {block}: both of its paths agree", _agrees, small, texts)
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
        return Checked(what, located(error, spec.own.file if spec.own else spec.method))


def _task(spec: RunSpec) -> Task:
    """The synthetic language for these stacks."""
    whole = Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens)
    return objective.of(whole, spec.model.encoder_layers, spec.model.decoder_layers)


def _trains(spec: RunSpec, texts: Texts) -> str:
    result = train.run(spec, _task(spec), texts=texts)
    names = [site.name for site in sites(spec.model.encoder_layers, spec.model.decoder_layers, spec.model.hidden)]
    for name in ("loss", "ln_input", "branch_ratio", "stream"):
        table = result.records[name]
        if not np.isfinite(table.values).all():
            return f"{name} is not finite"
        if name in ("ln_input", "branch_ratio") and main_sites(table.sites) != names:
            return f"{name} did not see every tap"
    counted = parameters(methods.method_of(spec, texts), spec.model, spec.task.vocab)
    if result.parameters != counted:
        return f"the model has {result.parameters:,} parameters, its slots say {counted:,}"
    if not result.records["update"].at("state")[-1] > 0:
        return "two updates do not move its output"
    return ""


def _agrees(spec: RunSpec, texts: Texts) -> str:
    """The two paths that sub-layers take, at weights of which nothing is 0 or 1 by chance."""
    first, second = (_logits(kernels, spec, texts) for kernels in get_args(Kernels))
    apart = float(np.abs(first - second).max() / np.abs(second).max())
    return "" if apart < AGREES else f"the logits are {apart:.1g} of the largest apart"


def _passes_on(spec: RunSpec, texts: Texts) -> str:
    """One pass over a wiring by hand, step by step; and what a pass leaves on its module."""
    model = train.build(spec, _task(spec), torch.device("cpu"), texts)
    streams = wired(model.method.wiring).streams
    for wiring in model.history.values():
        assert isinstance(wiring, ChainWiring)
        x = torch.randn(3, 2, spec.model.hidden)
        held = _tensors(wiring)
        states = wiring.begin(x)
        if not isinstance(states, tuple) or len(states) < len(streams):
            return (
                f"begin gives {_kind_of(states)}, where streams names {len(streams)}: a tuple of as many states or more"
            )
        read = wiring.read(states, 0)
        if (
            not isinstance(read, tuple)
            or len(read) != 2
            or _shape(read[0]) != x.shape
            or not isinstance(read[1], tuple)
        ):
            return f"read gives {_kind_of(read)}, not (what the sub-layer reads, the states)"
        states = wiring.join(read[1], x, x if wiring.adds else None, 0)
        if not isinstance(states, tuple) or [_shape(s) for s in states[: len(streams)]] != [x.shape] * len(streams):
            return f"join gives {_kind_of(states)}, not a tuple that begins with {len(streams)} of {tuple(x.shape)}"
        if kept := sorted(_tensors(wiring) - held):
            return f"it keeps {', '.join(kept)} on the module after a pass: put it into the states"
    return ""


def _shape(value: object) -> object:
    return value.shape if isinstance(value, torch.Tensor) else None


def _kind_of(value: object) -> str:
    """`a tuple of 2`, `Tensor`."""
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__


def _tensors(module: torch.nn.Module) -> set[str]:
    """The names under which a module and those in it hold tensors that are no parameters or buffers, or lists of
    them."""
    known = {id(each) for each in (*module.parameters(), *module.buffers())}
    found = set()
    for each in module.modules():
        for name, value in vars(each).items():
            inner = (
                value if isinstance(value, list | tuple) else list(value.values()) if type(value) is dict else [value]
            )
            held = [one for one in inner if isinstance(one, torch.Tensor) and id(one) not in known]
            found |= {f"{name} ({len(held)} tensors)" if len(held) > 1 else name} if held else set()
    return found


def _logits(kernels: Kernels, spec: RunSpec, texts: Texts) -> NDArray[Any]:
    """Those of real tokens."""
    built = methods.method_of(spec, texts)
    model = Transformer(spec.model, built, spec.task.vocab, spec.seed, kernels=kernels).double().eval()
    generator = torch.Generator().manual_seed(0)
    batch = _task(spec).probe()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(noise, alpha=0.2 / math.sqrt(max(1, parameter.ndim)))
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target_in)
        logits: NDArray[Any] = model(source, target)[1].transpose(0, 1).numpy()
    real = (batch.target_in if spec.model.decoder_layers else batch.source) != PAD
    found: NDArray[Any] = logits[real]
    return found


def _deep(spec: RunSpec, texts: Texts) -> str:
    task = _task(spec)
    model = train.build(spec, task, torch.device("cpu"), texts)
    flat = Flat(model, model.parts())
    loss = train.forward(model, task.train(0, 0), spec.train.label_smoothing).loss
    loss.backward()  # type: ignore[no-untyped-call]
    finite = bool(torch.isfinite(loss)) and bool(torch.isfinite(flat.grad).all())
    return "" if finite else f"the loss is {float(loss.detach()):.3g}, or its gradient is not finite"
