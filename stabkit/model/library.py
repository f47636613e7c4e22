"""Which library multiplies matrices here. Decided by the processor alone, never by a timing: products that another
library makes differ in the last bits, and a machine must not choose by how busy it was.

    GenuineIntel                    MKL     0.81 of oneDNN's time for a 50L-50L run (Sapphire Rapids)
    AuthenticAMD with AVX-512       oneDNN  up to twice as fast in products of 512 × 64: MKL takes its AVX2 path there
    AuthenticAMD without            MKL     0.79 of oneDNN's time for a 50L-50L run (EPYC 7003)
    any other, or a build without   torch   whatever `torch.nn.functional.linear` comes down to

Measured with two workers at work by `benchmarks/products.py`. Every run's environment records the answer as `products`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

Library = Literal["MKL", "oneDNN", "torch"]


def choose(vendor: str, *, avx512: bool, mkl: bool, onednn: bool) -> Library:
    """The table above, of a processor's vendor and of what this build of torch holds."""
    if vendor == "AuthenticAMD" and avx512 and onednn:
        return "oneDNN"
    return "MKL" if vendor in ("GenuineIntel", "AuthenticAMD") and mkl else "torch"


@cache
def library() -> Library:
    """The choice on this machine."""
    import torch  # not above: a Dask worker that tells its vendor has no need of it

    return choose(
        vendor(),
        avx512=torch.backends.cpu.get_cpu_capability().startswith("AVX512"),
        mkl=bool(torch._C.has_mkl),
        onednn=bool(torch._C._has_mkldnn) and hasattr(torch.ops.mkldnn, "_linear_pointwise"),
    )


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
