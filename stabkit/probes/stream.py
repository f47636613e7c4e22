"""The size of the residual stream: ‖x_l‖/√d, mean over the probe batch's tokens, of the state after every layer and of
the one that enters the first (`encoder.0`); rms, in other words. A state after a norm is 1 long by construction.

Of methods with several streams one site each: `decoder.3` of the one that branches read, `decoder.3:sum` of the other.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import of_stacks, on_taps
from stabkit.probes.tools.quantities import lengths


class Stream(Probe):
    name = "stream"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.width = model.config.hidden
        taps = model.states("layer")
        self.sites = tuple(taps)
        self.taps = {tap: i for i, tap in enumerate(taps.values())}
        self.states = [torch.empty(0)] * len(self.sites)

    def attached(self) -> AbstractContextManager[object]:
        return on_taps(self.taps, self.watches, self._see)

    def _see(self, i: int, x: torch.Tensor) -> None:
        self.states[i] = x

    def read(self, seen: Pass) -> torch.Tensor:
        return of_stacks(self.sites, self.states, seen.keep, lengths) / math.sqrt(self.width)
