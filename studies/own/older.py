"""The verdict of an older stabkit on a model of the corpus: run inside its checkout, which knows nothing of this study.

    python older.py MODELS.py STEPPERS.py < jobs > verdicts

A job a line, JSON: the model's shape, optimiser, rate, seed, and the file of one batch. As that probe did by default:
eight updates on the one batch, at a quarter, a half and all of the depth; one seed; no schedule. Its words: `pass`,
`warn`, `cannot tell`, `fail`; `none` where it has no result.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional


def module(name: str, path: str) -> Any:
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def loss_of(batch: Any, kind: str) -> Any:
    """loss(model) on one batch."""
    given, wanted = torch.from_numpy(batch["given"]), torch.from_numpy(batch["wanted"])
    if kind == "vision":
        return lambda model: functional.cross_entropy(model(given), wanted)
    if kind == "encoder":
        hidden = torch.from_numpy(batch["hidden"])
        return lambda model: functional.cross_entropy(model(given)[hidden], wanted)
    return lambda model: functional.cross_entropy(model(given)[:, :-1].flatten(0, 1), wanted[:, 1:].flatten())


def verdict_of(job: Any, models: Any, steppers: Any) -> str:
    """Its word."""
    from stabkit.own.probe.built_model import make
    from stabkit.own.probe.loop import record
    from stabkit.results.own.cell import Facts, ModelCell
    from stabkit.results.own.verdict import verdict

    loss = loss_of(np.load(job["batch"]), job["shape"]["kind"])

    def factory(depth: int) -> Any:
        model = models.Model(models.Shape(**{**job["shape"], "depth": depth}))
        return model, loss, steppers.optimizers(model, job["optimizer"], job["rate"])

    cells = []
    whole = int(job["shape"]["depth"])
    for depth in dict.fromkeys((max(1, whole // 4), max(1, whole // 2), whole)):
        made = make(factory, job["name"], depth, job["seed"], 0.0)
        seen = record(made, 8)
        facts = Facts(
            factory=job["name"], depth=depth, lr=0.0, seed=job["seed"], steps=8, sublayers=seen.sublayers, how="",
            notes=(), model="", parameters=0, width=seen.width, tokens=seen.tokens, batch="", start=made.start,
            broke=seen.broke, optimizer="", rate=job["rate"], guess=seen.guess, normed=seen.stream.normed,
            dtype=seen.dtype, unreached=seen.unreached, unreached_share=seen.unreached_share,
            unregistered=seen.stream.unregistered,
        )  # fmt: skip
        cells.append(ModelCell(facts, seen.records))
    return str(verdict(cells).word)


def main() -> None:
    torch.set_num_threads(1)
    models, steppers = module("corpus_models", sys.argv[1]), module("corpus_steppers", sys.argv[2])
    sys.path.insert(0, str(Path.cwd()))
    for line in sys.stdin:
        job = json.loads(line)
        try:
            word = verdict_of(job, models, steppers)
        except Exception as error:  # a model that it refuses
            word = "none"
            print(f"{job['name']}: {error}", file=sys.stderr)
        print(json.dumps({"number": job["number"], "word": word}), flush=True)


if __name__ == "__main__":
    main()
