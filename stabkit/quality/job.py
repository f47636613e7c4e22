"""What a worker does for a translation: load the run's last weights, translate, score, store it.

{"kind": "translate", "id": TRANSLATION_ID, "out": DIR, "spec": {...}, "corpus": null | {"directory": DIR},
 "device": "cpu", "kernels": "fused", "texts": {…}}
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.errors import CorpusError, StoreError, require
from stabkit.results import translation as specs
from stabkit.results.translation import Score, TranslationSpec
from stabkit.storage.jobs import Event, Job
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.translations import TRANSLATION, Translation, to_files
from stabkit.version import __version__


def translate(job: Job, tell: Callable[[Event], None], task: Callable[..., Any]) -> tuple[str, str]:
    """Do one job; `task` makes the task of a run's spec."""
    spec, shelf = specs.from_json(job["spec"]), Shelf(TRANSLATION, Path(job["out"]))
    with shelf.hold(spec.translation_id, job.get("over", "")):
        if shelf.load_if_sound(spec.translation_id) is None:  # nor by another command meanwhile
            shelf.commit(spec.translation_id, to_files(_translated(job, spec, tell, task)))
    return job["id"], "done"


def _translated(
    job: Job, spec: TranslationSpec, tell: Callable[[Event], None], task: Callable[..., Any]
) -> Translation:
    import torch

    from stabkit.quality import decode
    from stabkit.storage import weights
    from stabkit.training.train import build

    begin = time.monotonic()
    out = Path(job["out"])
    run = Store(out).load(spec.run)
    if run.digest != spec.digest:
        raise StoreError(f"{spec.run} was trained again before its translation; start the command again")
    its_task = task(run.spec, job["corpus"], out)
    held_out = its_task.held_out()
    if held_out.digest != spec.sentences:
        raise CorpusError("the sentences to translate changed during the sweep; start the sweep again")
    arrays = weights.arrays(run)
    hypotheses = [""] * len(held_out.references)  # diverged weights say nothing
    if all(np.isfinite(array).all() for array in arrays.values()):
        model = build(
            run.spec, its_task, torch.device(job["device"]), job.get("texts", {}), job.get("kernels", "fused")
        )
        model.load(arrays)
        spoken: list[str] = []
        for source in decode.pieces(held_out.sources, spec.search, its_task.vocab):
            spoken += [its_task.text(sentence.tokens) for sentence in decode.translate(model, source, spec.search)]
            tell({"id": job["id"], "step": len(spoken), "steps": len(hypotheses), "loss": 0.0})
        for line, text in zip(held_out.lines, spoken, strict=True):
            hypotheses[line] = text
    where = {"stabkit": __version__, "torch": torch.__version__, "wall_seconds": round(time.monotonic() - begin, 3)}
    scored = score(hypotheses, held_out.references, held_out.tokenize)
    return Translation(spec, tuple(hypotheses), held_out.references, held_out.tokenize, scored, where)


def score(hypotheses: Sequence[str], references: Sequence[str], tokenize: str) -> Score:
    """BLEU of a corpus by sacreBLEU (Post 2018), one reference a sentence; `tokenize`: its name for it, `13a` or
    `none`."""
    require("sacrebleu", "BLEU", "papers")
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize=tokenize, force=True)
    corpus = metric.corpus_score(list(hypotheses), [list(references)])
    ratio = corpus.sys_len / corpus.ref_len if corpus.ref_len else float("nan")
    return Score(bleu=float(corpus.score), signature=str(metric.get_signature()), length_ratio=float(ratio))
