"""The one comparison that sentences are made of: two methods at one depth, one condition and the same seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.results.chain import SATURATED
from stabkit.results.conditions import Condition, Shown, condition_order, depth_rank, method_label, shown
from stabkit.results.once import once
from stabkit.results.readings import centre, reference_step, update_at
from stabkit.results.run import Run
from stabkit.spec import depth_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """‖ΔF‖ of `higher` over that of `lower` at `step`: the median ratio over the seeds that both have."""

    condition: Condition
    step: int
    ratio: float
    seeds: tuple[int, ...]
    higher_runs: tuple[Run, ...]
    lower_runs: tuple[Run, ...]

    @property
    def higher(self) -> str:
        """What the method is called whose update is larger."""
        return method_label(self.higher_runs[0].spec)

    @property
    def lower(self) -> str:
        """What the other is called."""
        return method_label(self.lower_runs[0].spec)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M)."""
        model = self.higher_runs[0].spec.model
        return model.encoder_layers, model.decoder_layers

    @property
    def alike(self) -> bool:
        """Whether the two are too near each other to make a sentence of."""
        return self.ratio < 1.2

    @property
    def of_the_way(self) -> tuple[float, float]:
        """‖ΔF‖ of the two over √(2d), the higher first."""
        ceiling = math.sqrt(2 * self.lower_runs[0].spec.model.hidden)
        sides = self.higher_runs, self.lower_runs
        higher, lower = (centre(update_at(run, self.step) for run in runs) / ceiling for runs in sides)
        return higher, lower

    @property
    def where(self) -> str:
        """`100L-100L (no warm-up)`."""
        depth = depth_text(*self.shape)
        return f"{depth} ({self.condition})" if self.condition else depth


PAIR = {"post-ln", "deepnorm"}
"""The two that DeepNet compares throughout."""


@once
def contrast(runs: Sequence[Run]) -> Contrast | None:
    """The paired contrast at the deepest depth that has one (of several conditions, the first); None without.

    Of Post-LN and DeepNorm where both are there, else of the two that are widest apart.

    At the reference step, or after update 1 when by then both methods are near √(2d): without warm-up whatever moves
    gets there within 16 updates, and only the first ones tell the methods apart.
    """
    pair = _at(runs, reference_step(runs))
    if pair is not None:
        if pair.of_the_way[1] > SATURATED:
            first = _at(runs, 1)
            return first if first is not None and first.shape == pair.shape else pair
    return pair


def rate(run: Run) -> tuple[object, ...]:
    """What decides how large an update is beside the gradient; methods by their own recipes differ in it."""
    train = run.spec.train
    return train.optimizer, train.lr, train.warmup, train.hold


def _at(runs: Sequence[Run], step: int) -> Contrast | None:
    placed = shown(runs)
    order = condition_order([each.run.spec for each in placed])
    cells: dict[tuple[tuple[int, int], int], dict[str, dict[int, Shown]]] = {}
    for each in placed:
        value = update_at(each.run, step)
        if math.isfinite(value) and value > 0:
            spec = each.run.spec
            place = (depth_rank(spec), -order[each.condition])
            cells.setdefault(place, {}).setdefault(each.variant, {})[spec.seed] = each
    for _, methods in sorted(cells.items(), key=lambda item: item[0], reverse=True):
        pairs = []
        for one, other in itertools.permutations(methods, 2):
            seeds = tuple(sorted(methods[one].keys() & methods[other].keys()))
            if seeds and rate(methods[one][seeds[0]].run) == rate(methods[other][seeds[0]].run):
                ours = tuple(methods[one][seed].run for seed in seeds)
                theirs = tuple(methods[other][seed].run for seed in seeds)
                ratio = centre(update_at(x, step) / update_at(y, step) for x, y in zip(ours, theirs, strict=True))
                pairs.append((ratio, one, other, seeds, ours, theirs))
        if pairs:
            papers = [pair for pair in pairs if {pair[1], pair[2]} == PAIR]
            ratio, higher, _, seeds, ours, theirs = max(papers or pairs, key=lambda pair: pair[0])
            return Contrast(
                condition=next(iter(methods[higher].values())).condition,
                step=step,
                ratio=ratio,
                seeds=seeds,
                higher_runs=ours,
                lower_runs=theirs,
            )
    return None
