"""A watch in every loop of `loops.py`: the training is what it is without, and what was recorded is read back."""

from __future__ import annotations

import gc
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from torch.optim import optimizer as optimizers

from stabkit.errors import StabkitError
from stabkit.own.watch.journal import StabilityWarning
from stabkit.storage.watched import Watched, WatchShelf
from tests.hostile.loops import ANY, CHANGE, ROWS, Row, Training

pytestmark = [pytest.mark.hostile]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left of a training."""

    digest: str
    raised: str
    refused: str
    sentences: tuple[str, ...]
    """Of the watch's warnings."""
    others: frozenset[str]
    """Classes of the other warnings."""
    hooks: int


def global_hooks() -> int:
    return len(optimizers._global_optimizer_pre_hooks) + len(optimizers._global_optimizer_post_hooks)


def outcome(row: Row, out: Path, watched: bool) -> Outcome:
    before, here, raised = global_hooks(), Path.cwd(), ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        training = Training(out, watched)
        try:
            row.loop(training)
        except BaseException as error:
            raised = f"{type(error).__name__}: {error}"
        os.chdir(here)
        digest, refused = training.digest(), training.refused
        del training
        gc.collect()
    ours = tuple(str(w.message) for w in caught if w.category is StabilityWarning)
    others = frozenset(w.category.__name__ for w in caught) - {StabilityWarning.__name__}
    return Outcome(digest, raised, refused, ours, others, global_hooks() - before)


def read_back(out: Path) -> tuple[list[Watched], list[str]]:
    shelf, found, faults = WatchShelf(out), [], []
    for name in shelf.ids():
        try:
            found.append(shelf.load(name))
        except StabkitError as error:
            faults.append(f"not read back: {error}")
    folders = [entry.name for entry in shelf.root.iterdir() if entry.name[0] != "."] if shelf.root.is_dir() else []
    odd = [
        name for name in folders if len(os.fsencode(name)) > 255 or not name.isprintable() or set(name) & set("<>[]")
    ]
    return found, faults + [f"a folder is called {name!r}" for name in odd]


def stored_faults(row: Row, watches: list[Watched]) -> Iterator[str]:
    if row.watches is not None and len(watches) != row.watches:
        yield f"{len(watches)} watches read back, not {row.watches}"
    for watched in watches:
        steps, stream = watched.cell.facts.steps, watched.records.get("stream")
        last = 0 if stream is None else max(stream.steps.tolist(), default=0)
        if not re.fullmatch(row.ended, watched.ended, re.DOTALL):
            yield f"ended: {watched.ended!r}"
        if row.updates is not None and steps != row.updates:
            yield f"{steps} updates are recorded, not {row.updates}"
        if row.ended == ANY and steps < CHANGE:
            yield f"the records end at update {steps}, before the model changed"
        if row.repeatable is False and last:
            yield f"activations of a forward that is not repeatable are read until update {last}"
        if row.repeatable and watched.ended == "closed" and last != steps:
            yield f"activations end at update {last} of {steps}"


def faults(row: Row, out: Path) -> Iterator[str]:
    alone, own = outcome(row, out / "alone", False), outcome(row, out / "own", True)
    text = "\n".join(own.sentences)
    if not own.raised.startswith(row.raises) if row.raises else own.raised != alone.raised:
        yield f"the training ends with {own.raised!r}, without a watch with {alone.raised!r}"
    if alone.raised.partition(":")[0] not in row.ended:
        yield f"the training itself ends with {alone.raised!r}"
    if row.bits and own.digest != alone.digest:
        yield "weights, losses or random state differ from those without a watch"
    if more := own.others - alone.others:
        yield f"further warnings: {', '.join(sorted(more))}"
    if row.opens != "either" and bool(own.refused) != (row.opens == "no"):
        yield f"UsageError: {own.refused!r}"
    if not re.search(row.warns, text):
        yield f"no warning of {row.warns!r}, but {text!r}"
    if row.repeatable is not None and ("your forward" in text) == row.repeatable:
        yield f"a forward that is {'' if row.repeatable else 'not '}repeatable, and {text!r}"
    if alone.hooks or own.hooks:
        yield f"{own.hooks} hooks of all optimisers are left"
    watches, unread = read_back(out / "own")
    yield from (*unread, *stored_faults(row, watches))


@pytest.fixture(scope="module", autouse=True)
def older_objects() -> Iterator[None]:
    gc.collect(), gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_training_is_what_it_is_without_a_watch_and_its_records_are_read_back(row: Row, tmp_path: Path) -> None:
    found = list(faults(row, tmp_path))
    assert not found, "; ".join(found)


def test_rows_are_fifty_or_more_and_each_is_a_plain_sentence() -> None:
    assert len(ROWS) >= 50 and len({row.name for row in ROWS}) == len(ROWS)
    assert not [row.name for row in ROWS if not row.does.endswith(".") or len(row.does.split()) > 25]
