"""What a probe is: hooks that watch one pass, and one vector read after it. It changes nothing.

Step t means after t updates. At every recorded step the loop runs two passes with θ_t: the training batch forward and
backward (`watches="training"`), and the fixed probe batch forward in eval mode (`watches="probe"`); the probes that
watch a pass are attached around it and read after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.results.sites import declared
from stabkit.tasks.base import PAD, Batch

Watches = Literal["training", "probe"]
When = Literal["recorded", "start"]
"""At every recorded step, or at step 0 alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """What a pass left to read, and the batch it went over.

    loss () of this pass, train_loss () and train_nll () of the training batch at the same θ (with label smoothing, and
    without), states (T, B, D) and logits (T, B, V) before the softmax, detached; target (T, B) the right tokens;
    keep[stack] is true at the positions that are not padding: (S, B) of the source for the encoder, (T, B) of the
    target for the decoder.
    """

    batch: Batch
    loss: torch.Tensor
    train_loss: torch.Tensor
    train_nll: torch.Tensor
    states: torch.Tensor
    logits: torch.Tensor
    target: torch.Tensor
    keep: Mapping[str, torch.Tensor]
    right: torch.Tensor | None = None
    """What `nll` returns, where it was made together with the loss."""

    def nll(self) -> torch.Tensor:
        """() −log p of the right token, mean over those asked for, without label smoothing: log of the perplexity."""
        if self.right is not None:
            return self.right
        right = self.logits.gather(-1, self.target[..., None])[..., 0]
        return (torch.logsumexp(self.logits, -1) - right)[self.target != PAD].mean()

    def accuracy(self) -> torch.Tensor:
        """() share of the tokens asked for whose likeliest prediction is right (teacher forcing)."""
        return (self.logits.argmax(-1) == self.target)[self.target != PAD].double().mean()


class Probe(ABC):
    """The base at the seam: a name, the pass it watches, its sites, and a reading. Subclasses are final."""

    name: ClassVar[str]
    """That of its file and of its row."""
    watches: ClassVar[Watches]
    when: ClassVar[When] = "recorded"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        """`sites` are those of its row in `results/sites.py`; one that records more says so here, once."""
        self.sites = declared(self.name, model.config)

    @classmethod
    def applies(cls, model: Transformer) -> bool:
        """Whether a model has what it measures; most apply to every one."""
        return True

    def attached(self) -> AbstractContextManager[object]:
        """Hooks live inside this `with` and are gone after it."""
        return nullcontext()

    @abstractmethod
    def read(self, seen: Pass) -> torch.Tensor:
        """(sites,) float64, on any device."""

    def state(self) -> dict[str, torch.Tensor]:
        """What it remembers from one reading to the next; a probe made at θ₀ and given this reads on as if it had never
        stopped. Most remember nothing."""
        return {}

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take back what `state` gave."""
        if state:
            raise ValueError(f"the probe {self.name} remembers nothing, got {sorted(state)}")
