"""Mix-LN: Post-LN in the lowest layers, Pre-LN above. Li et al. 2024 (arXiv 2412.13795).

    layers l ≤ ⌊a·N⌋   x ← N(x + f(x))
    layers above       x ← x + f(N(x)); at the end N(x)

a is 0.25 in the paper's models of up to 24 layers, 0.0625 in its largest (32 layers, Table 7). Checked in the authors'
code, which takes the number of layers instead (3 of 12, 6 of 24) and scales nothing.
"""

from __future__ import annotations

import math
from typing import Literal

from stabkit.methods.base import Method, Site


def method(share: Literal["0.25", "0.0625", "0.5"] = "0.25") -> Method:
    """Post-LN below, Pre-LN above."""

    def post(site: Site) -> bool:
        return site.layer <= math.floor(float(share) * site.depth)

    return Method(
        key="mix-ln",
        label="Mix-LN",
        source="Li et al. 2024 §3",
        constants=f"Post-LN in layers l ≤ ⌊{share}·N⌋(none below {math.ceil(1 / float(share))} layers)",
        norm_in=lambda site: "" if post(site) else "norm",
        norm_out=lambda site: "norm" if post(site) else "",
        final=lambda stack: "norm",
        also=("mixln",),
    )
