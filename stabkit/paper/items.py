"""The table of items, in the order of the page, and what no small machine can rerun."""

from __future__ import annotations

from stabkit.paper import items_deepnet, items_ours, items_very_deep
from stabkit.paper.item import Item

ITEMS: tuple[Item, ...] = (*items_deepnet.ITEMS, *items_very_deep.ITEMS, *items_ours.ITEMS)

BY_KEY = {item.key: item for item in ITEMS}

NOT_HERE: tuple[tuple[str, str], ...] = (
    ("DeepNet Table 3", "OPUS-100, a hundred languages and up to 1,000 layers and 3.8 billion parameters"),
    ("DeepNet Table 5", "102 languages and 12 billion sentence pairs against M2M-100; WMT, TED and Flores test sets"),
    ("DeepNet Table 6's scores", "GLUE: it takes a masked language model pre-trained on billions of words"),
    (
        "DeepNet Table 7's scores and Tables 8, 9",
        "zero- to four-shot tasks: they take causal language models pre-trained at scale",
    ),
    ("DeepNet Table 10", "ImageNet and ADE20k: pictures, which stabkit has no models for, and weeks of GPU time"),
    ("Very Deep Transformers Table 2", "a comparison with systems of other papers on the whole of WMT-14"),
    ("Very Deep Transformers Fig. 3", "errors by word frequency and sentence length of models trained to the end"),
    ("Very Deep Transformers Table 4", "21.8 million back-translated sentence pairs"),
)
"""What these machines cannot rerun even in shape, and why."""
