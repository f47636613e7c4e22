"""The corpus of the forecast, designed: the runs whose first sixteen updates and outcomes it is fitted on.

A slice is every method at one depth, architecture, task, warm-up and seed, at two rates of a pair; the rates suit what
a method tolerates, so that each meets both outcomes at several depths. No slice has seed 0, which commands have by
default: a default sweep is forecast by runs of other seeds. Slices stand in an order in which the first few are a
small corpus already. In the first eight four of five runs trained; the later ones lean to higher rates (pairs g and h
in place of b and d), so that both outcomes are met.
"""

from __future__ import annotations

from typing import NamedTuple

from stabkit.paper.item import TINY
from studies.study import Design

LOW, MID, HIGH = "post-ln,ds-init,admin,r-fixup", "post-ln-init,deepnorm", "rezero,pre-ln,dlcl,normformer,sub-ln"
"""Methods by the rate that they tolerate without warm-up at 12 layers: up to some 2e-3, 8e-3, beyond."""
RATES = {
    "a": {LOW: "5e-4,2e-3", MID: "2e-3,8e-3", HIGH: "4e-3,3e-2"},
    "b": {LOW: "1e-3,4e-3", MID: "1e-3,4e-3", HIGH: "8e-3,1.6e-2"},
    "c": {LOW: "5e-4,8e-3", MID: "5e-4,1.6e-2", HIGH: "5e-4,3e-2"},
    "d": {LOW: "1e-3,1.6e-2", MID: "4e-3,3e-2", HIGH: "2e-3,1.6e-2"},
    "g": {LOW: "1e-3,4e-3", MID: "4e-3,1.6e-2", HIGH: "1.6e-2,3e-2"},
    "h": {LOW: "2e-3,8e-3", MID: "4e-3,8e-3", HIGH: "8e-3,3e-2"},
    "e": {LOW: "5e-4", MID: "5e-4", HIGH: "5e-4"},
    "f": {LOW: "2e-3", MID: "4e-3", HIGH: "1.6e-2"},
}
T_FIXUP = {"a": "1e-3,2e-3,4e-3,8e-3", "b": "5e-4,1e-3,2e-3,1.6e-2", "e": "5e-4,2e-3"}
T_FIXUP |= {"c": T_FIXUP["a"], "d": T_FIXUP["b"], "g": "1e-3,4e-3,8e-3,1.6e-2", "h": "1e-3,4e-3,8e-3,1.6e-2"}
"""T-Fixup is defined for an encoder with a decoder alone: there it stands at twice as many rates."""


class Slice(NamedTuple):
    """All methods at one setting; the seed is its place in SLICES, from 1 on."""

    layers: int
    arch: str
    task: str
    warmup: int
    rates: str


BOTH, ONE, TEXT, SYNTHETIC = "encoder-decoder", "decoder-only", "text", "synthetic"

SLICES = (
    Slice(6, BOTH, TEXT, 0, "a"),
    Slice(12, ONE, TEXT, 0, "b"),
    Slice(18, BOTH, TEXT, 0, "a"),
    Slice(6, ONE, TEXT, 50, "d"),
    Slice(12, BOTH, SYNTHETIC, 0, "a"),
    Slice(30, ONE, TEXT, 0, "a"),
    Slice(6, ONE, TEXT, 0, "a"),
    Slice(18, ONE, TEXT, 50, "b"),
    Slice(12, BOTH, TEXT, 0, "h"),
    Slice(50, ONE, TEXT, 0, "g"),
    Slice(6, BOTH, TEXT, 50, "c"),
    Slice(18, ONE, SYNTHETIC, 0, "c"),
    Slice(12, ONE, TEXT, 50, "c"),
    Slice(6, BOTH, SYNTHETIC, 0, "g"),
    Slice(30, BOTH, TEXT, 0, "c"),
    Slice(18, BOTH, TEXT, 50, "h"),
    Slice(6, ONE, SYNTHETIC, 0, "c"),
    Slice(12, ONE, TEXT, 0, "a"),
    Slice(100, ONE, TEXT, 0, "f"),
    Slice(18, ONE, TEXT, 0, "h"),
    Slice(6, BOTH, TEXT, 0, "g"),
    Slice(12, BOTH, TEXT, 50, "g"),
    Slice(30, ONE, SYNTHETIC, 50, "g"),
    Slice(6, ONE, TEXT, 0, "g"),
    Slice(18, BOTH, SYNTHETIC, 0, "g"),
    Slice(12, ONE, SYNTHETIC, 50, "h"),
    Slice(50, BOTH, TEXT, 0, "a"),
    Slice(100, BOTH, TEXT, 0, "e"),
)
LAST = 800
"""Where a run that is early at its verdict ends at the latest."""


