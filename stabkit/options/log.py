"""Options of `log` → logs that are read and judged."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.errors import UsageError
from stabkit.options import ranges
from stabkit.options.commands import LogOptions
from stabkit.report.log import LogResult
from stabkit.results import stop
from stabkit.results.log import LogJudgement, judged
from stabkit.storage import logs
from stabkit.words import plain

MOST_FILES, MOST_CLASSES = 12, 10_000_000
AT_ONCE = 1 << 22
"""Tokens that are counted at a time."""


def read(asked: LogOptions) -> LogResult:
    """What the logs say; raises UsageError that names the option."""
    if not asked.files or len(asked.files) > MOST_FILES:
        raise UsageError(f"FILES: 1 to {MOST_FILES} logs are read at once, not {len(asked.files)}")
    if asked.level is not None and asked.tokens is not None:
        raise UsageError("--level and --tokens both say the level; give one")
    classes = ranges.whole("--classes", asked.classes, 2, MOST_CLASSES) if asked.classes is not None else None
    level = ranges.real("--level", asked.level, 0, 1e9, above=True) if asked.level is not None else None
    alpha = stop.check("--stop", ranges.real("--stop", asked.stop, 0, 1)) if asked.stop is not None else None
    if asked.tokens is not None:
        level = entropy(Path(ranges.folder("--tokens", asked.tokens)))
    known = {"classes": classes, "level": level, "counted": asked.tokens is not None}
    found = [judged(log, **known) for name in asked.files for log in logs.read(Path(name))]  # type: ignore[arg-type]
    other = judged(logs.read(Path(ranges.folder("--against", asked.against)))[0], **known) if asked.against else None  # type: ignore[arg-type]
    names = [own.log.name for own in found]
    if other is not None and other.log.name in names:
        other = replace(other, log=replace(other.log, name=f"{other.log.name} (against)"))
    if len(set(names)) < len(names):
        raise UsageError(f"FILES: {max(names, key=names.count)} stands there more than once")
    if len(found) > MOST_FILES:
        raise UsageError(f"FILES hold {len(found)} trainings; at most {MOST_FILES} are shown at once")
    typed = [f"--{name} {shlex.quote(ranges.text(value))}" for name, value in asked.named.items() if name != "out"]
    out = Path(ranges.folder("--out", asked.out) or os.environ.get("STABKIT_HOME", "") or ".").absolute()
    return LogResult(
        call=" ".join(["stabkit log", *map(shlex.quote, asked.files), *typed]),
        out=out,
        logs=tuple(found),
        stops=tuple(None if alpha is None else bound(own, alpha) for own in found),
        other=other,
    )


def bound(own: LogJudgement, alpha: float) -> stop.Stop:
    """Of a log whose level is known, or guessed by ln V and the first loss."""
    loss = own.log.loss
    if own.level_of in ("given", "counted") and own.level is not None:
        return stop.stopped(loss.steps, loss.values, own.level, "level", alpha)
    return stop.guessed(loss.steps, loss.values, own.first, own.level if own.classes else None, alpha)


def entropy(path: Path) -> float:
    """−Σ f·ln f of the frequencies of token ids, nats: numpy's array, nanoGPT's .bin of uint16, a JSON document of
    counts, or whole numbers in a text. Raises UsageError."""
    name = f"--tokens: {plain(str(path))}"
    try:
        with path.open("rb") as file:
            head = file.read(64)
        if head.startswith(b"\x93NUMPY"):
            ids: Any = np.load(path, mmap_mode="r")
        elif head.lstrip()[:1] in (b"{", b"["):
            body = json.loads(path.read_text(encoding="utf-8"))
            return _of_counts(np.array([*body.values()] if isinstance(body, dict) else body, dtype=float), name)
        elif b"\0" not in head and head.strip() and all(c in b"0123456789 \r\n\t," for c in head):
            ids = np.array(path.read_text(encoding="utf-8").replace(",", " ").split(), dtype=np.int64)
        else:
            ids = np.memmap(path, dtype=np.uint16, mode="r")
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{name}: no token ids in it: {plain(str(error))[:80]}") from error
    if not np.issubdtype(ids.dtype, np.integer) or not ids.size or int(ids.min()) < 0 or int(ids.max()) >= MOST_CLASSES:
        raise UsageError(f"{name}: token ids are whole numbers from 0 to {MOST_CLASSES:,}, at least one of them")
    flat = ids.reshape(-1)
    counts = np.zeros(int(ids.max()) + 1)
    for at in range(0, len(flat), AT_ONCE):
        counts += np.bincount(flat[at : at + AT_ONCE], minlength=len(counts))
    return _of_counts(counts, name)


def _of_counts(counts: Any, name: str) -> float:
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any() or not counts.sum() > 0:
        raise UsageError(f"{name}: counts are numbers of 0 and more, in one list or by token")
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
