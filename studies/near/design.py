"""Which words of committed pages hang on a loss near the line: the commands of pages that call runs trained or stuck,
run again (of the papers' items one seed), and what ends within 0.1 nats of the line trained twice as long."""

from __future__ import annotations

from stabkit import api
from stabkit.options import lines
from stabkit.paper.item import TINY
from stabkit.paper.items import ITEMS
from stabkit.spec import SHORTEST_JUDGED
from studies.study import Design

LONGEST = 250
"""Updates; the items that translate train four times as long."""
PAGES = (
    "sweep --depths 6,18 --steps 250 --warmup 0 --max-tokens 512 --seeds 0..2",
    "ablate --seeds 0..2",
)
"""Of reports/multi30k-no-warmup.html and reports/multi30k-ablation.html."""


def _judged(text: str) -> bool:
    """Whether a command of the papers' items trains runs of width 64 until they are judged, and no longer."""
    command, options = lines.words(text, api.COMMANDS)
    steps = int(options.get("steps", api.COMMANDS[command].get("steps", 0)))
    return command in ("sweep", "ablate") and SHORTEST_JUDGED <= steps <= LONGEST and options.get("hidden") != "256"


ITEM_SEEDS = " --seeds 0..2"
"""Of items with three seeds the first is run again."""
COMMANDS = tuple(
    dict.fromkeys(
        (
            *PAGES,
            *(
                text.replace(" --bleu", "").replace(ITEM_SEEDS, "")
                for item in ITEMS
                for text in item.commands
                if _judged(text)
            ),
        )
    )
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
