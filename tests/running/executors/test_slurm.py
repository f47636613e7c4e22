"""submitit's local executor, whose tasks are processes of this machine; and, where one can be started, a real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabkit.errors import UsageError
from stabkit.running.executors import EXECUTORS, ExecutorOptions, Lost, relayed, slurm
from stabkit.storage.store import Store
from tests.conftest import tiny
from tests.running.executors.test_executors import jobs, nothing

pytest.importorskip("submitit")
LOCAL = ExecutorOptions(workers=2, scheduler="cluster=local,time=5")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # submitit does not wait for its own
def test_tasks_return_what_inline_returns(tmp_path: Path) -> None:
    specs = [tiny("post-ln", seed=seed) for seed in range(2)]
    events: list[object] = []
    for name, where in (("inline", ExecutorOptions()), ("slurm", LOCAL)):
        answers = list(EXECUTORS[name](jobs(tmp_path / name, specs), events.append, where))
        assert sorted(str(answer) for _, answer in answers) == ["early", "early"], answers
    digests = [
        {run_id: Store(tmp_path / each).load(run_id).digest for run_id in Store(tmp_path / each).ids()}
        for each in ("inline", "slurm")
    ]
    assert digests[0] == digests[1] and len(digests[0]) == 2
    assert not list((tmp_path / "slurm" / "runs" / ".partial").iterdir()), "what was submitted is cleared away"


def test_a_task_that_does_not_see_the_store_says_so(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, [tiny()])
    (tmp_path / "runs").mkdir()
    said = relayed.supervise(job, nothing, None, "slurm-of-nobody", "node7")
    lost = relayed.answer(said)
    assert isinstance(lost, Lost) and "node7 does not see" in lost.reason and lost.error is not None


@pytest.mark.parametrize("text", ["long", "partition=", "=long", "time=1h", "mem=4G", "cluster=dask", "a b=c"])
def test_what_sbatch_would_not_understand_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--scheduler"):
        slurm.asked(text)


def test_what_a_task_asks_for_is_submitits() -> None:
    wanted = slurm.asked("partition=long,time=120,mem=8,account=x")
    assert wanted.parameters == {
        "timeout_min": 120,
        "mem_gb": 8,
        "slurm_additional_parameters": {"partition": "long", "account": "x"},
    }
    assert slurm.asked("").parameters == {"timeout_min": slurm.MINUTES, "mem_gb": slurm.GIGABYTES}
