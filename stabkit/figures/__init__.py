"""The pictures: one a file, one row in FIGURES (order = order on the page).

Each file holds what is drawn and nothing else:

    NAME, SHORT, CAPTION    its name, its name in the contents list, the paper's figure
    READ                    how to read it
    INDEX, VALUE            the frame's column that runs down the folded table, and the one that fills it
    select(runs) → frame    exactly what is drawn; also the CSV and the folded table
    draw(frame) → Figure    the picture of that frame
    title(runs) → text      a finding where the data support one, else what is shown
    alt(frame) → text       for those who do not see it
    OPTIONAL                if true: not on a page for which the frame is empty

To add one: write the file, add its row. `comparison.py`, `contrast.py`, `curves.py`, `quality.py`, `scales.py`,
`share.py`, `style.py`, `surfaces.py` and `theorem.py` are shared.
"""

from __future__ import annotations

from types import ModuleType

from stabkit.figures import (
    ablation,
    between,
    bleu,
    boundary,
    branch_ratio,
    chain,
    cuts,
    dependency,
    depth_law,
    exponent,
    flops,
    grad_last,
    grad_norm,
    grad_start,
    landscape,
    ln_input,
    ln_input_omega,
    path_plane,
    perplexity,
    perturbation,
    robustness,
    scale_map,
    significance,
    slope,
    table1,
    table11,
    theory,
    update,
    update_depth,
    update_method,
    validation_loss,
)

FIGURES: tuple[ModuleType, ...] = (
    table1,
    slope,
    ablation,
    table11,
    scale_map,
    boundary,
    update_depth,
    update,
    exponent,
    update_method,
    ln_input,
    ln_input_omega,
    grad_norm,
    grad_start,
    grad_last,
    validation_loss,
    perplexity,
    bleu,
    significance,
    depth_law,
    robustness,
    flops,
    theory,
    branch_ratio,
    dependency,
    perturbation,
    chain,
)

SURFACES: tuple[ModuleType, ...] = (landscape, cuts, path_plane, between)
"""Those of `stabkit landscape`: they select from a `surfaces.Landscape` and stand before the others."""
