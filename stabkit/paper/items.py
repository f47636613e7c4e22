"""The table of items, in the order of the page, with one of ours, which no paper shows and which is not part of `all`;
what no small machine can rerun; and what is a study beside the package."""

from __future__ import annotations

from stabkit.paper import items_deepnet, items_very_deep
from stabkit.paper.item import OURS, WIDER, Item

SHAPES = "--models post-ln,deepnorm --depths 12 --hidden 64,128,256,512 --ffn 2x --warmup 0 --steps 0"
TRAINED = (
    "--models post-ln,deepnorm --depths 12 --hidden 256 --ffn 2x --heads 4 --lr 3e-4,1e-3 --warmup 0 --steps 250 "
    "--seeds 0..2"
)

START = Item(
    key="start",
    paper=OURS,
    name="Start",
    title="DeepNorm’s initial loss by width, with tied embeddings and without",
    theirs="The papers' models tie the embedding to the softmax, have width 512 or more, and train with a "
    "warm-up. The papers do not report the initial loss by width.",
    scaled=f"Widths 64 to 512 {WIDER}; the loss before any update, and at width 256 250 "
    "updates of 256 tokens without warm-up, with the softmax tied and with a separate one.",
    commands=(
        f"sweep {SHAPES} --max-tokens 256",
        f"sweep {SHAPES} --max-tokens 256 --untied",
        f"sweep {TRAINED} --max-tokens 256",
        f"sweep {TRAINED} --max-tokens 256 --untied",
    ),
    figures=("loss_start", "validation_loss"),
    claims=(),
)
ITEMS: tuple[Item, ...] = (*items_deepnet.ITEMS, *items_very_deep.ITEMS, START)

BY_KEY = {item.key: item for item in ITEMS}

NOT_HERE: tuple[tuple[str, str], ...] = (
    ("DeepNet Table 3", "OPUS-100, a hundred languages and up to 1,000 layers and 3.8 billion parameters"),
    ("DeepNet Table 5", "102 languages and 12 billion sentence pairs against M2M-100; WMT, TED and Flores test sets"),
    ("DeepNet Table 6's scores", "GLUE: it needs a masked language model pre-trained on billions of words"),
    (
        "DeepNet Table 7's scores and Tables 8, 9",
        "zero- to four-shot tasks: they need causal language models pre-trained at scale",
    ),
    ("DeepNet Table 10", "ImageNet and ADE20k: stabkit has no image models, and they need weeks of GPU time"),
    ("Very Deep Transformers Table 2", "a comparison with systems of other papers on all of WMT-14"),
    ("Very Deep Transformers Fig. 3", "errors by word frequency and sentence length of models trained to the end"),
    ("Very Deep Transformers Table 4", "21.8 million back-translated sentence pairs"),
)
"""What these machines cannot rerun even in shape, and why."""

STUDIES = ("forecast", "recent")
"""Studies of ours that a checkout of the source reruns: `python3 dev.py evidence forecast`."""
