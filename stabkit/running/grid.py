"""A grid: the product of axes over one base."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stabkit.spec import Chosen, RunSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """The product of axes over one base: what `sweep` runs; α and β scales are axes too (DeepNet Fig. 9).

    Each axis holds distinct values in the order of the report.
    """

    base: RunSpec
    methods: tuple[Chosen, ...]
    depths: tuple[tuple[int, int], ...]
    seeds: tuple[int, ...] = (0,)
    warmups: tuple[int, ...] = (4000,)
    lrs: tuple[float, ...] = (5e-4,)
    alpha_scales: tuple[float, ...] = (1.0,)
    beta_scales: tuple[float, ...] = (1.0,)

    def __len__(self) -> int:
        axes = (self.methods, self.depths, self.seeds, self.warmups, self.lrs, self.alpha_scales, self.beta_scales)
        size = 1
        for axis in axes:
            size *= len(axis)
        return size

    def specs(self) -> Iterator[RunSpec]:
        """Every run of the grid, lazily, shallow before deep and methods in the order given."""
        for depth, warmup, lr, alpha, beta, seed, chosen in itertools.product(
            self.depths, self.warmups, self.lrs, self.alpha_scales, self.beta_scales, self.seeds, self.methods
        ):
            yield replace(
                self.base,
                method=chosen.key,
                options=dict(chosen.options),
                own=chosen.own,
                model=replace(self.base.model, encoder_layers=depth[0], decoder_layers=depth[1]),
                train=replace(self.base.train, warmup=warmup, lr=lr),
                alpha_scale=alpha,
                beta_scale=beta,
                seed=seed,
            )
