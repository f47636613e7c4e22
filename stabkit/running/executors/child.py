"""A worker process: jobs come in and answers go out, one JSON text a line; it ends when its parent does, however.

    parent → child   a job
    child → parent   {"kind": "ready"} once, then for each job {"kind": "event", "body": {…}} now and then and one of
                     {"kind": "done", "body": outcome}, {"kind": "locked", "body": by whom},
                     {"kind": "failed" | "refused" | "storage", "body": reason}

It is started by `processes.py` with two file descriptors: the socket that carries the lines, and the reading end of a
pipe on which nothing is ever written. When the parent dies the pipe ends, and a thread that waits for that ends this
process, in the middle of a run or not: what is committed is whole.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.running import work
from stabkit.storage.locks import Locked

LONGEST = 2_000
"""Characters of a reason."""


def start() -> None:
    """The process's entry: the two descriptors are its arguments."""
    serve(*(int(word) for word in sys.argv[1:3]))


def serve(jobs: int, alive: int) -> None:
    """Jobs until the socket ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    threading.Thread(target=_follow, args=(alive,), daemon=True).start()
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory runs out, a worker goes before the parent or the user's desktop
    except OSError:
        pass
    channel = socket.socket(fileno=jobs)

    process = os.getpid()

    def send(kind: str, body: Any = None) -> None:
        if os.getpid() != process:
            os._exit(0)  # a user's code has forked in the middle of an update: one of us answers
        channel.sendall(json.dumps({"kind": kind, "body": body}, allow_nan=False).encode() + b"\n")

    work.prepare()
    send("ready")
    with channel.makefile("rb") as lines:
        for line in lines:
            try:
                answer = work.do(json.loads(line), lambda event: send("event", event))[1]
                send("done", answer)
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


def _follow(alive: int) -> None:
    os.read(alive, 1)  # returns when no one holds the other end
    os._exit(111)
