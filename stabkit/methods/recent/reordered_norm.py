"""The reordered norm: a norm on what a branch adds, none before it. OLMo 2 (arXiv 2501.00656), §3.3.2; Swin V2.

    x ← x + N(f(x)); at the end N(x); queries and keys, all heads beside each other, through RMSNorm

OLMo 2 found that neither the order nor the norm on queries and keys does good alone, and has both; its norm there reads
the whole projection, before it is split into heads and turned (transformers' modeling_olmo2.py). `query_key="none"` is
the order alone, which Swin V2 calls res-post-norm (arXiv 2111.09883, §3.2); its code begins with γ = 0 in these norms
and takes a cosine in the place of q·k, which is not here. Not here either: OLMo 2's z-loss, 1e-5·log²Z, a term of the
loss.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import Method, Place, Site
from stabkit.methods.parts import Part


def method(query_key: Literal["norm", "none"] = "norm") -> Method:
    """x ← x + N(f(x)), q and k normed across heads."""

    def inner(site: Site, role: Place) -> Part:
        return "rms across heads" if query_key == "norm" and role in ("query", "key") else ""

    return Method(
        key="reordered-norm",
        label="OLMo 2 order",
        source="OLMo 2 (2025) §3.3.2; Swin V2 (2021) §3.2",
        norm_branch=lambda site: "norm",
        norm_out=lambda site: "",
        inner=inner,
        final=lambda stack: "norm",
        also=("olmo2", "olmo-2", "swin-v2", "res-post-norm"),
    )
