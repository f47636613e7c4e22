"""Gradients and steps of a user's parameters, read at the optimiser: after accumulation, and whatever the model is.

‖∂L/∂θ_i‖₂ over all parameters of sub-layer i, reduced in float64; ‖θ_t − θ_{t−1}‖₂ likewise, and over
‖θ_{t−1}‖₂; ‖θ_t − θ_0‖₂, the factor of DeepNet's Theorems 2 and 3. Frozen parameters count nowhere. Of parameters that
are sharded over processes (FSDP2's DTensors) each process adds up the squares of its part, and one all-reduce of the
vector joins them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.memory import full
from stabkit.own.sublayers.reading import ResidualStream
from stabkit.results.own.cell import Sublayer

OUTSIDE = "outside"
"""What belongs to no sub-layer."""
LEAST, MOST = 1e-12, 1e15
"""Norms of rows between which no square that counts leaves float32's range."""
Groups = Mapping[str, Sequence[nn.Parameter]]
"""{site: its parameters}."""
Mesh = Any
"""torch's DeviceMesh, or None."""


def groups_of(model: nn.Module, stream: ResidualStream) -> dict[str, list[nn.Parameter]]:
    """{sub-layer: its trained parameters}, and what belongs to none of them."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    groups = {place.name: [named.pop(n) for n in place.parameters if n in named] for place in stream.sublayers}
    return {**groups, OUTSIDE: list(named.values())}


def sublayers(stream: ResidualStream, groups: Groups) -> tuple[Sublayer, ...]:
    """As results know them."""
    return tuple(
        Sublayer(stack=own.stack, layer=own.layer, kind=own.kind, parameters=len(groups[own.name]))
        for own in stream.sublayers
    )


def arrived(parameters: Sequence[nn.Parameter]) -> bool:
    """Whether any of them has a gradient."""
    return any(p.grad is not None for p in parameters)


def gradient_norms(groups: Groups) -> torch.Tensor:
    """(groups,) float64 ‖∂L/∂θ‖₂; NaN where none of a group's parameters has a gradient."""
    return norms(gradient_squares(groups), mesh_of(groups))


def gradient_squares(groups: Groups, scale: torch.Tensor | None = None) -> torch.Tensor:
    """(groups,) float64 ‖∂L/∂θ‖₂² of what lies in this process, over `scale`² where a scaler has left its factor on
    gradients; NaN where none of a group's parameters has one: cut off, or skipped in this step. On the parameters'
    device: nothing waits for it."""
    mesh = mesh_of(groups)
    tensor = _squares(([p.grad for p in own if p.grad is not None] for own in groups.values()), mesh, _device(groups))
    return tensor if scale is None else tensor / scale.to(tensor) ** 2


