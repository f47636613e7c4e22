"""One forward pass of a user's module that leaves it as it was: in eval mode, without gradients, watched.

Inputs are the user's own, or found: integers for a module with an embedding, numbers as wide as its first norm or
matrix for another, one argument or two. All have the shape SHAPE, so that it does not matter which axis counts
sentences.
"""

from __future__ import annotations

import copy
import operator
import random
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from stabkit.errors import UsageError
from stabkit.own.sublayers.memory import tensors
from stabkit.own.sublayers.watch import DispatchTrace

SHAPE = (4, 6)
LARGEST_TOKEN = 7
RETURN_INPUTS = "return (model, inputs) from the factory, with inputs a tuple for model(*inputs) or a dict"


def candidates(module: nn.Module, two_stacks: bool) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """(what it is, inputs), the likeliest first."""
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    tables = [m.num_embeddings for m in module.modules() if isinstance(m, nn.Embedding)]
    generator = torch.Generator().manual_seed(0)
    kinds: list[tuple[str, list[torch.Tensor]]] = []
    for size in dict.fromkeys((max(tables, default=LARGEST_TOKEN + 1), min(tables, default=LARGEST_TOKEN + 1))):
        most = min(LARGEST_TOKEN, size - 1)
        tokens = [
            torch.randint(min(2, most), most + 1, SHAPE, generator=generator).to(device) for _ in range(2)
        ]  # 0 and 1 often mean padding
        kinds.append((f"integers {SHAPE}", tokens))
    for width in _widths(module):
        dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
        floats = [torch.randn(*SHAPE, width, generator=generator).to(device, dtype) for _ in range(2)]
        kinds.append((f"numbers {(*SHAPE, width)}", floats))
    if not tables and len(kinds) > 1:
        kinds = [*kinds[1:], kinds[0]]
    if (shape := image_size(module)) is not None:
        images = torch.randn(SHAPE[0], *shape, generator=generator).to(device)
        kinds.append((f"images {tuple(images.shape)}", [images, images]))
    for count in (2, 1) if two_stacks else (1, 2):
        for name, values in kinds:
            yield " and ".join([name] * count), tuple(values[:count])


def image_size(model: nn.Module) -> tuple[int, int, int] | None:
    """(channels, height, width) of the images that a model's own attributes name; None where they name none."""
    config: Any = getattr(model, "config", None)
    patch: Any = getattr(model, "patch_embed", None)
    size = getattr(config, "image_size", None) or getattr(patch, "img_size", None)
    first = next((m for m in model.modules() if isinstance(m, nn.Conv2d)), None)
    channels = getattr(config, "num_channels", None) or (first.in_channels if first else None)
    if size is None or channels is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    return int(channels), int(height), int(width)


