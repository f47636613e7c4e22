"""The contract of the executors: what inline returns, and what a death costs."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stabkit.executors import EXECUTORS, Lost
from stabkit.executors.processes import map as processes
from stabkit.store import Store
from tests.conftest import tiny


def jobs(out, specs):
    return [{"kind": "run", "out": str(out), "spec": spec.to_json(), "corpus": None, "device": "cpu"} for spec in specs]


def nothing(event):
    pass


@pytest.mark.parametrize("name", [name for name in EXECUTORS if name != "inline"])
def test_every_executor_returns_what_inline_returns_bit_for_bit(name, tmp_path):
    specs = [tiny(method, seed=seed) for method in ("post-ln", "admin") for seed in (0, 1)]
    digests = {}
    for each, workers in (("inline", 1), (name, 2)):
        answers = dict(
            (job["spec"]["seed"], answer)
            for job, answer in EXECUTORS[each](jobs(tmp_path / each, specs), nothing, workers)
        )
        assert set(answers.values()) == {"early"}
        digests[each] = {run_id: Store(tmp_path / each).load(run_id).digest for run_id in Store(tmp_path / each).ids()}
    assert digests["inline"] == digests[name] and len(digests[name]) == 4


def test_a_job_that_fails_is_lost_alone_and_says_why(tmp_path):
    broken = {**jobs(tmp_path, [tiny(seed=9)])[0], "kind": "nonsense"}
    answers = [answer for _, answer in processes([broken, *jobs(tmp_path, [tiny()])], nothing, 1)]
    lost = next(a for a in answers if isinstance(a, Lost))
    assert "nonsense" in lost.reason and "early" in answers


def test_a_killed_worker_costs_only_the_job_it_held(tmp_path):
    specs = [tiny(steps=100_000), tiny(seed=1), tiny(seed=2)]
    began = set()

    def tell(event):
        if not began:
            began.add(event["id"])
            worker = min(multiprocessing.active_children(), key=lambda p: p.pid)
            os.kill(worker.pid, signal.SIGKILL)

    answers = {job["spec"]["seed"]: answer for job, answer in processes(jobs(tmp_path, specs), tell, 1)}
    assert isinstance(answers[0], Lost) and "SIGKILL" in answers[0].reason
    assert [answers[1], answers[2]] == ["early", "early"]


def test_closing_the_iterator_ends_every_worker_within_two_seconds(tmp_path):
    answers = processes(jobs(tmp_path, [tiny(), tiny(steps=100_000)]), nothing, 2)
    next(answers)
    begin = time.monotonic()
    answers.close()
    assert time.monotonic() - begin < 2 and not multiprocessing.active_children()


def test_killing_the_parent_leaves_no_orphan(tmp_path):
    code = f"""
import json, sys
from stabkit.executors.processes import map as processes
if __name__ == "__main__":
    jobs = json.loads({json.dumps(json.dumps(jobs(tmp_path, [tiny(steps=1000000)])))})
    for _ in processes(jobs, lambda event: print(event["step"], flush=True), 1): pass
"""
    script = tmp_path / "parent.py"
    script.write_text(code)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as parent:
        assert parent.stdout.readline().strip()
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        if not children.exists():
            pytest.skip("needs Linux's /proc")
        workers = [int(pid) for pid in children.read_text().split()]
        parent.kill()
        parent.wait()
    time.sleep(1.0)
    assert workers and not [
        pid
        for pid in workers
        if Path(f"/proc/{pid}").exists() and "stabkit" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
