"""Options of `log` → logs that are read and judged."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.errors import UsageError
from stabkit.options import ranges
from stabkit.options.commands import LogOptions
from stabkit.report.log import LogResult
from stabkit.results import stop
from stabkit.results.log import LogJudgement, TrainingLog, judged
from stabkit.storage import logs
from stabkit.words import plain

MOST_FILES, MOST_CLASSES = 12, 10_000_000
LEAST_LEVEL = 1e-3
OTHERS = (b"PK", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"\x1f\x8b", b"\x7fELF", b"BZh", b"PAR1", b"SQLite")
"""How files begin that have zeros in them and no ids."""
AT_ONCE = 1 << 22
"""Tokens that are counted at a time."""


def read(asked: LogOptions) -> LogResult:
    """What the logs say; raises UsageError that names the option."""
    names = [ranges.folder("FILES", name) for name in asked.files]
    if not names or len(names) > MOST_FILES or not all(names):
        raise UsageError(f"FILES: 1 to {MOST_FILES} logs are read at once, each with a name, not {len(names)}")
    for option, value in (("--against", asked.against), ("--tokens", asked.tokens)):
        if value is not None and not ranges.folder(option, value):
            raise UsageError(f"{option} has an empty value; leave it out, or name a file")
    if asked.level is not None and asked.tokens is not None:
        raise UsageError("--level and --tokens both say the level; give one")
    classes = ranges.whole("--classes", asked.classes, 2, MOST_CLASSES) if asked.classes is not None else None
    level = ranges.real("--level", asked.level, LEAST_LEVEL, 1e9) if asked.level is not None else None
    alpha = stop.check("--stop", ranges.real("--stop", asked.stop, 0, 1)) if asked.stop is not None else None
    if asked.tokens is not None:
        level = entropy(Path(ranges.folder("--tokens", asked.tokens)))

    def of(log: TrainingLog) -> LogJudgement:
        return judged(log, classes=classes, level=level, counted=asked.tokens is not None)

    found = [(name, log) for name in dict.fromkeys(names) for log in logs.read(Path(name))]
    if len(found) > MOST_FILES:
        raise UsageError(f"FILES hold {len(found)} trainings; at most {MOST_FILES} are shown at once")
    own, of_file = [log.name for _, log in found], [name for name, _ in found]
    distinct = [
        log if own.count(log.name) == 1
        else replace(log, name=plain(name) + f": {log.name}" * (of_file.count(name) > 1)) for name, log in found
    ]  # fmt: skip
    other = of(logs.read(Path(ranges.folder("--against", asked.against)))[0]) if asked.against is not None else None
    if other is not None and other.log.name in own:
        other = replace(other, log=replace(other.log, name=f"{other.log.name} (against)"))
    typed = [f"--{name} {shlex.quote(ranges.text(value))}" for name, value in asked.named.items() if name != "out"]
    out = Path(ranges.folder("--out", asked.out) or os.environ.get("STABKIT_HOME", "") or ".").absolute()
    judgements = tuple(of(log) for log in distinct)
    return LogResult(
        call=" ".join(["stabkit log", *map(shlex.quote, names), *typed]),
        out=out,
        logs=judgements,
        stops=tuple(None if alpha is None else bound(one, alpha) for one in judgements),
        other=other,
    )


def bound(own: LogJudgement, alpha: float) -> stop.Stop:
    """Of a log: what the band says of it; where it says nothing, or that it goes on, a diverged one is stopped too."""
    found = _band(own, alpha)
    return replace(found, step=own.since, diverged=True) if own.word == "diverged" and found.step is None else found


def _band(own: LogJudgement, alpha: float) -> stop.Stop:
    """By its level where that is known, else by ln V."""
    if own.log.unit != "update":
        return stop.Stop(alpha, own.first, why="unit")
    rate, known = own.log.rate, own.level_of in ("given", "counted")
    rises = (
        float(rate.steps[int(np.nanargmax(rate.values))]) if rate is not None and np.isfinite(rate.values).any() else 0
    )
    uniform = math.log(own.classes) if own.classes else None
    level = own.level if known else None
    return stop.judge(own.whole.steps, own.whole.values, alpha, level=level, uniform=uniform, rises=rises)


def entropy(path: Path) -> float:
    """−Σ f·ln f of the frequencies of token ids, nats: numpy's array, nanoGPT's .bin of uint16 or uint32, whole numbers
    in a text, or a JSON object of {token: count}. Raises UsageError for what is none, or of one token alone."""
    name = f"--tokens: {plain(str(path))}"
    try:
        if not path.is_file():
            raise UsageError(f"{name}: not a file")
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(b"\x93NUMPY"):
            counts = _counted(np.load(path, mmap_mode="r"), name)
        elif head.lstrip()[:1] == b"{":
            counts = _of_object(json.loads(path.read_text(encoding="utf-8")), name)
        elif all(c in b"0123456789 \r\n\t," for c in head):
            text = path.read_text(encoding="utf-8").replace(",", " ")
            counts = _counted(np.array(text.split(), dtype=np.int64), name)
        elif head.startswith(OTHERS) or b"\0" not in head:
            raise UsageError(f"{name}: neither .npy nor .bin, nor whole numbers in a text, nor {{token: count}}")
        else:
            counts = _counted(_binary(path), name)
    except (OSError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise UsageError(f"{name}: no token ids in it: {plain(str(error))[:80]}") from error
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts > 0).sum() < 2:
        raise UsageError(f"{name}: frequencies need counts of two tokens or more, and none below 0")
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _binary(path: Path) -> Any:
    """Ids of two bytes, or of four where every second one of two is small."""
    if path.stat().st_size % 2:
        raise ValueError("its size is odd, and ids have two bytes or four")
    ids = np.memmap(path, dtype="<u2", mode="r")
    wide = len(ids) % 2 == 0 and int(ids[1 : 1 << 20 : 2].max(initial=0)) < MOST_CLASSES >> 16
    return np.memmap(path, dtype="<u4", mode="r") if wide else ids


def _counted(ids: Any, name: str) -> Any:
    if not np.issubdtype(ids.dtype, np.integer) or not ids.size or int(ids.min()) < 0 or int(ids.max()) >= MOST_CLASSES:
        raise UsageError(f"{name}: token ids are whole numbers from 0 to {MOST_CLASSES:,}, at least one of them")
    flat = ids.reshape(-1)
    counts = np.zeros(int(ids.max()) + 1)
    for at in range(0, len(flat), AT_ONCE):
        counts += np.bincount(flat[at : at + AT_ONCE], minlength=len(counts))
    return counts


def _of_object(given: Mapping[str, Any], name: str) -> Any:
    counts = np.array([*given.values()], dtype=np.float64)
    if len(counts) > 2 and (np.sort(counts) == np.arange(len(counts))).all():
        raise UsageError(f"{name}: this is {{token: id}}, and {{token: count}} is needed")
    return counts
