"""The tables of the pictures of runs, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.figures.ablation import ablation, robustness, scale_map, table11
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
    loss_start,
    slope,
    transfer,
    update_depth,
)
from stabkit.figures.methods import perplexity, table1
from stabkit.figures.picture import Picture, RunPicture
from stabkit.figures.surfaces import cuts, landscape, path_plane, surface3d
from stabkit.results.landscape import Landscape
from stabkit.results.own.coordinates import Coordinates
from stabkit.results.transfer import Transfer

FIGURES: tuple[RunPicture, ...] = (
    chain_order.PICTURE,
    table1.PICTURE,
    slope.PICTURE,
    ablation.PICTURE,
    table11.PICTURE,
    scale_map.PICTURE,
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
    run_curves.BRANCH_RATIO,
    dependency.PICTURE,
    perturbation.PICTURE,
)

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
)
"""Those of `stabkit landscape`: they select from a `shared.surfaces.Landscape` and stand before the others."""
