"""Sub-layers of a stack as one node of torch's graph: `stack.cpp` forward and backward.

A node reads its parameters where they lie and adds to their `.grad` as the leaves of a graph would be added to, so that
it stands in the graph by what enters it alone; whoever wants a gradient of a parameter by another way gets an error and
not a zero (of a tied embedding what its lookup has). What it cannot do, `why_not` says, and the caller takes the Python
path: no result depends on which it was but in its last bits, and a run's environment says which.

T positions, S keys, B sentences, D width.
"""

from __future__ import annotations

import copy
import ctypes
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from stabkit.kernels.lease import Lease, Spare, addresses, gradients_of
from stabkit.kernels.native import ADDRESSES, CODES, KINDS, PLACES, SCORES, CallStruct, Native, SublayerStruct, native
from stabkit.kernels.reference import transformed

Watchers = list[Callable[[torch.Tensor], Any]]
_ADDRESS = torch.Tensor.data_ptr


class FusedTap(Protocol):
    """A tap: who is called with what passes it in eval (False) and in training mode (True), with its tokens' lengths,
    and with its gradient."""

    watchers: dict[bool, Watchers]
    lengths: dict[bool, Watchers]
    gradients: Watchers


class FusedScales(Protocol):
    """What has ω and γ: a number, which a calibration may exchange, or a parameter."""

    @property
    def omega(self) -> float | torch.nn.Parameter: ...
    @property
    def gamma(self) -> float | torch.nn.Parameter: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedSublayer:
    """One sub-layer as the file takes it: its kind, its parameters, its taps."""

    kind: Literal["self", "cross", "relu", "swiglu"]
    causal: bool
    inner: int
    """Entries between the maps of a feed-forward; 0 of attention."""
    parts: Mapping[str, tuple[str, tuple[torch.nn.Parameter, ...]]]
    """What stands at a place of `native.PLACES`, by a name of `native.CODES`, and its parameters."""
    maps: tuple[torch.nn.Parameter | None, ...]
    """W₁, b₁, W_KV of the memory, its bias, W₂, b₂ as `stack.cpp` has them."""
    scaled: FusedScales
    kappa: float
    branch: FusedTap
    shortcut: FusedTap
    sum: FusedTap
    scores: FusedTap | None
    """Of attention."""
    after: Sequence[FusedTap]
    """What its state passes: of a chain one tap; none where a wiring makes the states."""

    def taps(self) -> tuple[FusedTap, ...]:
        """All of them."""
        return (self.branch, self.shortcut, self.sum, *self.after, *((self.scores,) if self.scores else ()))


