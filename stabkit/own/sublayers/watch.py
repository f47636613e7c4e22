"""One forward pass, watched: every operation becomes one or two nodes of a graph (`graph.py`).

A `TorchDispatchMode` sees every operation below autograd, whoever wrote the module: `nn.Linear`, `einsum`,
`nn.MultiheadAttention` and hand-written kernels all end in a few products, sums and views.

Tensors that no input reaches are constants; those computed from a parameter keep its name. Every tensor of the pass is
kept until the graph is dropped, so that an identity names one tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stabkit.own.sublayers.attention import largest_logit
from stabkit.own.sublayers.graph import (
    ACROSS,
    COMPLEX,
    FRESH,
    MIXES,
    MOVES,
    Node,
    Op,
    WeightUse,
    back,
    mixes_streams,
    routes,
)
from stabkit.own.sublayers.memory import Memory, storage, tensors

LINEAR = frozenset({"linear", "_linear_pointwise", "mkl_linear", "_mkl_linear"})


class DispatchTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's base is not annotated
    """The graph of what runs inside `with Watch(module, inputs) as watch`: `watch.nodes`, `watch.unread`.

    What the pass writes into a parameter or buffer is undone by `watch.own.undo()`.
    """

    def __init__(self, module: nn.Module, inputs: Any, wanted: Set[int] = frozenset()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nodes: list[Node] = []
        self.reads: dict[int, set[str]] = {}
        """{node: the parameters and buffers that its operation was given}."""
        self.wanted = wanted
        self.values: dict[int, torch.Tensor] = {}
        """The values of the nodes `wanted`, as they were when they were made: a sum in place writes over one."""
        self.attention: list[torch.Tensor] = []
        """Of every attention of the pass the largest logit, where nodes are `wanted`."""
        self.unread: dict[str, str] = {}
        """{parameter: operation} for matrices used in a way that is not followed."""
        self._at: dict[int, int] = {}
        self._kept: list[torch.Tensor] = []
        self._shared: dict[int, list[torch.Tensor]] = {}
        self.module = module
        self.operations: list[str] = []
        """Of each node the operation that made it, by torch's name: what it is may depend on numbers, this does not."""
        self._running = ""
        self.returned: Any = None
        """What the module returned."""
        self.own = Memory(module)
        self._stacked = {(name, p.numel()): p.shape[0] for name, p in module.named_parameters() if p.dim() == 3}
        self._buffers = {name for name, _ in module.named_buffers()}  # positions, masks: no weights
        for buffer in module.buffers():
            self._shared.setdefault(storage(buffer), []).append(buffer)
        for tensor in tree_leaves(inputs):
            if isinstance(tensor, torch.Tensor):
                self.note("input", (), tensor)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would load its compiler, which takes seconds, to keep it from compiling this class."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            with self:  # inference mode leaves whole functions: linear, layer_norm, matmul
                return func.decompose(*args, **kwargs)
        self.own.guard(func, args, kwargs)
        out = func(*args, **kwargs)
        name = func._schema.name.partition("::")[2]
        name = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        if self.wanted and (logit := largest_logit(name, func, args, kwargs)) is not None:
            self.attention.append(logit)
        given, made = tensors((args, kwargs)), tensors(out)
        sources = tuple(at for t in given if (at := self.find(t)) is not None)
        if not sources or name in FRESH:
            made_of = () if name in FRESH else given  # those are read for their shape alone
            origin = next((known for t in made_of if (known := self.own.name(t))), "")
            for tensor in made:
                self._keep(tensor)
                if origin and id(tensor) not in self.own.derived and not self.own.name(tensor):
                    self.own.derived[id(tensor)] = origin
            return out
        first, self._running = len(self.nodes), name
        self._lower(name, func, args, kwargs, made, sources)
        if read := {known for t in given if self.find(t) is None and (known := self.own.name(t))}:
            self.reads.update((at, read) for at in range(first, len(self.nodes)))
        if func._schema.is_mutable:
            for tensor in made:
                self._refresh(tensor)
        return out

    # — what an operation is —

    def _lower(
        self,
        name: str,
        func: Any,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        made: list[torch.Tensor],
        sources: tuple[int, ...],
    ) -> None:
        """The nodes of one operation; its first result is what passes through, any others hang beside it."""
        if name in ("index", "index_select") and self.find(args[0]) is None:
            self.note("embedding", sources, made[0], constants=(args[0],), name=self.own.name(args[0]))
            return
        if name in COMPLEX:
            again = COMPLEX[name]
            self.note("move", sources, made[0], replay=lambda instead: again(*instead.values()))
            return
        if name in MOVES:
            for i, tensor in enumerate(made):
                self.note("move", sources, tensor, replay=self._again(func, args, kwargs, i))
            return
        known = self._arithmetic(name, args, kwargs, made[0]) if made else True
        known = known or self._product(name, args, kwargs, made[0])
        known = known or self._named(name, args, kwargs, made[0], sources)
        unread = "" if known else self._unread(name, args, kwargs) or (name if name in ACROSS else "")
        for tensor in made[1:] if known else made:
            self.note("other", sources, tensor, name=unread)

    def _unread(self, operation: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """The last matrix of the module's among an operation's arguments, "" for none; all of them are kept."""
        last = ""
        for tensor in tensors((args, kwargs)):
            if tensor.dim() > 1 and self.find(tensor) is None and tensor.is_floating_point():
                owner = self.own.name(tensor)
                if owner and owner not in self._buffers:
                    self.unread[owner] = operation
                    last = owner
        return last

    def _arithmetic(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: torch.Tensor) -> bool:
        if name in ("add", "sub", "rsub"):
            sign = -1.0 if name != "add" else 1.0
            factors = [1.0, sign * float(kwargs.get("alpha", args[2] if len(args) > 2 else 1))]
            return self._sum(args[:2], factors[::-1] if name == "rsub" else factors, out)
        if name == "neg":
            return self._scaled(args[0], -1.0, out)
        if name in ("mul", "div") and len(args) == 2 and not kwargs.get("rounding_mode"):
            return self._times(args[0], args[1], out, inverse=name == "div")
        if name == "addcmul":
            total, first, second = args
            for x, by in ((first, second), (second, first)):
                if self.find(x) is not None and (factor := self._factor(by)) is not None:
                    return self._sum((total, x), [1.0, factor * float(kwargs.get("value", 1))], out)
            if (a := self.find(first)) is not None and (b := self.find(second)) is not None:  # a gate that is computed
                gated = first * second * float(kwargs.get("value", 1))
                self.note("other", (a, b), gated)
                return self._sum((total, gated), [1.0, 1.0], out)
        if name == "lerp":
            start, end, weight = args
            factor = self._factor(weight)
            return factor is not None and self._sum((start, end), [1.0 - factor, factor], out)
        if name == "native_dropout":
            return self._scaled(args[0], 1.0, out)
        if name == "masked_fill":  # what is left over passes through unchanged
            return self._scaled(args[0], 1.0, out)
        return False

    def _sum(self, operands: Sequence[Any], factors: Sequence[float], out: torch.Tensor) -> bool:
        a, b = (self.find(operand) for operand in operands)
        if a is not None and b is not None:
            (x, y), first = (self.nodes[a], self.nodes[b]), (a, b)
            if _thin(y) and not _thin(x) and factors[1] == -1.0 and self._derived_from(b, self._stem(a)):
                self.note("centre", (a,), out)
            else:
                self.note("add", first, out, factors=tuple(factors))
            return True
        position, constant, factor = (a, operands[1], factors[0]) if a is not None else (b, operands[0], factors[1])
        held = constant if isinstance(constant, torch.Tensor) else None
        self.note("shift", (position,), out, factors=(factor,), constants=(held,), name=self.own.name(held))
        return True

    def _times(self, x: Any, by: Any, out: torch.Tensor, inverse: bool) -> bool:
        pairs = ((x, by),) if inverse else ((x, by), (by, x))
        for kept, factor in pairs:
            if self.find(kept) is not None and (number := self._factor(factor)) is not None:
                if inverse and number == 0.0:
                    return False
                return self._scaled(kept, 1.0 / number if inverse else number, out, self.own.name(factor))
        for kept, size in pairs:
            a, b = self.find(kept), self.find(size)
            if a is not None and b is not None and _thin(self.nodes[b]) and not _thin(self.nodes[a]):
                if self._derived_from(b, self._stem(a)):
                    self.note("norm", (a,), out, constants=(None, None))
                    return True
        return False

    def _scaled(self, x: Any, factor: float, out: torch.Tensor, name: str = "") -> bool:
        at = self.find(x)
        if at is None:
            return False
        self.note("scale", (at,), out, factors=(factor,), name=name)
        return True

    def _named(
        self, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: torch.Tensor, sources: tuple[int, ...]
    ) -> bool:
        if name == "native_layer_norm":
            self.note("norm", sources[:1], out, constants=(args[2], args[3]), name=self.own.name(args[2]))
        elif name in ("_fused_rms_norm", "rms_norm"):
            weight = args[2] if len(args) > 2 else None
            self.note("norm", sources[:1], out, constants=(weight, None), name=self.own.name(weight))
        elif name in ("_softmax", "_safe_softmax", "softmax"):
            self.note("softmax", sources[:1], out)
        elif name.startswith("_scaled_dot_product") and all(self.find(t) is not None for t in args[:3]):
            scale = kwargs.get("scale")
            factor = float(args[0].shape[-1]) ** -0.5 if scale is None else float(scale)
            self.note("attention", tuple(self.find(t) for t in args[:3]), out, factors=(factor,))
        elif name == "embedding" and self.find(args[0]) is None:
            self.note("embedding", sources, out, constants=(args[0],), name=self.own.name(args[0]))
        else:
            return False
        return True

    def _product(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: torch.Tensor) -> bool:
        """Note the node of a product, whichever operation made it; False where this is none that is followed."""
        added: Any = None
        beta = alpha = 1.0
        if name in LINEAR:
            x, w = args[0], args[1].t() if args[1].dim() == 2 else None
            bias = args[2] if len(args) > 2 and isinstance(args[2], torch.Tensor) else None
            if w is None or self.find(x) is None or self.find(args[1]) is not None:
                return False
            at = self.note(
                "product", (self.find(x),), out, matrix=WeightUse(w, bias, self.own.name(args[1]), self.own.name(bias))
            )
            if len(args) > 3 and args[3] not in ("none", None):
                self.note("other", (at,), out)
            return True
        if name == "convolution" and self.find(args[0]) is not None and self.find(args[1]) is None:
            x, w, b = args[:3]
            if w.dim() != 3 or w.shape[2] != 1 or args[8] != 1:
                return False
            matrix = WeightUse(w[:, :, 0].t(), b, self.own.name(w), self.own.name(b), flipped=True)
            self.note("product", (self.find(x),), out, matrix=matrix)
            return True
        if name == "_grouped_mm" and self.find(args[0]) is not None and self.find(args[1]) is None:
            expert = WeightUse(args[1][0], None, self.own.name(args[1]), first=True)
            self.note("product", (self.find(args[0]),), out, matrix=expert)
            return True
        if name in ("addmm", "baddbmm"):
            added, a, b = args[:3]
            beta, alpha = float(kwargs.get("beta", 1)), float(kwargs.get("alpha", 1))
        elif name in ("mm", "bmm"):
            a, b = args[:2]
        else:
            return False
        first, second = self.find(a), self.find(b)
        bias = None
        if isinstance(added, torch.Tensor) and self.find(added) is None and added.numel() == out.shape[-1]:
            bias = beta * added.reshape(-1)
        if first is not None and second is not None:
            weighed = (a.shape[-2] == 1 and routes(self.nodes, first)) or (
                b.shape[-1] == 1 and routes(self.nodes, second)
            )
            at = self.note("other" if weighed else "match", (first, second), out, factors=(alpha,))
        elif (position := first if first is not None else second) is not None and mixes_streams(
            self.nodes, (own := b if first is not None else a).shape[-2:], position
        ):
            at = self.note("scale", (position,), out, factors=(1.0,), name=self.own.name(own))
        else:
            weight, flipped = (b, False) if first is not None else (a.transpose(-1, -2), True)
            several = weight.dim() == 3 and weight.shape[0] > 1 and weight.stride(0) > 0
            if weight.dim() == 3 and (not several or self.own.name(weight)):
                weight = weight[0]  # of experts in one tensor the first stands for all
            if weight.dim() != 2:
                return False
            if flipped and weight.shape[1] == 1:  # one number for each of several values: a combination, as DLCL's
                self.note("other", (second,), out)
                return True
            name = self.own.name(own := b if first is not None else a)
            matrix = WeightUse(
                weight if alpha == 1.0 else alpha * weight,
                bias,
                name,
                self.own.name(added),
                flipped,
                self._stacked.get((name, weight.numel()), 1),
                first=several,
            )
            at = self.note("product", (first if first is not None else second,), out, matrix=matrix)
        if isinstance(added, torch.Tensor) and (behind := self.find(added)) is not None:
            self.note("add", (behind, at), out, factors=(beta, 1.0))
        return True

    # — norms written by hand: x (or x − mean) times one number a position, which x itself gave —

    def _stem(self, at: int) -> int:
        """Where x came from, before moves, scales and centring."""
        while (node := self.nodes[at]).op in ("move", "scale", "shift", "centre") and node.inputs:
            at = node.inputs[0]
        return at

    def _derived_from(self, at: int, stem: int) -> bool:
        """Whether this number was computed from `stem` without a matrix."""
        return any(node.at == stem for node in back(self.nodes, (at,), lambda n: n.op in MIXES, low=stem))

    # — tensors —

    def find(self, tensor: Any) -> int | None:
        """The node that made this tensor; None for a constant."""
        if not isinstance(tensor, torch.Tensor):
            return None
        at = self._at.get(id(tensor))
        if at is None and id(tensor) not in self.own.derived:
            for other in reversed(self._shared.get(storage(tensor), [])):  # an alias made outside the dispatcher
                behind = self._at.get(id(other))
                if behind is not None and other.numel() == tensor.numel() and other is not tensor:
                    return self.note("move", (behind,), tensor)
        return at

    def note(self, op: Op, inputs: tuple[Any, ...], value: torch.Tensor, **more: Any) -> int:
        """A new node, made of these; returns its place."""
        self.nodes.append(Node(len(self.nodes), op, inputs, value, **more))
        self.operations.append(self._running)
        at = self._at[id(value)] = len(self.nodes) - 1
        if at in self.wanted:
            self.values[at] = value.detach().clone()
        self._keep(value)
        return at

    def _keep(self, tensor: torch.Tensor) -> None:
        self._kept.append(tensor)
        if (pointer := storage(tensor)) and (id(tensor) in self._at or pointer not in self.own.starts):
            self._shared.setdefault(pointer, []).append(tensor)

    def _refresh(self, written: torch.Tensor) -> None:
        """After writing in place: other tensors on the same memory hold something new."""
        at = self._at.get(id(written))
        if at is None:
            return
        for other in {id(t): t for t in self._shared.get(storage(written), [])}.values():
            if other is not written:
                whole = other.numel() == written.numel()
                behind = () if whole or id(other) not in self._at else (self._at[id(other)],)
                self.note("move" if whole else "other", (at, *behind), other)

    def _factor(self, by: Any) -> float | None:
        """The one number that multiplying by this amounts to; of a trained vector its mean. None for any other."""
        if not isinstance(by, torch.Tensor):
            return float(by) if isinstance(by, (int, float)) else None
        if not by.numel() or by.is_complex():
            return None
        flat = by.detach().reshape(-1)
        if self.find(by) is not None:  # a mask that hides nothing is no operation; any other activation is
            return 1.0 if bool((flat == 1).all()) else None
        if bool((flat == flat[0]).all()):
            return float(flat[0])
        vector = sum(size > 1 for size in by.shape) == 1
        return float(flat.double().mean()) if vector and self.own.name(by) else None

    def _again(
        self, func: Any, args: Any, kwargs: Any, index: int
    ) -> Callable[[dict[int, torch.Tensor]], torch.Tensor]:
        places = {id(t): self.find(t) for t in tensors((args, kwargs))}

        def replay(instead: dict[int, torch.Tensor]) -> torch.Tensor:
            def swap(x: Any) -> Any:
                if isinstance(x, torch.Tensor):
                    at = places[id(x)]
                    if at is not None and at in instead:
                        return instead[at]
                    like = next(iter(instead.values()))
                    return x if not x.is_floating_point() else torch.full(x.shape, -1, dtype=like.dtype)
                if isinstance(x, (list, tuple)):
                    return type(x)(swap(item) for item in x)
                return x

            out = func(*(swap(a) for a in args), **{k: v for k, v in kwargs.items() if k not in ("dtype", "device")})
            return tensors(out)[index]

        return replay


def _thin(node: Node) -> bool:
    """One number a position: the last axis has one entry, or repeats one."""
    value = node.value
    return value.dim() > 1 and (value.shape[-1] == 1 or value.stride(-1) == 0)
