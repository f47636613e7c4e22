"""A run on its way, as arrays by name: what it needs to stop and to go on to the bit as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from stabkit.model.flat import Flat
from stabkit.probes import Probe
from stabkit.results.records import Recorder, Table
from stabkit.spec import RunSpec, recorded_steps, snapshot_steps, validation_steps
from stabkit.training.optimizers.base import Optimizer

VALIDATION = ("validation", "nll", "accuracy")
"""What is read of the validation batches: loss, −log p of the right token, share of tokens predicted right."""


@dataclass(frozen=True, slots=True)
class State:
    """A run after `step` updates: all that it needs to go on, as arrays by name."""

    step: int
    arrays: Mapping[str, np.ndarray]


class ForeignState(ValueError):
    """A state that is not one of this run: another model's, damaged, or of no step within it."""


def state_dict(
    flat: Flat, optimizer: Optimizer, probes: list[Probe], recorder: Recorder, snapshots: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Everything that a run needs to go on, by name: weights, optimiser, random stream, probes, records, snapshots.

    The data needs nothing: every batch is a function of (seed, step).
    """
    cuda = flat.theta.device.type == "cuda"
    tensors = {
        "theta": flat.theta,
        **{f"optimizer.{name}": value for name, value in optimizer.state().items()},
        "random": torch.cuda.get_rng_state(flat.theta.device) if cuda else torch.get_rng_state(),
        **{f"probe.{probe.name}.{name}": value for probe in probes for name, value in probe.state().items()},
    }
    arrays = {name: value.detach().cpu().numpy().copy() for name, value in tensors.items()}
    for name, table in recorder.tables().items():
        arrays |= {f"steps.{name}": table.steps, f"values.{name}": table.values, f"sites.{name}": np.array(table.sites)}
    return arrays | {f"snapshot.{name}": theta for name, theta in snapshots.items()}


def load_state_dict(
    start: State,
    spec: RunSpec,
    flat: Flat,
    optimizer: Optimizer,
    probes: list[Probe],
    snapshots: dict[str, np.ndarray],
) -> Recorder:
    """Put what `state_dict` found back where it was; returns what had been recorded. Raises ForeignState for anything
    that `state_dict` would not have written at this step of this run."""
    arrays, device = start.arrays, flat.theta.device
    theta, records = flat.theta.cpu().numpy(), dict[str, Table]()
    try:
        with torch.no_grad():
            remembered = {f"optimizer.{name}": value for name, value in optimizer.state().items()}
            for name, value in {"theta": flat.theta, **remembered}.items():
                held = torch.from_numpy(arrays[name])
                if held.shape != value.shape or held.dtype != value.dtype:
                    have, want = f"{held.dtype} {tuple(held.shape)}", f"{value.dtype} {tuple(value.shape)}"
                    raise ForeignState(f"{name} is {have}, the model's is {want}")
                value.copy_(held)
        random = torch.from_numpy(arrays["random"])
        torch.cuda.set_rng_state(random, device) if device.type == "cuda" else torch.set_rng_state(random)
        for probe in probes:
            prefix = f"probe.{probe.name}."
            state = {
                n.removeprefix(prefix): torch.from_numpy(a).to(device)
                for n, a in arrays.items()
                if n.startswith(prefix)
            }
            probe.restore(state)
        names = [name.removeprefix("values.") for name in arrays if name.startswith("values.")]
        tables = {
            name: Table(arrays[f"steps.{name}"], tuple(map(str, arrays[f"sites.{name}"])), arrays[f"values.{name}"])
            for name in names
        }
        expected: dict[str, tuple[tuple[str, ...], list[int]]] = {"validation": (VALIDATION, validation_steps(spec))}
        expected |= {
            probe.name: (probe.sites, recorded_steps(spec) if probe.when == "recorded" else [0]) for probe in probes
        }
        for name, (columns, steps) in expected.items():
            passed = [step for step in steps if step < start.step]
            table = tables.pop(name, Table(np.empty(0, np.int64), columns, np.empty((0, len(columns)))))
            sound = table.values.shape == (len(passed), len(columns)) and table.values.dtype == np.float64
            if table.steps.tolist() != passed or table.sites != columns or not sound:
                raise ForeignState(f"its record of {name} is not that of the steps before {start.step}")
            if passed:
                records[name] = table
        kept = {f"theta@{step}" for step in snapshot_steps(spec) if step < start.step}
        stored = {name.removeprefix("snapshot."): a for name, a in arrays.items() if name.startswith("snapshot.")}
        if set(stored) != kept or any((a.shape, a.dtype) != (theta.shape, theta.dtype) for a in stored.values()):
            raise ForeignState(f"its snapshots are not those of the steps before {start.step}")
        records = {name: records[name] for name in names if name in records}  # in the order of the run: bytes follow it
        known = {"theta", "random", *remembered, *(f"snapshot.{name}" for name in kept)}
        known |= {f"{part}.{name}" for name in records for part in ("steps", "sites", "values")}
        known |= {f"probe.{probe.name}.{name}" for probe in probes for name in probe.state()}
        if tables or set(arrays) != known:
            raise ForeignState(f"it holds {sorted({*tables, *(set(arrays) ^ known)})[0]}, or lacks it")
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ForeignState(f"not a state of this run ({error})") from error
    snapshots |= stored
    return Recorder(records)
