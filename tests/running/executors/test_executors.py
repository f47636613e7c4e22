"""The contract of the executors: what inline returns, and what a death costs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stabkit.errors import FailedRuns
from stabkit.running import executors
from stabkit.running.executors import EXECUTORS, ExecutorOptions, Lost
from stabkit.running.executors.processes import map as processes
from stabkit.storage.store import Store
from tests.commands import children, ended, wait_for
from tests.conftest import job, tiny


def jobs(out, specs):
    return [job(spec, out) for spec in specs]


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def nothing(event):
    pass


STAND_IN = """
import json, socket, time
channel = socket.socket(fileno=int(sys.argv[1]))
def send(kind, body=None):
    channel.sendall(json.dumps({"kind": kind, "body": body}).encode() + b"\\n")
send("ready")
for line in channel.makefile("rb"):
    job = json.loads(line)
    if job["kind"] != "run":
        send("failed", f"no kind {job['kind']}")
        continue
    send("event", {"id": job["id"], "step": 1})
    if job["spec"]["train"]["steps"] > 1000:
        time.sleep(600)
    time.sleep(0.7 * (job["spec"]["train"]["steps"] > 500))
    send("done", "early")
"""
"""A worker that keeps the protocol and trains nothing: without torch it starts in a moment."""


@pytest.fixture(params=["a stand-in", pytest.param("its own", marks=pytest.mark.slow)])
def worker(request, monkeypatch):
    """What the parent does is the same with either."""
    if request.param == "a stand-in":
        monkeypatch.setattr(executors.processes, "PROGRAM", f"exec({STAND_IN!r})  # of executors")
        monkeypatch.setattr(executors.processes, "TOGETHER", False)


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_job_that_takes_too_long_is_lost_alone(tmp_path):
    specs = [tiny(steps=1_000_000), tiny(seed=1)]
    answers = {
        job["spec"]["seed"]: answer
        for job, answer in processes(jobs(tmp_path, specs), nothing, ExecutorOptions(run_timeout=2.0))
    }
    assert answers[1] == "early" and answers[0] == Lost("timeout", "timeout: no result within 2 s") and not children()


@pytest.mark.usefixtures("worker")
def test_no_run_starts_in_a_worker_in_which_another_failed(tmp_path):
    broken = {**jobs(tmp_path, [tiny(seed=9)])[0], "kind": "nonsense"}
    seen = []

    def tell(event):
        seen.append(event)

    answers = processes([broken, *jobs(tmp_path, [tiny(seed=1)])], tell, ExecutorOptions())
    first = next(answers)
    assert isinstance(first[1], Lost) and not children()
    assert next(answers)[1] == "early"
    answers.close()


def test_a_worker_that_cannot_start_is_an_error_and_no_storm(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))  # no Python starts with it
    with pytest.raises(FailedRuns, match="no worker process can start"):
        list(processes(jobs(tmp_path, [tiny()]), nothing, ExecutorOptions()))


HOLDS = """
import os, time
if os.path.exists({marker!r}):
    {how}