def norms(squares: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """√ of the squares of all processes that hold a part, which all call this together."""
    return summed(squares, mesh).sqrt()


def summed(x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """Σ over the processes of a mesh, in place; all of them call it together."""
    for dimension in range(0 if mesh is None else mesh.ndim):
        torch.distributed.all_reduce(x, group=mesh.get_group(dimension))
    return x


def mesh_of(groups: Groups) -> Mesh:
    """The processes over which the parameters are sharded (DTensors); None for whole ones. Raises UsageError for
    parameters on several meshes."""
    meshes = {mesh for own in groups.values() for p in own if (mesh := getattr(p, "device_mesh", None)) is not None}
    if len(meshes) > 1:
        raise UsageError(f"parameters are sharded over {len(meshes)} meshes; shard all over one")
    return next(iter(meshes), None)


class Weights:
    """The weights as they were, to measure steps by."""

    def __init__(self, groups: Groups, start: bool = True) -> None:
        """`start`: keep a copy of θ_0, to measure from."""
        self.groups = groups
        self.first = self._copy() if start else None
        self.held = self.first

    def hold(self) -> None:
        """Measure from here."""
        self.held = self._copy()

    def moved(self) -> dict[str, torch.Tensor]:
        """(groups,) float64 each: ‖θ − θ'‖ since `hold`, `@relative` the same over ‖θ'‖, `@start` ‖θ − θ_0‖."""
        assert self.held is not None
        now = [[p.detach() for p in own] for own in self.groups.values()]
        mesh = mesh_of(self.groups)
        step = self._norms((_differences(new, old) for new, old in zip(now, self.held, strict=True)), mesh)
        size = self._norms(self.held, mesh)
        changes = {"": step, "@relative": torch.where(size > 0, step / size, 0.0)}
        if self.first is not None:
            changes["@start"] = self._norms(
                (_differences(new, old) for new, old in zip(now, self.first, strict=True)), mesh
            )
        return changes

    def _norms(self, parts: Iterable[Iterable[torch.Tensor]], mesh: Mesh) -> torch.Tensor:
        return norms(_squares(parts, mesh, _device(self.groups)).nan_to_num(0.0), mesh)

    def release(self) -> None:
        """Give the memory back."""
        self.held = None

    def _copy(self) -> list[list[torch.Tensor]]:
        return [[p.detach().clone() for p in own] for own in self.groups.values()]


def _differences(new: Sequence[torch.Tensor], old: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    return (full(a) - full(b) for a, b in zip(new, old, strict=True))


def _device(groups: Groups) -> torch.device:
    return next((p.device for own in groups.values() for p in own), torch.device("cpu"))


def _squares(groups: Iterable[Iterable[torch.Tensor]], mesh: Mesh, device: torch.device) -> torch.Tensor:
    """(groups,) float64 Σ‖part‖² of what lies here, of what lies in several processes the share of one; NaN of none.

    One call takes the norms of all parts, each reduced before, if it is large: ten times fewer calls for biases."""
    reduced: list[torch.Tensor] = []
    shares: list[float] = []
    counts: list[int] = []
    for tensors in groups:
        before = len(reduced)
        for part in tensors:
            here, share = _here(part.detach(), mesh)
            reduced.append(_reduced(here))
            shares.append(share)
        counts.append(len(reduced) - before)
    if not reduced:
        return torch.full((len(counts),), math.nan, dtype=torch.float64, device=device)
    norms = torch._foreach_norm(reduced, 2, dtype=torch.float64)
    tensors = norms if mesh is None else [norm * share for norm, share in zip(norms, shares, strict=True)]
    squares = torch.stack([norm.to(device) for norm in tensors]) ** 2
    starts = [0, *itertools.accumulate(counts)]
    sums = [squares[i:j].sum() if j > i else squares.new_full((), math.nan) for i, j in itertools.pairwise(starts)]
    return torch.stack(sums)


def _here(part: Any, mesh: Mesh) -> tuple[torch.Tensor, float]:
    """(the real numbers of it that lie in this process, 1/√ of in how many processes they lie)."""
    copies = 1
    if mesh is not None:
        copies = mesh.size()
        if (own := getattr(part, "device_mesh", None)) is not None:
            copies = math.prod(own.size(i) for i, place in enumerate(part.placements) if place.is_replicate())
            part = part.to_local()
    part = part.coalesce().values() if part.is_sparse else part
    return (torch.view_as_real(part) if part.is_complex() else part), copies**-0.5


def _reduced(x: torch.Tensor) -> torch.Tensor:
    """A tensor of the same norm, small for a matrix. On a CPU the rows are summed in float32, for the rest to be in
    float64: as exact as the numbers are, in a third of the time; unless squares would leave float32's range."""
    if x.dim() < 2 or not x.numel():
        return x
    if x.device.type == "cpu" and x.dtype is not torch.float64:
        rows: torch.Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1, dtype=torch.float32)
        if LEAST < float(rows.max()) < MOST:
            return rows
    whole: torch.Tensor = torch.linalg.vector_norm(x, dtype=torch.float64)
    return whole
