"""Runs that the forecast's corpus lacks the like of, designed: newer methods, and llama's block.

Decoder-only models of 64-128-2, 256 tokens a batch, no warm-up, Adam, in the classic block and in llama's:

    SEEDED   every method at one rate, at 6 and 18 layers, with five seeds
    LADDER   every method at 6, 18 and 50 layers at rates a factor 2 apart, tried by halving, with a seed that
             SEEDED has not: runs on both sides of the highest rate that trains, which nobody chose for the forecast

Every run is judged after 250 updates; what is early then goes on to 800. A fit that has seen none of LADDER is scored
on it, and then it is joined to the corpus.

    python -m studies later --data DIR --source de --target en --rows docs/evidence/later.csv
"""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.paper.item import TINY
from studies.rows import StudyRow
from studies.study import Design

BLOCKS = ("classic", "llama")
KEYS = (
    *("post-ln", "pre-ln", "deepnorm"),
    *("peri-ln", "sandwich-ln", "reordered-norm", "mix-ln", "keel", "layernorm-scaling", "dyt", "gpt2-init"),
    *("depth-mup", "completep"),
)
RATE = 1e-3
"""Of SEEDED: between what Post-LN and what DeepNorm tolerate at 18 layers."""
RUNGS = tuple(float(f"{2.5e-4 * 2**k:.3g}") for k in range(12))
"""2.5e-4 to 0.512."""
VERDICT, LAST = 250, 800
SEEDS, SEED = "0..4", 5
"""Of SEEDED; of LADDER."""
COMMON = f"--warmup 0 --max-tokens 256 --steps {LAST} --verdict-at {VERDICT}"


def sweep(block: str, depths: tuple[int, ...], rates: tuple[float, ...], seeds: str) -> str:
    """One command."""
    layers, lr = ",".join(map(str, depths)), ",".join(f"{rate:g}" for rate in rates)
    return (
        f"sweep --models {','.join(KEYS)} --arch decoder-only --block {block} --depths {layers} --lr {lr} "
        f"--seeds {seeds} {COMMON}"
    )


SEEDED = tuple(sweep(block, (6, 18), (RATE,), SEEDS) for block in BLOCKS)
LADDER = (
    *(sweep(block, (6, 18), RUNGS, str(SEED)) for block in BLOCKS),
    *(sweep(block, (50,), RUNGS, str(SEED)) for block in BLOCKS),
)


def joined(rows: Sequence[StudyRow]) -> tuple[StudyRow, ...]:
    """LADDER's rows: half of them or more lie near the highest rate that trains, on both sides of it, and no loss has
    chosen them."""
    return tuple(row for row in rows if row.seed == SEED)


DESIGN = Design(
    key="later",
    title="What the forecast's corpus lacks: newer methods and llama's block",
    question="Does the forecast hold for methods and blocks that it has not seen?",
    scaled=f"{TINY}; decoder-only language models, 6 to 50 layers, 256 tokens, no warm-up, two blocks.",
    commands=(*SEEDED, *LADDER),
    ladders=LADDER,
)
