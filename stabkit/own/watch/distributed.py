"""Which processes of a distributed training record: the first alone, or all where the weights are sharded.

Under DDP every process holds the model and the gradients are those of all: rank 0 records and reads, the others run
nothing. Under FSDP2 every process holds a part: all of them read, rank 0 writes and warns. There one watch must not end
alone, for the others would wait for it: a failure ends all of them together, where they next meet (`failed_anywhere`).
What fails inside a pass of one process alone, its memory for one, leaves the others to the backend's own time limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from stabkit.own.chain.gradients import mesh_of, summed


def is_first(model: nn.Module) -> bool:
    """Whether this process writes and warns."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return True
    rank: int = torch.distributed.get_rank()
    mesh = _mesh(model)
    return rank == (0 if mesh is None else int(mesh.mesh.min()))


def is_sharded(model: nn.Module) -> bool:
    """Whether parameters are DTensors."""
    return _mesh(model) is not None


def _mesh(model: nn.Module) -> Any:
    return mesh_of({"": list(model.parameters())})


def failed_anywhere(failed: bool, model: nn.Module) -> bool:
    """Whether the watch of any process that holds a part has failed; all of them call it together."""
    flag = torch.tensor(float(failed), device=next(model.parameters()).device)
    return bool(summed(flag, _mesh(model)) > 0)


def reshard(model: nn.Module) -> None:
    """After a pass without backward: FSDP2 leaves the outermost weights gathered, and the next pass would take them for
    what they are, an update later."""
    for part in _parts(model):
        part.reshard()


def _parts(model: nn.Module) -> list[Any]:
    return [part for part in model.modules() if hasattr(part, "unshard") and hasattr(part, "reshard")]


@contextmanager
def whole(model: nn.Module) -> Iterator[None]:
    """Within, every process has all weights of a model that FSDP2 shards, once gathered, through all passes."""
    parts = _parts(model)
    groups = [group for part in parts for group in part._get_fsdp_state()._fsdp_param_groups]
    before = [(group, group.post_forward_mesh_info) for group in groups]
    automatic = [(part._get_fsdp_state(), part._get_fsdp_state()._auto_reshard_after_forward) for part in parts]
    try:
        for part in parts:
            part.set_reshard_after_forward(False, recurse=False)
            part.unshard()
        yield
    finally:
        for group, info in before:  # torch has a setter that takes yes or no, and nothing that says what it was
            group.post_forward_mesh_info = info
        for state, automatic_state in automatic:
            state._auto_reshard_after_forward = automatic_state
        reshard(model)
