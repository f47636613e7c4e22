"""What options ask of the machine."""

from __future__ import annotations

import pytest

from stabkit.errors import UsageError
from stabkit.options import machine


def test_runs_are_trained_together_on_a_gpu_and_one_by_one_on_a_cpu() -> None:
    assert [machine.together("auto", device) for device in ("cpu", "cuda:0", "mps")] == [1, machine.AT_ONCE, 1]
    assert machine.together(4, "cpu") == machine.together("4", "cuda:0") == 4
    with pytest.raises(UsageError, match="--together"):
        machine.together("many", "cpu")
