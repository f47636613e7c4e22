"""Something to learn for the models of `library_models.py`: a chain of words, pictures, frames; fresh at every step."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

WORDS, ROWS, LENGTH, CLASSES, BLANK = 100, 8, 32, 10, 3
IMAGES = frozenset({"timm_vit", "timm_res_post", "dinov2", "swin", "vit_pytorch"})
PAIRS = frozenset({"t5", "bart"})
MASKED = frozenset({"bert", "albert", "modernbert", "torch_encoder", "torch_pre_ln"})
"""They see what comes: some words are to be guessed."""
FRAMES = frozenset({"conformer"})


def ignorance(name):
    """The loss of who knows how often each word, or class, comes and nothing else: nats."""
    return math.log(CLASSES) if name in IMAGES | FRAMES else math.log(WORDS - 4)


def text(step):
    """(rows × tokens) of a chain in which four words may follow each word."""
    chance = torch.Generator().manual_seed(step)
    after = torch.randint(4, WORDS, (WORDS, 4), generator=torch.Generator().manual_seed(7))
    words = [torch.randint(4, WORDS, (ROWS,), generator=chance)]
    for _ in range(LENGTH - 1):
        words.append(after[words[-1], torch.randint(0, 4, (ROWS,), generator=chance)])
    return torch.stack(words, 1)


def images(step):
    """Noise around a picture a class."""
    chance = torch.Generator().manual_seed(step)
    means = torch.randn(CLASSES, 3, 32, 32, generator=torch.Generator().manual_seed(7))
    labels = torch.randint(0, CLASSES, (ROWS,), generator=chance)
    return means[labels] + torch.randn(ROWS, 3, 32, 32, generator=chance), labels


def frames(step):
    """Noise around 64 numbers a class, a class a frame."""
    chance = torch.Generator().manual_seed(step)
    means = torch.randn(CLASSES, 64, generator=torch.Generator().manual_seed(7))
    labels = torch.randint(0, CLASSES, (ROWS, LENGTH), generator=chance)
    return means[labels] + 2 * torch.randn(ROWS, LENGTH, 64, generator=chance), labels


def loss_of(name, model, step):
    """Of this model on the batch of this step."""
    if name in IMAGES:
        pictures, labels = images(step)
        return functional.cross_entropy(_scores(model(pictures)), labels)
    if name in FRAMES:
        heard, labels = frames(step)
        return functional.cross_entropy(model(heard).flatten(0, 1), labels.flatten())
    words = text(step)
    if name in PAIRS:
        return model(input_ids=words, labels=words).loss
    if name in MASKED:
        hidden = torch.rand(words.shape, generator=torch.Generator().manual_seed(step)) < 0.15
        return functional.cross_entropy(_scores(model(words.masked_fill(hidden, BLANK)))[hidden], words[hidden])
    return functional.cross_entropy(_scores(model(words))[:, :-1].flatten(0, 1), words[:, 1:].flatten())


def _scores(out):
    return out if isinstance(out, torch.Tensor) else out.logits


LEARNT = 0.3
"""Nats below `ignorance` from which a model is said to train."""


def trained(name, made, updates):
    """(mean of the last 20 losses, `trains`, `stuck` or `diverged`) of a built model after so many updates."""
    losses = []
    for step in range(updates):
        loss = loss_of(name, made.model, step)
        for optimizer in made.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in made.optimizers:
            optimizer.step()
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            return math.inf, "diverged"
    end = sum(losses[-20:]) / 20
    return end, "trains" if end < ignorance(name) - LEARNT else "stuck"
