"""The tables of the pictures of runs, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

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
from stabkit.figures.picture import Picture, RunPicture
from stabkit.figures.quality import bleu, significance
from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.surfaces import between, cuts, landscape, path_plane
from stabkit.results.tolerance import Tolerance

FIGURES: tuple[RunPicture, ...] = (
    chain_order.PICTURE,
    table1.PICTURE,
    goal.PICTURE,
    slope.PICTURE,
    ablation.PICTURE,
    table11.PICTURE,
    scale_map.PICTURE,
    boundary.PICTURE,
    update_depth.PICTURE,
    update.PICTURE,
    exponent.PICTURE,
    update_method.PICTURE,
    ln_input.PICTURE,
    ln_input_omega.PICTURE,
    grad_norm.PICTURE,
    grad_start.PICTURE,
    grad_last.PICTURE,
    validation_loss.PICTURE,
    perplexity.PICTURE,
    bleu.PICTURE,
    significance.PICTURE,
    depth_law.PICTURE,
    robustness.PICTURE,
    flops.PICTURE,
    loss_start.PICTURE,
    theory.PICTURE,
    branch_ratio.PICTURE,
    dependency.PICTURE,
    perturbation.PICTURE,
    chain.PICTURE,
)

SEARCHES: tuple[Picture[Sequence[Tolerance]], ...] = (tolerance.PICTURE,)
"""Those of `stabkit tolerance`: they select from what its search found."""

SURFACES: tuple[Picture[Landscape], ...] = (landscape.PICTURE, cuts.PICTURE, path_plane.PICTURE, between.PICTURE)
"""Those of `stabkit landscape`: they select from a `shared.surfaces.Landscape` and stand before the others."""
