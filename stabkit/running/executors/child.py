"""A worker process: jobs come in and answers go out, one JSON text a line; it ends when its parent does, however.

    parent → child   a job
    child → parent   {"kind": "starting"} before torch is imported, {"kind": "ready"} once, then for each job
                     {"kind": "event", "body": {…}} now and then and one of
                     {"kind": "done", "body": outcome}, {"kind": "locked", "body": by whom},
                     {"kind": "failed" | "refused" | "storage" | "ended", "body": reason}

It is started by `processes.py` with two file descriptors: the socket that carries the lines, and the reading end of a
pipe on which nothing is ever written. When the parent dies the pipe ends, and a thread that waits for that ends this
process, in the middle of a run or not: what is committed is whole.

A job in which a user's code runs has a process of its own, forked from this one, in which no job has run: whatever that
code changes ends with it, and so do the processes that it started. What costs seconds is done before the fork: torch is
imported, and the user's module, where a fork after that is safe.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from json import dumps, loads
from typing import Any, NoReturn

from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.running import work
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Locked

LONGEST = 2_000
"""Characters of a reason."""
ANSWERED, OTHER = 86, 87
"""Exit codes of forked processes: of a job that was answered; of one from which a job cannot be forked."""
SERVING = b"\n"
"""What a process with the user's module says first."""

Send = Callable[[str, Any], None]


def start() -> None:
    """The process's entry: the two descriptors are its arguments."""
    serve(*(int(word) for word in sys.argv[1:3]))


def serve(jobs: int, alive: int) -> None:
    """Jobs until the socket ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory runs out, a worker goes before the parent or the user's desktop
    except OSError:
        pass
    channel = socket.socket(fileno=jobs)
    send = _sender(channel)
    send("starting", None)
    work.prepare()
    send("ready", None)
    following, loaded, before = False, False, -1
    with channel.makefile("rb") as file:
        for job in map(loads, file):
            if not work.theirs(job):
                if not following:
                    threading.Thread(target=_follow, args=(alive,), daemon=True).start()
                    following = True
                _do(job, send)
                continue
            if not loaded:
                work.load(job)
                loaded, own = True, job.get("factory")
                job, before = _fork_loaded(job)  # this process may be another now, into which their module is loaded
                following = following and before < 0
            elif before >= 0 and job.get("factory") != own:
                os.write(before, dumps(job).encode())
                os._exit(OTHER)
            _alone(job, channel, alive)


def _sender(channel: socket.socket) -> Send:
    process = os.getpid()

    def send(kind: str, body: Any) -> None:
        if os.getpid() != process:
            os._exit(0)  # a user's code has forked in the middle of an update: one of us answers
        channel.sendall(dumps({"kind": kind, "body": body}, allow_nan=False).encode() + b"\n")

    return send


def _do(job: Job, send: Send) -> None:
    """One job, and its answer."""
    try:
        send("done", work.do(job, lambda event: send("event", event))[1])
    except Locked as error:
        send("locked", error.busy.to_json())
    except UsageError as error:
        send("refused", str(error)[:LONGEST])
    except StoreError as error:
        send("storage", str(error)[:LONGEST])
    except StabkitError as error:
        send("failed", str(error)[:LONGEST])
    except BaseException as error:  # a SystemExit inside a run is that run's loss too
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        send("failed", f"{type(error).__name__}: {error} ({where})"[:LONGEST])


def _alone(job: Job, channel: socket.socket, alive: int) -> None:
    """One job in a process of its own, which leads the group of those that it starts."""
    ours, here = os.pipe()  # nothing is written: it ends with this process
    pid = os.fork()
    if not pid:
        with suppress(BaseException):
            os.close(here)
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            threading.Thread(target=_follow, args=(alive, ours), daemon=True).start()
            _do(job, _sender(channel))
            os._exit(ANSWERED)
        os._exit(1)
    with suppress(OSError):  # whichever of the two is first
        os.setpgid(pid, pid)
    signal.signal(signal.SIGTERM, lambda *_: _end(pid))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)  # what the user's code started and left
    os.close(ours)
    os.close(here)
    if code != ANSWERED:
        channel.sendall(b"\n")  # it may have died in the middle of a line
        _sender(channel)("ended", exit_reason(code))


def _fork_loaded(job: Job) -> tuple[Job, int]:
    """(The job to go on with, where jobs go back to.) A fork goes on, into which the user's module is loaded, and this
    process waits for its end; or this one does (-1): where what the module does on import lets nobody be forked after
    it (threads, a GPU, that it fails), or with a job of another factory, which the fork gives back."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            work.load_theirs(job)
        except BaseException:
            os._exit(OTHER)
        if not _single():
            os._exit(OTHER)
        os.close(ours)
        os.write(theirs, SERVING)
        return job, theirs
    os.close(theirs)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its group is told to end, and this waits for it
    with open(ours, "rb") as file:
        back = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if back == SERVING:
        os._exit(max(code, 0))
    signal.signal(signal.SIGTERM, before)
    return loads(back.removeprefix(SERVING)) if back else job, -1


def _single() -> bool:
    """Whether a fork of this process is as good as it: one thread, and no GPU that it could have begun to use."""
    import torch

    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError:  # a system that does not say
        return False
    return threads == 1 and not torch.cuda.is_available()


def exit_reason(code: int) -> str:
    """What ended a process, in words."""
    if code >= 0:
        return f"the worker exited with code {code}"
    hint = ", as when memory runs out" if code == -signal.SIGKILL else ""
    known = {number.value: number.name for number in signal.Signals}
    return f"the worker was ended by {known.get(-code, f'signal {-code}')}{hint}"


def _end(pid: int) -> NoReturn:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os._exit(0)


def _follow(*alive: int) -> None:
    select.select(alive, [], [])  # returns when no one holds the other end of one
    if len(alive) > 1:
        os.killpg(0, signal.SIGKILL)
    os._exit(111)
