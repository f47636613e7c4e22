"""How far a difference of two losses moves with the draw of the validation text: its standard error for one token.

    python -m benchmarks.validation_text STORE DATA [RUN PREFIX]

Of every two runs of the store that differ in the method alone: d = Σ s_i/Σ n_i over all sentence pairs i that judged no
outcome, s_i the difference of their summed losses, n_i the tokens; the residuals s_i − d·n_i give the standard error of
d, a sentence being what is drawn. That of n tokens is the printed number over √n (`results/intervals.py DRAWN`).
"""

from __future__ import annotations

import math
import statistics
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

from stabkit.running import texts
from stabkit.spec import SHORTEST_JUDGED
from stabkit.storage import weights
from stabkit.storage.store import Run, Store
from stabkit.tasks.base import PAD
from stabkit.training.train import build, forward
from studies.unseen_text import others


def of(run: Run, corpus: dict[str, str], out: Path) -> tuple[np.ndarray, np.ndarray]:
    """(summed −log p, tokens) of every sentence."""
    task = texts.task(run.spec, corpus, out)
    model = build(run.spec, task, torch.device("cpu"), run.texts)
    model.load(weights.arrays(run))
    model.eval()
    lost, tokens = list[float](), list[int]()
    with torch.no_grad():
        for batch in others(run.spec, task).validation():
            seen = forward(model, batch, run.spec.train.label_smoothing)
            log = torch.log_softmax(seen.logits, -1)
            kept = seen.target != PAD
            nll = -log.gather(-1, seen.target[..., None])[..., 0] * kept
            lost += nll.sum(0).tolist()
            tokens += kept.sum(0).tolist()
    return np.array(lost), np.array(tokens)


def error(one: np.ndarray, other: np.ndarray, tokens: np.ndarray) -> float:
    """The standard error of the difference for one token: times 1/√n for n."""
    apart = one - other
    left = apart - apart.sum() / tokens.sum() * tokens
    return float(math.sqrt(len(left) * left.var(ddof=1)) / math.sqrt(tokens.sum()))


def main(arguments: list[str]) -> None:
    """Print the errors' median and range."""
    out, corpus = Path(arguments[0]), {"directory": arguments[1]}
    store = Store(out)
    runs = [run for run_id in store.ids() if _wanted(run := store.load(run_id))]
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(replace(run.spec, method="pre-ln", options={}).run_id, []).append(run)
    errors = list[float]()
    for group in groups.values():
        if len(group) < 2:
            continue
        seen = [of(run, corpus, out) for run in group]
        errors += [error(a[0], b[0], a[1]) for a, b in combinations(seen, 2)]
    print(f"{len(errors)} pairs: median {statistics.median(errors):.3f}, {min(errors):.3f} to {max(errors):.3f}")


def _wanted(run: Run) -> bool:
    long = run.spec.train.steps >= SHORTEST_JUDGED
    return run.spec.own is None and bool(run.spec.task.source) and long and run.outcome.word == "trains"


if __name__ == "__main__":
    main(sys.argv[1:])
