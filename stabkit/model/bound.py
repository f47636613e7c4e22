"""A model with other tensors in the place of its parameters, for the length of a `with`: as torch.func.functional_call,
and also where a module keeps a second reference to one (`Transformer` does)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

Places = Sequence[tuple[nn.Module, str, nn.Parameter]]
"""(module, its name of the parameter, the parameter), every module that holds one."""


def places(model: nn.Module) -> Places:
    """Where a model's parameters stand."""
    return [
        (module, name, parameter)
        for module in model.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None
    ]


@contextmanager
def bound(where: Places, tensors: Mapping[int, torch.Tensor]) -> Iterator[None]:
    """`tensors`: {id of a parameter: what stands in its place}."""
    kept = []
    try:
        for module, name, parameter in where:
            kept.append((module, name, module._parameters[name], module.__dict__.get(name)))
            module._parameters[name] = tensors[id(parameter)]  # type: ignore[assignment]  # as torch's own does
            if name in module.__dict__:
                module.__dict__[name] = tensors[id(parameter)]
        yield
    finally:
        for module, name, held, attribute in kept:
            module._parameters[name] = held
            if attribute is not None:
                module.__dict__[name] = attribute
