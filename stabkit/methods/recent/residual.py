"""ResiDual: Post-LN, and beside it a stream of everything that its branches added. Xie et al. 2023 (arXiv 2304.14802).

    x ← N(x + f(x)),   s ← s + f(x),   x₀ = s₀ the embedding;   at the end of a stack y = x + N(s)

Both streams begin with the embedded tokens; the branch reads x alone, and its output goes to both sums. The gradient
through s does not pass the norms of x, and the sum of the branches does not drown what x holds: the paper's two proofs.
Checked in the authors' code (microsoft/ResiDual), whose further scales are 1 at their defaults and whose last norm has
ε = 1e-7 where every norm here has 1e-5.
"""

from __future__ import annotations

from stabkit.methods.base import Method, Recipe


def method() -> Method:
    """x ← N(x + f(x)), s ← s + f(x), output x + N(s)."""
    return Method(
        key="residual",
        label="ResiDual",
        source="Xie et al. 2023",
        wiring="two streams",
        recipe=Recipe(source="released configuration, hydra_config/iwslt.yaml", lr=5e-4),
    )
