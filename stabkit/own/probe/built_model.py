"""What a user's factory returned, as one value: the model, its loss, its optimiser, and what the model is called with.

    factory(depth), factory(depth, width)
        → model | (model, loss) | (model, loss, optimizer) | (model, loss, optimizer, scheduler)

What a loss may be: `objective.py`. The call that it makes of the model at step 0 is the one that the residual stream is
read on. Optimiser and scheduler may be lists. Everything wrong with it is told in one line, as UsageError; what the
user's code raises passes through.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.chain import updates
from stabkit.own.chain.gradients import gradient_norms
from stabkit.own.factory import needed, one_line
from stabkit.own.first_look import first_look, gains
from stabkit.own.probe import learnable
from stabkit.own.probe.objective import RATE, Objective, default_loss
from stabkit.own.probe.objective import objective as of_loss
from stabkit.own.probe.schedule import Schedule, peak, scale
from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import and_more
from stabkit.own.sublayers.memory import digest
from stabkit.own.sublayers.run import Call

FACTORY = "FACTORY"
RETURN = "model, (model, loss), (model, loss, optimizer) or (model, loss, optimizer, scheduler)"
ONE_BATCH = (
    "every update uses the same batch: the model can learn it by heart, which hides gradients that fade on new "
    "batches; give loss(model, step), or (loss, batches)"
)


@dataclass(frozen=True, kw_only=True)
class BuiltModel:
    """A model that is ready for its updates."""

    model: nn.Module
    objective: Objective
    optimizers: tuple[torch.optim.Optimizer, ...]
    """What makes an update, one after the other."""
    schedule: Schedule
    """What steps after them."""
    call: Call
    """What the loss calls the model with."""
    start: float
    """The loss at θ_0, in eval mode."""
    begun: tuple[float, float]
    """The loss at θ_0 in the factory's mode and its gradient's norm: an edit that leaves weights alone moves them."""
    fresh: bool
    """Whether every update has a batch of its own."""
    notes: tuple[str, ...]
    changed: tuple[str, ...] = ()
    """How the names of the parameters end that a change was made on."""
    factors: tuple[float, ...] = ()
    """What that change multiplies or divides by, where it depends on the model."""
    normed_sums: bool = False
    """Whether a norm follows every sum whose branch was scaled."""


def make(
    factory: Callable[..., Any],
    name: str,
    depth: int | None,
    seed: int,
    lr: float,
    warmup: int | None = None,
    width: int | None = None,
    *,
    base: float = 0.0,
    source: int | None = None,
    times: float = 1.0,
) -> BuiltModel:
    """Call the factory at a depth, and at a width where one is asked for, every random stream seeded before; AdamW at
    `lr` where it brings no optimiser.

    Optimisers of its own keep their rates where `lr` is 0, else all groups' rates in proportion, the first at `lr`;
    with `base` a rate of `base` becomes `lr`: the factory's first at another size, so that its own law of the rate in
    the size is kept. `warmup`: updates over which the rate rises to its own; None for the factory's scheduler, or none.
    `source`: of the batches where it brings no loss; None for the seed. `times`: what all rates are multiplied by then.
    """
    seeded(seed)
    given = factory(*(size for size in (depth, width) if size is not None))
    model, loss, optimizers, schedulers = _parts(given, name)
    run.refuse(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise UsageError(f"{name}: every parameter is frozen (requires_grad=False); there is nothing to train")
    notes = []
    if loss is None:
        objective = default_loss(model, seed if source is None else source)
        data = learnable.DESCRIBED
        notes.append(f"the factory gives no loss: cross-entropy on new batches of synthetic data ({data}) is used")
        notes += filter(None, [objective.note])
    else:
        objective = of_loss(loss, name)
    if not optimizers:
        optimizers = (torch.optim.AdamW(trained, lr=lr or RATE),)
    else:
        notes += _own_optimizers(optimizers, model, name, lr, schedulers, base)
    if times != 1:
        scale(optimizers, schedulers, times)
    schedule = Schedule.of(schedulers, optimizers, warmup, name)
    notes += schedule.notes
    frozen = sum(1 for p in model.parameters() if not p.requires_grad)
    if frozen:
        notes.append(f"{frozen} frozen parameters are left out of gradients and steps")
    notes += [f"{own.sentence}; {own.remedy}" for own in first_look(model, optimizers) if own.topic != "not finite"]
    notes += gains(model)
    if any(p.dtype in (torch.bfloat16, torch.float16) for p in trained):
        notes.append("weights in half precision: bfloat16 loses steps below 2⁻⁸ of a weight")
    call, start = called(model, lambda model: objective.at(model, 0), name, stepped=objective.fresh)
    later = (call, start)
    if objective.fresh:
        later = called(model, lambda model: objective.at(model, 1), name, stepped=True)
    fresh = start != later[1] or _content(call) != _content(later[0])
    if not fresh:
        notes.append(ONE_BATCH)
    return BuiltModel(
        model=model,
        objective=objective,
        optimizers=optimizers,
        schedule=schedule,
        call=call,
        start=start,
        begun=_begun(model, lambda model: objective.at(model, 1), name),
        fresh=fresh,
        notes=tuple(notes),
    )


def _content(call: Call) -> str:
    return digest((call.args, dict(call.kwargs)))


def model_and_loss(given: Any, name: str) -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor] | None]:
    """What a factory returned, in any of its forms: the model, and its loss on the batch of step 0 (None where it gives
    none), whose errors are of one line. Raises UsageError for what is no such thing."""
    model, loss, *_ = _parts(given, name)
    if loss is None:
        return model, None
    try:
        own = of_loss(loss, name)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # of the user's batches
        raise UsageError(f"{name}: its batches raised {one_line(error)}") from error

    def at_start(model: nn.Module) -> torch.Tensor:
        try:
            return own.at(model, 0)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:  # the user's own
            raise UsageError(f"{name}: its loss raised {one_line(error)}") from error

    return model, at_start


def fits(factory: Callable[..., Any], name: str, depth: int | None, width: int | None = None) -> None:
    """Whether the factory takes a depth, or a depth and a width, where they are asked for; raises UsageError."""
    free = needed(factory)
    if by_name := [own for own in free if _by_name(factory, own)]:
        raise UsageError(
            f"{name} takes {by_name[0]!r} by name alone; give it a default, or let it be a plain parameter"
        )
    if width is not None and (depth is None or not _takes(factory, 2) or len(free) > 2):
        raise UsageError(f"{name} must take a depth and a width: write it as factory(depth, width), and give --depths")
    if depth is not None and not free and not _takes(factory, 1):
        raise UsageError(f"{name} takes no depth; write it as factory(depth), or leave out --depths")
    if depth is None and free:
        raise UsageError(f"{name} takes {free[0]!r}; give --depths 6,12,24,48")
    if depth is not None and width is None and len(free) > 1:
        raise UsageError(f"{name} takes more than a depth ({', '.join(free)}); give the others defaults")


def _by_name(factory: Callable[..., Any], parameter: str) -> bool:
    kind = inspect.signature(factory).parameters[parameter].kind
    return kind is inspect.Parameter.KEYWORD_ONLY


def _takes(factory: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many arguments."""
    try:
        inspect.signature(factory).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin: calling it will tell
        return True
    return True


