"""The figures and tables of Very Deep Transformers (Liu et al. 2020): ADMIN."""

from __future__ import annotations

from stabkit.paper.item import LONG, MANY, TINY, VERY_DEEP, WARM, Item, updates

ITEMS: tuple[Item, ...] = (
    Item(
        key="admin-fig2a",
        paper=VERY_DEEP,
        name="Fig. 2(a)",
        title="Training perplexity at 60L-12L: default against ADMIN",
        theirs="The default model hardly lowers its training perplexity, its gradients become NaN, and its output "
        "is no better than chance; ADMIN's perplexity falls throughout.",
        scaled=f"{TINY}, 250 updates of 256 tokens without warm-up (the paper: RAdam, days); validation loss for "
        "training perplexity.",
        commands=(f"sweep --models post-ln,admin --depths 60x12 {LONG}",),
        figures=("validation_loss",),
        claims=("random-model", "nan-gradients"),
        beside=("default-fails", "admin-trains", "lower-encoder"),
    ),
    Item(
        key="admin-fig2b",
        paper=VERY_DEEP,
        name="Fig. 2(b)",
        title="Validation perplexity of ADMIN at seven shapes",
        theirs="WMT-14 En-Fr: larger models (60L-12L, 36L-36L) end at lower perplexity than 6L-6L.",
        scaled=f"{TINY}; 250 updates: the paper's order is that of converged models. Validation loss for perplexity. "
        "6L-6L and 12L-12L also at twice the rate, to see whether the deeper model needs a larger one.",
        commands=(
            f"sweep --models admin --depths 6,12,24x12,48x12,60x12,36,12x60 {LONG}",
            f"sweep --models admin --depths 6,12 {updates(lr='2e-3')}",
        ),
        figures=("validation_loss",),
        claims=("deeper-better",),
    ),
    Item(
        key="admin-table1",
        paper=VERY_DEEP,
        name="Table 1",
        title="60L-12L diverges by default and gains 2.5 BLEU with ADMIN",
        theirs="WMT-14 En-Fr: 6L-6L 41.3 by default and 41.5 with ADMIN; 60L-12L diverges by default and has 43.8 "
        "with ADMIN (En-De: 27.6, 27.7, diverges, 30.1).",
        scaled=f"{TINY}; 250 updates of 256 tokens, validation loss for BLEU; one seed. Without warm-up, and with one "
        "of 100 updates, as the paper has one (60L-12L over 500 updates, in three seeds); 6L-6L also with one of 400 "
        "over 1,000 updates, to see whether the default needs a longer one.",
        commands=(
            f"sweep --models post-ln,admin --depths 6,60x12 {LONG}",
            f"sweep --models post-ln,admin --depths 6 {WARM}",
            f"sweep --models post-ln,admin --depths 60x12 --seeds 0..2 {updates(500, warmup=100)}",
            f"sweep --models post-ln,admin --depths 6 {updates(MANY, warmup=400)}",
        ),
        figures=("table1", "validation_loss"),
        claims=("shallow", "default-fails"),
        beside=("deeper-better",),
    ),
    Item(
        key="admin-table3",
        paper=VERY_DEEP,
        name="Table 3",
        title="Encoder against decoder depth",
        theirs="Seven shapes of ADMIN on WMT-14 En-Fr: BLEU 41.5 (6L-6L) to 43.8 (60L-12L), 12L-60L 43.1; a matrix of "
        "+, − and = at p < 0.05 by 1,000 bootstrap samples. A deeper encoder is worth more than a deeper decoder.",
        scaled=f"{TINY}; 250 updates of 256 tokens; validation loss for BLEU, and no bootstrap.",
        commands=(f"sweep --models admin --depths 6,12,24x12,48x12,60x12,36,12x60 {LONG}",),
        figures=("validation_loss",),
        claims=("deeper-better",),
    ),
)
