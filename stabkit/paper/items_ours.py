"""Items of ours: what the papers' readers ask next, and no paper shows. Named by themselves, not part of `all`."""

from __future__ import annotations

from stabkit.paper.item import OURS, TINY, Item
from stabkit.paper.studies.forecast import ITEM as FORECAST
from stabkit.paper.studies.today import ITEM as TODAY

SHAPES = "--models post-ln,deepnorm --depths 12 --hidden 64,128,256,512 --ffn 2x --warmup 0 --steps 0"
TRAINED = (
    "--models post-ln,deepnorm --depths 12 --hidden 256 --ffn 2x --heads 4 --lr 3e-4,1e-3 --warmup 0 --steps 250 "
    "--seeds 0..2"
)

START = Item(
    key="start",
    paper=OURS,
    name="Start",
    title="DeepNorm’s start by width, with tied embeddings and without",
    theirs="The papers' models share the embedding with the softmax and are 512 wide and more; they train with a "
    "warm-up. What their start is like at a width they do not say.",
    scaled=f"{TINY.replace('64-128-2 models', 'Widths 64 to 512')}; the loss before any update, and at width 256 250 "
    "updates of 256 tokens without warm-up, with the softmax tied and with one of its own.",
    commands=(
        f"sweep {SHAPES} --max-tokens 256",
        f"sweep {SHAPES} --max-tokens 256 --untied",
        f"sweep {TRAINED} --max-tokens 256",
        f"sweep {TRAINED} --max-tokens 256 --untied",
    ),
    figures=("loss_start", "validation_loss"),
    claims=(),
    beside=("tied-start",),
)
ITEMS: tuple[Item, ...] = (FORECAST, START, TODAY)
