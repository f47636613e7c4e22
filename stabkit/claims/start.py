"""Our own reading of why DeepNorm, which trains at width 64, may not at 256: its start. A test, not a guess.

With a large shortcut and tied embeddings a model begins by predicting its own input (`figures/depth/loss_start.py`).
Where a run does not train, the same run with a softmax of its own, drawn alike, tells whether that is the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stabkit.claims.base import MOST, Claim, Measurement, Spot, at_depth
from stabkit.claims.evidence import JUDGED, trains
from stabkit.figures.shared.comparison import method_label, setting
from stabkit.methods import variant
from stabkit.spec import canonical
from stabkit.storage.store import Run


def freed(runs: Sequence[Run]) -> list[Measurement]:
    """Of every setting in which a method's tied runs fail: whether it trains with a softmax of its own, seed by
    seed."""
    pairs: dict[str, dict[bool, dict[int, Run]]] = {}
    for run in runs:
        if run.outcome.word in JUDGED:
            alike = replace(run.spec, seed=0, model=replace(run.spec.model, tied=True))
            pairs.setdefault(canonical(alike.stored()), {}).setdefault(run.spec.model.tied, {})[run.spec.seed] = run
    measurements = []
    for by in pairs.values():
        tied, by_seed = by.get(True, {}), by.get(False, {})
        seeds = sorted(seed for seed in set(tied) & set(by_seed) if not trains(tied[seed]))
        if seeds:
            run = tied[seeds[0]]
            ends = [f"{tied[seed].outcome.word} tied, {by_seed[seed].outcome.word} untied" for seed in seeds]
            measurements.append(
                Measurement(
                    where=(
                        Spot(variant(run.spec), method_label(run.spec)),
                        at_depth(run.spec.model.encoder_layers, run.spec.model.decoder_layers),
                    ),
                    apart=f"d = {run.spec.model.hidden}, lr {run.spec.train.lr:g}",
                    condition=setting(run.spec),
                    steps=run.spec.train.steps,
                    values={seed: float(trains(by_seed[seed])) for seed in seeds},
                    beside="; ".join(dict.fromkeys(ends)),
                )
            )
    return measurements


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="tied-start",
        sentence="Our reading where a method no longer trains at a greater width: tied embeddings make it begin by "
        "predicting its own input.",
        source="stabkit, on DeepNet §5, Fig. 7",
        weight="ours",
        test="runs that fail with the softmax tied to the embedding: share of the seeds that train with one of its "
        "own, all else equal",
        threshold=MOST,
        scale="share",
        find=freed,
        needs="a setting in which a method fails, judged with --untied too",
        command="stabkit sweep --models deepnorm --depths 12 --hidden 256 --ffn 2x --heads 4 --lr 3e-4 --warmup 0 "
        "--steps 250 --untied",
        methods=("deepnorm",),
    ),
)
