"""The task of a run, wherever it is wanted; of parallel text from the store, where it is made once.

A vocabulary takes seconds to train. The process that plans makes it before any worker starts and keeps it under the
task's digest; workers, later commands and Dask workers read it. One that is missing or fails its check is made again by
whoever needs it first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from stabkit.errors import CorpusError
from stabkit.spec import RunSpec, TaskConfig, canonical
from stabkit.storage.shelf import Shelf
from stabkit.tasks import objective
from stabkit.tasks.base import Task

if TYPE_CHECKING:
    from stabkit.tasks.corpus import Corpus
    from stabkit.tasks.encoded import Prepared

Where = dict[str, str] | None
"""{"directory": DIR} of parallel text, or None for the synthetic task."""


def task(run_spec: RunSpec, where: Where, out: Path) -> Task:
    """The task of a run, as its model learns it."""
    config = canonical(run_spec.to_json()["task"])
    made = _translation(config, run_spec.train.max_tokens, json.dumps(where), str(out))
    return objective.of(made, run_spec.model.encoder_layers, run_spec.model.decoder_layers)


def keep(specs: Iterable[RunSpec], where: Where, out: Path, making: Callable[[str], None]) -> None:
    """Make every text of these runs that the store lacks or that fails its check; `making` is called before each."""
    wanted = dict.fromkeys((spec.task, spec.train.max_tokens) for spec in specs if spec.task.source)
    for config, max_tokens in wanted:
        shelf = _shelf(config, out)
        digest = _digest(config, max_tokens)
        if shelf.load_if_sound(digest) is None:
            with shelf.awaited(digest):  # another command may be making it
                if shelf.load_if_sound(digest) is None:
                    making(f"making the vocabulary of {config.name}, {config.vocab:,} subwords, once for all runs")
                    _make(config, max_tokens, where, shelf)


@lru_cache(maxsize=2)
def _translation(config: str, max_tokens: int, where: str, out: str) -> Task:
    """A translation task; kept between jobs, for even reading it takes a moment."""
    wanted = TaskConfig(**json.loads(config))
    if not wanted.source:
        from stabkit.tasks.synthetic import Synthetic

        return Synthetic(vocab=wanted.vocab, max_tokens=max_tokens)
    from stabkit.tasks import text

    directory = json.loads(where)
    corpus = _corpus(wanted, directory)
    shelf = _shelf(wanted, Path(out))
    prepared = shelf.load_if_sound(_digest(wanted, max_tokens)) or _make(wanted, max_tokens, directory, shelf)
    return text.ParallelText(
        corpus=corpus, vocab=wanted.vocab, max_tokens=max_tokens, text=wanted.digest, prepared=prepared
    )


def _shelf(wanted: TaskConfig, out: Path) -> Shelf[Prepared]:
    from stabkit.storage import texts

    return Shelf(texts.kind(wanted.vocab), out)


def _digest(wanted: TaskConfig, max_tokens: int) -> str:
    from stabkit.tasks import text

    return text.identity(wanted.digest, wanted.vocab, max_tokens)


def _make(wanted: TaskConfig, max_tokens: int, where: Where, shelf: Shelf[Prepared]) -> Prepared:
    from stabkit.storage.texts import to_files
    from stabkit.tasks import encoded, text

    corpus = _corpus(wanted, where)
    if text.digest(corpus) != wanted.digest:
        raise CorpusError(
            f"the text in {corpus.directory} has changed since the sweep was planned; start the sweep again"
        )
    prepared = encoded.prepare(corpus, wanted.vocab, max_tokens)
    shelf.commit(_digest(wanted, max_tokens), to_files(prepared))
    return prepared


def _corpus(wanted: TaskConfig, where: Where) -> Corpus:
    from stabkit.tasks import text

    if where is None:
        need = f"--data DIR --source {wanted.source} --target {wanted.target}"
        raise CorpusError(f"surfaces of this run need its text: {need}")
    return text.find(Path(where["directory"]), wanted.source, wanted.target)
