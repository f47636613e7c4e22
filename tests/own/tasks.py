"""Something to learn for the models of `library_models.py`: stabkit's own sources, pairs, frames; fresh at every step.

`tests.own.tasks:gpt2` is the factory of that model with a loss of it, `factory(depth)` → (model, loss(model, step), …).
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch.nn import functional

from stabkit.own.probe.learnable import Pictures, Words, classified, masked, next_token
from tests.own import library_models

ROWS, LENGTH, CLASSES = 8, 32, 10
IMAGES = frozenset({"timm_vit", "timm_res_post", "dinov2", "swin", "vit_pytorch"})
PAIRS = frozenset({"t5", "bart"})
MASKED = frozenset({"bert", "albert", "modernbert", "torch_encoder", "torch_pre_ln"})
"""They see what comes: some words are to be guessed."""
FRAMES = frozenset({"conformer"})
WORDS, PICTURES = Words(100, 7), Pictures(CLASSES, (3, 32, 32), 7)
LEARNT = 0.3
"""Nats below `ignorance` from which a model is said to train."""


def ignorance(name):
    """The loss of who knows how often each word, or class, comes and nothing else: nats."""
    return math.log(CLASSES) if name in IMAGES | FRAMES else WORDS.frequencies


def frames(step):
    """Noise around 64 numbers a class, a class a frame."""
    chance = torch.Generator().manual_seed(step)
    means = torch.randn(CLASSES, 64, generator=torch.Generator().manual_seed(7))
    labels = torch.randint(0, CLASSES, (ROWS, LENGTH), generator=chance)
    return means[labels] + 2 * torch.randn(ROWS, LENGTH, 64, generator=chance), labels


def loss_of(name, model, step):
    """Of this model on the batch of this step."""
    device = torch.device("cpu")

    def scores(given):
        out = model(given)
        return out if isinstance(out, torch.Tensor) else out.logits

    if name in IMAGES:
        return classified(scores, PICTURES, 16, step, device)
    if name in FRAMES:
        heard, labels = frames(step)
        return functional.cross_entropy(scores(heard).flatten(0, 1), labels.flatten())
    if name in PAIRS:
        words = WORDS.batch((ROWS, LENGTH), step)
        return model(input_ids=words, labels=words).loss
    return (masked if name in MASKED else next_token)(scores, WORDS, (ROWS, LENGTH), step, device)


def learning(name, depth):
    """The model with this loss, and its own optimisers where it has some."""
    given = getattr(library_models, name)(depth)
    model, _, *own = given if isinstance(given, tuple) else (given, None)
    return model, lambda model, step: loss_of(name, model, step), *own


def __getattr__(name):
    """`gpt2`: the factory of that model."""
    if name not in library_models.ZOO:
        raise AttributeError(name)
    return partial(learning, name)


def trained(name, made, updates):
    """(mean of the last 20 losses, `trains`, `stuck` or `diverged`) of a built model after so many updates."""
    losses = []
    for step in range(1, updates + 1):
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
