"""One run with its matrix products by each library in turn: benchmarks/products.py [LAYERS] [STEPS] [PAIRS] [WORKERS].

WORKERS processes a side train the same run at once, as a sweep's workers do (`alternate.py`). Prints the processor,
each pair's ratio MKL / oneDNN (put in the place of `kernels.product`); and how long MKL takes for the logits' weight
gradient, 512 × 2,000 by 512 × 64, as it is and as its transpose.
"""

from __future__ import annotations

import sys
import timeit

import torch
from alternate import answer, compare

from stabkit.model import kernels


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, relu: bool = False) -> torch.Tensor:
    """`kernels.product` by oneDNN."""
    made: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], "")
    return made


def outer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`kernels._outer` by oneDNN, with the wider factor in the place of the weight, where it is faster."""
    return product(b.t(), a.t(), None).t() if a.shape[1] > b.shape[1] else product(a.t(), b.t(), None)


def orders() -> None:
    """The weight gradient of the logits in both orders."""
    torch.set_num_threads(1)
    dy, x = torch.randn(512, 2000), torch.randn(512, 64)
    made = {"dyᵀ·x": lambda: torch.mm(dy.t(), x), "(xᵀ·dy)ᵀ": lambda: torch.mm(x.t(), dy).t().contiguous()}
    best = {name: min(timeit.repeat(call, number=50, repeat=9)) / 50 for name, call in made.items()}
    print("logits' weight gradient: " + ", ".join(f"{name} {1e6 * seconds:.0f} µs" for name, seconds in best.items()))


def main(layers: str = "50", steps: str = "4", pairs: str = "3", workers: str = "2") -> None:
    compare(__file__, "oneDNN", "MKL", layers, steps, pairs, workers)
    orders()


if __name__ == "__main__":
    if sys.argv[1:2] in (["MKL"], ["oneDNN"]):
        if sys.argv[1] == "oneDNN":
            kernels.product, kernels._outer = product, outer
        answer("post-ln", int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(*sys.argv[1:])
