"""Loss surfaces as surfaces, one method next to the other: how DeepNet Fig. 1 draws them.

A row a depth and normalisation, of the first seed; one scale of loss a depth. The contours of `landscape.py` say more:
they hide nothing behind a hill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from mpl_toolkits.mplot3d import Axes3D  # type: ignore[import-untyped]  # matplotlib ships it without types

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Picture, always
from stabkit.figures.surfaces import landscape
from stabkit.results.landscape import Landscape
from stabkit.surface import roughness
from stabkit.words import listed, percent, short

HEIGHT = 3.5
"""Inches of a row."""
FROM_ABOVE, FROM_LEFT = 28, -58
"""Degrees."""


def rows(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(`18L-18L, Post-LN's directions for both`, its points) of every row of the picture that has a surface."""
    for (depth, ruler), group in frame.groupby(["depth", "ruler"], sort=False):
        if min(group["a"].nunique(), group["b"].nunique()) > 1 and np.isfinite(group["loss"].astype(float)).any():
            yield listed(str(depth) if frame["depth"].nunique() > 1 else "", str(ruler)), group


def alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{name}: {', '.join(f'{label} from {short(low)} to {short(high)}' for label, low, high in _ends(group))}"
        for name, group in rows(frame)
    ]
    return f"The loss around the weights as surfaces, in nats a token. {'; '.join(parts)}."


def _ends(group: pd.DataFrame) -> list[tuple[str, float, float]]:
    return [
        (str(label), float(own.min()), float(own.max())) for label, own in group.groupby("label", sort=False)["loss"]
    ]


def draw(frame: pd.DataFrame) -> Figure | None:
    """A row a depth and normalisation, a column a method."""
    shown = list(rows(frame))
    if not shown:
        return None
    labels = list(dict.fromkeys(frame["label"]))
    width, tall = style.WIDTH / max(len(labels), 2), HEIGHT * len(shown)
    figure = Figure(figsize=(style.WIDTH, tall))
    for place, (name, group) in enumerate(shown):
        bottom = tall - (place + 1) * HEIGHT
        depth = group["depth"].iloc[0]
        norm = landscape.scale(frame[frame["depth"] == depth]["loss"].to_numpy(dtype=float))
        style.heading(figure, name, bottom + HEIGHT)
        for label, surface in group.groupby("label", sort=False):
            box = labels.index(label) * width / style.WIDTH, (bottom + 0.12) / tall
            size = width / style.WIDTH, (HEIGHT - 0.5) / tall
            axes = Axes3D(figure, rect=(*box, *size), auto_add_to_figure=False, computed_zorder=False)
            figure.add_axes(axes)
            _hill(axes, landscape.grid(surface), norm, f"{label}, seed {surface['seed'].iloc[0]}")
    return figure


def _hill(axes: Any, table: pd.DataFrame, norm: Any, label: str) -> None:
    """One surface, in the colours of its contour map; what is not finite is a gap."""
    a, b = np.meshgrid(table.columns.to_numpy(float), table.index.to_numpy(float))
    losses = table.to_numpy(float)
    log = isinstance(norm, LogNorm)
    height = np.log10(losses) if log else losses
    colours = matplotlib.colormaps[landscape.MAP](norm(np.ma.masked_invalid(losses)))
    look: dict[str, Any] = {"rstride": 1, "cstride": 1, "linewidth": 0.15, "edgecolor": "#ffffff40"}
    for row in reversed(range(len(a) - 1)):  # from the back to the front: a nearer wall hides what is behind it
        two = slice(row, row + 2)
        axes.plot_surface(a[two], b[two], height[two], facecolors=colours[two], **look)
        axes.collections[-1].set_zorder(1 - row / len(a))
    axes.set_rasterization_zorder(1.5)
    low, high = float(norm.vmin), float(norm.vmax)
    axes.set_zlim(*((np.log10(low), np.log10(high)) if log else (low, high)))
    if log:
        axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: short(10**value)))
    for axis, most in ((axes.xaxis, 3), (axes.yaxis, 3), (axes.zaxis, 4)):
        axis.set_major_locator(MaxNLocator(most))
    axes.set_xlabel("a, along δ", labelpad=-6)
    axes.set_ylabel("b, along η", labelpad=-6)
    axes.set_zlabel("loss", labelpad=-4)
    axes.tick_params(pad=-2, labelsize=7)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((0, 0, 0, 0))
        axis._axinfo["grid"].update(linewidth=0.3)  # there is no public way to a thinner grid
    axes.view_init(FROM_ABOVE, FROM_LEFT)
    axes.set_box_aspect((1, 1, 0.72), zoom=0.98)
    share = percent(roughness.negative_curvature(losses))
    axes.set_title(f"{lettering.safe(label, 40)}: {share} negative curvature", y=1.0)


PICTURE: Picture[Landscape] = replace(
    landscape.PICTURE,
    name="surface3d",
    short="Loss surfaces in 3-D",
    read=always(
        "The loss on a fixed held-out batch at θ + a·δ + b·η, θ in the middle. Normalised by each method's own "
        "weights, a method with small weights moves less; under one method's directions both move equally. The "
        "headline's shares are medians over seeds."
    ),
    draw=draw,
    title=landscape.title,
    alt=alt,
    none="No surface has a finite loss.",
)
