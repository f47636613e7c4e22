"""`stabkit.hf.Watch()`: a watch as a callback of transformers' Trainer.

    Trainer(…, callbacks=[stabkit.hf.Watch(out="out")])

The optimiser is the one inside accelerate's wrapper. What it sees is after accumulation, unscaling and Trainer's own
clipping: ratios between layers do not care, totals are those of the clipped gradient.
"""

from __future__ import annotations

from typing import Any, Unpack

from transformers import TrainerCallback

from stabkit.api import WatchOptions, watch
from stabkit.own.watch.watch import Watch as Loop


class Watch(TrainerCallback):  # type: ignore[misc]  # transformers has no types here
    """Takes the options of `stabkit.watch`; `watch` is there once training has begun."""

    def __init__(self, **options: Unpack[WatchOptions]) -> None:
        self.options = options
        self.watch: Loop | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **seen: Any) -> None:
        """Begin; a training that begins again closes what it had begun."""
        if self.watch is not None:
            self.watch.close()
        self.watch = watch(seen["model"], seen["optimizer"], **self.options)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **seen: Any) -> None:
        """The mean loss since the log before, as that of the update just done."""
        if self.watch is not None and self.watch.steps and logs and "loss" in logs:
            self.watch.loss(float(logs["loss"]), self.watch.steps - 1)

    def on_train_end(self, args: Any, state: Any, control: Any, **seen: Any) -> None:
        """Write what is left."""
        if self.watch is not None:
            self.watch.close()
