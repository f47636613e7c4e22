"""Models of libraries in a training that goes well: ten of them, 120 updates each, and no warning. `-m libraries`."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import stabkit
from stabkit.own.watch.journal import StabilityWarning
from tests.conftest import need
from tests.own import library_models as library
from tests.own.tasks import loss_of

pytestmark = [pytest.mark.libraries, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

UPDATES, DEPTH = 120, 4
NAMES = ("gpt2", "bert", "llama", "gemma2", "olmo2", "granite", "t5", "timm_vit", "torch_encoder", "x_sandwich")


def made(name):
    torch.manual_seed(0)
    found = getattr(library, name)(DEPTH)
    return found if isinstance(found, nn.Module) else found[0]


def train(name, model, rate, updates, watch=None):
    """Its losses; 30 updates of warm-up, as these models are trained."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate) if watch is None else watch.optimizers[0]
    losses = []
    for step in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 30)
        loss = loss_of(name, model, step)
        if watch is not None:
            watch.loss(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("name", NAMES)
def test_a_training_that_goes_well_draws_no_warning(name, tmp_path):
    if lacks := library.missing(name):
        need("libraries", False, lacks)
    model = made(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StabilityWarning)
        with stabkit.watch(model, optimizer, out=tmp_path, name=name) as watch:
            losses = train(name, model, 1e-3, UPDATES, watch)
    assert watch.warnings == [] and watch.ended == "closed" and watch.steps == UPDATES
    assert sum(losses[-30:]) / 30 < sum(losses[:5]) / 5 - 0.1, "it learns"
