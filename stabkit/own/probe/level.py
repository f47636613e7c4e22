"""What a loss costs who knows nothing of its input, by the targets that it is called with.

Seen are `cross_entropy`, `nll_loss` and `mse_loss` of `torch.nn.functional`, whoever calls them:

    classes   −Σ f·ln f of the frequencies f of all labels seen: the loss of who knows frequencies alone; of labels that
              are smoothed by ε over K classes, f is (1 − ε)·f + ε/K
    numbers   the mean over an answer's places of their variance over all answers: the loss of the best constant

Only where a loss is one such call and nothing else: its value is the call's, a plain mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

ALIKE = 1e-3
"""How far a loss may lie from the call's value, over it."""
CLASSES: tuple[Callable[..., Any], ...] = (functional.cross_entropy, functional.nll_loss)


class Targets(TorchFunctionMode):
    """Around the calls of a loss; `level` afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[tuple[bool, torch.Tensor, float]] = []
        self._counts = Counter[int]()
        self._smooth = 0.0, 1
        self._numbers: list[torch.Tensor] = []
        self._plain = True
        self._first: torch.Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        returned = func(*args, **kwargs)
        if func in CLASSES or func is functional.mse_loss:
            target = args[1] if len(args) > 1 else kwargs.get("target")
            mean = kwargs.get("reduction", "mean") == "mean" and kwargs.get("weight") is None
            if isinstance(target, torch.Tensor) and mean:
                if smoothing := kwargs.get("label_smoothing", 0.0):
                    self._smooth = smoothing, args[0].shape[-1 if args[0].dim() == 1 else 1]
                ignored = kwargs.get("ignore_index", -100)
                kept = target.detach() if target.is_floating_point() else target.detach()[target != ignored]
                self._seen.append((func in CLASSES, kept, float(returned.detach())))
        return returned

    def ended(self, loss: float) -> None:
        """A loss is over: what it was called with counts if it is all that it is."""
        seen, self._seen = self._seen, []
        if len(seen) != 1 or abs(seen[0][2] - loss) > ALIKE * abs(loss):
            self._plain = False
            return
        classes, target, _ = seen[0]
        if self._first is None:
            self._first = target.flatten()
        if classes and not target.is_floating_point():
            self._counts.update(target.flatten().tolist())
        elif not classes:
            self._numbers.append(target.double().cpu())
        else:
            self._plain = False

    def next_of(self, tokens: torch.Tensor) -> bool:
        """Whether the first targets were these tokens (rows, tokens), one place on."""
        if self._first is None or tokens.dim() != 2 or self._first.is_floating_point() or tokens.shape[1] < 2:
            return False
        after, asked = tokens[:, 1:], self._first
        if asked.numel() == tokens.numel():
            asked = asked.reshape(tokens.shape)[:, :-1]
        return asked.numel() == after.numel() and torch.equal(asked.reshape(after.shape), after)

    @property
    def regression(self) -> bool:
        return bool(self._numbers)

    @property
    def level(self) -> float | None:
        """None where a loss was something else, or too little was seen."""
        if not self._plain or bool(self._counts) == bool(self._numbers):
            return None
        if self._counts:
            return entropy(list(self._counts.values()), *self._smooth)
        shapes = {tuple(part.shape[1:]) for part in self._numbers}
        together = torch.cat([part.flatten(1) if part.dim() > 1 else part[:, None] for part in self._numbers]) if (
            len(shapes) == 1 and all(part.dim() for part in self._numbers)
        ) else torch.cat([part.flatten() for part in self._numbers])[:, None]  # fmt: skip
        return float(together.var(dim=0).mean()) if len(together) > 1 else None


def entropy(counts: list[int], smoothing: float = 0.0, classes: int = 1) -> float:
    """Of the frequencies of so many of each, nats; what few cannot show is added, (K − 1)/2n (Miller and Madow)."""
    n, there = sum(counts), [count for count in counts if count]
    shares = [(1 - smoothing) * c / n + smoothing / classes for c in there]
    never = smoothing * (classes - len(there)) / classes
    rest = -never * math.log(smoothing / classes) if never > 0 else 0.0
    return rest - sum(p * math.log(p) for p in shares) + (len(there) - 1) / (2 * n)
