"""The modules of wirings (`methods/wirings.py` says what each is, and what it costs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch

from stabkit.methods.base import Site
from stabkit.methods.wirings import Wired, Wiring
from stabkit.model.wirings.base import ChainWiring
from stabkit.model.wirings.depth_attention import DepthAttention
from stabkit.model.wirings.from_start import FromStart
from stabkit.model.wirings.history import History
from stabkit.model.wirings.hyper import Constrained, Hyper
from stabkit.model.wirings.shrunk import Shrunk
from stabkit.model.wirings.siamese import Siamese
from stabkit.model.wirings.two_streams import TwoStreams
from stabkit.spec import Norm
from stabkit.streams import key

MODULES: Mapping[Wiring, Callable[[Sequence[Site], Norm], ChainWiring]] = {
    "chain": lambda places, norm: ChainWiring(),
    "history, normed": partial(History, normed=True),
    "history, norm after": partial(History, normed=False),
    "two streams": TwoStreams,
    "siamese streams": Siamese,
    "shrunk chain": Shrunk,
    "from the start": FromStart,
    "attention over depth": DepthAttention,
    "attention over blocks": partial(DepthAttention, blocks=8),
    "hyper-connections": Hyper,
    "doubly stochastic, from 1/n": partial(Constrained, start="uniform"),
    "doubly stochastic, from I": partial(Constrained, start="identity"),
    "doubly stochastic, from logits I": partial(Constrained, start="static"),
}
"""(sub-layers of the stack, the comparison's norm) → the wiring, of every name in `methods.wirings.WIRINGS`."""


def wiring_of(wiring: Wiring | Wired, places: Sequence[Site], norm: Norm, seed: int) -> ChainWiring:
    """The wiring of a stack. Raises TypeError for one from a file that is no ChainWiring."""
    if isinstance(wiring, str):
        return MODULES[wiring](places, norm)
    with torch.random.fork_rng([]):  # whatever it draws is the same of every run of a seed
        torch.manual_seed(key(seed, "init", places[0].stack, "wiring"))
        made = wiring.module(places, norm) if wiring.module else None
    if not isinstance(made, ChainWiring):
        raise TypeError(f"a wiring's module must make a stabkit.model.wirings.base.ChainWiring, not {made!r}")
    return made
