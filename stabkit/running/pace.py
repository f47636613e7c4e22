"""How much longer than `cost` was fitted to this machine takes: timed once (`runs.clock`), and kept in the user's cache
for the commands that follow. It scales what is said of times, and nothing that is computed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from stabkit.errors import StabkitError
from stabkit.kernels import build, products
from stabkit.storage.folder import write_file
from stabkit.version import __version__

_known: dict[str, float | None] = {}
"""What was read or kept in this process."""


def known() -> float | None:
    """The number kept for this processor, its cores, compiled kernels and this version; None where none is."""
    if not _known:
        _known["here"] = _read()
    return _known["here"]


def keep(value: float) -> None:
    """For this process, and for the commands that follow if the cache can be written."""
    _known["here"] = value
    with suppress(StabkitError, RuntimeError):
        write_file(_file(), json.dumps({_machine(): value}).encode())


def _read() -> float | None:
    try:
        value = json.loads(_file().read_text(encoding="utf-8")).get(_machine())
    except (OSError, ValueError, AttributeError, RuntimeError):  # none, not JSON, no object, no home
        return None
    return value if isinstance(value, float) and 0.01 < value < 100 else None


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _file() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stabkit" / "pace.json"


def _machine() -> str:
    kernels = [file.name for file in build.libraries().values() if file.exists()]
    return f"{products.processor()}, {cores()} cores, {' '.join(kernels) or 'python'}, stabkit {__version__}"
