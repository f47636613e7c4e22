"""The colour of each method and the sign that its lines bear, the same on every page.

Between two colours of one sign lies a ΔE (CIE 1976) of 10 or more: to the eye, to one without red or green cones
(Machado, Oliveira and Fernandes 2009, severity 1) and in a grey print. 29 colours do not fit between white and a dark
page at that distance, eight signs part the rest. ○, □, ✕ and · stay free: they say how a run ended.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

HUES: Mapping[str, tuple[str, str]] = {
    "post-ln": ("#D55E00", ""),
    "post-ln-init": ("#E69F00", ""),
    "ds-init": ("#AA7FEF", "D"),
    "admin": ("#0072B2", "v"),
    "rezero": ("#947538", "P"),
    "r-fixup": ("#5F5F5F", "^"),
    "t-fixup": ("#BC0B56", "D"),
    "pre-ln": ("#56B4E9", "^"),
    "dlcl": ("#25A3B4", "P"),
    "normformer": ("#658332", "D"),
    "sub-ln": ("#CC79A7", "v"),
    "deepnorm": ("#009E73", "^"),
    "residual": ("#BA84AB", "<"),
    "peri-ln": ("#35638F", ""),
    "sandwich-ln": ("#B5643E", "*"),
    "reordered-norm": ("#BAA7E6", "*"),
    "mix-ln": ("#7A5A01", "P"),
    "keel": ("#68C38A", "v"),
    "layernorm-scaling": ("#E47272", "*"),
    "dyt": ("#92AFFB", "<"),
    "gpt2-init": ("#ED9F5D", ">"),
    "depth-mup": ("#B2157E", "*"),
    "completep": ("#126B64", "<"),
}
"""Of the built-in methods."""

OTHERS: Sequence[tuple[str, str]] = (
    ("#EF8AFD", "P"),
    ("#7B574A", ">"),
    ("#FD8FAD", "D"),
    ("#7D7E08", "<"),
    ("#43A494", ">"),
    ("#8E5FE0", ">"),
)
"""For methods from files of one's own, and those that this version does not know."""


def hue(method: str) -> tuple[str, str]:
    """The method's colour, and the matplotlib marker that its lines bear; "" for none."""
    return HUES.get(method) or OTHERS[zlib.crc32(method.encode()) % len(OTHERS)]
