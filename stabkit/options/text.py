"""The text that is trained on, and how it is translated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

from stabkit.errors import UsageError, require
from stabkit.options import ranges
from stabkit.options.commands import TrainingOptions
from stabkit.results.translation import MOST_BEAMS, Search
from stabkit.running.translations import TranslationRequest
from stabkit.spec import TaskConfig

LARGE_TEXT = 10_000_000
"""Bytes, compressed or not, from which on reading takes long enough to be told of."""


def task(
    data: str | PathLike[str] | None, source: str | None, target: str | None, vocab: int, making: Callable[[str], None]
) -> tuple[TaskConfig, dict[str, str] | None]:
    """The task, and where its text is; `making` is told where reading it takes long."""
    place = ranges.folder("--data", data)
    source, target = ranges.name("--source", source or ""), ranges.name("--target", target or "")
    if not place:
        if source or target:
            raise UsageError("--source and --target name the languages of --data; without --data the task is synthetic")
        return TaskConfig(vocab=vocab), None  # its digest follows from the size of the batches (_sized)
    if not source or not target:
        raise UsageError("--data needs --source and --target, the endings of its files: --source de --target en")
    require("sentencepiece", "--data", "papers")
    from stabkit.tasks import corpus

    files = corpus.find(Path(place), source, target)
    if sum(path.stat().st_size for path in (*files.train, *files.validation)) > LARGE_TEXT:
        making(f"reading the text in {corpus.shown(Path(place))}")
    for sides in (files.train, files.validation):
        corpus.read(sides)
    task = TaskConfig(name=f"{source}-{target}", vocab=vocab, source=source, target=target, digest=corpus.digest(files))
    return task, {"directory": str(Path(place).resolve())}


def search(options: TrainingOptions, depths: Sequence[tuple[int, int]]) -> Search | None:
    """How --bleu looks for words; None where it was not asked for."""
    if not options.bleu:
        for name in ("beam", "length_penalty"):
            if name in options.named:
                option, value = ranges.flag(name), ranges.text(options.named[name])
                raise UsageError(f"{option} needs --bleu; got {value!r} without it")
        return None
    if not all(depths[0]):
        raise UsageError("--bleu needs an encoder and a decoder: a language model cannot translate; leave out --bleu")
    require("sacrebleu", "--bleu", "papers")
    return Search(
        beam=ranges.whole("--beam", options.beam, 1, MOST_BEAMS),
        length_penalty=ranges.real("--length-penalty", options.length_penalty, 0.0, 10.0),
    )


def translations(how: Search, task: TaskConfig, corpus: dict[str, str] | None, device: str) -> TranslationRequest:
    """What --bleu translates; raises before anything is trained."""
    if corpus is None:
        from stabkit.tasks.synthetic import test_digest

        return TranslationRequest(search=how, sentences=test_digest(task.vocab), device=device)
    from stabkit.tasks import corpus as door

    files = door.find(Path(corpus["directory"]), task.source, task.target)
    return TranslationRequest(search=how, sentences=door.test_digest(files), device=device)
