"""Translations as work: a job a run. Never imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stabkit.results.run import Run
from stabkit.results.translation import Search, TranslationSpec
from stabkit.running import plan
from stabkit.running.plan import Plan, Work
from stabkit.storage.jobs import Context, Job
from stabkit.storage.shelf import Shelf
from stabkit.storage.translations import TRANSLATION, Translation


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationRequest:
    """Which translations a command asks for."""

    search: Search
    sentences: str
    """Digest of the sentences to translate."""
    device: str = "cpu"

    def specs(self, runs: Sequence[Run]) -> list[TranslationSpec]:
        """The translation of every run's last weights."""
        return [
            TranslationSpec(
                run=run.run_id, digest=run.digest, search=self.search, sentences=self.sentences, device=self.device
            )
            for run in runs
        ]


def planned(specs: Sequence[TranslationSpec], out: Path, context: Context) -> Plan[TranslationSpec, Translation]:
    """Which are whole, and the jobs of the others."""
    shelf = Shelf(TRANSLATION, out)

    def jobs(spec: TranslationSpec) -> list[Job]:
        job: Job = {"kind": "translate", "id": spec.translation_id, "spec": spec.to_json(), "out": str(out)}
        return [{**job, **context}]

    work: Work[TranslationSpec, Translation] = Work(
        kind="translation",
        again="translated again",
        shelf=shelf,
        name=lambda spec: spec.translation_id,
        jobs=jobs,
        result=lambda spec, answer: shelf.load(spec.translation_id),
    )
    return plan.plan(specs, work)
