"""How far the output moves when every weight moves a little: ‖x_i(θ + δ) − x_i(θ)‖₂/‖x_i(θ)‖₂ after every sub-layer,
as a mean over the probe batch's tokens, at step 0 (Liu et al. 2020, §4: amplification; their released stability plot).

δ = 10⁻⁴·sign(noise), the same size for every weight of every method and from one stream for all runs: no training, no
gradient. x_i is what leaves sub-layer i, after its norm. Dropout is off, as in the whole pass.
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer, tensors
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_taps, token_means
from stabkit.probes.tools.quantities import lengths
from stabkit.results.sites import declared
from stabkit.streams import stream

SIZE = 1e-4


@functools.lru_cache(maxsize=1)
def signs(n: int) -> np.ndarray:
    """n times −1 or 1, the same of every run: a worker's runs of one depth share them."""
    return (2 * stream(0, "perturbation").integers(0, 2, n) - 1).astype(np.int8)


class Perturbation(Probe):
    name = "perturbation"
    watches = "probe"
    when = "start"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        self.model, self.flat = model, flat
        states = model.states("sub-layer")
        self.taps = {states[name]: i for i, name in enumerate(declared(self.name, model.config))}
        """Of several streams the one that branches read."""

    def read(self, seen: Pass) -> torch.Tensor:
        theta = self.flat.theta.clone()
        before = self._outputs(seen)
        try:
            self.flat.theta.add_(torch.from_numpy(signs(len(theta))).to(theta), alpha=SIZE)
            after = self._outputs(seen)
        finally:
            self.flat.theta.copy_(theta)
        moved = [lengths(b - a) / lengths(a) for a, b in zip(before, after, strict=True)]
        return token_means(self.model, moved, seen.keep)

    def _outputs(self, seen: Pass) -> list[torch.Tensor]:
        """What leaves every sub-layer, in the order of `sites`."""
        outputs = [torch.empty(0)] * len(self.taps)
        with on_taps(self.taps, self.watches, lambda i, x: outputs.__setitem__(i, x)), torch.no_grad():
            self.model(*tensors(seen.batch, self.model.device)[:2])
        return outputs
