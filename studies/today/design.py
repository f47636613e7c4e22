"""The table of recent methods (2026), designed: those that models are built with next to Post-LN, Pre-LN and DeepNorm.

Decoder-only models of 64-128-2, 256 tokens a batch, no warm-up, in the classic block and in llama's. Two kinds of runs:

    TABLE    every method at one rate, at 6 and 18 layers with five seeds, at 50 and 100 with one
    LADDER   every method at 6, 18 and 50 layers at rates a factor 2 apart, tried by halving, with a seed that TABLE
             has not: the highest that trains. They also judge the forecast, which has seen neither these methods nor
             llama's block.

Every run is judged after 250 updates; what is early then goes on to 800.
"""

from __future__ import annotations

from collections.abc import Sequence

from stabkit import methods
from stabkit.paper.item import TINY
from studies.rows import StudyRow
from studies.study import Design
from studies.today.table import MethodTable

BLOCKS = ("classic", "llama")
KEYS = methods.SETS["today"]
RATE = 1e-3
"""Of TABLE, the papers' long runs' here: between what Post-LN and what DeepNorm tolerate at 18 layers."""
RUNGS = tuple(float(f"{2.5e-4 * 2**k:.3g}") for k in range(12))
"""2.5e-4 to 0.512."""
VERDICT, LAST = 250, 800
COSTS = "today_cost.csv"
"""The times of a step, next to the rows: `step_cost.py` writes it."""
SHALLOW, DEEP, SEARCHED = (6, 18), (50, 100), (6, 18, 50)
SEEDS, SEED = "0..4", 5
"""Of TABLE at 6 and 18 layers; of LADDER."""
COMMON = f"--warmup 0 --max-tokens 256 --steps {LAST} --verdict-at {VERDICT}"


def sweep(block: str, depths: tuple[int, ...], rates: tuple[float, ...], seeds: str) -> str:
    """One command."""
    layers, lr = ",".join(map(str, depths)), ",".join(f"{rate:g}" for rate in rates)
    return (
        f"sweep --models today --arch decoder-only --block {block} --depths {layers} --lr {lr} --seeds {seeds} {COMMON}"
    )


TABLE = (
    *(sweep(block, SHALLOW, (RATE,), SEEDS) for block in BLOCKS),
    *(sweep(block, DEEP, (RATE,), "0") for block in BLOCKS),
)
LADDER = (
    *(sweep(block, SEARCHED[:2], RUNGS, str(SEED)) for block in BLOCKS),
    *(sweep(block, SEARCHED[2:], RUNGS, str(SEED)) for block in BLOCKS),
)


def read(rows: Sequence[StudyRow]) -> MethodTable:
    """The table of the study's rows."""
    return MethodTable(
        tabled=tuple(row for row in rows if row.seed != SEED),
        searched=tuple(row for row in rows if row.seed == SEED),
        rungs=RUNGS,
        blocks=BLOCKS,
        keys=KEYS,
        rate=RATE,
    )


DESIGN = Design(
    key="today",
    title="The methods that people use today: Table 1 of 2026",
    question="DeepNet's Table 1 compares the methods of its day and ends in 2022. What does the same comparison say of "
    "those that models of today are built with?",
    scaled=f"{TINY}; decoder-only language models, 6 to 100 layers, 256 tokens, no warm-up, two blocks.",
    commands=(*TABLE[:2], *LADDER[:2], *TABLE[2:], *LADDER[2:]),
    ladders=LADDER,
)