def verdict_at(slice_: Slice) -> int:
    """250 updates past the warm-up on text, 400 on the synthetic task, where it is seen later which methods train."""
    return slice_.warmup + (250 if slice_.task == TEXT else 400)


def commands(slice_: Slice, seed: int) -> list[str]:
    """A sweep for each group of methods."""
    rates = dict(RATES[slice_.rates])
    if slice_.arch == BOTH:
        rates["t-fixup"] = T_FIXUP[slice_.rates]
    task = "" if slice_.task == TEXT else " --data '' --source '' --target ''"
    return [
        f"sweep --models {models} --arch {slice_.arch} --depths {slice_.layers} --lr {lr} --warmup {slice_.warmup} "
        f"--seeds {seed} --max-tokens 256 --steps {LAST} --verdict-at {verdict_at(slice_)}{task}"
        for models, lr in rates.items()
    ]


BEYOND = (
    f"sweep --models post-ln,deepnorm,pre-ln --depths 6 --lr 5e-4,2e-3 --warmup 400 --seeds 29 --max-tokens 256 "
    f"--steps {LAST} --verdict-at 650",
)
"""Runs that the corpus does not reach: to show that the forecast reports them as out of range. Never fitted."""

WIDTHS = tuple(
    f"sweep --models {models} --arch {arch} --depths {layers} --hidden {hidden} --ffn 2x --heads {heads} --lr {lr} "
    f"--warmup 0 --seeds {seed} --max-tokens 256 --steps {LAST} --verdict-at 250"
    for hidden, heads, layers, arch, seed, rates in (
        (128, 2, 6, BOTH, 31, ("5e-4,2e-3", "1e-3,4e-3", "2e-3,1.6e-2")),
        (128, 2, 12, ONE, 32, ("3e-4,1e-3", "5e-4,2e-3", "1e-3,1.6e-2")),
        (128, 2, 18, BOTH, 33, ("2e-4,1e-3", "3e-4,2e-3", "1e-3,8e-3")),
        (256, 4, 6, ONE, 34, ("2e-4,1e-3", "3e-4,2e-3", "1e-3,1.6e-2")),
        (256, 4, 12, BOTH, 35, ("1e-4,5e-4", "2e-4,1e-3", "5e-4,8e-3")),
        (256, 4, 18, ONE, 36, ("1e-4,5e-4", "2e-4,1e-3", "5e-4,8e-3")),
    )
    for models, lr in zip(("post-ln,admin", "deepnorm", "pre-ln,sub-ln"), rates, strict=True)
)
"""The width, a hold-out of its own: at each of six shapes five methods at two rates around their limits."""

DEFAULT_GRID = (
    f"sweep --depths 6,18 --warmup 0 --steps {LAST} --verdict-at 250",
    f"sweep --models post-ln,deepnorm --depths 50 --warmup 0 --steps {LAST} --verdict-at 250",
)
"""Cells of the default sweep, trained to a verdict: its forecasts against their outcomes. Never fitted."""

DESIGN = Design(
    key="forecast",
    title="What sixteen updates say of the outcome",
    question="No paper asks it. DeepNet §2 names a chain: the update explodes, inputs of the norms grow, gradients "
    "vanish, training is stuck. Which of its links, read in the first sixteen updates, tells who will train?",
    scaled=f"{TINY}; all methods, 6 to 100 layers, rates from 5e-4 to 3e-2, 256 tokens; each run to a verdict.",
    commands=(
        *(line for seed, slice_ in enumerate(SLICES, 1) for line in commands(slice_, seed)),
        *DEFAULT_GRID,
        *BEYOND,
        *WIDTHS,
    ),
)
