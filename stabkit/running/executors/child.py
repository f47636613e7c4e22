"""A worker process: jobs come in and answers go out, one JSON text a line; it ends when its parent does, however.

    parent → child   a job
    child → parent   {"kind": "starting"} before torch is imported, {"kind": "ready"} once, then for each job
                     {"kind": "event", "body": {…}} now and then and one of
                     {"kind": "done", "body": outcome}, {"kind": "locked", "body": by whom},
                     {"kind": "failed" | "refused" | "storage" | "ended", "body": reason}

It is started by `processes.py` with two file descriptors: the socket that carries the lines, and the reading end of a
pipe on which nothing is ever written. When the parent dies the pipe ends, and a thread that waits for that ends this
process, in the middle of a run or not: what is committed is whole. With more sockets it is forked into a worker for
each when it has imported torch, and says on the socket of one that has ended why it has.

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
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from json import dumps, loads
from pathlib import Path
from typing import Any

from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.running import work
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Locked

LONGEST = 2_000
"""Characters of a reason."""
LONGEST_LINE = 1 << 20
"""Bytes; a worker that sends more without ending the line is not one of ours any more."""
ANSWERS = ("done", "locked", "failed", "refused", "storage")
INVALID = "the worker sent an invalid message"
LOOK = 0.2
"""Seconds between two looks whether a process that says nothing is still there."""
SET_CHILD_SUBREAPER = 36
"""Of Linux's prctl."""
EXIT = os._exit
"""As it was before a user's code."""
ANSWERED, OTHER = 86, 87
"""Exit codes of forked processes: of a job that was answered; of one from which a job cannot be forked."""
SERVING = b"\n"
"""What a process with the user's module says first."""

Send = Callable[[str, Any], None]


def start() -> None:
    """The process's entry: its arguments are a socket, the pipe, `factory` where jobs will be of one, more sockets."""
    first, alive, kind, *more = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory runs out, a worker goes before the parent or the user's desktop
    except OSError:
        pass
    channels = [socket.socket(fileno=int(number)) for number in (first, *more)]
    for channel in channels:
        _sender(channel)("starting", None)
    work.prepare()
    if kind == "factory":
        work.load()
    if not more:
        serve(channels[0], int(alive))
    else:
        _fork_workers(channels, int(alive))


def _fork_workers(channels: list[socket.socket], alive: int) -> None:
    """A worker for each of these, until all have ended."""
    workers = dict[int, socket.socket]()
    for channel in channels:
        if not (pid := os.fork()):
            try:
                for other in channels:
                    if other is not channel:
                        other.close()
                os.setpgid(0, 0)
                serve(channel, alive)
            finally:
                os._exit(0)
        with suppress(OSError):  # whichever of the two is first
            os.setpgid(pid, pid)
        workers[pid] = channel
    while workers:
        pid, status = os.wait()
        reason = exit_reason(os.waitstatus_to_exitcode(status))
        with suppress(OSError):  # nobody listens any more
            workers[pid].sendall(dumps({"kind": "died", "body": reason}).encode() + b"\n")
        workers.pop(pid).close()
    os._exit(0)  # what Python does at its end takes a third of a second


def serve(channel: socket.socket, alive: int) -> None:
    """Jobs until the socket ends."""
    send = _sender(channel)
    send("ready", os.getpid())
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
                loaded, own = True, job.get("factory")
                job, before = _fork_loaded(job)  # this process may be another now, into which their module is loaded
                following, send = following and before < 0, _sender(channel)
                _adopt()
            elif before >= 0 and job.get("factory") != own:
                os.write(before, dumps(job).encode())
                os._exit(OTHER)
            _alone(job, send, alive, channel.fileno(), *([before] if before >= 0 else []))


def _sender(channel: socket.socket) -> Send:
    process = os.getpid()

    def send(kind: str, body: Any) -> None:
        if os.getpid() != process:
            os._exit(0)  # a user's code has forked in the middle of an update: one of us answers
        try:
            channel.sendall(dumps({"kind": kind, "body": body}, allow_nan=False).encode() + b"\n")
        except OSError:  # nobody listens any more
            EXIT(111)

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


def _alone(job: Job, send: Send, alive: int, *ours: int) -> None:
    """One job in a process of its own, which leads the group of those that it starts and has none of our descriptors:
    what it says is looked at before it is passed on."""
    mine, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        with suppress(BaseException):
            for number in (mine.detach(), *ours):
                os.close(number)
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            threading.Thread(target=_follow, args=(alive, theirs.fileno()), daemon=True).start()
            _do(job, _sender(theirs))
            EXIT(ANSWERED)
        EXIT(1)
    theirs.close()
    with suppress(OSError):  # whichever of the two is first
        os.setpgid(pid, pid)

    def ended(*seen: object) -> None:
        with suppress(BaseException):
            _end(pid)
        EXIT(0)

    before = signal.signal(signal.SIGTERM, ended)
    answer = _relayed(mine, pid, send)
    mine.close()
    code = _end(pid)
    signal.signal(signal.SIGTERM, before)
    send(*(answer or ("ended", exit_reason(code))))


def _relayed(mine: socket.socket, pid: int, send: Send) -> tuple[str, Any] | None:
    """Pass on what a job's process tells on the way; returns its answer, None where it ended without one."""
    buffer, mine_open = b"", True
    while mine_open:
        if select.select([mine], [], [], LOOK)[0]:
            data = mine.recv(1 << 16)
            mine_open, buffer = bool(data), buffer + data
        elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return None  # what it has started still holds the other end
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            try:
                kind, body = str((said := loads(line))["kind"]), said["body"]
            except (ValueError, KeyError, TypeError, RecursionError):
                kind, body = "ended", INVALID
            if kind != "event":
                return (kind, body) if kind in ANSWERS else ("ended", INVALID)
            send(kind, body)
        if len(buffer) > LONGEST_LINE:
            return "ended", INVALID
    for _ in range(10):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return None
        time.sleep(LOOK / 2)
    return "ended", "the worker closed what it answers on"


def _end(pid: int) -> int:
    """End a process and what it has started, wherever that has gone; returns the process's exit code."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        while left := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            for orphan in map(int, left):
                os.kill(orphan, signal.SIGKILL)
                os.waitpid(orphan, 0)
    return code


def _adopt() -> None:
    """On Linux: what a process that was started from here leaves behind becomes a child of this one."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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


def _follow(*alive: int) -> None:
    """End this process when no one holds the other end of one of these."""
    files = [os.fstat(number) for number in alive]
    with suppress(OSError, ValueError):  # a user's code has closed them
        select.select(alive, [], [])
        now = [os.fstat(number) for number in alive]
        if [(file.st_dev, file.st_ino) for file in files] == [(file.st_dev, file.st_ino) for file in now]:
            if len(alive) > 1:
                os.killpg(0, signal.SIGKILL)
            EXIT(111)
