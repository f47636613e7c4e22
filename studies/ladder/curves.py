"""Longer trainings at seven rates: the attention's and the output's logits on the way, and the loss at the end.

    logits         widths 64 to 512 of 8 layers, with and without QK-norm, 2,000 updates (Wortsman's Fig. 9 in small)
    sensitivity    3 to 24 layers of width 64, and widths 128 and 256 of 6 layers, two seeds, 250 updates (his Fig. 7)

As there: Pre-LN, AdamW (0.9, 0.95), gradients clipped to a norm of 1, a linear warm-up over a twentieth of the updates,
then a cosine to 0; not as there: no weight decay, no z-loss, 256 tokens an update of Python's standard library.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stabkit.storage.folder import write_file
from studies.own.design import LENGTH, ROWS
from studies.own.models import Model, Shape
from studies.pool import in_turn
from studies.texts import HELD_OUT, WORDS, subwords

RATES = tuple(float(f"{3 * 10 ** (k / 2 - 4):.2g}") for k in range(7))
"""3e-4 to 3e-1."""
BETAS, CLIP, WARM = (0.9, 0.95), 1.0, 0.05
READ = (0, 4, 16, 64, 125, 250, 500, 1000, 2000)
"""Updates after which logits are read."""
BATCHES = 16
"""Held-out batches of the loss at the start and at the end."""
TEN = 10


@dataclass(frozen=True, kw_only=True)
class Training:
    """One of them."""

    study: Literal["logits", "sensitivity"]
    width: int
    depth: int
    heads: bool
    """QK-norm."""
    rate: float
    seed: int
    updates: int


@dataclass(frozen=True, kw_only=True)
class CurveRow:
    """What became of one."""

    training: Training
    start: float
    """Held-out loss before any update, nats …"""
    end: float
    """… and after the last; NaN where a loss was no number before."""
    reached: int
    """Updates that were made."""
    losses: tuple[float, ...]
    """Of training, means of ten updates."""
    largest: Mapping[int, float]
    """{updates: the largest attention logit}, on a held-out batch."""
    log_z: Mapping[int, float]
    """{updates: mean ln Σ exp(score)}."""

    @property
    def loss(self) -> float:
        """min(ℓ, ℓ₀): what has diverged counts as what it began with."""
        return min(self.end, self.start) if math.isfinite(self.end) else self.start


def trainings() -> Iterator[Training]:
    """All of the design, quick ones first."""
    sizes = [(depth, 64) for depth in (3, 6, 12, 24)] + [(6, 128), (6, 256)]
    for depth, width in sizes:
        for seed in (0, 1):
            for rate in RATES:
                yield Training(
                    study="sensitivity", width=width, depth=depth, heads=False, rate=rate, seed=seed, updates=250
                )
    for width in (64, 128, 256, 512):
        for heads in (False, True):
            for rate in RATES:
                yield Training(study="logits", width=width, depth=8, heads=heads, rate=rate, seed=0, updates=2000)


NAMES = tuple(field.name for field in fields(Training))
COLUMNS = (*NAMES, "start", "end", "reached", "losses", "largest", "log_z")


@cache
def _known() -> dict[tuple[str, ...], Training]:
    return {_key(training): training for training in trainings()}


def _key(training: Training) -> tuple[str, ...]:
    return tuple(str(getattr(training, name)) for name in NAMES)


def read(path: Path) -> dict[Training, CurveRow]:
    """The rows of a file; none where there is no file. Raises ValueError for a row that is not of the design."""
    if not path.exists():
        return {}
    rows = {}
    for line in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
        training = _known().get(tuple(line[name] for name in NAMES))
        if training is None:
            raise ValueError(f"{path}: {line} is not of the design")
        numbers = {name: {int(t): float(v) for t, v in json.loads(line[name]).items()} for name in ("largest", "log_z")}
        rows[training] = CurveRow(
            training=training,
            start=float(line["start"]),
            end=float(line["end"]),
            reached=int(line["reached"]),
            losses=tuple(map(float, line["losses"].split())),
            **numbers,
        )
    return rows


def write(path: Path, rows: Mapping[Training, CurveRow]) -> None:
    """The file, whole, in the order of the design."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for training in trainings():
        if row := rows.get(training):
            writer.writerow(
                {
                    **asdict(training),
                    "start": f"{row.start:.5g}",
                    "end": f"{row.end:.5g}",
                    "reached": row.reached,
                    "losses": " ".join(f"{loss:.4g}" for loss in row.losses),
                    **{
                        name: json.dumps({t: float(f"{v:.5g}") for t, v in getattr(row, name).items()})
                        for name in ("largest", "log_z")
                    },
                }
            )
    write_file(path, out.getvalue().encode())