def _parts(given: Any, name: str) -> tuple[nn.Module, Any, tuple[torch.optim.Optimizer, ...], tuple[Any, ...]]:
    parts = given if isinstance(given, tuple) else (given,)
    model, loss, optimizer, scheduler = (*parts, None, None, None)[:4]
    optimizers = updates.several(optimizer)
    schedulers = tuple(scheduler) if isinstance(scheduler, (list, tuple)) else () if scheduler is None else (scheduler,)
    as_said = (
        len(parts) <= 4
        and isinstance(model, nn.Module)
        and (len(parts) < 2 or callable(loss) or isinstance(loss, tuple))
        and (len(parts) < 3 or (optimizers and all(isinstance(own, torch.optim.Optimizer) for own in optimizers)))
        and all(callable(getattr(own, "step", None)) for own in schedulers)
    )
    if not as_said:
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise UsageError(f"{name} must return {RETURN}, got {kinds}")
    return model, loss, optimizers, schedulers


def _own_optimizers(
    optimizers: Sequence[torch.optim.Optimizer],
    model: nn.Module,
    name: str,
    lr: float,
    schedulers: Sequence[Any],
    base: float,
) -> list[str]:
    """Set their rates, check that they hold the model; notes."""
    updates.refuse(optimizers, name)
    trained = {id(p): own for own, p in model.named_parameters() if p.requires_grad}
    for optimizer in optimizers:
        step = inspect.signature(type(optimizer).step).parameters.get("closure")
        kind = type(optimizer).__name__
        if step is not None and step.default is step.empty:
            raise UsageError(f"{name}: {kind} steps by a closure, which hides its gradients; use another optimizer")
        if not {id(p) for p in model.parameters()} & updates.parameter_ids(optimizer):
            which = "its optimizer" if len(optimizers) == 1 else f"its {kind}"
            raise UsageError(f"{name}: {which} holds none of the model's parameters")
    if lr:
        first = peak(optimizers)
        if not first > 0:
            has = "which has none (no lr in its first group)" if math.isnan(first) else f"whose first is {first:g}"
            raise UsageError(f"{name}: --lr scales the rates of its optimizer, {has}")
        scale(optimizers, schedulers, lr / (base or first))
    notes = [f"the factory's own {updates.name(optimizers)}", *updates.notes(optimizers)]
    held = {place for optimizer in optimizers for place in updates.parameter_ids(optimizer)}
    missing = [own for place, own in trained.items() if place not in held]
    return [*notes, f"stepped by no optimizer given: {and_more(missing)}"] if missing else notes


