"""Which library multiplies matrices on the Python path: products that another makes differ in the last bits, so every
run's environment records it as `products`.

It is torch's own choice, MKL where the build has it. The fused path has products of its own (`stack.cpp`), 1.2 to 2.5
times as fast at these shapes on the AMD processors measured (`benchmarks/products.py`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

Library = Literal["MKL", "torch"]


@cache
def library() -> Library:
    """MKL, or whatever `torch.nn.functional.linear` comes down to without it."""
    import torch  # not above: a Dask worker that tells its vendor has no need of it

    return "MKL" if torch._C.has_mkl else "torch"


def vendor() -> str:
    """`GenuineIntel`, `AuthenticAMD`; "" where the system does not say."""
    return _line("vendor_id")


def processor() -> str:
    """The processor's name; "" where the system does not say."""
    return _line("model name")


def _line(name: str) -> str:
    """The first line of that name in Linux's description of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.partition(":")[0].strip() == name:
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""
