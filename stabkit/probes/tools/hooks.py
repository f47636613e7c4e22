"""Watching the taps of every residual for the length of a `with`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

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
    with _watching([(tap.watchers[watches == "training"], partial(see, number)) for tap, number in taps.items()]):
        yield


@contextmanager
def on_lengths(taps: Mapping[Tap, int], watches: Watches, see: Callable[[int, torch.Tensor], None]) -> Iterator[None]:
    """Call `see(number, lengths)` with ‖x‖₂ of every token of what passes these taps, likewise."""
    with _watching([(tap.lengths[watches == "training"], partial(see, number)) for tap, number in taps.items()]):
        yield


@contextmanager
def on_gradients(taps: Mapping[Tap, int], see: Callable[[int, torch.Tensor], None]) -> Iterator[None]:
    """Call `see(number, gradient)` with ∂L/∂x of what passes these taps, in every pass that has a gradient."""
    with _watching([(tap.gradients, partial(see, number)) for tap, number in taps.items()]):
        yield


@contextmanager
def _watching(
    watchers: list[tuple[list[Callable[[torch.Tensor], Any]], Callable[[torch.Tensor], Any]]],
) -> Iterator[None]:
    for watching, watch in watchers:
        watching.append(watch)
    try:
        yield
    finally:
        for watching, watch in watchers:
            watching.remove(watch)


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
