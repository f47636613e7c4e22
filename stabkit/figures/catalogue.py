"""The tables of the pictures of runs, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stabkit.figures.ablation import curves as ablation
from stabkit.figures.chain import chain_order, layer_curves, step_curves
from stabkit.figures.depth import curves as depth
from stabkit.figures.depth import slope, transfer, update_depth, widths
from stabkit.figures.methods import table1
from stabkit.figures.picture import Picture, RunPicture
from stabkit.figures.surfaces import cuts, landscape, path_plane, surface3d
from stabkit.results.landscape import Landscape
from stabkit.results.transfer import Transfer

FIGURES: tuple[RunPicture, ...] = (
    chain_order.PICTURE,
    table1.PICTURE,
    slope.PICTURE,
    ablation.SCALED,
    ablation.TABLE11,
    update_depth.PICTURE,
    step_curves.UPDATE,
    step_curves.LN_INPUT,
    layer_curves.GRAD_NORM,
    layer_curves.GRAD_START,
    layer_curves.GRAD_LAST,
    step_curves.VALIDATION_LOSS,
    ablation.ROBUSTNESS,
    depth.LOSS_START,
)

CARRIED: tuple[Picture[Sequence[Transfer]], ...] = (transfer.PICTURE,)
"""Those of `stabkit transfer`."""

WIDENED: tuple[Picture[Any], ...] = (widths.PICTURE,)
"""Those of `stabkit probe --widths`."""

SURFACES: tuple[Picture[Landscape], ...] = (
    surface3d.PICTURE,
    landscape.PICTURE,
    cuts.PICTURE,
    path_plane.PICTURE,
)
"""Those of `stabkit landscape`: they select from a `results.landscape.Landscape` and stand before the others."""
