"""A run as a row: what it was, what its first sixteen updates measured, its outcome. Rows are a CSV file.

Numbers are written with as many digits as bring the same float back.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from stabkit.errors import StoreError
from stabkit.methods import blocks
from stabkit.report.provenance import OPTIMIZER_NAMES
from stabkit.results.forecast.measured import Measured
from stabkit.results.outcome import Word
from stabkit.results.profile import Profile
from stabkit.spec import RUN_ID, RunSpec

Architecture = Literal["encoder-decoder", "decoder-only", "encoder-only"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyRow:
    """One run of a study."""

    run_id: str
    method: str
    encoder_layers: int
    decoder_layers: int
    hidden: int
    rate: float
    warmup: int
    max_tokens: int
    task: Literal["text", "synthetic"]
    block: str
    seed: int
    outcome: Word
    steps: int
    """After how many updates it ended."""
    validation: float
    """Its validation loss then."""
    digest: str
    """Of the run's folder."""
    measured: Measured | None
    """None where it had diverged by update 16: it has an outcome and no forecast."""
    profile: Profile | None = None
    """Where it is judged; None where it ended before, and of rows that were written without."""
    optimizer: str = "adam"
    options: str = ""
    """Of the method, away from their defaults: `start=identity`."""

    @property
    def architecture(self) -> Architecture:
        if not self.decoder_layers:
            return "encoder-only"
        return "encoder-decoder" if self.encoder_layers else "decoder-only"

    @property
    def depth(self) -> int:
        """Layers of its deeper stack."""
        return max(self.encoder_layers, self.decoder_layers)

    @property
    def labelled(self) -> bool:
        """Whether a forecast can be fitted or scored on it: not `early` at its end, not diverged before update 16."""
        return self.measured is not None and self.outcome in ("trains", "stuck", "diverged")

    @property
    def trains(self) -> bool:
        """One class; `stuck` and `diverged` are the other."""
        return self.outcome == "trains"

    @property
    def equal_loss(self) -> float:
        """Validation loss where it is judged, after as many updates as all others; infinite where it ended before."""
        return self.profile.loss if self.profile else math.inf


OPTIMIZERS = {key: OPTIMIZER_NAMES[key] for key in ("adam", "adamw", "muon")}
"""Of rows, as people write them."""
GROUPS: Mapping[str, type[Any]] = {"measured": Measured, "profile": Profile}
"""What of a row is numbers: all of a group or none."""
AXES = tuple(field.name for field in fields(StudyRow) if field.name not in GROUPS)
PREFIX = {"measured": "", "profile": "profile_"}
SIGNED = ("cosine_start", "cosine_last", "cosine", "cosine_deep", "loss_rises", "moved", "still")
"""The numbers that may lie below 0."""
NUMBERS = {
    group: {f"{PREFIX[group]}{field.name}": field.name for field in fields(kind)} for group, kind in GROUPS.items()
}
"""{group: {column: field}}."""
COLUMNS = (*AXES, *(column for columns in NUMBERS.values() for column in columns))
"""Of a file."""
LATER = {"optimizer": "adam", "options": "", "profile_mixing": "1.0"}
"""Columns that came later, and what stands there in all rows of a file that has no such column."""


def row(
    spec: RunSpec,
    *,
    outcome: Word,
    steps: int,
    validation: float,
    digest: str,
    measured: Measured | None,
    profile: Profile | None = None,
) -> StudyRow:
    """The row of a finished run."""
    return StudyRow(
        run_id=spec.run_id,
        method=spec.method,
        encoder_layers=spec.model.encoder_layers,
        decoder_layers=spec.model.decoder_layers,
        hidden=spec.model.hidden,
        rate=spec.train.lr,
        warmup=spec.train.warmup,
        max_tokens=spec.train.max_tokens,
        task="text" if spec.task.source else "synthetic",
        block=blocks.name_of(spec.model),
        seed=spec.seed,
        outcome=outcome,
        steps=steps,
        validation=validation,
        digest=digest,
        measured=measured,
        profile=profile,
        optimizer=spec.train.optimizer,
        options=":".join(f"{name}={value}" for name, value in sorted(spec.options.items())),
    )


def to_csv(rows: Iterable[StudyRow]) -> bytes:
    """The rows as CSV, sorted by run_id, so that equal rows give equal bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    lines = [_texts(item) for item in sorted(rows, key=lambda item: item.run_id)]
    plain = {name for name, default in LATER.items() if all(line[name] in (default, "") for line in lines)}
    columns = [name for name in COLUMNS if name not in plain]
    writer.writerow(columns)
    writer.writerows([line[name] for name in columns] for line in lines)
    return out.getvalue().encode()


def _texts(item: StudyRow) -> dict[str, Any]:
    """{column: what stands there}."""
    texts = {name: getattr(item, name) for name in AXES}
    for group, columns in NUMBERS.items():
        values = getattr(item, group)
        texts |= {name: "" if values is None else repr(getattr(values, column)) for name, column in columns.items()}
    return texts


class UnreadableRows(StoreError):
    """A file of rows that is damaged, or none."""


def from_csv(path: Path) -> tuple[StudyRow, ...]:
    """The rows of a file; raises UnreadableRows with the line that is none."""
    try:
        lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnreadableRows(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    header = lines[0] if lines else []
    if header != [name for name in COLUMNS if name not in LATER or name in header]:
        raise UnreadableRows(f"{path}: not a file of rows; its first line must name {', '.join(AXES[:4])}, …")
    rows: dict[str, StudyRow] = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            item = _row(header, line)
        except ValueError as error:
            raise UnreadableRows(f"{path}, line {number}: {error}") from error
        if item.run_id in rows:
            raise UnreadableRows(f"{path}, line {number}: {item.run_id} stands there twice")
        rows[item.run_id] = item
    return tuple(rows.values())


def _row(header: Sequence[str], line: Sequence[str]) -> StudyRow:
    if len(line) != len(header):
        raise ValueError(f"{len(line)} columns where {len(header)} belong")
    texts = LATER | dict(zip(header, line, strict=True))
    axes: dict[str, Any] = {name: texts[name] for name in AXES}
    for name in ("encoder_layers", "decoder_layers", "hidden", "warmup", "max_tokens", "seed", "steps"):
        axes[name] = int(axes[name])
    axes |= {name: float(axes[name]) for name in ("rate", "validation")}
    if not RUN_ID.fullmatch(axes["run_id"]):
        raise ValueError(f"{axes['run_id']!r} is no run_id")
    if axes["outcome"] not in ("trains", "stuck", "diverged", "early") or axes["task"] not in ("text", "synthetic"):
        raise ValueError(f"{axes['outcome']!r} of {axes['task']!r} is no outcome of a task")
    return StudyRow(**axes, **{name: _group(name, texts) for name in GROUPS})


def _group(name: str, line: Mapping[str, str]) -> Any:
    """One of GROUPS from a line; None where its columns are empty."""
    texts = {field: line[column] for column, field in NUMBERS[name].items()}
    if not any(text for field, text in texts.items() if field != "mixing"):
        return None
    values = {field: float(text) for field, text in texts.items()}
    if not all(map(math.isfinite, values.values())):
        raise ValueError("a number that is not finite")
    if wrong := next((field for field, value in values.items() if value < 0 and field not in SIGNED), ""):
        raise ValueError(f"{wrong} is below 0, which it cannot be")
    return GROUPS[name](**values)


def digest(rows: Iterable[StudyRow]) -> str:
    """sha256 of the rows as a file: by which coefficients name what they were fitted on."""
    return hashlib.sha256(to_csv(rows)).hexdigest()
