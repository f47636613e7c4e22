"""What options ask of the machine: a device, a directory, workers and their scheduler. Checked; nothing is made."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from stabkit.errors import UsageError, nearest, require
from stabkit.options import ranges
from stabkit.options.commands import ProbeOptions, RunningOptions, TransferOptions
from stabkit.options.option import HOME
from stabkit.running.executors import EXECUTORS, ExecutorOptions
from stabkit.running.pace import cores
from stabkit.running.shard import Shard

AT_ONCE = 16
"""Of a GPU, where nobody says how many: 4.7 times as many runs a minute as one by one (docs/reliability.md)."""
DEVICES = ("auto", "cpu", "cuda", "mps")


def device_name(text: str) -> str:
    """--device as it was written, spelled right; whether it is there, `device` asks."""
    kind, colon, number = str(text).partition(":")
    if kind not in DEVICES or (colon and (kind != "cuda" or not (number.isascii() and number.isdigit()))):
        raise UsageError(f"--device: {text!r} is not one of auto, cpu, cuda, cuda:1, mps{nearest(kind, DEVICES)}")
    return text


def device(text: str) -> str:
    """The device of that name as torch calls it: `cpu`, `cuda:0`, `mps`; raises UsageError where it is not there.

    torch is imported only where its build has anything but a CPU.
    """
    if text == "cpu" or (text == "auto" and _cpu_only()):
        return "cpu"
    import torch

    if text == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    kind, _, number = text.partition(":")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device {text}: torch sees {torch.cuda.device_count()} CUDA devices; use --device cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: torch sees no Metal device; use --device cpu")
    return f"cuda:{number or 0}" if kind == "cuda" else kind


def _cpu_only() -> bool:
    from importlib.metadata import version

    return version("torch").endswith("+cpu")


def executor(options: RunningOptions | TransferOptions) -> tuple[str, ExecutorOptions]:
    """Which executor, and its options; 0 workers are as many as suit the device."""
    name = ranges.choice("--executor", options.executor, tuple(EXECUTORS))
    return name, place(options, _scheduler(name, str(options.scheduler or "")))


def place(options: RunningOptions | TransferOptions | ProbeOptions, scheduler: str = "") -> ExecutorOptions:
    """Where jobs run."""
    return ExecutorOptions(
        workers=0 if options.workers == "auto" else ranges.whole("--workers", options.workers, 1, 1024),
        run_timeout=ranges.real("--run-timeout", options.run_timeout, 0.0, 1e9) or None,
        scheduler=scheduler,
        shard=shard(str(options.shard or "")),
    )


def shard(text: str, environment: Mapping[str, str] = os.environ) -> Shard:
    """`2/4`; of `slurm` the task of a job array that this process is. Raises UsageError."""
    if text == "slurm":
        names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT")
        given = [environment.get(name, "") for name in names]
        if missing := [name for name, value in zip(names, given, strict=True) if not re.fullmatch("[0-9]{1,9}", value)]:
            raise UsageError(f"--shard slurm: {missing[0]} is not a number; use it in tasks of `sbatch --array`")
        each = environment.get("SLURM_ARRAY_TASK_STEP", "1")
        task, first, count = map(int, given)
        number = (task - first) // max(1, int(each) if each.isdigit() else 1) + 1
        text = f"{number}/{count}"
    if not text:
        return Shard()
    parts = re.fullmatch("([0-9]{1,6})/([0-9]{1,6})", text, re.ASCII)
    if not parts or not 1 <= int(parts[1]) <= int(parts[2]):
        raise UsageError(f"--shard takes one part of several, like 1/4 or 4/4, or slurm; got {text[:40]!r}")
    return Shard(int(parts[1]), int(parts[2]))


def _scheduler(executor: str, text: str) -> str:
    """The address of a Dask scheduler; raises UsageError for what is none."""
    if executor != "dask":
        if text:
            raise UsageError("--scheduler is for --executor dask")
        return ""
    if not re.fullmatch(r"(tcp|tls|ws|wss)://[A-Za-z0-9.:_\[\]-]+:[0-9]{1,5}", text):
        raise UsageError(
            f"--executor dask needs --scheduler tcp://host:8786, the address of a Dask scheduler; got {text!r}"
        )
    require("distributed", "--executor dask", "dask")
    return text


def workers(asked: int, device: str) -> int:
    """As many as were asked for; else one on a GPU, and on a CPU one a core."""
    return asked or (cores() if device == "cpu" else 1)


def together(asked: int | str, device: str) -> int:
    """Runs of one shape that a worker trains at once: as many as were asked for, else AT_ONCE on a GPU and on a CPU
    one. Raises UsageError."""
    if asked == "auto":
        return AT_ONCE if device.startswith("cuda") else 1
    return ranges.whole("--together", asked, 1, 1024)


def output(given: str | PathLike[str] | None) -> Path:
    """The output directory (given, else STABKIT_HOME, else here), there or to be made; raises UsageError."""
    text = ranges.folder("--out", given) or os.environ.get(HOME, "")
    if any(ord(c) < 32 for c in text):
        raise UsageError(f"--out: {text!r} holds control characters")
    out = Path(text or ".").absolute()
    try:
        return _usable(out)
    except OSError as error:
        raise UsageError(f"--out: {text[:80]!r}: {error.strerror or error}") from error


def _usable(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is a file; it takes a directory")
    if (out / "runs").exists() and not (out / "runs").is_dir():
        raise UsageError(f"--out: {out / 'runs'} is a file; stabkit keeps its runs there")
    reports = out / "reports"
    if reports.is_symlink() or (reports.exists() and not reports.is_dir()):
        raise UsageError(f"--out: {reports} is a link or a file; stabkit keeps its reports there")
    nearest_parent = next(p for p in (out, *out.parents) if p.exists())
    if not os.access(nearest_parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out: no permission to write to {nearest_parent}")
    return out