open({marker!r}, "w").close()
"""
"""What a worker that is not the first does before it is ready."""


@pytest.fixture
def second(tmp_path, monkeypatch):
    """Has every worker but the first do something before it is ready."""

    def starts(how):
        program = HOLDS.format(marker=str(tmp_path / "first"), how=how) + STAND_IN
        monkeypatch.setattr(executors.processes, "PROGRAM", f"exec({program!r})  # of executors")
        monkeypatch.setattr(executors.processes, "TOGETHER", False)

    return starts


@pytest.mark.parametrize("how", ["time.sleep(600)", "os._exit(3)"])
def test_a_worker_that_does_not_start_ends_nobody_at_work(second, how, tmp_path, monkeypatch):
    second(how)
    monkeypatch.setattr(executors.processes, "START_SECONDS", 1.5)
    notes = []
    work = jobs(tmp_path, [*(tiny(seed=n, steps=600) for n in range(1, 4)), tiny(steps=10_000)])
    place = ExecutorOptions(workers=2, run_timeout=3.0)
    answers = {job["spec"]["seed"]: answer for job, answer in processes(work, notes.append, place)}
    assert [answers[n] for n in (1, 2, 3)] == ["early"] * 3 and answers[0].kind == "timeout"
    assert any("a further worker does not start" in event.get("note", "") for event in notes) and not children()


def test_a_slow_start_that_uses_time_is_waited_for_and_said(tmp_path, monkeypatch):
    program = "import time\nend = time.process_time() + 3\nwhile time.process_time() < end: pass\n" + STAND_IN
    monkeypatch.setattr(executors.processes, "PROGRAM", f"exec({program!r})  # of executors")
    monkeypatch.setattr(executors.processes, "TOGETHER", False)
    monkeypatch.setattr(executors.processes, "START_SECONDS", 1.0)
    monkeypatch.setattr(executors.processes, "SLOW_SECONDS", 0.5)
    notes = []
    assert [a for _, a in processes(jobs(tmp_path, [tiny()]), notes.append, ExecutorOptions())] == ["early"]
    assert sum("slow to start (load" in event.get("note", "") for event in notes) == 1


def test_a_start_without_a_sign_of_life_ends_the_command_where_none_is_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(executors.processes, "PROGRAM", "import time; time.sleep(600)")
    monkeypatch.setattr(executors.processes, "TOGETHER", False)
    monkeypatch.setattr(executors.processes, "START_SECONDS", 1.0)
    with pytest.raises(FailedRuns, match="no sign of life for 1 s"):
        list(processes(jobs(tmp_path, [tiny()]), nothing, ExecutorOptions()))
    assert not children()


@pytest.mark.slow
def test_nothing_is_imported_from_the_directory_the_command_stands_in(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit('hijacked')")
    (tmp_path / "stabkit.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    assert [answer for _, answer in processes(jobs(tmp_path / "out", [tiny()]), nothing, ExecutorOptions())] == [
        "early"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["processes"])
def test_every_executor_returns_what_inline_returns_bit_for_bit(name, tmp_path):
    specs = [tiny(method, seed=seed) for method in ("post-ln", "admin") for seed in (0, 1)]
    digests = {}
    for each, workers in (("inline", 1), (name, 2)):
        answers = dict(
            (job["spec"]["seed"], answer)
            for job, answer in EXECUTORS[each](jobs(tmp_path / each, specs), nothing, ExecutorOptions(workers=workers))
        )
        assert set(answers.values()) == {"early"}
        digests[each] = {run_id: Store(tmp_path / each).load(run_id).digest for run_id in Store(tmp_path / each).ids()}
    assert digests["inline"] == digests[name] and len(digests[name]) == 4


@pytest.mark.usefixtures("worker")
def test_a_job_that_fails_is_lost_alone_and_says_why(tmp_path):
    broken = {**jobs(tmp_path, [tiny(seed=9)])[0], "kind": "nonsense"}
    answers = [answer for _, answer in processes([broken, *jobs(tmp_path, [tiny()])], nothing, ExecutorOptions())]
    lost = next(a for a in answers if isinstance(a, Lost))
    assert "nonsense" in lost.reason and "early" in answers


@pytest.mark.usefixtures("worker")
def test_a_killed_worker_costs_only_the_job_it_held(tmp_path):
    specs = [tiny(steps=100_000), tiny(seed=1), tiny(seed=2)]
    began = set()

    def tell(event):
        if not began:
            began.add(event["id"])
            os.kill(min(children()), signal.SIGKILL)

    answers = {job["spec"]["seed"]: answer for job, answer in processes(jobs(tmp_path, specs), tell, ExecutorOptions())}
    assert isinstance(answers[0], Lost) and answers[0].kind == "died" and "SIGKILL" in answers[0].reason
    assert [answers[1], answers[2]] == ["early", "early"]


@pytest.mark.slow
def test_workers_of_one_start_are_told_apart(tmp_path):
    """One is killed: its job is lost, the other's is not, and nobody is left."""
    killed, begun = [], set()

    def tell(event):
        begun.add(event["id"])
        if len(begun) == 2 and not killed:
            workers = [int(pid) for root in children() for pid in children_of(root)]
            killed.extend(workers[:1])
            os.kill(workers[0], signal.SIGKILL)

    specs = [tiny(steps=3_000, seed=n) for n in range(2)]
    answers = [answer for _, answer in processes(jobs(tmp_path, specs), tell, ExecutorOptions(workers=2))]
    lost = [answer for answer in answers if isinstance(answer, Lost)]
    assert killed and len(lost) == 1 and "SIGKILL" in lost[0].reason and lost[0].kind == "died"
    assert len(answers) == 2 and not children()


@pytest.mark.usefixtures("worker")
def test_closing_the_iterator_ends_every_worker(tmp_path):
    answers = processes(jobs(tmp_path, [tiny(), tiny(steps=100_000)]), nothing, ExecutorOptions(workers=2))
    next(answers)
    answers.close()
    assert not children()


@pytest.mark.slow
def test_killing_the_parent_leaves_no_orphan(tmp_path):
    code = f"""
import json, sys
from stabkit.running.executors.base import ExecutorOptions
from stabkit.running.executors.processes import map as processes
if __name__ == "__main__":
    jobs = json.loads({json.dumps(json.dumps(jobs(tmp_path, [tiny(steps=1000000)])))})
    for _ in processes(jobs, lambda event: print(event["step"], flush=True), ExecutorOptions()): pass
"""
    script = tmp_path / "parent.py"
    script.write_text(code)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as parent:
        assert parent.stdout.readline().strip()
        workers = children(parent.pid)
        parent.kill()
        parent.wait()
    assert workers
    wait_for(lambda: all(map(ended, workers)))
