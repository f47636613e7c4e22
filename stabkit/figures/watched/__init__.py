"""The pictures of a watch: a user's training against its updates, one link of the chain a file."""

from __future__ import annotations

from types import ModuleType

from stabkit.figures.watched import watched_gradient, watched_loss, watched_stream, watched_update

WATCHED: tuple[ModuleType, ...] = (watched_gradient, watched_stream, watched_update, watched_loss)
"""They select from a `storage.watched.Watched`."""
