"""The tables of the pictures of runs, in the order of the page."""

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
from stabkit.figures.probes import recorded
from stabkit.figures.quality import bleu, significance
from stabkit.figures.surfaces import between, cuts, landscape, path_plane

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

SURFACES: tuple[ModuleType, ...] = (landscape, cuts, path_plane, between)
"""Those of `stabkit landscape`: they select from a `shared.surfaces.Landscape` and stand before the others."""
