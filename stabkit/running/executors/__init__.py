"""Where jobs run: one executor a file, one row in EXECUTORS.

An executor is `map(jobs, tell, place) → iterator of (job, outcome | Lost)` in order of completion. Closing the iterator
ends every worker within two seconds. The same digests come out of every executor.
"""

from stabkit.running.executors import dask, inline, processes
from stabkit.running.executors.base import ExecutorOptions, Lost

EXECUTORS = {"inline": inline.map, "processes": processes.map, "dask": dask.map}

__all__ = ["EXECUTORS", "Lost", "ExecutorOptions"]
