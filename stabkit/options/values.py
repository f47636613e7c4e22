"""The options of a command as one value, every one filled in: what `api.filled` makes and the rest of this room reads.

Its keys are checked by mypy wherever they are read; what a value may be is `ranges.py`'s to say.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Options(TypedDict):
    """Every option of every command that trains: what is not given at its default, what a command does not take as
    `sweep` has it. A value is Python's own, or a text in the option's little language."""

    # what is trained
    models: Any
    model: Any
    depths: Any
    widths: Any
    factory: Any
    arch: Any
    recipe: Any
    alpha_scale: Any
    beta_scale: Any
    grid: bool
    drop: Any
    drop_warmup: Any
    hidden: Any
    ffn: Any
    heads: Any
    base_init: Any
    untied: bool
    block: Any
    norm: Any
    ffn_kind: Any
    positions: Any
    qk_norm: bool
    no_biases: bool
    # on what
    data: Any
    source: Any
    target: Any
    vocab: Any
    max_tokens: Any
    seeds: Any
    # how, and how long
    steps: Any
    warmup: Any
    lr: Any
    optimizer: Any
    weight_decay: Any
    momentum: Any
    dropout: Any
    clip: Any
    label_smoothing: Any
    stop_when_decided: bool
    verdict_at: Any
    highest: bool
    predict: Any
    budget: Any
    no_cures: bool
    cure_time: Any
    # what is measured and drawn
    bleu: bool
    beam: Any
    length_penalty: Any
    probes: Any
    record_every: Any
    snapshots: Any
    against: Any
    weights: Any
    at: Any
    range: Any
    points: Any
    cut_points: Any
    direction_seeds: Any
    normalise: Any
    one_dimensional: bool
    path: Any
    engine: Any
    blocks: Any
    # where
    out: Any
    workers: Any
    device: Any
    kernels: Any
    together: Any
    dtype: Any
    executor: Any
    scheduler: Any
    shard: Any
    checkpoint_every: Any
    run_timeout: Any
    retry_failed: bool
    fresh: bool
    yes: bool
    given: frozenset[str]
    """Those that differ from their defaults."""
