"""The compiled `stack.cpp`: found, loaded, and its structures as ctypes has them. Compiles nothing (`build.py`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce

from stabkit.kernels import build

PLACES = ("in", "branch", "out", "first", "mid", "last", "end", "query", "key", "value")
"""`enum Place`."""
CODES = ("", "layer", "rms", "dyt", "shift", "scale shift", "heads", "rms across heads")
"""`enum Code`."""
KINDS = ("self", "cross", "relu", "swiglu")
"""`enum Kind`."""
SCORES = 16
"""A row of scores is padded to a multiple of it: `PAD`."""

ADDRESSES = 7
"""Addresses of a sub-layer in `Call.given`."""

_I, _P, _D = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double


class SublayerStruct(ctypes.Structure):
    """`struct Sublayer`."""

    _fields_ = [
        *((name, _I) for name in ("kind", "causal", "inner")),
        *((name, _I * len(PLACES)) for name in ("parts", "at")),
        *((name, _I) for name in ("map1", "bias1", "memory", "memory_bias", "map2", "bias2")),
        *((name, _I) for name in ("omega_at", "omega_vector", "gamma_at", "gamma_vector")),
        *((name, _D) for name in ("omega", "gamma", "kappa")),
    ]


class CallStruct(ctypes.Structure):
    """`struct Call`."""

    _fields_ = [
        *((name, _I) for name in ("doubles", "queries", "keys", "batch", "width", "heads", "sublayers", "keep")),
        *((name, _P) for name in ("sublayer", "parameters", "gradients", "x", "memory", "mask", "rotary")),
        ("positions", _I),
        *((name, _P) for name in ("dropped", "work", "y", "given", "dy", "dbranch", "dx", "dmemory", "dsums")),
    ]


class HeadStruct(ctypes.Structure):
    """`struct Head`."""

    _fields_ = [
        *((name, _I) for name in ("doubles", "rows", "width", "classes", "ignored")),
        ("smoothing", _D),
        *((name, _P) for name in ("x", "weight", "target", "logits", "work")),
        *((name, _D) for name in ("loss", "right", "count", "dloss")),
        *((name, _P) for name in ("dx", "dweight")),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Native:
    """The library's functions, and what of the processor it uses: `AVX512`."""

    size: Callable[[object], int]
    forward: Callable[[object], None]
    backward: Callable[[object], None]
    head_size: Callable[[object], int]
    head_forward: Callable[[object], None]
    head_backward: Callable[[object], None]
    sinkhorn: Callable[..., None]
    """(float64, matrices, n, rounds, logits, out), addresses of contiguous (matrices, n, n)."""
    sinkhorn_backward: Callable[..., None]
    """(float64, matrices, n, rounds, logits, dout, dlogits)."""
    depth: Callable[..., None]
    """(float64, arrays, rows, d, ε, query, values, work, out): `wirings.py`."""
    depth_backward: Callable[..., None]
    """(float64, arrays, rows, d, ε, query, values, work, dout, dvalues, dquery, more)."""
    product: Callable[[bool, bool, int, int, int, int, int, float, int], None]
    """(ta, tb, m, n, k, a, b, β, c): c = β·c + op(a)·op(b), of addresses of contiguous float32."""
    processor: str


@cache
def native() -> Native | str:
    """The library for this processor, or why there is none."""
    import torch

    libraries = build.libraries()
    able = torch.backends.cpu.get_cpu_capability()
    name = able if able in libraries else "AVX2" if able.startswith("AVX512") else "default"
    if name not in libraries:
        return f"the processor has no AVX2 ({able})"
    if not libraries[name].exists():
        return "not compiled"
    try:
        library = ctypes.CDLL(str(libraries[name]))
    except OSError as error:
        return f"not loadable ({error})"
    for function in (library.stabkit_layout, library.stabkit_size, library.stabkit_head_size):
        function.restype = ctypes.c_int64
    sizes = (ctypes.sizeof(struct) for struct in (CallStruct, SublayerStruct, HeadStruct))
    if library.stabkit_layout() != reduce(lambda all_before, size: all_before * 65536 + size, sizes):
        return "of another version"
    steps = (library.stabkit_forward, library.stabkit_backward)
    heads = (library.stabkit_head_forward, library.stabkit_head_backward)
    for function in (*steps, *heads):
        function.restype = None
    mixing = (library.stabkit_sinkhorn, library.stabkit_sinkhorn_backward)
    depth = (library.stabkit_depth, library.stabkit_depth_backward)
    for function, addresses in zip((*mixing, *depth), (2, 3, 4, 7), strict=True):
        function.restype = None
        function.argtypes = [_I, _I, _I, _I, *((_D,) if function in depth else ()), *(_P,) * addresses]
    pack = (ctypes.c_float * library.stabkit_pack())()

    def product(ta: bool, tb: bool, m: int, n: int, k: int, a: int, b: int, beta: float, c: int) -> None:
        sizes = (_I(int(value)) for value in (ta, tb, m, n, k))
        library.stabkit_product(*sizes, _P(a), _P(b), ctypes.c_float(beta), _P(c), pack)

    forward, backward = steps
    head_forward, head_backward = heads
    return Native(
        size=library.stabkit_size,
        forward=forward,
        backward=backward,
        head_size=library.stabkit_head_size,
        head_forward=head_forward,
        head_backward=head_backward,
        sinkhorn=mixing[0],
        sinkhorn_backward=mixing[1],
        depth=depth[0],
        depth_backward=depth[1],
        product=product,
        processor=name,
    )
