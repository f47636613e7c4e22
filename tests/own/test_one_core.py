"""`probe`'s reading of a model is `sweep`'s: on our own models at the same weights, to 1e-6."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from stabkit.own.chain.gradients import OUTSIDE, Weights, gradient_norms, groups_of
from stabkit.own.chain.reader import Reader, masks
from stabkit.own.sublayers import reading
from stabkit.own.sublayers.run import Call
from stabkit.results.records import Recorder
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny

TASK = Synthetic(vocab=200, max_tokens=128)
STEPS = 3


class Theirs(nn.Module):
    """Our Transformer as a user's model with masks."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, target, attention_mask=None, decoder_attention_mask=None):
        return self.model(source, target)[1]


def call(batch, one_stack):
    source, target_in, target_out = train.tensors(batch)
    if one_stack:
        return Call((source, target_in), {"attention_mask": target_out != 0})
    return Call((source, target_in), {"attention_mask": source != 0, "decoder_attention_mask": target_out != 0})


@pytest.mark.parametrize("arch", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("method", ["post-ln", "pre-ln", "deepnorm", "admin", "sub-ln", "rezero"])
def test_a_probe_of_our_own_model_reads_what_a_sweep_records(method, arch):
    spec = tiny(method, layers=3, steps=STEPS, warmup=0, lr=1e-3, snapshots=STEPS + 1)
    spec = replace(spec, model=replace(spec.model, encoder_layers=0 if arch == "decoder-only" else 2))
    result = train.run(spec, TASK, kernels="python")  # a watched model takes that path: to the last digits
    model = train.build(spec, TASK, torch.device("cpu"), kernels="python")
    own = Theirs(model)
    probed = call(TASK.probe(), arch == "decoder-only")
    stream = reading.found(own, probed)
    assert [place.name for place in stream.sublayers] == [
        site.name.replace("decoder", stream.stacks[-1]) for site in model.sites
    ]
    groups = groups_of(own, stream)
    reader, recorder, weights = Reader(stream, masks(own, probed), own), Recorder(), Weights(groups)
    last = stream.stacks[-1]
    for step in range(STEPS + 1):
        theta = torch.from_numpy(result.weights[f"theta@{step}"]) if step else None
        if theta is not None:
            load(model, theta)
        reader.read(recorder, step, stream.read(own, probed))
        tables = recorder.tables()

        def row(probe, site, step=step):
            table = result.records[probe]
            return table.at(site)[list(table.steps).index(step)]

        def mine(probe, site, tables=tables):
            return tables[probe].at(site)[-1]

        close = lambda found, expected: found == pytest.approx(expected, rel=1e-6, abs=1e-9)  # noqa: E731
        assert close(mine("update", "state"), row("update", "state"))
        assert close(mine("update", "state@step"), row("update", "state@step"))
        assert close(mine("update", "logits"), row("update", "logits"))
        assert close(mine("token_cosine", "state"), row("token_cosine", "state"))
        for site in model.sites:
            assert close(mine("branch", site.name.replace("decoder", last)), row("branch_ratio", site.name))
        own.train()
        own.zero_grad()
        seen = train.forward(model, TASK.train(spec.seed, step), 0.1)
        seen.loss.backward()
        moved = dict(zip(groups, weights.moved()["@start"].tolist(), strict=True))
        for name, norm in zip(groups, gradient_norms(groups).tolist(), strict=True):
            if name != OUTSIDE:
                assert close(norm, row("grad_norm", name.replace(last, "decoder")))
                assert close(moved[name], row("parameter_update", name.replace(last, "decoder")))


def load(model, theta):
    """Weights of a snapshot into the model."""
    from stabkit.model.flat import Flat

    flat = Flat(model, model.parts())
    with torch.no_grad():
        flat.theta.copy_(theta)
    assert np.isfinite(theta.numpy()).all()
