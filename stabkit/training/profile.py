"""The ω of a method that profiles, as a sweep at its defaults would begin."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from stabkit.spec import ModelConfig, RunSpec
from stabkit.tasks import objective
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train


def profiled(key: str, options: Mapping[str, str], n: int, m: int) -> dict[str, float]:
    """{site name: ω} as a sweep at its defaults would begin: one forward pass through a model that is really built."""
    spec = RunSpec(method=key, options=options, model=ModelConfig(encoder_layers=n, decoder_layers=m))
    task = objective.of(Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens), n, m)
    model = train.build(spec, task, torch.device("cpu"))
    return {site.name: residual.mean_omega() for site, residual in model.residuals.items()}
