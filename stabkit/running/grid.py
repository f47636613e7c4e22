"""Grids: products of axes over one base, counted and priced before a spec of them is built."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stabkit import methods
from stabkit.methods.own import Texts
from stabkit.running.request import MANY_RUNS, Budget, TooManyRuns, price
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


def specs(grids: Sequence[Grid], texts: Texts, workers: int, *, many: bool) -> tuple[RunSpec, ...]:
    """Every run once, in the order of the grids; `texts`: the files of methods of the user's own. Raises TooManyRuns
    for more than MANY_RUNS unless `many` is on: before one is built, for a million of them take minutes."""
    if not many and sum(map(len, grids)) > MANY_RUNS:
        raise TooManyRuns(budget(grids, workers))
    runs = (methods.with_recipe(spec, texts) for grid in grids for spec in grid.specs())
    return tuple({spec.run_id: spec for spec in runs}.values())


def budget(grids: Sequence[Grid], workers: int) -> Budget:
    """What grids cost, without building their specs: runs of one depth cost the same."""
    alike = [
        (len(grid) // len(grid.depths), next(replace(grid, depths=(depth,)).specs()))
        for grid in grids
        for depth in grid.depths
    ]
    return price(alike, workers)
