"""‖ΔF‖, the model update: mean over the probe batch's tokens of ‖F(x, θ_t) − F(x, θ_0)‖₂, in output units.

DeepNet eq. 1. F is the last stack's state before the softmax (`state`, the theorems' F) or the logits (`logits`). Eval
mode, teacher forcing, padding left out; exactly 0 at step 0. `@step`: against the previous reading θ_{t−1} instead of
θ_0. `@frobenius`: the same difference as one Frobenius norm over all tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.quantities import lengths, moved


class Update(Probe):
    name = "update"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.stack = model.stacks[-1]
        self.sites = tuple(f + q for f in ("state", "logits") for q in ("", "@step", "@frobenius"))
        self.first: tuple[torch.Tensor, ...] = ()
        self.last: tuple[torch.Tensor, ...] = ()

    def state(self) -> dict[str, torch.Tensor]:
        return {f"{name}.{i}": f for name in ("first", "last") for i, f in enumerate(getattr(self, name))}

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        if sorted(state) != ["first.0", "first.1", "last.0", "last.1"]:
            raise ValueError(f"the probe update remembers two outputs, got {sorted(state)}")
        self.first, self.last = ((state[f"{name}.0"], state[f"{name}.1"]) for name in ("first", "last"))

    def read(self, seen: Pass) -> torch.Tensor:
        keep = seen.keep[self.stack]
        now = (seen.states, seen.logits)
        self.first = self.first or now
        self.last = self.last or now
        values = []
        for f, first, last in zip(now, self.first, self.last, strict=True):
            per_token = lengths(f - first)[keep].double()
            values += [per_token.mean(), moved(f, last, keep), torch.linalg.vector_norm(per_token)]
        self.last = now
        return torch.stack(values)
