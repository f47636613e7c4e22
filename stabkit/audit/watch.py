"""One forward pass, watched: every operation becomes one or two nodes of a graph (`graph.py`).

A `TorchDispatchMode` sees every operation below autograd, whoever wrote the module: `nn.Linear`, `einsum`,
`nn.MultiheadAttention` and hand-written kernels all end in a few products, sums and views.

Tensors that no input reaches are constants; those computed from a parameter keep its name. Every tensor of the pass is
kept until the graph is dropped, so that an identity names one tensor.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stabkit.audit.graph import MIXES, Matrix, Node, Op, back

MOVES = frozenset(
    "view _unsafe_view reshape _reshape_alias transpose t permute expand expand_as view_as squeeze unsqueeze slice "
    "select split split_with_sizes unsafe_split chunk unbind narrow clone contiguous copy _to_copy detach alias "
    "as_strided unfold cat stack index index_select gather repeat repeat_interleave constant_pad_nd flip roll "
    "movedim swapaxes swapdims lift_fresh".split()
)
FRESH = frozenset(
    "empty_like zeros_like ones_like full_like rand_like randn_like randint_like new_empty new_empty_strided new_zeros "
    "new_ones new_full scalar_tensor".split()
)
"""Operations that take an activation for its shape alone."""
LINEAR = frozenset({"linear", "_linear_pointwise", "mkl_linear", "_mkl_linear"})


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's base is not annotated
    """The graph of what runs inside `with Watch(module, inputs) as watch`: `watch.nodes`, `watch.unread`.

    What the pass writes into a parameter or buffer is undone by `undo`.
    """

    def __init__(self, module: nn.Module, inputs: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nodes: list[Node] = []
        self.unread: dict[str, str] = {}
        """{parameter: operation} for matrices used in a way that is not followed."""
        self._at: dict[int, int] = {}
        self._kept: list[torch.Tensor] = []
        self._shared: dict[int, list[torch.Tensor]] = {}
        self._derived: dict[int, str] = {}
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._owned: dict[int, list[tuple[int, str]]] = {}
        """{memory: where each parameter and buffer on it begins}; many may share one (a flat vector of all weights)."""
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self._owned.setdefault(_storage(tensor), []).append((int(tensor.storage_offset()), name))
        for starts in self._owned.values():
            starts.sort()
        for buffer in module.buffers():
            self._shared.setdefault(_storage(buffer), []).append(buffer)
        for tensor in tree_leaves(inputs):
            if isinstance(tensor, torch.Tensor):
                self._note("input", (), tensor)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would load its compiler, which takes seconds, to keep it from compiling this class."""
        return False

    @torch.no_grad()
    def undo(self) -> None:
        """Give back what the pass overwrote."""
        for own, old in reversed(self._before.values()):
            own.copy_(old)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            with self:  # inference mode leaves whole functions: linear, layer_norm, matmul
                return func.decompose(*args, **kwargs)
        self._guard(func, args, kwargs)
        out = func(*args, **kwargs)
        name = func._schema.name.partition("::")[2]
        name = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        given, made = _tensors((args, kwargs)), _tensors(out)
        sources = tuple(at for t in given if (at := self._find(t)) is not None)
        if not sources or name in FRESH:
            origin = next((known for t in given if (known := self._name(t))), "")
            for tensor in made:
                self._keep(tensor)
                if origin and id(tensor) not in self._derived and not self._name(tensor):
                    self._derived[id(tensor)] = origin
            return out
        self._lower(name, func, args, kwargs, made, sources)
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
        if name in ("index", "index_select") and self._find(args[0]) is None:
            self._note("embedding", sources, made[0], constants=(args[0],), name=self._name(args[0]))
            return
        if name in MOVES:
            for i, tensor in enumerate(made):
                self._note("move", sources, tensor, replay=self._again(func, args, kwargs, i))
            return
        known = self._arithmetic(name, args, kwargs, made[0]) if made else True
        known = known or self._product(name, args, kwargs, made[0])
        known = known or self._named(name, args, made[0], sources)
        for tensor in made[1:] if known else made:
            self._note("other", sources, tensor)
        if not known:
            for tensor in _tensors((args, kwargs)):
                if tensor.dim() > 1 and self._find(tensor) is None:
                    if (owner := self._name(tensor)) and tensor.is_floating_point():
                        self.unread[owner] = name

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
                if self._find(x) is not None and (factor := self._factor(by)) is not None:
                    return self._sum((total, x), [1.0, factor * float(kwargs.get("value", 1))], out)
        if name == "native_dropout":
            return self._scaled(args[0], 1.0, out)
        if name == "masked_fill":  # what is left over passes through unchanged
            return self._scaled(args[0], 1.0, out)
        return False

    def _sum(self, operands: Sequence[Any], factors: Sequence[float], out: torch.Tensor) -> bool:
        a, b = (self._find(operand) for operand in operands)
        if a is not None and b is not None:
            (x, y), first = (self.nodes[a], self.nodes[b]), (a, b)
            if _thin(y) and not _thin(x) and factors[1] == -1.0 and self._made_of(b, self._stem(a)):
                self._note("centre", (a,), out)
            else:
                self._note("add", first, out, factors=tuple(factors))
            return True
        own, constant, factor = (a, operands[1], factors[0]) if a is not None else (b, operands[0], factors[1])
        held = constant if isinstance(constant, torch.Tensor) else None
        self._note("shift", (own,), out, factors=(factor,), constants=(held,), name=self._name(held))
        return True

    def _times(self, x: Any, by: Any, out: torch.Tensor, inverse: bool) -> bool:
        pairs = ((x, by),) if inverse else ((x, by), (by, x))
        for kept, factor in pairs:
            if self._find(kept) is not None and (number := self._factor(factor)) is not None:
                if inverse and number == 0.0:
                    return False
                return self._scaled(kept, 1.0 / number if inverse else number, out)
        for kept, size in pairs:
            a, b = self._find(kept), self._find(size)
            if a is not None and b is not None and _thin(self.nodes[b]) and not _thin(self.nodes[a]):
                if self._made_of(b, self._stem(a)):
                    self._note("norm", (a,), out, constants=(None, None))
                    return True
        return False

    def _scaled(self, x: Any, factor: float, out: torch.Tensor) -> bool:
        at = self._find(x)
        if at is None:
            return False
        self._note("scale", (at,), out, factors=(factor,))
        return True

    def _product(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: torch.Tensor) -> bool:
        added: Any = None
        beta = alpha = 1.0
        if name in LINEAR:
            x, w = args[0], args[1].t() if args[1].dim() == 2 else None
            bias = args[2] if len(args) > 2 and isinstance(args[2], torch.Tensor) else None
            if w is None or self._find(x) is None or self._find(args[1]) is not None:
                return False
            at = self._note(
                "product", (self._find(x),), out, matrix=Matrix(w, bias, self._name(args[1]), self._name(bias))
            )
            if len(args) > 3 and args[3] not in ("none", None):
                self._note("other", (at,), out)
            return True
        if name == "convolution" and self._find(args[0]) is not None and self._find(args[1]) is None:
            x, w, b = args[:3]
            if w.dim() != 3 or w.shape[2] != 1 or args[8] != 1:
                return False
            matrix = Matrix(w[:, :, 0].t(), b, self._name(w), self._name(b), flipped=True)
            self._note("product", (self._find(x),), out, matrix=matrix)
            return True
        if name in ("addmm", "baddbmm"):
            added, a, b = args[:3]
            beta, alpha = float(kwargs.get("beta", 1)), float(kwargs.get("alpha", 1))
        elif name in ("mm", "bmm"):
            a, b = args[:2]
        else:
            return False
        first, second = self._find(a), self._find(b)
        bias = None
        if isinstance(added, torch.Tensor) and self._find(added) is None and added.numel() == out.shape[-1]:
            bias = beta * added.reshape(-1)
        if first is not None and second is not None:
            at = self._note("match", (first, second), out)
        else:
            weight, flipped = (b, False) if first is not None else (a.transpose(-1, -2), True)
            if weight.dim() == 3 and (weight.shape[0] == 1 or weight.stride(0) == 0):
                weight = weight[0]
            if weight.dim() != 2:
                return False
            if flipped and weight.shape[1] == 1:  # one number for each of several values: a combination, as DLCL's
                self._note("other", (second,), out)
                return True
            own = b if first is not None else a
            matrix = Matrix(
                weight if alpha == 1.0 else alpha * weight, bias, self._name(own), self._name(added), flipped
            )
            at = self._note("product", (first if first is not None else second,), out, matrix=matrix)
        if isinstance(added, torch.Tensor) and (behind := self._find(added)) is not None:
            self._note("add", (behind, at), out, factors=(beta, 1.0))
        return True

    def _named(self, name: str, args: Sequence[Any], out: torch.Tensor, sources: tuple[int, ...]) -> bool:
        if name == "native_layer_norm":
            self._note("norm", sources[:1], out, constants=(args[2], args[3]), name=self._name(args[2]))
        elif name in ("_fused_rms_norm", "rms_norm"):
            weight = args[2] if len(args) > 2 else None
            self._note("norm", sources[:1], out, constants=(weight, None), name=self._name(weight))
        elif name in ("_softmax", "_safe_softmax", "softmax"):
            self._note("softmax", sources[:1], out)
        elif name.startswith("_scaled_dot_product") and all(self._find(t) is not None for t in args[:3]):
            self._note("attention", tuple(self._find(t) for t in args[:3]), out)
        elif name == "embedding" and self._find(args[0]) is None:
            self._note("embedding", sources, out, constants=(args[0],), name=self._name(args[0]))
        else:
            return False
        return True

    # — norms written by hand: x (or x − mean) times one number a position, which x itself gave —

    def _stem(self, at: int) -> int:
        """Where x came from, before moves, scales and centring."""
        while (node := self.nodes[at]).op in ("move", "scale", "shift", "centre") and node.inputs:
            at = node.inputs[0]
        return at

    def _made_of(self, at: int, stem: int) -> bool:
        """Whether this number was computed from `stem` without a matrix."""
        return any(node.at == stem for node in back(self.nodes, (at,), lambda n: n.op in MIXES, low=stem))

    # — tensors —

    def _find(self, tensor: Any) -> int | None:
        """The node that made this tensor; None for a constant."""
        if not isinstance(tensor, torch.Tensor):
            return None
        at = self._at.get(id(tensor))
        if at is None and id(tensor) not in self._derived:
            for other in reversed(self._shared.get(_storage(tensor), [])):  # an alias made outside the dispatcher
                behind = self._at.get(id(other))
                if behind is not None and other.numel() == tensor.numel() and other is not tensor:
                    return self._note("move", (behind,), tensor)
        return at

    def _note(self, op: Op, inputs: tuple[Any, ...], value: torch.Tensor, **more: Any) -> int:
        self.nodes.append(Node(len(self.nodes), op, inputs, value, **more))
        self._at[id(value)] = len(self.nodes) - 1
        self._keep(value)
        return len(self.nodes) - 1

    def _keep(self, tensor: torch.Tensor) -> None:
        self._kept.append(tensor)
        if (pointer := _storage(tensor)) and (id(tensor) in self._at or pointer not in self._owned):
            self._shared.setdefault(pointer, []).append(tensor)

    def _refresh(self, written: torch.Tensor) -> None:
        """After writing in place: other tensors on the same memory hold something new."""
        at = self._at.get(id(written))
        if at is None:
            return
        for other in {id(t): t for t in self._shared.get(_storage(written), [])}.values():
            if other is not written:
                whole = other.numel() == written.numel()
                behind = () if whole or id(other) not in self._at else (self._at[id(other)],)
                self._note("move" if whole else "other", (at, *behind), other)

    def _guard(self, func: Any, args: Any, kwargs: Any) -> None:
        """Copy what belongs to the module before it is written to."""
        if not func._schema.is_mutable:
            return
        for argument, value in (
            *zip(func._schema.arguments, args, strict=False),
            *((None, v) for v in kwargs.values()),
        ):
            if argument is None or (argument.alias_info and argument.alias_info.is_write):
                for tensor in _tensors(value):
                    if _storage(tensor) in self._owned:
                        self._before.setdefault(id(tensor), (tensor, tensor.detach().clone()))

    def _name(self, tensor: Any) -> str:
        """The parameter or buffer that this constant is, or was computed from; "" for none."""
        if not isinstance(tensor, torch.Tensor):
            return ""
        if known := self._derived.get(id(tensor)):
            return known
        starts = self._owned.get(_storage(tensor), [])
        place = bisect.bisect_right(starts, tensor.storage_offset(), key=lambda start: start[0])
        return starts[place - 1][1] if place else ""

    def _factor(self, by: Any) -> float | None:
        """The one number that multiplying by this amounts to; of a trained vector its mean. None for any other."""
        if not isinstance(by, torch.Tensor):
            return float(by) if isinstance(by, (int, float)) else None
        if not by.numel() or by.is_complex():
            return None
        flat = by.detach().reshape(-1)
        if self._find(by) is not None:  # a mask that hides nothing is no operation; any other activation is
            return 1.0 if bool((flat == 1).all()) else None
        if bool((flat == flat[0]).all()):
            return float(flat[0])
        vector = sum(size > 1 for size in by.shape) == 1
        return float(flat.double().mean()) if vector and self._name(by) else None

    def _again(
        self, func: Any, args: Any, kwargs: Any, index: int
    ) -> Callable[[dict[int, torch.Tensor]], torch.Tensor]:
        places = {id(t): self._find(t) for t in _tensors((args, kwargs))}

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
            return _tensors(out)[index]

        return replay


def _thin(node: Node) -> bool:
    """One number a position: the last axis has one entry, or repeats one."""
    value = node.value
    return value.dim() > 1 and (value.shape[-1] == 1 or value.stride(-1) == 0)


def _tensors(given: Any) -> list[torch.Tensor]:
    """The tensors among an operation's arguments or results, in order."""
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, dict):
        given = given.values()
    elif not isinstance(given, (list, tuple)):
        return []
    return [tensor for one in given for tensor in _tensors(one)]


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a tensor without memory: sparse, functional, fake
        return 0
