"""The log of a training that another program wrote: its curves, found by content and not by a file's ending.

texts      of many forms: `log_text.py`
events     TensorBoard's event files, read by the package tensorboard
watch      the folder of a watch of stabkit
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from stabkit.errors import UsageError, require
from stabkit.results.log import Series, TrainingLog
from stabkit.storage.log_text import METRIC_FORM, Values, read_text, spelt
from stabkit.words import plain

MOST_BYTES = 2 << 30
"""Of a file; a larger one is refused."""
NO_LOSS = re.compile(
    r"(?<![a-z])(acc|accuracy|f1|bleu|rouge|auc|reward|ppl|perplexity|precision|recall|wer|lr|rate|grad|norm|score|time)(?![a-z])"
)
"""What names a metric that is no loss, where a file has a value without a name."""


def read(path: Path) -> list[TrainingLog]:
    """The trainings of a file, or of a folder's first file that is a log; raises UsageError for what is none, or cannot
    be read."""
    try:
        if (watch := _watched(path)) is not None:
            return [watch]
        return _of_folder(path) if path.is_dir() else _of_file(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{plain(str(path))}: cannot be read: {why}") from error


def files(path: Path) -> list[Path]:
    """What a folder has that may be a log, the likelier first; of a file itself."""
    if not path.is_dir():
        return [path]
    found = dict[Path, float]()
    for pattern in [below + own for own in FOLDER for below in ("", "checkpoint-*/", "*/")]:
        there = {one: one.stat().st_mtime for one in path.glob(pattern) if one.is_file()}
        found |= {one: there[one] for one in sorted(there, key=lambda one: (-there[one], one.name)) if one not in found}
    return [*found]


FOLDER = ("trainer_state.json", "metrics.csv", "*tfevents*", "*history*.jsonl", "*.jsonl", "*.csv", "*.log", "*.txt")


def _of_folder(path: Path) -> list[TrainingLog]:
    for one in (there := files(path)):
        with suppress(UsageError):
            note = f"{plain(one.name)} was read of {len(there)} files in {plain(path.name)}: name others to read them"
            return [replace(log, notes=(*log.notes, *[note] * (len(there) > 1))) for log in _of_file(one)]
    from stabkit.storage.watched import WatchShelf

    watches = WatchShelf(path).ids()
    which = f"name a watch, as {path / 'own' / watches[-1]}" if watches else "name the file"
    raise UsageError(f"{plain(str(path))}: no log in this folder; {plain(which)}")


def _of_file(path: Path) -> list[TrainingLog]:
    name, size = plain(str(path)), path.stat().st_size
    if not path.is_file():
        raise UsageError(f"{name}: a log is a file or a folder, and this is neither")
    if size > MOST_BYTES:
        most = f"at most {MOST_BYTES / 1e9:.1f} are read"
        raise UsageError(f"{name} has {size / 1e9:.1f} GB, and {most}: give the part with the losses")
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not head.strip(b" \r\n\t\0"):
        raise UsageError(f"{name} is empty; a log needs entries of steps and losses")
    values = Values()
    if b"brain.Event" in head[:64]:
        form = _events(path, values)
    elif (text := head.replace(b"\0", b"").decode("utf-8", "replace")).count("\ufffd") > len(text) / 50 + 1:
        raise UsageError(f"{name}: neither a text nor TensorBoard's events; export it as CSV")
    else:
        form = read_text(path, text, size, values)
    usual = path.stem in ("trainer_state", "metrics", "log", "train", "history", "train_log", "trainer_log")
    found = values.logs(plain(f"{path.resolve().parent.name}/{path.name}" if usual else path.name), form)
    unnamed = form == METRIC_FORM or all(spelt(log.column) == "value" for log in found)
    if not found or (unnamed and NO_LOSS.search(path.name.lower())):
        raise UsageError(
            f"{name}: no losses in it ({form}); it needs a name like loss, train/loss or train_loss with numbers"
        )
    return found


def _watched(path: Path) -> TrainingLog | None:
    """Of the folder of a watch of stabkit; None of what is none."""
    from stabkit.storage.watched import WatchShelf

    if not path.is_dir() or path.parent.name != "own" or path.name not in WatchShelf(path.parent.parent).ids():
        return None
    watch = WatchShelf(path.parent.parent).load(path.name)
    table, gradient = watch.records.get("loss"), watch.records.get("gradient")
    if table is None:
        raise UsageError(f"{plain(path.name)}: this watch was given no loss; call watch.loss(loss) in the loop")
    norms = None if gradient is None else np.sqrt(np.nansum(gradient.values**2, axis=1))
    guess = watch.cell.facts.guess
    return TrainingLog(
        name=watch.name, form="a watch of stabkit", column="train", unit="update",
        loss=Series(table.steps.astype(float), table.at("train")),
        gradient=None if gradient is None or norms is None else Series(gradient.steps.astype(float), norms),
        classes=guess.classes if guess is not None and guess.classes > 1 else None,
        notes=tuple(f"its watch warned at update {one.step:,}: {one.sentence}" for one in watch.alarms),
    )  # fmt: skip


def _events(path: Path, values: Values) -> str:
    require("tensorboard", f"reading {plain(path.name)}", "logs")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util import tensor_util

    for event in EventFileLoader(str(path)).Load():
        for one in event.summary.value:
            made = tensor_util.make_ndarray(one.tensor) if one.HasField("tensor") else np.array(one.simple_value)
            if made.size == 1 and made.dtype.kind == "f":
                values.entry((("step", event.step), (one.tag, float(made.reshape(-1)[0]))))
    return "TensorBoard's events"
