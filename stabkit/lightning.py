"""`stabkit.lightning.Watch()`: a watch as a callback of Lightning's Trainer.

    Trainer(…, callbacks=[stabkit.lightning.Watch(out="out", model="net")])

`model` names the attribute of the LightningModule that is the network; without it the module itself is watched, whose
`forward` must then be what `training_step` calls, or a `probe` batch be given. Of several optimisers (Muon and AdamW,
in manual optimisation) an update is over when each has stepped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import torch
from lightning.pytorch import Callback

from stabkit.api import WatchOptions, watch
from stabkit.errors import UsageError
from stabkit.own.watch.watch import Watch as Loop


class Watch(Callback):  # type: ignore[misc]  # not there where mypy runs
    """Takes the options of `stabkit.watch` and `model`; `watch` is there once training has begun."""

    def __init__(self, *, model: str = "", **options: Unpack[WatchOptions]) -> None:
        self.model, self.options = model, options
        self.watch: Loop | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, on all optimisers; a training that begins again closes what it had begun."""
        if self.watch is not None:
            self.watch.close()
        try:
            network = pl_module.get_submodule(self.model) if self.model else pl_module
        except AttributeError as error:
            raise UsageError(f"watch: the module has no attribute {self.model!r}") from error
        self.watch, self._told = watch(network, trainer.optimizers, **self.options), 0

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """The loss of the last batch of an update, as `training_step` returned it."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if self.watch is None or self.watch.steps == self._told or not isinstance(loss, torch.Tensor):
            return
        self._told = self.watch.steps
        self.watch.loss(loss * trainer.accumulate_grad_batches, self._told - 1)

    _told = 0
    """Updates whose losses were given."""

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write what is left."""
        if self.watch is not None:
            self.watch.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """What was recorded is kept."""
        self.on_train_end(trainer, pl_module)
