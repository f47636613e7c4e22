"""The methods of 2026 under AdamW and Muon, designed: each at its own best rate, at four depths, in llama's block.

Decoder-only models of 64-128-2, 256 tokens a batch, no warm-up, 250 updates, decay 0.1. Of every method, optimiser
and depth the rate of the lowest validation loss, of rates a factor 2 apart, is searched with seed 0; at that rate, at
18 and 50 layers, follow three seeds more, which have chosen nothing. mHC is tried from its three starts.

A method's factors on rate and ε are Adam's: Depth-μP and CompleteP are not defined under Muon.
"""

from __future__ import annotations

from stabkit import methods
from stabkit.paper.item import TINY
from studies.study import Design

OPTIMIZERS = ("adamw", "muon")
STARTS = ("mhc:start=identity", "mhc:start=static")
"""Beside the default, `uniform`."""
UNSCALED = ("depth-mup", "completep")
"""Under AdamW alone."""
KEYS = methods.SETS["2026"]
RUNGS = tuple(float(f"{2.5e-4 * 2**k:.3g}") for k in range(12))
"""2.5e-4 to 0.512."""
FIRST = 4e-3
"""The rung that is tried first."""
DEPTHS, SEEDED = (6, 18, 50, 100), (18, 50)
UPDATES, SEARCHING, SEEDS = 250, 0, "0..3"


def sweep(models: tuple[str, ...], optimizer: str, depth: int) -> str:
    """One command: a depth's search and, at some depths, the seeds that follow it."""
    lr = ",".join(f"{rate:g}" for rate in RUNGS)
    seeds = SEEDS if depth in SEEDED else "0"
    return (
        f"sweep --models {','.join(models)} --arch decoder-only --block llama --depths {depth} --optimizer {optimizer} "
        f"--lr {lr} --seeds {seeds} --warmup 0 --max-tokens 256 --steps {UPDATES}"
    )


def models(optimizer: str) -> tuple[str, ...]:
    """What is tried under an optimiser."""
    return tuple(key for key in KEYS if optimizer == "adamw" or key not in UNSCALED) + STARTS


COMMANDS = tuple(sweep(models(optimizer), optimizer, depth) for depth in DEPTHS for optimizer in OPTIMIZERS)

DESIGN = Design(
    key="2026",
    title="The methods of 2026 under AdamW and Muon",
    question="Does the order of today's methods depend on the optimiser?",
    scaled=f"{TINY}; decoder-only language models, 6 to 100 layers, 256 tokens, no warm-up, 250 updates, llama's "
    "block.",
    commands=COMMANDS,
    searches={command: FIRST for command in COMMANDS},
)
