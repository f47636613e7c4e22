"""The colour of each method and the marker of its lines, the same on every page; the mark and the colour of an outcome.

Between two colours of one marker lies a ΔE (CIE 1976) of 10 or more: to the eye, to one without red or green cones
(Machado, Oliveira and Fernandes 2009, severity 1) and in a grey print. 40 colours do not fit between white and a dark
page at that distance, twelve markers separate the rest. ○, □, ✕ and · stay free: they say how a run ended.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from stabkit.results.outcome import NOT_JUDGED

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
    "derf": ("#50C42E", "d"),
    "gpas": ("#DD35ED", "p"),
    "gated-attention": ("#ED3A3D", "h"),
    "value-residual": ("#7135EC", "d"),
    "nanochat": ("#D1A38D", "p"),
    "siamesenorm": ("#6A549F", "h"),
    "attention-residuals": ("#229A39", "d"),
    "hyper-connections": ("#A92BAB", "p"),
    "mhc": ("#99BD45", "h"),
    "mhc:start=identity": ("#4477DE", "8"),
    "mhc:start=static": ("#994859", "8"),
    "deepnorm:alpha=one": ("#C577DB", "8"),
    "deepnorm:beta=one": ("#77C560", "8"),
}
"""Of the built-in methods, and of variants that are compared with their method."""

OTHERS: Sequence[tuple[str, str]] = (
    ("#EF8AFD", "P"),
    ("#7B574A", ">"),
    ("#FD8FAD", "D"),
    ("#7D7E08", "<"),
    ("#43A494", ">"),
    ("#8E5FE0", ">"),
)
"""For methods from files of one's own, and those that this version does not know."""


MARKS: dict[str, dict[str, Any]] = {
    "trains": {"marker": "o", "markersize": 5},
    "stuck": {"marker": "s", "markersize": 5.5, "markerfacecolor": "none", "mew": 1.4},
    "diverged": {"marker": "x", "markersize": 6.5, "mew": 2},
    NOT_JUDGED: {"marker": ".", "markersize": 6},
}
"""Of an outcome, among points."""

OUTCOME_COLOURS = {
    "trains": "#bfe5d0",
    "some": "#f3e3a3",
    "stuck": "#eda96a",
    "diverged": "#d9736b",
    NOT_JUDGED: "#d5d9df",
}
"""Of an outcome, as a cell. `some`: not all of a cell's runs train."""


def hue(method: str) -> tuple[str, str]:
    """The method's colour, and the matplotlib marker of its lines; "" for none."""
    return HUES.get(method) or OTHERS[zlib.crc32(method.encode()) % len(OTHERS)]
