"""Gradients and steps of a user's parameters, read at the optimiser: after accumulation, and whatever the model is.

‖∂L/∂θ_i‖₂ over all parameters of sub-layer i, reduced in float64; ‖θ_t − θ_{t−1}‖₂ likewise, and over
‖θ_{t−1}‖₂; ‖θ_t − θ_0‖₂, the factor of DeepNet's Theorems 2 and 3. Frozen parameters count nowhere. Of parameters that
are sharded over processes (FSDP2's DTensors) each process adds up the squares of its part, and one all-reduce of the
vector joins them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.memory import full
from stabkit.own.sublayers.reading import ResidualStream
from stabkit.results.own.cell import Sublayer, module_of

OUTSIDE = "outside"
"""What belongs to no sub-layer."""
SMALLEST_NORM, LARGEST_NORM = 1e-12, 1e15
"""Norms of rows between which no square that counts leaves float32's range."""
NONE = -1.0
"""Stands for the square of a gradient that is not there; added up over processes it is still below 0."""
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
        Sublayer(
            stack=own.stack,
            layer=own.layer,
            kind=own.kind,
            parameters=len(groups[own.name]),
            module=module_of(name.rpartition(".")[0] for name in own.parameters),
        )
        for own in stream.sublayers
    )


def gradient_norms(groups: Groups) -> torch.Tensor:
    """(groups,) float64 ‖∂L/∂θ‖₂; NaN where none of a group's parameters has a gradient."""
    mesh = mesh_of(groups)
    return by_group(summed(gradient_squares(flat(groups), mesh), mesh), groups).sqrt()


def gradient_squares(parameters: Sequence[nn.Parameter], mesh: Mesh, scale: torch.Tensor | None = None) -> torch.Tensor:
    """(parameters,) float64 ‖∂L/∂θ‖₂² of what lies in this process, over `scale`² where a scaler has left its factor on
    gradients; NONE for one without: cut off, or skipped in this step. On the parameters' device: nothing waits for
    it."""
    there = [p.grad is not None for p in parameters]
    squares = _squares([p.grad for p in parameters if p.grad is not None], mesh, _device(parameters))
    if scale is not None:
        squares = squares / scale.to(squares) ** 2
    if all(there):
        return squares
    every = squares.new_full((len(parameters),), NONE)
    every[[i for i, has in enumerate(there) if has]] = squares
    return every


def flat(groups: Groups) -> list[nn.Parameter]:
    """All of them, group by group."""
    return [p for own in groups.values() for p in own]


def by_group(squares: torch.Tensor, groups: Groups) -> torch.Tensor:
    """(…, groups) Σ over each group's parameters that have one, of (…, parameters); NaN where none has."""
    sizes = torch.tensor([len(own) for own in groups.values()])
    of = torch.repeat_interleave(torch.arange(len(sizes)), sizes).to(squares.device)
    there = ~(squares < 0)
    sums, counts = squares.new_zeros((2, *squares.shape[:-1], len(sizes)))
    sums.index_add_(-1, of, torch.where(there, squares, 0.0))
    counts.index_add_(-1, of, there.to(squares))
    return torch.where(counts > 0, sums, math.nan)


def absent(squares: torch.Tensor, groups: Groups) -> frozenset[str]:
    """Groups whose parameters have no gradient, of (parameters,) squares."""
    parts = torch.split(squares, [len(own) for own in groups.values()])
    return frozenset(name for name, part in zip(groups, parts, strict=True) if bool((part < 0).all()))


def sizes_of(groups: Groups) -> torch.Tensor:
    """(parameters,) float64: how many numbers a matrix has; infinite of vectors."""
    return torch.tensor([float(p.numel()) if p.dim() > 1 else math.inf for p in flat(groups)], dtype=torch.float64)


def arrived(squares: torch.Tensor, groups: Groups, sizes: torch.Tensor) -> torch.Tensor:
    """(parameters,) whether a gradient came that is more than rounding, of their squares: in a matrix' root mean square
    above FAINT of the greatest in its sub-layer. What belongs to none is held against nothing."""
    mean, there = squares / sizes, squares > 0
    count = 0
    for name, own in groups.items():
        place = slice(count, count := count + len(own))
        if own and name != OUTSIDE:
            there[place] &= (mean[place] >= FAINT**2 * mean[place].max()) | sizes[place].isinf()
    return there | squares.isnan()


FAINT = 1e-6
"""Root mean square of a matrix' gradient over the greatest in its sub-layer: less is what float32 rounds by."""


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
        return self.changes()[0]

    def changes(self) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """As `moved`, and (parameters,) ‖θ − θ'‖² of each."""
        assert self.held is not None
        now, mesh = [p.detach() for p in flat(self.groups)], mesh_of(self.groups)
        steps = summed(_squares(_differences(now, self.held), mesh, _device(now)), mesh)
        step = self._norms(steps)
        size = self._norms(summed(_squares(self.held, mesh, _device(now)), mesh))
        changes = {"": step, "@relative": torch.where(size > 0, step / size, 0.0)}
        if self.first is not None:
            changes["@start"] = self._norms(summed(_squares(_differences(now, self.first), mesh, _device(now)), mesh))
        return changes, steps

    def away(self) -> torch.Tensor:
        """‖θ − θ'‖² since `hold` of all that lies in this process, on the device."""
        assert self.held is not None
        now = [p.detach() for p in flat(self.groups)]
        return _squares(_differences(now, self.held), None, _device(now)).sum()

    def _norms(self, squares: torch.Tensor) -> torch.Tensor:
        return by_group(squares, self.groups).nan_to_num(0.0).sqrt()

    def release(self) -> None:
        """Give the memory back."""
        self.held = None

    def _copy(self) -> list[torch.Tensor]:
        return [p.detach().clone() for p in flat(self.groups)]


def _differences(new: Sequence[torch.Tensor], old: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    return (full(a) - full(b) for a, b in zip(new, old, strict=True))


def _device(parameters: Sequence[torch.Tensor]) -> torch.device:
    return next((p.device for p in parameters), torch.device("cpu"))


def _squares(tensors: Iterable[torch.Tensor], mesh: Mesh, device: torch.device) -> torch.Tensor:
    """(tensors,) float64 ‖·‖² of what lies here, of what lies in several processes the share of one.

    One call takes the norms of all: on a GPU a few kernels that sum in float64, where one for each tensor would keep
    the host behind the device; on a CPU each is reduced before, if it is large."""
    parts = [_here(tensor.detach(), mesh) for tensor in tensors]
    if not parts:
        return torch.empty(0, dtype=torch.float64, device=device)
    reduced = [_reduced(here) if here.device.type == "cpu" else here for here, _ in parts]
    norms = torch._foreach_norm(reduced, 2, dtype=torch.float64)
    if mesh is not None:
        norms = tuple(norm * share for norm, (_, share) in zip(norms, parts, strict=True))
    alike = len({norm.device for norm in norms}) == 1
    return torch.stack(norms if alike else [norm.to(device) for norm in norms]).to(device) ** 2


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
    """A tensor of the same norm, small for a matrix. Rows are summed in float32, for the rest to be in float64: as
    exact as the numbers are, in a third of the time; unless squares would leave float32's range."""
    if x.dim() < 2 or not x.numel():
        return x
    if x.dtype is not torch.float64:
        rows: torch.Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1, dtype=torch.float32)
        if SMALLEST_NORM < float(rows.max()) < LARGEST_NORM:
            return rows
    whole: torch.Tensor = torch.linalg.vector_norm(x, dtype=torch.float64)
    return whole
