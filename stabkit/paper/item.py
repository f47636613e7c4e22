"""What an item is, and the settings that nearly all of them share. An item is nothing but ordinary commands of stabkit.

Two settings serve nearly all of them, so that runs are shared. EARLY is the papers' warm-up at its beginning: 16
updates decide how far the output moves. LONG has a constant rate from the first update on: there the methods part
within 250 updates of 256 tokens. The papers train 512-wide models for days on millions of sentences; what of a picture
depends on that is said in `scaled`.
"""

from __future__ import annotations

from dataclasses import dataclass

DEEPNET, VERY_DEEP, OURS = "DeepNet", "Very Deep Transformers", "stabkit"
EARLY = "--steps 16 --warmup 4000 --lr 5e-4"


def updates(steps: int = 250, *, warmup: int = 0, lr: str = "1e-3") -> str:
    """Options of a training run of batches of 256 tokens."""
    return f"--steps {steps} --warmup {warmup} --lr {lr} --max-tokens 256"


LONG, WARM = updates(), updates(warmup=100)
MANY = 1000
"""Four times LONG: for what early updates leave open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One figure or table of a paper."""

    key: str
    paper: str
    name: str
    """`Fig. 4`."""
    title: str
    theirs: str
    """The paper's picture, in words and numbers."""
    scaled: str
    """What is smaller here, and what that can change."""
    commands: tuple[str, ...]
    figures: tuple[str, ...]
    """Names in `figures.FIGURES` and `figures.SURFACES`."""
    claims: tuple[str, ...]
    """Keys in `claims.CLAIMS`: what the paper says of this very picture, and the commands can test."""
    beside: tuple[str, ...] = ()
    """Claims of other places, and our own readings: shown, and not counted."""
    many: bool = False
    """Whether its name is a plural: `Tables 6, 7`."""

    @property
    def ours(self) -> bool:
        """Whether the question is ours and no paper's."""
        return self.paper == OURS

    @property
    def short(self) -> str:
        """Its paper where there is little room: by its method."""
        return {VERY_DEEP: "ADMIN"}.get(self.paper, self.paper)


WIDER = "(the paper: width 512 and more)"
TINY = f"64-128-2 models {WIDER}"
