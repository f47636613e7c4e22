"""What cannot be watched, in one line each, before a training begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers import run

UNREADABLE = {
    "FullyShardedDataParallel": "(FSDP1) keeps its weights in flat vectors",
    "DeepSpeedEngine": "keeps gradients to itself",
    "PipelineModule": "has a part of the layers in each process",
    "PipelineStage": "has a part of the layers in each process",
}
"""{class of a module: why its chain cannot be read}."""


def check(out: Any, name: Any, blocks: Any) -> None:
    """Raises UsageError for words that are none."""
    if not isinstance(out, (str, Path)):
        raise UsageError(f"watch: out is the directory of the store, not {type(out).__name__}")
    for option, value in (("name", name), ("blocks", blocks)):
        if not isinstance(value, str):
            raise UsageError(f"watch: {option} is one text, not {type(value).__name__}")


def refuse(model: nn.Module, optimizer: Any, every: str | int, writer: Any, probe: Any) -> None:
    """Raises UsageError."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"watch: model is to be a torch.nn.Module, not {type(model).__name__}")
    for part in model.modules():
        if (known := UNREADABLE.get(type(part).__name__)) is not None:
            raise UsageError(f"watch: {type(part).__name__} {known}; watch the model under DDP or FSDP2 (fully_shard)")
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise UsageError(f"watch: optimizer is to be a torch.optim.Optimizer, not {type(optimizer).__name__}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UsageError("watch: LBFGS steps by a closure, which hides its gradients; use another optimizer")
    if optimizer is None and probe is None:
        raise UsageError("watch: without an optimizer give a probe batch; step() then tells of each update")
    if every != "log" and not (type(every) is int and every > 0):
        raise UsageError(f"watch: every is 'log' or a number of updates, not {every!r}")
    if writer is not None and not (hasattr(writer, "add_scalar") or hasattr(writer, "log")):
        raise UsageError("watch: a writer has add_scalar (TensorBoard) or log (Weights & Biases)")
    run.refuse(model)
    trained = {id(p) for p in model.parameters() if p.requires_grad}
    if not trained:
        raise UsageError("watch: every parameter is frozen (requires_grad=False); there is nothing to train")
    if optimizer is not None and not trained & {id(p) for g in optimizer.param_groups for p in g["params"]}:
        raise UsageError("watch: the optimizer holds none of the model's parameters")
