"""Where jobs run: one executor a file, one row in EXECUTORS.

An executor is `map(jobs, tell, …) → iterator of (job, outcome | Lost)` in order of completion. Closing the iterator
ends every worker within two seconds. The same digests come out of every executor.
"""

from stabkit.executors.base import Lost
from stabkit.executors.inline import inline
from stabkit.executors.processes import processes

EXECUTORS = {"inline": inline, "processes": processes}

__all__ = ["EXECUTORS", "Lost", "inline", "processes"]
