"""The weights of a stored run as one vector, at any step that the run kept. Never imports torch.

A run keeps its last weights tensor by tensor and its snapshots (`theta@step`) as whole vectors, both in the order in
which the model uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import UsageError
from stabkit.results.run import Run
from stabkit.storage.folder import CorruptFolder

Vector = NDArray[np.float64]
SNAPSHOT = "theta@"


@lru_cache(maxsize=2)
def _file(path: Path, digest: str) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise CorruptFolder(f"{path} is not readable ({error})") from error


def arrays(run: Run) -> dict[str, np.ndarray]:
    """Everything in weights.safetensors, by name."""
    return _file(run.weights_path, run.digest)


def shapes(run: Run) -> list[tuple[str, tuple[int, ...]]]:
    """(name, shape) of every parameter; what else the file holds (snapshots, ω) is none."""
    held = arrays(run).items()
    return [(name, array.shape) for name, array in held if name != "omega" and not name.startswith(SNAPSHOT)]


def snapshots(run: Run) -> list[int]:
    """The steps of the run's snapshots: its path."""
    return sorted(int(name.removeprefix(SNAPSHOT)) for name in arrays(run) if name.startswith(SNAPSHOT))


def stored_steps(run: Run) -> list[int]:
    """The steps whose weights the run has, the last among them."""
    return sorted({*snapshots(run), run.outcome.steps})


def at(run: Run, step: int, names: Sequence[str]) -> Vector:
    """θ after `step` updates, its tensors in the order of `names`; raises UsageError that names the steps there are."""
    held = arrays(run)
    if f"{SNAPSHOT}{step}" in held:
        return held[f"{SNAPSHOT}{step}"].astype(np.float64)
    if step != run.outcome.steps:
        have = ", ".join(map(str, stored_steps(run)))
        raise UsageError(
            f"{run.run_id} kept no weights of step {step}; it has those of {have} (--snapshots keeps more)"
        )
    return np.concatenate([held[name].astype(np.float64).reshape(-1) for name in names])