@dataclass(frozen=True, slots=True)
class Call:
    """What a model is called with."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, inputs: Any) -> Call:
        """Of a tuple for `model(*inputs)`, a dict for `model(**inputs)`, or one argument."""
        if isinstance(inputs, Call):
            return inputs
        if isinstance(inputs, Mapping):
            return cls(kwargs=inputs)
        return cls(tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,))

    def instead(self, x: torch.Tensor, other: torch.Tensor) -> Call:
        """With another tensor in the place of one."""
        kwargs = {name: other if own is x else own for name, own in self.kwargs.items()}
        return Call(tuple(other if own is x else own for own in self.args), kwargs)


def watched(module: nn.Module, inputs: Any, wanted: Set[int] = frozenset()) -> DispatchTrace:
    """The graph of one forward pass. Mode, weights, buffers and random states are as before; raises what it raises."""
    call = Call.of(inputs)
    watch = DispatchTrace(module, (call.args, dict(call.kwargs)), wanted)
    parts = list(module.modules())
    with _left(parts), torch.no_grad(), _eager():
        for part in parts:
            # not `eval()`, which a layer may answer by merging its weights, nor a Module's own slow way to set
            object.__setattr__(part, "training", False)
        try:
            with watch:
                watch.returned = module(*call.args, **call.kwargs)
        except NotImplementedError as error:
            if "HigherOrderOperator" not in str(error):
                raise
            raise UsageError("flex_attention cannot be watched; give the model eager or sdpa attention") from error
        finally:
            watch.own.undo()
    return watch


def returned(module: nn.Module, inputs: Any) -> Any:
    """What a forward pass in eval mode returns, nothing of it watched; the module is left as it was."""
    call = Call.of(inputs)
    with untouched(module), torch.no_grad():
        for part in module.modules():
            object.__setattr__(part, "training", False)
        return module(*call.args, **call.kwargs)


def looks_ahead(module: nn.Module, inputs: Any) -> bool | None:
    """Whether a token's output depends on the last token: of a decoder it does not. None where it depends on none.

    Either axis may count tokens: the last entry of the first row is changed, and that of the first column; what is read
    is the output at the places before it.
    """
    call = Call.of(inputs)
    x = tokens(call)
    if x is None or min(x.shape[:2]) < 2:
        return None
    at_last = [altered(x, place) for place in ((0, -1), (-1, 0))]
    others = altered(x, *((0, i) for i in range(x.shape[1] - 1)), *((i, 0) for i in range(x.shape[0] - 1)))
    with opened(module):
        before, *after, own = (_scores(returned(module, call.instead(x, other)), x) for other in (x, *at_last, others))
    if before is None or own is None or any(torch.equal(x, other) for other in at_last):
        return None
    sides = ((_before, after[0]), (lambda out: _before(out.transpose(0, 1)), after[1]))
    if any(out is not None and differs(side(before), side(out)) for side, out in sides):
        return True
    return False if differs(before[0, 0], own[0, 0]) else None


def _before(out: torch.Tensor) -> torch.Tensor:
    """Of the first row all places but the last; the one that there is of a model that gives one a row."""
    return out[0, :-1] if out.shape[1] > 1 else out[0]


@contextmanager
def opened(module: nn.Module) -> Iterator[None]:
    """Within, parameters that are 0 are drawn, so that what starts closed (a head, a gate, a branch) lets through."""
    closed = [
        p
        for p in module.parameters()
        if p.is_floating_point() and p.element_size() > 1 and not p.is_meta and not p.any()
    ]
    before = [p.data for p in closed]
    random = torch.Generator().manual_seed(0)
    try:
        for p in closed:
            p.data = (torch.randn(p.shape, generator=random) * OPENED).to(p)
        yield
    finally:
        for p, own in zip(closed, before, strict=True):
            p.data = own


OPENED = 0.1
"""Standard deviation of what is drawn for parameters that are 0."""


def altered(x: torch.Tensor, *places: tuple[int, int]) -> torch.Tensor:
    """With other entries, of its first row, at these places."""
    other = x.clone()
    for place in places:
        other[place] = next((y for y in x[0] if not torch.equal(y, x[place])), x[place])
    return other


def differs(a: torch.Tensor, b: torch.Tensor) -> bool:
    """By more than rounding."""
    return bool((a - b).abs().max() > ROUNDING * a.abs().max())


ROUNDING = 1e-6
"""Of the largest entry."""


def tokens(call: Call) -> torch.Tensor | None:
    """The one input that has tokens, (rows, tokens, …); None where there are several. Times and classes have rows."""
    values = [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, torch.Tensor) and x.dim() > 1]
    return values[0] if len(values) == 1 else None


def _scores(given: Any, x: torch.Tensor) -> torch.Tensor | None:
    """What a pass over `x` returned, (rows, tokens, …), with one token where it gives one a row."""
    out = next((t for t in tensors(given) if t.is_floating_point() and t.dim() > 1), None)
    if out is None or out.dim() > 2:
        return out
    return out.reshape(*x.shape[:2], -1) if len(out) == x.shape[0] * x.shape[1] else out[:, None]


@contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Within, the module may be run in any mode: mode, buffers, attributes and random states are as before afterwards.

    A buffer that nobody wrote to is not written to either: a graph that holds it may still be waiting for its backward.
    Of attributes what they name is put back, the contents of lists, dicts and sets, and the state of generators; not
    what lies deeper, nor what a hook keeps elsewhere.
    """
    parts = list(module.modules())
    kept = [Attributes(part) for part in parts]
    before = [
        (part, name, buffer, _version(buffer), buffer.detach().clone())
        for part in parts
        for name, buffer in part._buffers.items()
        if buffer is not None
    ]
    names = [(part, set(part._buffers)) for part in parts]
    try:
        with _left(parts), _eager():
            yield
    finally:
        for attributes in kept:
            attributes.put_back()
        with torch.no_grad():
            for part, known in names:
                for new in set(part._buffers) - known:
                    del part._buffers[new]
            for part, name, buffer, version, old in before:
                part._buffers[name] = buffer
                if version is None or _version(buffer) != version or not torch.equal(buffer, old):  # BatchNorm
                    buffer.copy_(old)


