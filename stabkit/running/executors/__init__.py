"""Where jobs run: one executor a file, one row in EXECUTORS.

An executor is `map(jobs, tell, place) → iterator of (job, outcome | Lost)` in order of completion. Closing the iterator
ends every worker within two seconds. The same digests come out of every executor.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager

from stabkit.running.executors import dask, inline, processes
from stabkit.running.executors.base import Answer, ExecutorOptions, Lost, Tell
from stabkit.storage.jobs import Job

EXECUTORS = {"inline": inline.map, "processes": processes.map, "dask": dask.map}


@contextmanager
def several(
    name: str, where: ExecutorOptions
) -> Iterator[Callable[[Sequence[Job], Tell], Generator[Answer, None, None]]]:
    """An executor for several `map`s in turn: worker processes live as long as this `with`."""
    execute = EXECUTORS[name]
    if execute is not processes.map:
        yield lambda jobs, tell: execute(where.shard.order(jobs), tell, where)
        return
    with processes.Pool(where) as pool:
        yield lambda jobs, tell: pool.map(where.shard.order(jobs), tell)


__all__ = ["EXECUTORS", "Lost", "ExecutorOptions", "several"]
