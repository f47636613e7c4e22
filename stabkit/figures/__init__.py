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

To add one: write the file in the room of its subject, add its row here. What several share stands in `shared/`,
what pictures are drawn with in `drawing/`, what keeps a page to seconds in `quick/`.
"""

from __future__ import annotations

from types import ModuleType

from stabkit.figures.ablation import ablation, boundary, robustness, scale_map, table11
from stabkit.figures.chain import (
    branch_ratio,
    chain,
    chain_order,
    dependency,
    exponent,
    grad_last,
    grad_norm,
    grad_start,
    ln_input,
    ln_input_omega,
    perturbation,
    update,
    update_method,
    validation_loss,
)
from stabkit.figures.depth import depth_law, flops, goal, loss_start, slope, theory, tolerance, update_depth
from stabkit.figures.methods import perplexity, table1
from stabkit.figures.own import own_gradient, own_stream, own_update
from stabkit.figures.probes import recorded
from stabkit.figures.quality import bleu, significance
from stabkit.figures.surfaces import between, cuts, landscape, path_plane
from stabkit.figures.watched import watched_gradient, watched_loss, watched_stream, watched_update

Picture = ModuleType | recorded.Recorded
"""A file of these rooms, or what stands for one: the curves of a probe that has no picture of its own."""

FIGURES: tuple[ModuleType, ...] = (
    chain_order,
    table1,
    goal,
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
    loss_start,
    theory,
    branch_ratio,
    dependency,
    perturbation,
    chain,
)

SEARCHES: tuple[ModuleType, ...] = (tolerance,)
"""Those of `stabkit tolerance`: they select from what its search found."""

OWN: tuple[ModuleType, ...] = (own_stream, own_update, own_gradient)
"""Those of `stabkit probe`: they select from a `shared.probed.Probed`."""

WATCHED: tuple[ModuleType, ...] = (watched_gradient, watched_stream, watched_update, watched_loss)
"""Those of a watch: they select from a `storage.watched.Watched`."""

SURFACES: tuple[ModuleType, ...] = (landscape, cuts, path_plane, between)
"""Those of `stabkit landscape`: they select from a `shared.surfaces.Landscape` and stand before the others."""
