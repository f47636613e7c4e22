"""‖∂L/∂W‖₂ over the weight matrices of a sub-layer at step 0, biases and the norm's gain and bias left out.

DeepNet's §3.3 derives α and β from the top sub-layer's gradient, ‖∂L/∂θ‖ ∝ ‖θ‖/α, of θ the weights of the branch. What
`grad_norm` reads there holds the norm's own parameters too, behind the sum, which α does not reach: a floor that hides
the power once α is large.
"""

from __future__ import annotations

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe


class WeightGrad(Probe):
    name = "weight_grad"
    watches = "training"
    when = "start"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        self.weights = [[p for p in flat.parts[site.name] if p.ndim > 1] for site in model.residuals]

    def read(self, seen: Pass) -> torch.Tensor:
        return torch.stack([self._norm(weights) for weights in self.weights])

    def _norm(self, weights: list[torch.nn.Parameter]) -> torch.Tensor:
        norms = [torch.linalg.vector_norm(p.grad, dtype=torch.float64) for p in weights if p.grad is not None]
        total: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms))
        return total
