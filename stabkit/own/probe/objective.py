"""What a user's loss is asked for: a batch at every step.

    loss(model)                 one batch, whatever the step
    loss(model, step)           a batch of that step: `step` by name, or a second parameter without a default
    (loss, batches)             loss(model, batch), the batches of an iterable in their order, again from the first
                                where they end
    none                        something to learn (`learnable.py`), tokens or images, whichever it takes: fresh
                                batches drawn by the seed alone

Step 0 is the batch that the chain is read on; update t is made on that of step t. A model that sees one batch again and
again learns it by heart, which keeps alive gradients that fade on fresh ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.factory import one_line
from stabkit.own.probe.learnable import Pictures, Words, classified, masked, next_token
from stabkit.own.sublayers import run
from stabkit.own.sublayers.reading import logits

STEP = "step"
MOST_BATCHES = 4096
"""Batches of an iterable that are kept."""
TOKENS = ((8, 32), (8, 16), (4, 6))
"""(sentences, tokens) of the batch; the first that the model takes."""
IMAGES, CLASSES = 16, 10
"""Images of a batch, and classes of them: fewer than a model of a thousand has scores for."""
RATE = 1e-3
"""Of AdamW, where the factory brings no optimizer."""
GIVE_LOSS = "return (model, loss) from the factory; loss(model, step) is a scalar on the batch of that step"


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A loss as a function of the step."""

    at: Callable[[nn.Module, int], torch.Tensor]
    """(model, step) → scalar; the same again for the same step and weights."""
    fresh: bool
    """Whether a step has a batch of its own, as far as the loss's form tells."""
    frequencies: float | None = None
    """The loss of who knows how often each answer comes and nothing else (nats), where that is known."""
    entropy: float | None = None
    """The loss of who knows all that can be learnt (nats), where that is known."""
    synthetic: bool = False
    """Whether its batches are drawn here, by the seed and the step alone."""
    note: str = ""
    """What is to be known of what it asks for."""
    batches: Callable[[], int] = lambda: 0
    """How many there are, of an iterable that has ended; 0: as many as steps."""


def objective(given: Any, name: str) -> Objective:
    """Of what a factory gave in second place; raises UsageError for what is no loss."""
    if isinstance(given, tuple) and len(given) == 2 and callable(given[0]) and isinstance(given[1], Iterable):
        return _of_batches(*given, name)
    if not callable(given):
        raise UsageError(
            f"{name}: the second value must be loss(model), loss(model, step) or (loss, batches), "
            f"got {type(given).__name__}"
        )
    if takes_step(given):
        return Objective(at=lambda model, step: given(model, step), fresh=True)
    return Objective(at=lambda model, step: given(model), fresh=False)


def takes_step(loss: Callable[..., Any]) -> bool:
    """Whether a loss wants to know the step: by a parameter of that name, or by a second one that has no default."""
    try:
        parameters = list(inspect.signature(loss).parameters.values())
    except (TypeError, ValueError):
        return False
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    second = placed[1] if len(placed) > 1 else None
    return second is not None and (second.name == STEP or second.default is second.empty)


def _of_batches(loss: Callable[..., torch.Tensor], batches: Iterable[Any], name: str) -> Objective:
    drawn: list[Any] = []
    source: Iterator[Any] = iter(batches)
    ended = False

    def batch(step: int) -> Any:
        nonlocal ended
        while not ended and len(drawn) <= step:
            if len(drawn) >= MOST_BATCHES:
                raise UsageError(f"{name}: more than {MOST_BATCHES} batches are requested")
            try:
                drawn.append(next(source))
            except StopIteration:
                ended = True
        if not drawn:
            raise UsageError(f"{name}: there are no batches: the iterable is empty")
        return drawn[step % len(drawn)]

    batch(1)
    return Objective(
        at=lambda model, step: loss(model, batch(step)),
        fresh=len(drawn) > 1,
        batches=lambda: len(drawn) if ended else 0,
    )


def default_loss(model: nn.Module, seed: int) -> Objective:
    """Something to learn (`learnable.py`); raises UsageError where the model takes neither tokens nor images."""
    tried: list[str] = []
    for make in _candidates(model, seed):
        try:
            candidate = make()
            with _in_passing(model):
                value = candidate.at(model, 0)
            if value.dim() == 0:
                return candidate
        except NameError:  # a slip of the model's own, which no other batch mends
            raise
        except (Exception, SystemExit) as error:
            tried.append(one_line(error))
    why = f" ({tried[0]})" if tried else ""
    raise UsageError(f"the model takes neither tokens nor images alone{why}; {GIVE_LOSS}")


def _candidates(model: nn.Module, seed: int) -> Iterator[Callable[[], Objective]]:
    device = next(p.device for p in model.parameters())
    kinds = [lambda: _images(model, seed, device)]
    if (vocabulary := _vocabulary(model)) is not None:
        kinds = [lambda shape=shape: _tokens(model, Words(vocabulary, seed), shape, device) for shape in TOKENS]  # type: ignore[misc]
    yield from kinds


def _tokens(model: nn.Module, words: Words, shape: tuple[int, int], device: torch.device) -> Objective:
    tokens = words.batch(shape, 0).to(device)
    kind = masked if run.looks_ahead(model, (tokens,)) else next_token
    return Objective(
        at=lambda model, step: kind(lambda given: _scores(model(given)), words, shape, step, device),
        fresh=True,
        synthetic=True,
        frequencies=words.frequencies,
        entropy=words.entropy if kind is next_token else None,
        note="" if kind is next_token else "the model sees the tokens after each: it is asked for hidden ones",
    )


def _images(model: nn.Module, seed: int, device: torch.device) -> Objective:
    if (size := run.image_size(model)) is None:
        raise UsageError("found neither a token embedding nor the image size")
    with _in_passing(model):
        classes = _scores(model(torch.zeros((IMAGES, *size), device=device))).shape[-1]
    pictures = Pictures(min(classes, CLASSES), size, seed)
    return Objective(
        at=lambda model, step: classified(lambda given: _scores(model(given)), pictures, IMAGES, step, device),
        fresh=True,
        synthetic=True,
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
