"""The pictures of `stabkit probe`: a user's model over depths, one link of the chain a file."""

from __future__ import annotations

from types import ModuleType

from stabkit.figures.own import own_gradient, own_stream, own_update

OWN: tuple[ModuleType, ...] = (own_stream, own_update, own_gradient)
"""They select from a `results.own.verdict.Judged`."""
