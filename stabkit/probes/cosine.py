"""Is a layer an identity? cos(x_{l−1}, x_l), mean over the probe batch's tokens, of the states before and after every
layer: 1 where it only passes on what it was given, in direction. Of several streams one site each, as in `stream`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_taps
from stabkit.probes.tools.quantities import lengths
from stabkit.results.sites import parse

TINY = 1e-8
"""A product of lengths below which a cosine is 0: of a state that is nothing."""


class Cosine(Probe):
    name = "cosine"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        taps = model.states("layer")
        self.names = list(taps)
        self.taps = {tap: i for i, tap in enumerate(taps.values())}
        kinds = [_chain(name) for name in self.names]
        self.chains = [[i for i, of in enumerate(kinds) if of == kind] for kind in dict.fromkeys(kinds)]
        """The states of each stack and stream, lowest first."""
        self.sites = tuple(self.names[i] for chain in self.chains for i in chain[1:])
        self.states = [torch.empty(0)] * len(self.names)

    def attached(self) -> AbstractContextManager[object]:
        return on_taps(self.taps, self.watches, self._see)

    def _see(self, i: int, x: torch.Tensor) -> None:
        self.states[i] = x

    def read(self, seen: Pass) -> torch.Tensor:
        means = []
        for chain in self.chains:
            keep = seen.keep[parse(self.names[chain[0]]).stack]
            x_LTBD = torch.stack([self.states[i] for i in chain])
            size = lengths(x_LTBD)
            dots = (x_LTBD[1:] * x_LTBD[:-1]).sum(-1)
            cosines = dots / (size[1:] * size[:-1]).clamp_min(TINY)
            means.append(cosines[:, keep].double().mean(dim=1))
        return torch.cat(means)


def _chain(name: str) -> tuple[str, str]:
    """The stack and the stream of a state: (`decoder`, `sum`) of `decoder.3:sum`."""
    return parse(name).stack, parse(name).stream