class Attributes:
    """What a module's attributes are, to be put back."""

    def __init__(self, part: nn.Module) -> None:
        self.part, self.named = part, dict(part.__dict__)
        plain = [value for name, value in self.named.items() if name not in BASE]
        self.held = [(value, copy.copy(value)) for value in plain if type(value) in (list, dict, set)]
        self.chances = [(value, value.get_state()) for value in plain if isinstance(value, torch.Generator)]
        self.arrays = [
            (value.bit_generator, value.bit_generator.state)
            for value in plain
            if isinstance(value, np.random.Generator)
        ]

    def put_back(self) -> None:
        now = self.part.__dict__
        if len(now) != len(self.named) or not all(map(operator.is_, now.values(), self.named.values())):
            for name in now.keys() - self.named.keys():
                del now[name]
            for name, value in self.named.items():
                if now.get(name) is not value:
                    now[name] = value
        for value, old in self.held:
            if isinstance(value, list):
                value[:] = old
            else:
                value.clear()
                value.update(old)
        for generator, state in self.chances:
            generator.set_state(state)
        for bits, numbers in self.arrays:
            bits.state = numbers


BASE = frozenset(nn.Module().__dict__)
"""What every module has: its parameters, buffers, parts and hooks."""


def _version(tensor: torch.Tensor) -> int | None:
    """How often it was written to; None where torch does not count (inference mode)."""
    return None if tensor.is_inference() else tensor._version


def refuse(module: nn.Module) -> None:
    """UsageError for a module whose weights cannot be measured."""
    parameters = dict(module.named_parameters())
    for name, parameter in parameters.items():
        if is_lazy(parameter):
            raise UsageError(f"{name} is not initialised yet (a lazy module); run the model once in the factory")
        if parameter.is_meta:
            raise UsageError(f"{name} is on the meta device and has no values; build the model on a real one")
    if not any(p.dim() > 1 for p in parameters.values()):
        raise UsageError("the model's parameters contain no matrix; there is nothing to read")


def _widths(module: nn.Module) -> Sequence[int]:
    """Widths that the module's own norms and matrices suggest, the first built first."""
    rows = []
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            rows.append(part.normalized_shape[-1])
        elif isinstance(part, nn.MultiheadAttention):
            rows.append(part.embed_dim)
        elif isinstance(part, nn.Linear):
            rows.append(part.in_features)
    return list(dict.fromkeys(rows))[:2]


@contextmanager
def _left(parts: Sequence[nn.Module]) -> Iterator[None]:
    """Mode and random states are as before afterwards."""
    modes = [(part, part.training) for part in parts]
    fast = torch.backends.mha.get_fastpath_enabled()
    python, arrays = random.getstate(), np.random.get_state()
    cuda: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if cuda else []):
        try:
            torch.backends.mha.set_fastpath_enabled(False)  # one operation for a whole layer: nothing to see
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for part, training in modes:
                object.__setattr__(part, "training", training)
            random.setstate(python)
            np.random.set_state(arrays)


def _eager() -> Any:
    """A compiled module runs as it was written."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")