class Fused:
    """The sub-layers of a stack."""

    def __init__(self, sublayers: Sequence[FusedSublayer], width: int, heads: int) -> None:
        self.sublayers, self.width, self.heads = tuple(sublayers), width, heads
        self.parameters: list[torch.nn.Parameter] = []
        self.foreign = width % heads > 0
        """Whether a part stands somewhere that the file does not have there."""
        self.structs = (SublayerStruct * len(self.sublayers))()
        index: dict[int, int] = {}

        def at(parameter: torch.nn.Parameter | float | None) -> int:
            if not isinstance(parameter, torch.nn.Parameter):
                return -1
            if id(parameter) not in index:
                index[id(parameter)] = len(self.parameters)
                self.parameters.append(parameter)
            return index[id(parameter)]

        for struct, sublayer in zip(self.structs, self.sublayers, strict=True):
            struct.kind, struct.causal, struct.inner = KINDS.index(sublayer.kind), sublayer.causal, sublayer.inner
            for place, (code, parameters) in sublayer.parts.items():
                i = PLACES.index(place)
                across = code == "rms across heads" and place not in ("query", "key", "value")
                self.foreign = self.foreign or code not in CODES or across
                struct.parts[i] = CODES.index(code) if code in CODES else 0
                struct.at[i] = len(self.parameters)
                self.parameters += parameters  # one after another: the file counts on from the first
            struct.map1, struct.bias1, struct.memory, struct.memory_bias, struct.map2, struct.bias2 = map(
                at, sublayer.maps
            )
            omega, gamma = sublayer.scaled.omega, sublayer.scaled.gamma
            struct.omega_at, struct.gamma_at = at(omega), at(gamma)
            struct.omega_vector = isinstance(omega, torch.Tensor) and omega.ndim > 0
            struct.gamma_vector = isinstance(gamma, torch.Tensor) and gamma.ndim > 0
            struct.gamma = gamma if isinstance(gamma, float) else 1.0
            struct.kappa = sublayer.kappa
        self.numbers = [
            (struct, sublayer.scaled)
            for struct, sublayer in zip(self.structs, self.sublayers, strict=True)
            if isinstance(sublayer.scaled.omega, float)
        ]
        self.omegas: list[Any] = []
        """Of these, as they are in the structures."""
        taps = [tap for sublayer in self.sublayers for tap in sublayer.taps()]
        self.watchers = {
            mode: [watching for tap in taps for watching in (tap.watchers[mode], tap.lengths[mode])]
            for mode in (True, False)
        }
        self.asked = {
            mode: [
                (s.branch.watchers[mode], s.sum.watchers[mode], s.after[0].watchers[mode] if s.after else [])
                + (s.scores.watchers[mode] if s.scores else [],)
                + (s.branch.lengths[mode], s.shortcut.lengths[mode], s.sum.lengths[mode])
                for s in self.sublayers
            ]
            for mode in (True, False)
        }
        """Who asks for what of a sub-layer, in the order of `Call.given`; a stack that is one call has one stream."""
        self.unasked = {
            mode: [s.shortcut.watchers[mode] for s in self.sublayers]
            + [tap.lengths[mode] for s in self.sublayers for tap in (*s.after, *([s.scores] if s.scores else []))]
            for mode in (True, False)
        }
        """Who asks for what the file does not give out: ω·x itself, lengths of states and scores."""
        self.graph = [tap.gradients for s in self.sublayers for tap in s.taps() if tap is not s.sum]
        """Who asks for a gradient that only the graph has: of a sum the file gives it out."""
        self.spare = Spare()

    def __deepcopy__(self, memo: dict[int, Any]) -> Fused:
        return Fused(copy.deepcopy(self.sublayers, memo), self.width, self.heads)

    @property
    def processor(self) -> str:
        """What of the processor the library uses; "" without one."""
        found = native()
        return "" if isinstance(found, str) else found.processor

    def why_not(self, x: torch.Tensor, training: bool) -> str:
        """Why a pass that begins with x cannot be made here; "" where it can."""
        found = native()
        if isinstance(found, str):
            return found
        if self.foreign:
            return "a part that it does not have"
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
            return "a mode that watches torch's operations"
        if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
            return f"{str(x.dtype).removeprefix('torch.')} on {x.device.type}"
        if self.parameters[0].dtype != x.dtype:
            return "parameters of another kind"
        if transformed():
            return "torch.func"
        if torch.is_autocast_enabled("cpu"):
            return "autocast"
        if torch.nn.modules.module._has_any_global_hook():  # type: ignore[no-untyped-call]
            return "hooks"
        if torch.is_grad_enabled():
            if not x.requires_grad:
                return "nothing before it asks for a gradient"
            if any(self.watchers[training]) or any(self.graph):
                return "a probe that asks for the graph"
        return "a probe that asks for what it does not give out" if any(self.unasked[training]) else ""

    def ready(
        self, mask: torch.Tensor | None, rotary: torch.Tensor | None, dropout: float, training: bool
    ) -> FusedPass:
        """A pass over some or all sub-layers: `mask` (B, S) is added to the scores of all but causal attention,
        `rotary` (2, positions, E/2) turns self-attention's queries and keys; `dropout` is of each branch."""
        found = native()
        assert isinstance(found, Native)  # `why_not` has been asked
        omegas: list[Any] = [scaled.omega for _, scaled in self.numbers]
        if omegas != self.omegas:
            for (struct, _), omega in zip(self.numbers, omegas, strict=True):
                struct.omega = omega
            self.omegas = omegas
        return FusedPass(self, found, mask, rotary, dropout if training else 0.0, training)


