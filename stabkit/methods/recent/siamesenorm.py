"""SiameseNorm: a stream that is normed before every sub-layer beside one that never is. arXiv 2602.08064; the authors'
code, deit-model-siamesenorm.py, `Block` and `forward_features`.

x ← N(x), z = f(N(x + N(y))), x ← x + z/√(2l), y ← y + z, both the embedding at first; output N(N(x) + N(y))

l is the layer; both of its sub-layers have the same factor. Every N has weights of its own.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """x ← N(x) + z/√(2l), y ← y + z, z = f(N(x + N(y)))."""
    return Method(
        key="siamesenorm",
        label="SiameseNorm",
        source="arXiv 2602.08064; released code",
        constants="1/√(2l) on the input of the first stream",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        wiring="siamese streams",
        also=("siamese-norm",),
    )
