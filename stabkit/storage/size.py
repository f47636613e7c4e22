"""How many bytes a run's folder takes, roughly: for room on the disk, and to tell a file that is not ours."""

from __future__ import annotations

from stabkit import methods
from stabkit.spec import RunSpec, recorded_steps, snapshot_steps


def disk(spec: RunSpec) -> int:
    """Bytes of its folder: weights, snapshots, records; and while it trains, of its checkpoint."""
    width = 8 if spec.dtype == "float64" else 4
    sublayers = len(methods.sites_of(spec))
    weights = width * methods.parameters(spec) * (1 + len(snapshot_steps(spec)))
    return weights + 8 * 7 * sublayers * len(recorded_steps(spec))
