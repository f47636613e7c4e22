"""The figures and tables of DeepNet (Wang et al., journal version)."""

from __future__ import annotations

from stabkit.paper.item import DEEPNET, EARLY, LONG, MANY, TINY, WARM, Item, updates

ITEMS: tuple[Item, ...] = (
    Item(
        key="fig1",
        paper=DEEPNET,
        name="Fig. 1",
        title="Loss surfaces of 18L-18L Post-LN and DeepNet",
        theirs="Two surfaces over two filter-normalised random directions, early in training on IWSLT-14: Post-LN's is "
        "rugged, with walls and a spurious optimum; DeepNet's is a smooth bowl. No numbers are given.",
        scaled=f"{TINY}; after 100 updates without warm-up; 15 × 15 points and cuts along three random directions. "
        "Both normalisations are drawn: each model's own directions (the paper's), and one model's for both.",
        commands=(
            "landscape --depths 18 --steps 100 --warmup 0 --lr 1e-3 --max-tokens 256 --points 15 "
            "--direction-seeds 0..2 --path none",
        ),
        figures=("surface3d", "cuts", "landscape"),
        claims=("surface-smoother",),
        beside=("spurious-optimum",),
    ),
    Item(
        key="fig2",
        paper=DEEPNET,
        name="Fig. 2",
        title="Exploding gradients are not the root cause",
        theirs="(a) Gradient norms of the top decoder layers at 18L-18L and (b) of the last layer from 6L-6L to "
        "24L-24L: Post-LN-init's are even larger than Post-LN's, in the last layer much larger. (c) Validation loss at "
        "18L-18L: Post-LN-init converges, Post-LN does not.",
        scaled=f"{TINY}; 250 updates of 256 tokens at a constant rate, three seeds.",
        commands=(f"sweep --models post-ln,post-ln-init --depths 6,12,18,24 --seeds 0..2 {LONG}",),
        figures=("grad_start", "grad_last", "validation_loss"),
        claims=("last-layer", "stuck"),
        beside=("top-largest",),
    ),
    Item(
        key="fig3",
        paper=DEEPNET,
        name="Fig. 3",
        title="The chain: update, LN input, gradient",
        theirs="18L-18L Post-LN without warm-up: the update explodes at the very beginning and then nearly stops, "
        "inputs of the norms are significantly larger than √d, and the gradients of the lower layers vanish. Warm-up "
        "and Post-LN-init each let the model update smoothly.",
        scaled=f"{TINY}; 250 updates of 256 tokens, warm-up 4000 or none, three seeds.",
        commands=(
            f"sweep --models post-ln,post-ln-init --depths 18 --seeds 0..2 {LONG}",
            f"sweep --models post-ln --depths 18 --seeds 0..2 {updates(warmup=4000)}",
        ),
        figures=("update", "ln_input", "grad_norm", "chain_order"),
        claims=(
            *("order", "initialisation", "standstill", "ln-growth", "ln-stable", "ln-size"),
            *("vanishing", "vanishing-init"),
        ),
    ),
    Item(
        key="fig4",
        paper=DEEPNET,
        name="Fig. 4",
        title="Model update against depth",
        theirs="64-128-2 models from 6L-6L to 100L-100L, early in training: DeepNet's ‖ΔF‖ is nearly constant in "
        "depth, Post-LN's explodes.",
        scaled="Size and depths are the paper's; 16 updates of 256 tokens, three seeds.",
        commands=(f"sweep --models post-ln,deepnorm --depths 6,18,50,100 --seeds 0..2 {EARLY}",),
        figures=("update_depth", "update"),
        claims=("growth", "constant", "smaller"),
        beside=("bound",),
    ),
    Item(
        key="fig5",
        paper=DEEPNET,
        name="Fig. 5",
        title="Loss and the path of training",
        theirs="Contours and trajectories of 64-128-2 models at three depths, after Hao et al.: Post-LN's surface "
        "gets less smooth with depth, DeepNet's smoothness is consistent over depths. No numbers are given.",
        scaled="The size is the paper's; 6L-6L, 18L-18L and 50L-50L, 60 updates without warm-up, 13 snapshots along "
        "the path; 11 × 11 points in the plane of the path (PCA), and for smoothness cuts along two random directions.",
        commands=(
            "landscape --depths 6,18,50 --steps 60 --warmup 0 --lr 1e-3 --max-tokens 256 --snapshots 13 --points 11 "
            "--cut-points 31 --direction-seeds 0,1",
        ),
        figures=("cuts", "path_plane"),
        claims=("surface-depth", "surface-consistent"),
        beside=("spurious-optimum",),
    ),
    Item(
        key="fig6",
        paper=DEEPNET,
        name="Fig. 6",
        title="Quality against depth after a fixed number of updates",
        theirs="IWSLT-14 De-En, ten methods from 10L-10L to 100L-100L: after 8,000 updates DeepNet is above 30 BLEU, "
        "most of the others are not; it is stable from shallow to deep and improves with depth.",
        scaled=f"{TINY}; four methods at 6L-6L to 24L-24L, 250 updates of 256 tokens. After so few updates BLEU is "
        "near 0: the validation loss separates them, and which methods train at all.",
        commands=(f"sweep --models post-ln,admin,pre-ln,deepnorm --depths 6,12,18,24 {LONG}",),
        figures=("validation_loss", "table1"),
        claims=("deeper-deepnorm",),
    ),
    Item(
        key="fig7",
        paper=DEEPNET,
        name="Fig. 7",
        title="Larger learning rate, batch and width",
        theirs="18L-18L DeepNet on WMT-17: it trains without difficulty at the largest rate, batch and width, and "
        "improves with each (width 1024 overfits after 10,000 updates).",
        scaled=f"{TINY}; rate, batch and width each at half, one and two times the base; 250 updates, no warm-up.",
        commands=(
            "sweep --models deepnorm --depths 18 --steps 250 --warmup 0 --max-tokens 256 --lr 5e-4,1e-3,2e-3",
            "sweep --models deepnorm --depths 18 --steps 250 --warmup 0 --lr 1e-3 --max-tokens 128,256,512",
            f"sweep --models deepnorm --depths 18 {LONG} --hidden 32,64,128 --ffn 2x",
        ),
        figures=("robustness", "validation_loss"),
        claims=("largest-settings", "larger-settings"),
    ),
    Item(
        key="fig8",
        paper=DEEPNET,
        name="Fig. 8",
        title="The depth law L(d) = A·log d + B",
        theirs="OPUS-100, 12 to 1,000 layers, four epochs: average BLEU grows with the logarithm of the depth.",
        scaled="One language pair instead of a hundred languages, 6 to 96 layers in all, 250 updates of 256 tokens; "
        "BLEU is near 0 so early: the validation loss stands for it.",
        commands=(f"sweep --models deepnorm --depths 3,6,12,24,48 {LONG}",),
        figures=("validation_loss",),
        claims=("deeper-deepnorm",),
    ),
    Item(
        key="fig9",
        paper=DEEPNET,
        name="Fig. 9",
        title="Scaling α and β",
        theirs="18L-18L on WMT-14 En-Fr, α and β each times ¼, ½, 1, 2, 4, BLEU: small α and large β are unstable, "
        "large α and small β cost quality.",
        scaled=f"{TINY}; validation loss after 250 updates of 256 tokens at 2e-3 without warm-up, where the paper's "
        "whole statement shows; at 5e-4 only its second half does.",
        commands=("ablate --max-tokens 256",),
        figures=("ablation",),
        claims=("alpha-small", "beta-large", "alpha-large", "beta-small"),
        beside=("top-gradient",),
    ),
    Item(
        key="table1",
        paper=DEEPNET,
        name="Table 1",
        title="Which methods train at which depth",
        theirs="WMT-17 En-De, ten methods at 6L, 18L, 50L and 100L: BLEU 26.9 to 29.0, or “diverged”. Post-LN, "
        "DS-Init and ReZero diverge from 18L on, ADMIN from 50L; only DeepNet, Pre-LN and (but for 50L) DLCL train at "
        "100L.",
        scaled=f"{TINY}; trains or does not, by loss, after 250 updates of 256 tokens without warm-up; every method "
        "at 6L and 18L, Post-LN and DeepNorm also at 50L and 100L; Post-LN at all four also with a warm-up of 100 "
        "updates, as in the paper: without one a failure decides nothing. Three seeds.",
        commands=(
            f"sweep --models papers --depths 6,18 --seeds 0..2 {LONG}",
            f"sweep --models post-ln,deepnorm --depths 50,100 --seeds 0..2 {LONG}",
            f"sweep --models post-ln --depths 6,18,50,100 --seeds 0..2 {WARM}",
        ),
        figures=("table1", "validation_loss"),
        claims=(
            *("stuck", "deep", "table1-post-ln", "table1-ds-init", "table1-admin", "table1-rezero", "table1-r-fixup"),
            *("table1-t-fixup", "table1-pre-ln", "table1-dlcl", "table1-normformer", "table1-deepnorm"),
        ),
    ),
    Item(
        key="table2",
        paper=DEEPNET,
        name="Table 2",
        title="Quality at 6L and 18L",
        theirs="WMT-14 En-De, six methods: at 6L BLEU 26.4 to 27.4 (Post-LN and ADMIN), DeepNet 27.3; at 18L Post-LN "
        "diverges and DeepNet has 28.7 (ADMIN 28.4, T-Fixup 28.0). En-Fr: 39.4 to 39.9 at 6L, 41.8 to 42.4 at 18L.",
        scaled=f"{TINY}; 1,000 updates of 256 tokens at a constant rate, validation loss for BLEU; one seed. Fig. 6 "
        "and 8 ask the same after 250 updates; here DeepNorm also runs at twice the rate. This tests two reasons why "
        "deeper might not be better on tiny models: too few updates, and too small a rate for the deeper model.",
        commands=(
            f"sweep --models t-fixup,post-ln,admin,pre-ln,normformer,deepnorm --depths 6,18 {updates(MANY)}",
            f"sweep --models deepnorm --depths 6,18 {updates(MANY, lr='2e-3')}",
        ),
        figures=("validation_loss",),
        claims=("deeper-deepnorm",),
        beside=("shallow",),
    ),
    Item(
        key="table4",
        paper=DEEPNET,
        name="Table 4",
        title="Deep and narrow against shallow and wide at equal FLOPs",
        theirs="OPUS-100, 50,000 updates: 12L-12L Post-LN of width 1024 (610M parameters) has 31.0 BLEU, DeepNet of "
        "width 512 (480M) 31.1 at 90L-6L and 31.6 at 48L-48L; the FLOPs are called similar.",
        scaled="Widths 128 and 64 instead of 1024 and 512; 250 updates of 256 tokens after a warm-up of 100: "
        "the very beginning of training. 44L-44L is compared with 90L-6L, which has the same "
        "FLOPs.",
        commands=(
            f"sweep --models post-ln --depths 12 {WARM} --hidden 128 --ffn 256",
            f"sweep --models deepnorm --depths 90x6,44,48 {WARM}",
        ),
        figures=("validation_loss",),
        claims=("deeper-deepnorm",),
    ),
    Item(
        key="tables67",
        paper=DEEPNET,
        name="Tables 6, 7",
        many=True,
        title="The highest stable rate of one stack",
        theirs="A masked model of 12 layers (Table 6): the larger of 5e-4 and 1e-3 that converges is used for each "
        "method. Causal models of 24 layers (Table 7): GPT-2 (Pre-LN) and NormFormer diverge at 1e-3, DeepNet trains; "
        "at 48 layers it trains at 1.2e-3.",
        scaled=f"{TINY}; 250 updates of 256 tokens without warm-up, two seeds, rates high enough and far enough apart "
        "that some of these methods fail. Their scores (GLUE, zero-shot) are out of reach.",
        commands=(
            f"sweep --models post-ln,deepnorm --arch encoder-only --depths 12 {updates(lr='5e-4,1e-3,2e-3,4e-3,8e-3')} "
            "--seeds 0,1",
            "sweep --models pre-ln,normformer,deepnorm --arch decoder-only --depths 24 "
            f"{updates(lr='1e-3,4e-3,1.6e-2,3e-2')} --seeds 0,1",
        ),
        figures=("table1", "validation_loss"),
        claims=("larger-rate-tolerated",),
    ),
    Item(
        key="table11",
        paper=DEEPNET,
        name="Table 11",
        title="Without DeepNorm, without its initialisation",
        theirs="18L-18L on WMT-14 En-Fr: 42.4 BLEU; without DeepNorm (α = 1) it diverges; without the initialisation "
        "(β = 1) 42.2.",
        scaled=f"{TINY}; 250 updates of 256 tokens at 2e-3 and at twice that, because α = 1 may diverge only at some "
        "rates, with a warm-up of 150 updates and without; three seeds.",
        commands=(
            "ablate --max-tokens 256 --alpha-scale 1 --drop deepnorm,init --seeds 0..2",
            "ablate --max-tokens 256 --alpha-scale 1 --drop deepnorm,init --lr 4e-3 --seeds 0..2",
        ),
        figures=("table11", "validation_loss"),
        claims=("without-deepnorm", "without-init"),
    ),
)