def run(path: Path, data: Path, minutes: float, workers: int, device: str, widest: int) -> None:
    """Train what has no row and is at most so wide, as long as the minutes last."""
    rows = read(path)

    def following(working: Collection[Training]) -> Training | None:
        left = (one for one in trainings() if one not in rows and one not in working and one.width <= widest)
        return next(left, None)

    def done(training: Training, row: CurveRow) -> str:
        rows[training] = row
        write(path, rows)
        what = f"{training.study} {training.depth}L-{training.width} {'qk ' * training.heads}{training.rate:g}"
        return f"{len(rows)} rows, {what}: {row.start:.3f} → {row.end:.3f}"

    in_turn(following, partial(trained, data=data, device=device), done, minutes=minutes, workers=workers)


def trained(training: Training, data: Path, device: str) -> CurveRow:
    """Train one; what a worker does."""
    import torch
    from torch.nn import functional
    from torch.optim.lr_scheduler import LambdaLR

    from stabkit.own.probe.built_model import seeded
    from stabkit.own.sublayers import reading

    torch.set_num_threads(1)
    text = subwords("python", data)
    seeded(training.seed)
    model = Model(shape(training)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.rate, betas=BETAS, weight_decay=0.0)
    schedule = LambdaLR(optimizer, lambda t: factor(t, training.updates))

    def loss(step: int) -> Any:
        tokens = text.batch((ROWS, LENGTH + 1), step).to(device)
        return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def held_out() -> float:
        with torch.no_grad():
            return float(np.mean([float(loss(HELD_OUT + 1 + i)) for i in range(BATCHES)]))

    fixed = text.batch((ROWS, LENGTH), HELD_OUT).to(device)
    stream = reading.found(model, fixed)
    largest, log_z = dict[int, float](), dict[int, float]()
    start, losses = held_out(), list[float]()
    for step in range(training.updates + 1):
        if step in READ:
            states = stream.read(model, fixed)
            assert states.logits is not None
            largest[step] = float(torch.stack(list(states.attention)).max())
            log_z[step] = float(torch.logsumexp(states.logits.detach().double(), -1).mean())
        if step == training.updates:
            break
        optimizer.zero_grad()
        value = loss(1000 * training.seed + step + 1)
        losses.append(float(value.detach()))
        if not math.isfinite(losses[-1]):
            break
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
    whole = len(losses) == training.updates and math.isfinite(losses[-1])
    tens = tuple(float(np.mean(losses[i : i + TEN])) for i in range(0, len(losses), TEN))
    return CurveRow(
        training=training,
        start=start,
        end=held_out() if whole else math.nan,
        reached=len(losses) if whole else len(losses) - 1,
        losses=tens,
        largest=largest,
        log_z=log_z,
    )


def factor(step: int, updates: int) -> float:
    """Of the rate in the update after this step: a linear warm-up, then half a cosine."""
    warm = round(WARM * updates)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(updates - warm, 1)))


def shape(training: Training) -> Shape:
    """Of the model."""
    return Shape(
        kind="decoder", scheme="qk-norm" if training.heads else "pre", width=training.width, depth=training.depth,
        init="xavier", activation="gelu", norm="layer", tied=False, bias=False, words=WORDS, length=LENGTH,
    )  # fmt: skip


def sensitivity(rows: Sequence[CurveRow]) -> float:
    """Wortsman's E over rates of min(ℓ, ℓ₀) − ℓ*, nats; ℓ* the lowest of them."""
    losses = [row.loss for row in rows]
    return float(np.mean(losses) - min(losses))
