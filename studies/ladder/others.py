"""48 cells that others trained: the grid of nanochat's pull request 644 (amritbulusu, 22 April 2026), probed.

Width 256, 24 layers, 2 heads of 128, eight rates of Muon by six weight decays, μP; the validation losses there lie
between 3.41 and 4.65, none diverges. What a probe says of each is a word of a model that trains: `fails` and `probably
fails` are false alarms. The model is written anew by the published settings: RMSNorm without gains before branches, on
the embedding and at the end, rotary positions, QK-norm, ReLU², untied scores, last matrices of branches 0 at the start.

Not as there: WORDS subwords instead of 32,768, sentences of TOKENS instead of 2,048 and SENTENCES of them an update
instead of 256, no sliding windows. What the thread does not say is as in nanochat: AdamW for the embedding (0.2) and
the scores (0.004), times (256/768)^−½, β 0.8 and 0.95. μP multiplies the scores by base width over 256: taken as 1.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from stabkit.storage.folder import write_file
from studies.texts import WORDS, subwords

WIDTH, DEPTH, HEADS = 256, 24, 2
TOKENS, SENTENCES = 64, 8
RATES = (0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05)
DECAYS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6)
PUBLISHED = (
    (4.6515, 4.6400, 4.6272, 4.6156, 4.6031, 4.6416),
    (4.2361, 4.2230, 4.2069, 4.1954, 4.1802, 4.1859),
    (4.0033, 3.9899, 3.9732, 3.9596, 3.9447, 3.9265),
    (3.8014, 3.7881, 3.7707, 3.7577, 3.7478, 3.7254),
    (3.6400, 3.6265, 3.6133, 3.6026, 3.5939, 3.5695),
    (3.5607, 3.5470, 3.5334, 3.5255, 3.5147, 3.4983),
    (3.4806, 3.4657, 3.4592, 3.4535, 3.4473, 3.4402),
    (3.4278, 3.4169, 3.4129, 3.4140, 3.4186, 3.4132),
)
"""Validation losses, a row a rate, a column a decay."""
DATA = "STABKIT_TEXT"
"""The environment's name for the folder of train.en.gz: a factory takes a depth alone."""


def rms(x: torch.Tensor) -> torch.Tensor:
    """x over its root mean square."""
    return functional.rms_norm(x, (x.shape[-1],))


class Block(nn.Module):
    """Attention and feed-forward, each x + f(rms(x))."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        for linear in self.children():
            nn.init.normal_(linear.weight, std=WIDTH**-0.5)  # type: ignore[arg-type]
        nn.init.zeros_(self.out.weight), nn.init.zeros_(self.down.weight)

    def forward(self, x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
        h = rms(x)
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in (self.query(h), self.key(h), self.value(h)))
        q, k = (rms(rotated(y, turn)) for y in (q, k))
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        out: torch.Tensor = x + self.down(functional.relu(self.up(rms(x))).square())
        return out


def rotated(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Pairs (x_i, x_{i + d/2}) turned by their place's angles (places, d/2)."""
    left, right = x.chunk(2, -1)
    cos, sin = turn.cos(), turn.sin()
    return torch.cat([left * cos + right * sin, right * cos - left * sin], -1)


class Nanochat(nn.Module):
    """The model, `depth` blocks."""

    turn: torch.Tensor

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        nn.init.zeros_(self.head.weight)
        size = WIDTH // HEADS // 2
        self.register_buffer("turn", torch.outer(torch.arange(TOKENS), 10_000.0 ** (-torch.arange(size) / size)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = rms(self.tokens(tokens))
        for block in self.blocks:
            x = block(x, self.turn)
        scores: torch.Tensor = self.head(rms(x))
        return scores


def __getattr__(name: str) -> Callable[[int], Any]:
    """`cell_0_5`: the factory of a rate and a decay by their places, for a command's process imports it by its name."""
    kind, *places = name.split("_")
    if kind != "cell" or len(places) != 2:
        raise AttributeError(name)
    rate, decay = RATES[int(places[0])], DECAYS[int(places[1])]

    def factory(depth: int) -> Any:
        return _parts(depth, rate, decay)

    return factory


def _parts(depth: int, rate: float, decay: float) -> Any:
    """(model, loss, optimizers) as a user's factory: the rate is Muon's, the others' stay."""
    text = subwords("python", Path(os.environ[DATA]))
    model = Nanochat(depth)
    times = (WIDTH / 768) ** -0.5
    groups: list[dict[str, Any]] = [
        {"params": model.head.parameters(), "lr": 0.004 * times},
        {"params": model.tokens.parameters(), "lr": 0.2 * times},
    ]
    muon = torch.optim.Muon(model.blocks.parameters(), lr=rate, weight_decay=decay)
    adam = torch.optim.AdamW(groups, betas=(0.8, 0.95), eps=1e-10, weight_decay=0.0)

    def loss(model: nn.Module, step: int) -> torch.Tensor:
        batch = text.batch((SENTENCES, TOKENS + 1), step)
        return functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return model, loss, [muon, adam]


@dataclass(frozen=True, kw_only=True)
class OtherCell:
    """One of the grid."""

    rate: float
    decay: float
    published: float
    word: str
    probability: float | None

    @property
    def alarm(self) -> bool:
        return self.word in ("fails", "probably fails")


def probed(data: Path, out: Path, known: list[OtherCell]) -> Iterator[OtherCell]:
    """What `stabkit probe --quick` says of those that are not `known`: its first word, nothing is trained on."""
    import stabkit

    os.environ[DATA] = str(data)
    done = {(cell.rate, cell.decay) for cell in known}
    for i, rate in enumerate(RATES):
        for j, decay in enumerate(DECAYS):
            if (rate, decay) not in done:
                found = stabkit.probe(f"{__name__}:cell_{i}_{j}", DEPTH, seeds=0, quick=True, out=out)
                said = found.judged.worst.decision
                yield OtherCell(
                    rate=rate, decay=decay, published=PUBLISHED[i][j], word=said.word, probability=said.probability
                )


NAMES = ("rate", "decay", "published", "word", "probability")


def write(path: Path, cells: list[OtherCell]) -> None:
    """As CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(NAMES)
    for cell in cells:
        p = "" if cell.probability is None else f"{cell.probability:.4f}"
        writer.writerow([cell.rate, cell.decay, cell.published, cell.word, p])
    write_file(path, out.getvalue().encode())


def read(path: Path) -> list[OtherCell]:
    """The rows of a file; none where there is no file."""
    if not path.exists():
        return []
    rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return [
        OtherCell(
            rate=float(row["rate"]),
            decay=float(row["decay"]),
            published=float(row["published"]),
            word=row["word"],
            probability=float(row["probability"]) if row["probability"] else None,
        )
        for row in rows
    ]
