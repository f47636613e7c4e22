"""Where a factory gives none: the rate, and a loss: fresh batches of something to learn, drawn by the seed alone.

Tokens of the model's vocabulary, next ones, or hidden ones for a model that sees what comes; for a model of images,
their classes. Which of these a model takes is found by calling it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.factory import one_line
from stabkit.own.probe.learnable import ONE_TOPIC, TOPICS, Pictures, Words, classified, masked, next_token
from stabkit.own.probe.objective import Objective
from stabkit.own.sublayers import run
from stabkit.own.sublayers.reading import logits

TOKENS = ((8, 32), (8, 16), (4, 6))
"""(sentences, tokens) of the batch; the first that the model takes."""
IMAGES, CLASSES = 16, 10
"""Images of a batch, and classes of them: fewer than a model of a thousand has scores for."""
RATE = 1e-3
"""Of AdamW, where the factory brings no optimizer."""
GIVE_LOSS = "return (model, loss) from the factory; loss(model, step) is a scalar on the batch of that step"


def loss(model: nn.Module, seed: int, topics: int = TOPICS) -> Objective:
    """Something to learn (`learnable.py`); raises UsageError where the model takes neither tokens nor images."""
    tried: list[str] = []
    for make in _candidates(model, seed, topics):
        try:
            candidate = make()
            with _in_passing(model):
                value = candidate.at(model, 0)
            if value.dim() == 0:
                return candidate
        except (Exception, SystemExit) as error:
            tried.append(one_line(error))
    why = f" ({tried[0]})" if tried else ""
    raise UsageError(f"the model takes neither tokens nor images alone{why}; {GIVE_LOSS}")


def _candidates(model: nn.Module, seed: int, topics: int) -> Iterator[Callable[[], Objective]]:
    device = next(p.device for p in model.parameters())
    kinds = [lambda: _images(model, seed, device)]
    if (vocabulary := _vocabulary(model)) is not None:
        kinds = [lambda shape=shape: _tokens(model, Words(vocabulary, seed, topics), shape, device) for shape in TOKENS]  # type: ignore[misc]
    yield from kinds


def _tokens(model: nn.Module, words: Words, shape: tuple[int, int], device: torch.device) -> Objective:
    tokens = words.batch(shape, 0).to(device)
    kind = masked if run.looks_ahead(model, (tokens,)) else next_token
    return Objective(
        at=lambda model, step: kind(lambda given: _scores(model(given)), words, shape, step, device),
        fresh=True,
        frequencies=words.frequencies,
        entropy=words.entropy if kind is next_token and words.topics == ONE_TOPIC else None,
    )


def _images(model: nn.Module, seed: int, device: torch.device) -> Objective:
    size = _size(model)
    with _in_passing(model):
        classes = _scores(model(torch.zeros((IMAGES, *size), device=device))).shape[-1]
    pictures = Pictures(min(classes, CLASSES), size, seed)
    return Objective(
        at=lambda model, step: classified(lambda given: _scores(model(given)), pictures, IMAGES, step, device),
        fresh=True,
        frequencies=pictures.frequencies,
    )


def _vocabulary(model: nn.Module) -> int | None:
    """Rows of the table that the input's tokens choose from: found by running the model with small ones."""
    tables = [m for m in model.modules() if isinstance(m, nn.Embedding)]
    if not tables:
        return None
    ids = torch.full((2, 4), min(2, *(t.num_embeddings - 1 for t in tables)), device=tables[0].weight.device)
    try:
        watch = run.watched(model, (ids,))
    except (Exception, SystemExit):
        return max(table.num_embeddings for table in tables)
    for node in watch.nodes:
        if node.op == "embedding" and node.inputs and node.constants[0] is not None:
            return int(node.constants[0].shape[0])
    return max(table.num_embeddings for table in tables)


def _size(model: nn.Module) -> tuple[int, int, int]:
    """(channels, height, width) of the images that a model's own attributes name."""
    config: Any = getattr(model, "config", None)
    patch: Any = getattr(model, "patch_embed", None)
    size = getattr(config, "image_size", None) or getattr(patch, "img_size", None)
    first = next((m for m in model.modules() if isinstance(m, nn.Conv2d)), None)
    channels = getattr(config, "num_channels", None) or (first.in_channels if first else None)
    if size is None or channels is None:
        raise UsageError("found neither a token embedding nor the image size")
    height, width = (size, size) if isinstance(size, int) else size
    return int(channels), int(height), int(width)


@contextmanager
def _in_passing(model: nn.Module) -> Iterator[None]:
    """Within, the model may be called; it is as before afterwards."""
    with run.untouched(model), torch.no_grad():
        model.eval()
        yield


def _scores(returned: Any) -> torch.Tensor:
    if (found := logits(returned)) is None:
        raise UsageError("the model returns no scores")
    return found
