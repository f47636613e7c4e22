"""Which translation: everything that decides its words, and nothing else; and how it was scored."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from stabkit.spec import RUN_ID, canonical, sparse, within

TRANSLATION_VERSION = 2
"""Raised whenever the same spec would give other words."""
MOST_BEAMS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """How words are looked for; one beam is greedy search."""

    beam: int = 4
    length_penalty: float = 1.0
    """A finished hypothesis is worth log p / length^this: 0 prefers short ones, 1 is the mean a token."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationSpec:
    """A run's last weights, the search, and the sentences: by the digest of their text."""

    run: str
    digest: str
    """Of the run's files: a run that was trained again has other weights under the same id."""
    search: Search
    sentences: str
    device: str = "cpu"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for documents and jobs."""
        return asdict(self)

    def stored(self) -> dict[str, Any]:
        """What spec.json holds and the id hashes: without the fields at their defaults."""
        return sparse(self)

    @property
    def translation_id(self) -> str:
        """`deepnorm-18L-18L-s0-1a2b3c4d5e6f-beam4-6f5e4d3c`: the run's id, the beams, and a hash of the rest."""
        text = canonical({"version": TRANSLATION_VERSION, "spec": self.stored()})
        return f"{prefix(self.run, self.search.beam)}{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def prefix(run_id: str, beams: int) -> str:
    """How the ids of a run's translations by this many beams begin."""
    return f"{run_id}-beam{beams}-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """A corpus's BLEU."""

    bleu: float
    signature: str
    """`nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`: without it a BLEU score means little."""
    length_ratio: float
    """Length of the translations over that of the references, in BLEU's own words."""


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(TranslationSpec)


def from_json(value: Any) -> TranslationSpec:
    """A spec from JSON values, types checked; raises ValueError on anything that is not exactly one."""
    spec: TranslationSpec = _adapter().validate_python(value)
    if not RUN_ID.fullmatch(spec.run) or not 1 <= spec.search.beam <= MOST_BEAMS:
        raise ValueError("it is not the translation of a run")
    if not 0 <= spec.search.length_penalty <= 10 or not within(value, spec.to_json()):
        raise ValueError("it holds values that a translation does not have")
    return spec
