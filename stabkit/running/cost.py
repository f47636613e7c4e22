"""What a run will cost before it runs: seconds and memory, roughly, without torch. Bytes at rest: `storage/size.py`."""

from __future__ import annotations

from stabkit import methods
from stabkit.spec import RunSpec, recorded_steps, snapshot_steps, validation_steps

GIGAFLOPS, OVERHEAD = 36.0, 5e-4
"""What one core does on these small matrices, and the seconds that a sub-layer takes in a pass beside: fitted at
64-128-2, 128 to 512 tokens, 3L to 100L-100L, to 94 runs of the papers' items on two hardware threads of one core, both
busy, as a plan has to expect it. With small batches most of the time is the second."""


def seconds(spec: RunSpec) -> float:
    """On one core: a step is a forward and a backward pass, twice as long; a probe forward at each recorded step."""
    passes = 3 * (spec.train.steps + 1) + len(recorded_steps(spec)) + 2 * len(validation_steps(spec))
    return 0.5 + passes * forward(spec)


def forward(spec: RunSpec) -> float:
    """Seconds of one forward pass over a training batch: 2 flops a weight and token, and what each sub-layer costs."""
    flops = 2e-9 * methods.parameters(spec) * spec.train.max_tokens
    return flops / GIGAFLOPS + OVERHEAD * len(methods.sites_of(spec))


CHECKPOINT_SECONDS = 30.0
"""What is lost at most when a long run is killed, roughly."""


def checkpoint_every(spec: RunSpec) -> int:
    """Updates between two checkpoints of a run expected to last over a minute; 0, none, for a shorter one."""
    total = seconds(spec)
    return 0 if total <= 60 else max(1, round(CHECKPOINT_SECONDS * spec.train.steps / total))


def memory(spec: RunSpec) -> int:
    """Bytes in its worker: libraries, five θ (gradient, Adam's two, θ₀), snapshots, what the backward pass holds."""
    width = 8 if spec.dtype == "float64" else 4
    d, f = spec.model.hidden, spec.model.ffn
    sublayers = len(methods.sites_of(spec))
    activations = spec.train.max_tokens * (sublayers * (8 * d + f) + 4 * spec.task.vocab)
    return 400_000_000 + width * ((5 + len(snapshot_steps(spec))) * methods.parameters(spec) + activations)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
