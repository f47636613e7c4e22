"""stabkit: will this residual, normalisation and initialisation scheme stay stable at this depth?

`stabkit.watch(model, optimizer)` records and warns in a training loop of one's own; `stabkit.loss_surface(model, loss)`
draws the loss around any torch.nn.Module; everything else is the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabkit.own.watch.watch import Watch as watch
    from stabkit.surface.anymodel import LossSurface, loss_surface

__all__ = ["LossSurface", "__version__", "loss_surface", "watch"]


def __getattr__(name: str) -> Any:
    """The library's door, opened when it is used: importing stabkit imports no torch."""
    if name in ("LossSurface", "loss_surface"):
        from stabkit.surface import anymodel

        return getattr(anymodel, name)
    if name == "watch":
        from stabkit.own.watch.watch import Watch

        return Watch
    if name == "__version__":
        from stabkit.version import __version__

        return __version__
    raise AttributeError(f"module 'stabkit' has no attribute {name!r}")
