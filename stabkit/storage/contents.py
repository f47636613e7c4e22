"""What the folder of a run holds, and the files of one's own among it."""

from __future__ import annotations

import hashlib
import json

from stabkit.spec import RunSpec

FILES = ("spec.json", "outcome.json", "records.npz", "weights.safetensors", "environment.json")
OWN = "own.json"
"""{sha256: text} of the files of methods and probes of one's own, in the folder of a run that has any."""


def files_of(run_spec: RunSpec) -> tuple[str, ...]:
    """The names of the files in a run's folder."""
    return (*FILES, OWN) if run_spec.files() else FILES


def texts(data: bytes, run_spec: RunSpec) -> dict[str, str]:
    """The texts of OWN; raises ValueError unless they are those that the spec names."""
    found = json.loads(data)
    if not isinstance(found, dict) or set(found) != {one.digest for one in run_spec.files()}:
        raise ValueError(f"its {OWN} does not hold the files that its spec names")
    for digest, text in found.items():
        if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != digest:
            raise ValueError(f"its {OWN} holds another text than its spec names")
    return found
