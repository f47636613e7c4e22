"""The tables of the pictures of runs, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.figures.ablation import ablation, boundary, robustness, scale_map, table11
from stabkit.figures.chain import (
    chain_order,
    dependency,
    exponent,
    perturbation,
    run_curves,
    update,
)
from stabkit.figures.depth import (
    coordinates,
    depth_law,
    flops,
    goal,
    loss_start,
    slope,
    theory,
    tolerance,
    transfer,
    update_depth,
)
from stabkit.figures.methods import perplexity, table1
from stabkit.figures.picture import Picture, RunPicture
from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.surfaces import between, cuts, landscape, path_plane, surface3d
from stabkit.results.own.coordinates import Coordinates
from stabkit.results.tolerance import Tolerance
from stabkit.results.transfer import Transfer

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
    run_curves.UPDATE_METHOD,
    run_curves.LN_INPUT,
    run_curves.LN_INPUT_OMEGA,
    run_curves.GRAD_NORM,
    run_curves.GRAD_START,
    run_curves.GRAD_LAST,
    run_curves.VALIDATION_LOSS,
    perplexity.PICTURE,
    depth_law.PICTURE,
    robustness.PICTURE,
    flops.PICTURE,
    loss_start.PICTURE,
    theory.PICTURE,
    run_curves.BRANCH_RATIO,
    dependency.PICTURE,
    perturbation.PICTURE,
)

SEARCHES: tuple[Picture[Sequence[Tolerance]], ...] = (tolerance.PICTURE,)
"""Those of `stabkit tolerance`: they select from what its search found."""

CARRIED: tuple[Picture[Sequence[Transfer]], ...] = (transfer.PICTURE,)
"""Those of `stabkit transfer`."""

WIDENED: tuple[Picture[Coordinates], ...] = (coordinates.PICTURE,)
"""Those of `stabkit probe --widths`."""

SURFACES: tuple[Picture[Landscape], ...] = (
    surface3d.PICTURE,
    landscape.PICTURE,
    cuts.PICTURE,
    landscape.SEEDS,
    path_plane.PICTURE,
    between.PICTURE,
)
"""Those of `stabkit landscape`: they select from a `shared.surfaces.Landscape` and stand before the others."""
