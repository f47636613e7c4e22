"""Watching the taps of every residual for the length of a `with`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from stabkit.model.tap import Tap
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Watches
from stabkit.results.sites import parse


@contextmanager
def on_taps(taps: Mapping[Tap, int], watches: Watches, see: Callable[[int, torch.Tensor], None]) -> Iterator[None]:
    """Call `see(number, tensor)` with what passes these taps in the watched pass; the other pass goes by unseen.

    The two passes are told apart by the mode that they run in, so that watchers may stay for a whole run: putting a
    thousand of them on and off costs more than they do.
    """
    training = watches == "training"

    def watcher(tap: Tap, number: int) -> Callable[[torch.Tensor], None]:
        def watch(x: torch.Tensor) -> None:
            if tap.training is training:
                see(number, x)

        return watch

    held = [(tap, watcher(tap, number)) for tap, number in taps.items()]
    for tap, watch in held:
        tap.watchers.append(watch)
    try:
        yield
    finally:
        for tap, watch in held:
            tap.watchers.remove(watch)


def token_means(model: Transformer, values: list[torch.Tensor], keep: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """(sites,) float64: means over real tokens of per-token values, one tensor (T, B) or (S, B) a site."""
    means = []
    for stack in dict.fromkeys(site.stack for site in model.sites):
        mine = [value for value, site in zip(values, model.sites, strict=True) if site.stack == stack]
        means.append(torch.stack(mine)[:, keep[stack]].double().mean(dim=1))
    return torch.cat(means)


def of_stacks(
    sites: Sequence[str],
    states: Sequence[torch.Tensor],
    keep: Mapping[str, torch.Tensor],
    value: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """(sites,) float64: means over real tokens of `value` of each state (T, B, D). The states of a stack are taken
    together: one call a stack, not one a site."""
    stacks = [parse(site).stack for site in sites]
    means = []
    for stack in dict.fromkeys(stacks):
        of_stack = torch.stack([x for x, of in zip(states, stacks, strict=True) if of == stack])
        means.append(value(of_stack)[:, keep[stack]].double().mean(dim=1))
    return torch.cat(means)
