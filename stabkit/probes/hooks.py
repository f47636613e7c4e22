"""Watching the taps of every residual for the length of a `with`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch

from stabkit.model.transformer import Transformer


@contextmanager
def on_taps(
    model: Transformer, tap: Literal["branch", "sum"], see: Callable[[int, torch.Tensor], None]
) -> Iterator[None]:
    """Call `see(i, tensor)` with what passes the i-th residual's tap, in the order of `model.sites`."""

    def hook(i: int) -> Callable[..., None]:
        return lambda module, inputs, output: see(i, output)

    handles = [getattr(r, tap).register_forward_hook(hook(i)) for i, r in enumerate(model.residuals.values())]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def token_means(model: Transformer, values: list[torch.Tensor], keep: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """(sites,) float64: means over real tokens of per-token values, one tensor (T, B) or (S, B) a site."""
    means = []
    for stack in dict.fromkeys(site.stack for site in model.sites):
        mine = [value for value, site in zip(values, model.sites, strict=True) if site.stack == stack]
        means.append(torch.stack(mine)[:, keep[stack]].double().mean(dim=1))
    return torch.cat(means)
