"""What a worker is given, and what it tells on the way: JSON across a process border, typed on both sides of it."""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict

from stabkit.spec import Kernels


class Context(TypedDict, total=False):
    """What every job of a command holds that trains runs, or measures them once more."""

    corpus: dict[str, str] | None
    """{"directory": DIR} of parallel text."""
    device: str
    kernels: Kernels
    texts: dict[str, str]
    """{sha256: text of a file of one's own}."""
    checkpoint_every: int | None
    together: int


class Job(Context, total=False):
    """One piece of work; what it has beside `kind`, `id` and `out` follows from its kind (`running/work.py`)."""

    kind: Required[Literal["run", "runs", "tile", "probe", "trial"]]
    id: Required[str]
    out: Required[str]
    over: str
    """The holder of a lock that was found to be gone."""

    # of runs and what is measured on them
    spec: dict[str, Any]
    jobs: list[Job]
    """Runs of one shape, trained at once."""

    # of tiles
    name: str
    first: int
    last: int

    # of a user's own model
    factory: str
    here: str
    """The directory that the command was started in: the factory's module may stand there."""
    depth: int | None
    width: int | None
    seed: int
    lr: float
    warmup: int | None
    steps: int
    blocks: str
    change: str
    ramped: bool
    train: Literal["no", "undecided", "passing", "always"]
    until: float
    """Seconds since 1970 at which a training ends."""
    seconds: float
    """… and after which, of the command."""
    times: float
    """What every rate is multiplied by."""
    fresh: bool
    smallest: list[int | None]
    """(depth, width) at which `lr` is the rate."""


class Event(TypedDict, total=False):
    """How far a job is: at most two a second from one, lossy, never stored; or a line that it has to say."""

    id: Required[str]
    attempt: int
    step: int
    steps: int
    loss: Any
    """As JSON has it: NaN is a text."""
    note: str
    warning: str
    decision: dict[str, Any]
    """Fields of what a probe says (`results/own/looks.py`), before it is trained on."""


def asked(job: Job, *names: str) -> dict[str, Any]:
    """These fields of a job, in this order."""
    values = dict[str, Any](**job)
    return {name: values[name] for name in names}
