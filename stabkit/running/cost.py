"""What a run will cost before it runs: seconds and memory, roughly, without torch. Bytes: `storage.store.disk`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from stabkit import methods
from stabkit.methods.base import Method, defined, sites
from stabkit.methods.parts import resolved
from stabkit.methods.wirings import wired
from stabkit.results.run import Run
from stabkit.running.pace import known
from stabkit.spec import Norm, RunSpec, recorded_steps, snapshot_steps, validation_steps
from stabkit.words import duration

GIGAFLOPS, OVERHEAD, BUILD, START = 57.0, 6.2e-5, 4.5e-4, 0.041
"""What one core does on these small matrices; seconds that a pass takes beside for each sub-layer; to build a
sub-layer and measure it at step 0; and to start a run. Fitted by `benchmarks/cost.py` on an AMD EPYC with AVX-512 whose
two virtual cores are both at work, by the fused kernels. What another machine takes of it is timed once (`runs.clock`);
what the Python path takes where it is asked for, two to four times as long, `pace` learns from the first runs."""
PYTHON = 4.5
"""Of the Python path, in what a sub-layer's pass costs beside its products: a sub-layer at 50 layers of 64-128-2."""
ORTHOGONAL = 1.9e-6
"""10⁹ flops of an update of Muon for each number: fifteen products of 64 × 64."""
FACTOR = 1.5
"""What is reported is a range, this factor to both sides; `benchmarks/times.py` holds it to what commands take."""


def seconds(spec: RunSpec) -> float:
    """On one core that others leave alone, of a run that goes to its last step."""
    return sum(weight * part for weight, part in zip(weights(), parts(spec), strict=True))


COMMAND = 4.0
"""Seconds of a command beside its runs: Python and torch loaded, once more by the workers, and the page."""


def together(specs: Sequence[RunSpec], workers: int, pace: float = 1.0) -> float:
    """Of a command that trains these runs: its workers' shares, or the longest run, and what is beside."""
    each = [pace * seconds(spec) for spec in specs]
    return COMMAND + max(sum(each) / max(workers, 1), max(each)) if each else 0.0


def forward(spec: RunSpec) -> float:
    """Seconds of one forward pass over a training batch."""
    return sum(weight * part for weight, part in zip(weights()[:2], one_pass(spec), strict=True))


def weights() -> tuple[float, ...]:
    """What each of `parts` is multiplied by on this machine, where it was timed."""
    return tuple((known() or 1.0) * each for each in (1 / GIGAFLOPS, OVERHEAD, BUILD, START))


def parts(spec: RunSpec) -> tuple[float, ...]:
    """What a run consists of: 10⁹ flops of its passes, sub-layers passed, sub-layers, runs.

    A step is a forward and a backward pass, twice as long; at a recorded one the probe batch passes too, half as large;
    a reading of validation is two passes. Of a run that is to be judged, up to there.
    """
    spec = replace(spec, train=replace(spec.train, steps=spec.expected_steps))
    train, probe = 3 * (spec.train.steps + 1), len(recorded_steps(spec))
    flops, sublayers = one_pass(spec)
    validation = 2 * len(validation_steps(spec))
    full, calls = train + probe / 2 + validation, train + probe + validation
    update = ORTHOGONAL * methods.parameters(spec) * spec.train.steps if "muon" in spec.train.optimizer else 0.0
    return full * flops + update, calls * sublayers, float(len(methods.sites_of(spec))), 1.0


def one_pass(spec: RunSpec) -> tuple[float, float]:
    """Of a forward pass over a training batch: 10⁹ flops (2 a weight and token), sub-layers."""
    tokens, method = spec.train.max_tokens, methods.of(spec)
    flops = 2e-9 * methods.parameters(spec) * tokens * (2 if spec.dtype == "float64" else 1)
    sublayers = float(len(methods.sites_of(spec)))
    if method is not None:
        sublayers *= 1 + wired(method.wiring).work + (0.0 if fuses(method, spec.model.norm) else PYTHON)
    return flops, sublayers


def fuses(method: Method, norm: Norm) -> bool:
    """Whether its sub-layers have nothing that the fused kernel lacks."""
    site = sites(*defined(method, 1), 64)[0]
    parts = {resolved(slot(site), norm) for slot in (method.norm_in, method.norm_branch, method.norm_out)}
    return not (method.gate(site) or method.value_residual or "derf" in parts)


def pace(runs: Sequence[Run]) -> float:
    """How much longer than estimated the stored runs took: a median; 1 where there are none long enough to tell."""
    ratios = [
        float(wall) / seconds(run.spec)
        for run in runs
        if isinstance(wall := run.environment.get("wall_seconds"), (int, float))
        and not run.environment.get("first_step")  # of a run that was resumed it is the time of its last part
        and run.outcome.steps == run.spec.expected_steps
        and seconds(run.spec) >= 1
    ]
    return statistics.median(ratios) if ratios else 1.0


def bounds(total: float) -> tuple[float, float]:
    """FACTOR to both sides of an estimate."""
    return total / FACTOR, total * FACTOR


def announced(specs: Sequence[RunSpec], workers: int) -> str:
    """`16 runs: 20 s to 44 s on 2 workers`."""
    count, time = len(specs), span(together(specs, workers))
    return f"{count} run{'s' * (count != 1)}: {time} on {workers} worker{'s' * (workers != 1)}"


def span(total: float) -> str:
    """`40 s to 90 s`: the bounds of an estimate in words."""
    return " to ".join(map(duration, bounds(total)))


CHECKPOINT_SECONDS = 30.0
"""What is lost at most when a long run is killed, roughly."""


def checkpoint_every(spec: RunSpec) -> int:
    """Updates between two checkpoints of a run expected to last over a minute; 0, none, for a shorter one."""
    total = seconds(spec)
    return 0 if total <= 60 else max(1, round(CHECKPOINT_SECONDS * spec.expected_steps / total))


def memory(spec: RunSpec) -> int:
    """Bytes in its worker: libraries, five θ (gradient, Adam's two, θ₀), snapshots, what the backward pass holds."""
    width = 8 if spec.dtype == "float64" else 4
    d, f = spec.model.hidden, spec.model.ffn
    sublayers = len(methods.sites_of(spec))
    method = methods.of(spec)
    states = wired(method.wiring).states if method is not None else 0
    activations = spec.train.max_tokens * (sublayers * ((8 + states) * d + f) + 4 * spec.task.vocab)
    return 400_000_000 + width * ((5 + len(snapshot_steps(spec))) * methods.parameters(spec) + activations)