def called(
    model: nn.Module, loss: Callable[[nn.Module], Any], name: str, *, stepped: bool = False
) -> tuple[Call, float]:
    """(what the loss calls the model with, the loss), in eval mode; raises UsageError where one of them is no use."""
    calls: list[Call] = []

    def keep(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        calls.append(Call(args, dict(kwargs)))

    handle = model.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        values = [_value(model, loss, name, seed) for seed in (0, 1)]
    finally:
        handle.remove()
    if repr(values[0]) != repr(values[1]):
        how = "let it follow from the step" if stepped else "write loss(model, step), or draw it once in the factory"
        which = "loss(model, step)" if stepped else "loss(model)"
        raise UsageError(
            f"{name}: {which} gives {values[0]:.6g} and then {values[1]:.6g} at the same weights; its batch must be "
            f"the same at the same step: {how}; of an iterator return (loss, batches)"
        )
    if not calls:
        raise UsageError(f"{name}: loss(model) never calls the model itself; call model(…), not one of its parts")
    return calls[0], values[0]


def _value(model: nn.Module, loss: Callable[[nn.Module], Any], name: str, seed: int) -> float:
    """The loss before any update, whatever state chance is in."""
    with run.untouched(model):
        seeded(seed)
        model.eval()
        value = loss(model)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        kind = f"a tensor {list(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
        raise UsageError(f"{name}: loss(model) must be a scalar tensor, got {kind}")
    if not value.requires_grad:
        raise UsageError(f"{name}: the loss has no gradient (detached, or computed under no_grad)")
    return float(value.detach())


def _begun(model: nn.Module, loss: Callable[[nn.Module], torch.Tensor], name: str) -> tuple[float, float]:
    """(loss, norm of its gradient) as the factory left the model, by a fixed chance; no gradient is kept."""
    with run.untouched(model):
        seeded(0)
        value = loss(model)
        value.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    updated = [p for p in model.parameters() if p.grad is not None]
    if not updated:
        raise UsageError(f"{name}: the loss's gradient reaches none of the model's parameters")
    norm = float(gradient_norms({"": updated}))
    model.zero_grad(set_to_none=True)
    return float(value.detach()), norm


def seeded(seed: int) -> None:
    """Every random stream that a user's code may draw from."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
