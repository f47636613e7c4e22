"""Matrix products at the shapes of a training step, by torch's library and by `kernels/stack.cpp`: on one thread.

    python benchmarks/products.py [TOKENS] [WIDTH]

A line a product: what it is, GFLOP/s of torch (`torch.mm`, which is MKL here), of torch's oneDNN where it is built in,
and of the file. The best of five rounds of fifty calls each.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from typing import Any

import torch

from stabkit.kernels import products
from stabkit.kernels.native import Native, native


def shapes(tokens: int, d: int) -> dict[str, tuple[bool, bool, int, int, int]]:
    """(transposed a, transposed b, m, n, k): c (m, n) = op(a)·op(b), row by row."""
    return {
        "q, k, v": (False, True, tokens, 3 * d, d),
        "output": (False, True, tokens, d, d),
        "up": (False, True, tokens, 2 * d, d),
        "down": (False, True, tokens, d, 2 * d),
        "gradient of x by q, k, v": (False, False, tokens, d, 3 * d),
        "gradient of W of q, k, v": (True, False, 3 * d, d, tokens),
        "gradient of W of up": (True, False, 2 * d, d, tokens),
        "logits": (False, True, tokens, 2000, d),
    }


def rate(flops: int, call: Callable[[], Any]) -> float:
    return 50 * flops / min(timeit.repeat(call, number=50, repeat=5)) / 1e9


def main(tokens: str = "512", width: str = "64") -> None:
    torch.set_num_threads(1)
    found = native()
    who = found.processor if isinstance(found, Native) else found
    print(f"{products.processor()}; torch: {products.library()}; stack.cpp: {who}; GFLOP/s")
    print(f"{'':28}{'torch':>8}{'oneDNN':>8}{'file':>8}{'file/torch':>12}")
    for name, (ta, tb, m, n, k) in shapes(int(tokens), int(width)).items():
        a = torch.randn((k, m) if ta else (m, k))
        b = torch.randn((n, k) if tb else (k, n))
        c = torch.empty(m, n)
        left, right = a.t() if ta else a, b.t() if tb else b
        flops = 2 * m * n * k
        theirs = rate(flops, lambda left=left, right=right, c=c: torch.mm(left, right, out=c))
        linear: Any = torch.ops.mkldnn._linear_pointwise if torch.backends.mkldnn.is_available() else None
        one = float("nan")
        if linear is not None:  # x·Wᵀ: x is op(a), W is op(b)ᵀ
            x, w = left.contiguous(), right.t().contiguous()
            one = rate(flops, lambda of=linear, x=x, w=w: of(x, w, None, "none", [], ""))
        ours = float("nan")
        if isinstance(found, Native):
            given = (ta, tb, m, n, k, a.data_ptr(), b.data_ptr(), 0.0, c.data_ptr())
            ours = rate(flops, lambda given=given: found.product(*given))
        print(f"{name:28}{theirs:8.0f}{one:8.0f}{ours:8.0f}{ours / theirs:12.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
