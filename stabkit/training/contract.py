"""What a method or a probe of anyone's is to keep, tried on models that take a second: the contracts of the tables, for
one that is not in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from stabkit.errors import UsageError
from stabkit.methods.own import Texts, said
from stabkit.model.flat import Flat
from stabkit.probes import PROBES, own
from stabkit.spec import ModelConfig, Own, RunSpec, TaskConfig, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

SMALL = RunSpec(
    method="deepnorm",
    model=ModelConfig(encoder_layers=2, decoder_layers=2, hidden=16, ffn=32),
    train=TrainConfig(steps=2, max_tokens=64, warmup=0, dropout=0.1),
    task=TaskConfig(vocab=200),
)
"""A run that takes a tenth of a second, with everything that may be disturbed."""


def probe(one: Own, texts: Texts) -> str:
    """The name under which a probe of one's own is recorded. Raises UsageError, in one line, where it breaks the
    contract: sites, as many finite or infinite numbers, no hook left, no bit of training or of another probe changed."""
    made, place = own.probe(one, texts), f"{one.file}:{one.name}"
    if made.name.removeprefix("own-") in {each.name for each in PROBES}:
        raise UsageError(f"{place}: the name {made.name[4:]!r} is a built-in probe's; give it another")
    task = Synthetic(vocab=SMALL.task.vocab, max_tokens=SMALL.train.max_tokens)
    try:
        model = train.build(SMALL, task, torch.device("cpu"))
        sites = made(model, Flat(model, model.parts())).sites
        if not isinstance(sites, tuple) or not sites or not all(isinstance(site, str) and site for site in sites):
            raise UsageError(f"{place} is a probe without sites: __init__ is to set self.sites, a tuple of names")
        if len(set(sites)) < len(sites):
            raise UsageError(f"{place}: two of its sites have one name")
        plain, watched = (train.run(replace(SMALL, probes=probes), task, texts=texts) for probes in ((), (one,)))
    except UsageError:
        raise
    except Exception as error:  # whatever a user's class raises
        raise UsageError(said(error, one.file)) from error
    for name, table in plain.records.items():
        if not np.array_equal(table.values, watched.records[name].values, equal_nan=True):
            raise UsageError(f"{place} changes what it watches: {name} is other with it than without")
    return made.name
