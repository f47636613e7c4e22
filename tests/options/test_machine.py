"""What options ask of the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stabkit.errors import UsageError
from stabkit.options import machine
from stabkit.options.commands import SweepOptions


def test_runs_are_trained_together_on_a_gpu_and_one_by_one_on_a_cpu() -> None:
    assert [machine.together("auto", device) for device in ("cpu", "cuda:0", "mps")] == [1, machine.AT_ONCE, 1]
    assert machine.together(4, "cpu") == machine.together("4", "cuda:0") == 4
    with pytest.raises(UsageError, match="--together"):
        machine.together("many", "cpu")


def test_a_slurm_task_asks_for_many_at_once_where_nobody_says() -> None:
    asked = SweepOptions(executor="slurm", scheduler="partition=long")
    name, place = machine.executor(asked)
    assert (name, place.workers) == ("slurm", machine.TASKS)
    assert machine.executor(replace(asked, workers="3"))[1].workers == 3
    with pytest.raises(UsageError, match="--executor dask or slurm"):
        machine.executor(replace(asked, executor="processes"))
