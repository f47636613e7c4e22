"""The corpus' design: which models, optimisers, rates, warm-ups and tasks, drawn by a seed before any was trained.

Cases come in the order of their number; those from JUDGES on judge, links, weights and limits are chosen on the others.
(A first forecast was fitted on the even ones of these and judged on the odd ones; what was learnt by that made them all
ones to choose on, and the rest of the draw the judge.) All of a scheme stand about equally often; the rest is drawn
independently, but that wide models are shallow (`DEEPEST`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from stabkit.streams import stream
from studies.own.models import ACTIVATIONS, INITS, SCHEMES, Shape

SEED, CASES, JUDGES, REGRESSIONS = 45, 758, 420, 720
"""The draw, how many it has, the first that judges, and the first whose loss is one of regression."""
WIDTHS, DEPTHS = (64, 64, 64, 64, 128, 128, 256), (4, 6, 8, 12, 12, 16, 24, 32, 48)
DEEPEST = {64: 48, 128: 16, 256: 6}
"""{width: layers at most}: what two cores can train."""
RATES = {
    "adamw": (1e-4, 3e-4, 1e-3, 3e-3, 3e-3, 1e-2, 1e-2, 3e-2),
    "sgd": (3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 3e-1, 1.0),
    "muon": (2e-3, 6e-3, 2e-2, 6e-2, 2e-1, 2e-1),
    "lion": (3e-5, 1e-4, 3e-4, 1e-3, 1e-3, 3e-3),
}
"""In half-decades, high ones twice, where models fail. Muon's is of the matrices; AdamW steps the rest at a
twentieth."""
SHARES = {"adamw": 0.45, "sgd": 0.2, "muon": 0.2, "lion": 0.15}
WARMUPS = (0, 0, 0, 0, 50, 200)
TASKS = {
    "decoder": ("chain", "text"), "encoder": ("masked",), "vision": ("images",), "series": ("series",),
    "denoiser": ("noise",),
}  # fmt: skip
KINDS, REGRESSED = ("decoder", "decoder", "encoder", "vision"), ("series", "denoiser")
ANSWERS = {"vision": 10, "series": 8, "denoiser": 3 * 8 * 8}
"""{kind: classes, or numbers of an answer: the next eight of a series, a patch of an image}; else words."""
UPDATES = 300
LENGTH, ROWS, IMAGES = 32, 8, 16
"""Tokens of a sentence, sentences of a batch, images of one: 256 tokens each."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One training."""

    number: int
    shape: Shape
    task: str
    optimizer: str
    rate: float
    warmup: int
    seed: int

    @property
    def slow(self) -> bool:
        """Whether its training takes hours where bfloat16 is slow."""
        return self.optimizer == "muon" and self.shape.width > 64

    @property
    def judge(self) -> bool:
        """Whether it is of those that nothing is chosen on."""
        return self.number >= JUDGES

    @property
    def regression(self) -> bool:
        return self.task in ("series", "noise")

    @property
    def updates(self) -> int:
        """Before a first look: as many more as half of the warm-up."""
        return UPDATES + self.warmup // 2

    @property
    def name(self) -> str:
        """`017-decoder-post-64-12L`."""
        shape = self.shape
        return f"{self.number:03d}-{shape.kind}-{shape.scheme}-{shape.width}-{shape.depth}L"

    def to_row(self) -> dict[str, Any]:
        """Columns."""
        own = {name: value for name, value in asdict(self.shape).items() if name not in ("words", "length", "size")}
        return {"number": self.number, **own, "task": self.task, "optimizer": self.optimizer, "rate": self.rate,
                "warmup": self.warmup, "seed": self.seed}  # fmt: skip


def cases(count: int = CASES) -> Iterator[Case]:
    """The first of the design."""
    order: list[str] = []
    for number in range(count):
        random = stream(SEED, f"case {number}")
        if number % (2 * len(SCHEMES)) == 0:  # each scheme once in either part before any comes again
            order = [str(name) for name in stream(SEED, f"schemes {number}").permutation(list(SCHEMES))]
        scheme = order[(number // 2) % len(SCHEMES)]

        def one(values: Any, random: Any = random) -> Any:
            return values[int(random.integers(len(values)))]

        kind = one(KINDS if number < REGRESSIONS else REGRESSED)
        task = one(TASKS[kind])
        width = one(WIDTHS)
        depth = one([n for n in DEPTHS if n <= DEEPEST[width]])
        optimizer = str(random.choice(list(SHARES), p=list(SHARES.values())))
        shape = Shape(
            kind=kind,
            scheme=scheme,
            width=width,
            depth=depth,
            init=one(INITS),
            activation=one(ACTIVATIONS),
            norm=one(("layer", "layer", "rms")),
            tied=bool(kind not in ("vision", *REGRESSED) and random.random() < 0.3),
            bias=bool(random.random() < 0.6),
            words=ANSWERS.get(kind, 128 if task == "text" else 100),
            length=LENGTH,
        )
        yield Case(
            number=number,
            shape=shape,
            task=task,
            optimizer=optimizer,
            rate=float(one(RATES[optimizer])),
            warmup=one(WARMUPS),
            seed=number % 5,
        )


@cache
def _numbered() -> dict[int, Case]:
    return {case.number: case for case in cases()}


def drawn(number: int) -> Case:
    """The case of a number; raises KeyError."""
    return _numbered()[number]
