"""DyT: Pre-LN with γ·tanh(α·x) + β in the place of every norm. Zhu et al. 2025 (arXiv 2503.10622), §4.

x ← x + f(DyT(x)); at the end DyT(x); DyT(x) = γ ⊙ tanh(α·x) + β, α one trained number for each

α begins at 0.5, the paper's value for all but language models; for those it has 1.0 at width 1024, the narrowest that
it gives, and less where it is wider (Table 11): `dyt:alpha=1`. At width 64, 18 layers and its own best rate that loses
more: 5.72 for 5.54 in the classic block, 5.56 for 5.10 in the llama block, by

    stabkit sweep --models dyt,dyt:alpha=1 --arch decoder-only --block llama --depths 18 --steps 250 --warmup 0
        --seeds 0 --lr 2.5e-4,5e-4,1e-3,2e-3,4e-3,8e-3 --data ../shared/data/multi30k --source de --target en

and without `--block llama`. The paper also has a trained factor after their embedding, √d at first: here √d is fixed,
as in every model.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import Method
from stabkit.methods.parts import Part


def method(alpha: Literal["0.5", "1"] = "0.5") -> Method:
    """x ← x + f(DyT(x))."""
    part: Part = "dyt" if alpha == "0.5" else "dyt 1"
    return Method(
        key="dyt",
        label="DyT",
        source="Zhu et al. 2025 §4",
        constants=f"α = {alpha} at first",
        norm_in=lambda site: part,
        norm_out=lambda site: "",
        final=lambda stack: part,
        also=("dynamic-tanh",),
    )
