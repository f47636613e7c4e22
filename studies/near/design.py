"""Which words of committed pages hang on a loss near the line: the commands of pages that call runs trained or stuck,
run again, and what ends within 0.1 nats of the line trained twice as long."""

from __future__ import annotations

from stabkit.paper.item import TINY
from stabkit.paper.items import ITEMS
from studies.study import Design

PAGES = (
    "sweep --depths 6,18 --steps 250 --warmup 0 --max-tokens 512 --seeds 0..2",
    "ablate --seeds 0..2",
)
"""Of reports/multi30k-no-warmup.html and reports/multi30k-ablation.html."""


def _judged(text: str) -> bool:
    """Whether a command of the papers' items trains runs of width 64 until they are judged, and no longer."""
    return (
        text.startswith(("sweep", "ablate"))
        and not any(f"--steps {n} " in f"{text} " for n in (0, 16, 1000))
        and ("--hidden 256" not in text)
    )


COMMANDS = tuple(
    dict.fromkeys((*PAGES, *(text.replace(" --bleu", "") for item in ITEMS for text in item.commands if _judged(text))))
)

DESIGN = Design(
    key="near",
    title="Words near the line",
    question="How many words of committed pages change where a run ends within 0.1 nats of the line and is trained "
    "twice as long?",
    scaled=f"{TINY}; the runs of the committed pages that end in a verdict.",
    commands=COMMANDS,
    doubled=COMMANDS,
)