class FusedPass:
    """One pass: where the parameters lie now, and what is alike for all its calls."""

    def __init__(
        self,
        fused: Fused,
        found: Native,
        mask: torch.Tensor | None,
        rotary: torch.Tensor | None,
        dropout: float,
        training: bool,
    ) -> None:
        self.fused, self.native, self.mask, self.rotary = fused, found, mask, rotary
        self.dropout, self.training = dropout, training
        self.parameters = array("q", map(_ADDRESS, fused.parameters))

    def __call__(
        self, begin: int, end: int, x: torch.Tensor, memory: torch.Tensor | None, branch: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Sub-layers `begin` to `end` on x (T, B, D): the state after the last, and γ·f of it where `branch` asks."""
        if torch.is_grad_enabled():
            out: tuple[torch.Tensor, torch.Tensor | None] = _Node.apply(x, memory, self, begin, end, branch)  # type: ignore[no-untyped-call]
            return out
        given = self._asked(begin, end, x, memory, branch)
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        call = self.call(begin, end, x, memory, y, [place for places, _ in given for place in places], keep=False)
        work = Lease(self.fused.spare, self.native.size(ctypes.byref(call.struct)), x)
        call.struct.work = work.tensor.data_ptr()
        self.native.forward(ctypes.byref(call.struct))
        for places, watchers in given:
            for value, watching in zip(places, watchers, strict=True):
                if value is not None:
                    for watch in watching:
                        watch(value)
        return y, given[-1][0][0]

    def _asked(
        self, begin: int, end: int, x: torch.Tensor, memory: torch.Tensor | None, branch: bool
    ) -> list[tuple[list[Any], Sequence[Watchers]]]:
        """Of each sub-layer the tensors that are to be written, in the order of `given`, None: nothing; and who is
        called with each. The state after the last is what the call returns."""
        t, b, _ = x.shape
        mode, keys = self.training, t if memory is None else len(memory)
        lengths = iter(torch.empty((3 * (end - begin), t, b), dtype=x.dtype).unbind())
        kinds = Counter(sublayer.kind for sublayer in self.fused.sublayers[begin:end])
        logits = {kind: self._logits(t if kind == "self" else keys, x, count) for kind, count in kinds.items()}
        asked: list[tuple[list[Any], Sequence[Watchers]]] = []
        for i in range(begin, end):
            watchers = self.fused.asked[mode][i]
            of_branch, of_sum, after, scores, *long = watchers
            f = torch.empty_like(x) if of_branch or (branch and i + 1 == end) else None
            joined = torch.empty_like(x) if of_sum else None
            state = None
            if after and i + 1 < end:  # without a norm after it the sum is the state
                bare = joined is not None and "out" not in self.fused.sublayers[i].parts
                state = joined if bare else torch.empty_like(x)
            seen = next(logits[self.fused.sublayers[i].kind]) if scores else None
            asked.append(([f, joined, state, seen, *(next(lengths) if one else None for one in long)], watchers))
        return asked

    def _logits(self, keys: int, x: torch.Tensor, count: int) -> Iterator[torch.Tensor]:
        """Places for the scores of attentions (G, T, S), made where the first asks."""
        t, b, _ = x.shape
        rows = torch.empty((count, b * self.fused.heads, t, -(-keys // SCORES) * SCORES), dtype=x.dtype)
        yield from rows[..., :keys].unbind()

    def call(
        self,
        begin: int,
        end: int,
        x: torch.Tensor,
        memory: torch.Tensor | None,
        y: torch.Tensor,
        given: Sequence[torch.Tensor | None] | None,
        keep: bool,
    ) -> FusedCall:
        """A call from x to y. The caller holds y and what is given out for as long as it takes."""
        t, b, d = x.shape
        if d != self.fused.width or (memory is not None and memory.shape[1:] != x.shape[1:]):
            raise ValueError(f"states of shape {tuple(x.shape)} next to a memory of another batch or width")
        if self.rotary is not None and t > self.rotary.shape[1]:
            raise ValueError(f"{t} positions, where the table of rotary ones has {self.rotary.shape[1]}")
        if self.mask is not None and tuple(self.mask.shape) != (b, t if memory is None else len(memory)):
            raise ValueError(f"a mask of shape {tuple(self.mask.shape)} for {b} sentences")
        dropped = None
        if self.dropout:  # one after another, as the Python path draws them
            ones = torch.ones_like(x)
            dropped = [torch.nn.functional.dropout(ones, self.dropout) for _ in range(begin, end)]
        x, memory = x.contiguous(), None if memory is None else memory.contiguous()
        places = None if given is None else addresses(given)
        masks = None if dropped is None else addresses(dropped)
        struct = CallStruct(
            doubles=x.dtype == torch.float64,
            queries=t,
            keys=t if memory is None else len(memory),
            batch=b,
            width=d,
            heads=self.fused.heads,
            sublayers=end - begin,
            keep=keep,
            sublayer=ctypes.addressof(self.fused.structs) + begin * ctypes.sizeof(SublayerStruct),
            parameters=self.parameters.buffer_info()[0],
            x=x.data_ptr(),
            y=y.data_ptr(),
            memory=None if memory is None else memory.data_ptr(),
            mask=None if self.mask is None else self.mask.data_ptr(),
            rotary=None if self.rotary is None else self.rotary.data_ptr(),
            positions=0 if self.rotary is None else self.rotary.shape[1],
            given=None if places is None else places.buffer_info()[0],
            dropped=None if masks is None else masks.buffer_info()[0],
        )
        return FusedCall(struct, [self, x, memory, places, dropped, masks])


@dataclass(frozen=True, slots=True)
class FusedCall:
    """A call's structure, and what must live as long; what a node gives out it must not hold, or neither ever goes."""

    struct: Any
    held: list[Any]


class _Node(Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, memory: torch.Tensor | None, this: FusedPass, begin: int, end: int, branch: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        f = torch.empty_like(y) if branch else None
        given = None if f is None else [None] * ADDRESSES * (end - begin - 1) + [f] + [None] * (ADDRESSES - 1)
        ctx.call = this.call(begin, end, x, memory, y, given, keep=True)
        ctx.work = Lease(this.fused.spare, this.native.size(ctypes.byref(ctx.call.struct)), x)
        ctx.call.struct.work = ctx.work.tensor.data_ptr()
        this.native.forward(ctypes.byref(ctx.call.struct))
        ctx.this, ctx.span, ctx.memory = this, (begin, end), None if memory is None else memory.shape
        ctx.set_materialize_grads(False)
        return y, f

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        given = next((gradient for gradient in gradients if gradient is not None), None)
        if given is None:
            return (None,) * 6
        dy, df = (None if gradient is None else gradient.contiguous() for gradient in gradients)
        dy = torch.zeros_like(given) if dy is None else dy
        this: FusedPass = ctx.this
        struct, sublayers = ctx.call.struct, this.fused.sublayers[slice(*ctx.span)]
        dx = torch.empty_like(dy)
        dmemory = dy.new_zeros(ctx.memory) if ctx.memory is not None and ctx.needs_input_grad[1] else None
        if array("q", map(_ADDRESS, this.fused.parameters)) != this.parameters:
            raise RuntimeError("parameters lie elsewhere than in the forward pass: its backward is lost")
        leaves = gradients_of(this.fused.parameters)
        watched = [torch.empty_like(dy) if sublayer.sum.gradients else None for sublayer in sublayers]
        sums = addresses(watched)
        struct.gradients, struct.dsums = leaves.buffer_info()[0], sums.buffer_info()[0]
        struct.dy, struct.dx = dy.data_ptr(), dx.data_ptr()
        struct.dbranch = None if df is None else df.data_ptr()
        struct.dmemory = None if dmemory is None else dmemory.data_ptr()
        this.native.backward(ctypes.byref(struct))
        for sublayer, gradient in zip(reversed(sublayers), reversed(watched), strict=True):
            if gradient is not None:
                for see in sublayer.sum.gradients:
                    see(gradient)
        return dx, dmemory, None, None, None, None
