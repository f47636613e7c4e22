"""The path of training in the plane of its own two principal axes, over the loss there: DeepNet Fig. 5.

The plane passes through the last weights. A plane shows only what lies in it: beside the contours stand the loss at
every snapshot's own weights and at its projection, and the share of its displacement that the plane does not hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.picture import Picture, always
from stabkit.figures.surfaces import landscape
from stabkit.results.conditions import FACTS
from stabkit.results.landscape import Landscape
from stabkit.results.surface import PATH
from stabkit.words import listed, short

COLUMNS = (*FACTS, "what", "a", "b", "loss", "step", "projected", "outside", "explained_1", "explained_2")
"""`what`: `plane` for a point of the surface, `path` for a snapshot."""


def select(drawn: Landscape) -> pd.DataFrame:
    """One row a point of the plane, and one a snapshot."""
    parts = []
    for seen in drawn.placed("path"):
        surface = seen.surface
        plane = seen.points().assign(what="plane")
        path = pd.DataFrame({"what": "path", **{name: surface.path[name] for name in PATH}})
        explained = {f"explained_{i}": surface.facts.get(f"explained_{i}", np.nan) for i in (1, 2)}
        for part in (plane, path):
            parts.append(part.assign(**{**seen.facts, **explained}).reindex(columns=list(COLUMNS)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(COLUMNS))


def title(drawn: Landscape) -> str:
    """How much of the paths their planes hold."""
    shares = [share for _, share in in_plane(select(drawn))]
    if not shares:
        return "The path of training"
    low, high = f"{min(shares):.1%}", f"{max(shares):.1%}"
    return f"Each plane holds {low if low == high else f'{low} to {high}'} of its path of training"


def in_plane(frame: pd.DataFrame) -> list[tuple[str, float]]:
    """(`Post-LN 18L-18L, seed 0`, the share of its path that lies in its plane)."""
    many = frame["seed"].nunique() > 1
    return [
        (
            listed(f"{label} {depth}", f"seed {seed}" if many else ""),
            float(rows["explained_1"].iloc[0] + rows["explained_2"].iloc[0]),
        )
        for (label, depth, seed), rows in frame.groupby(["label", "depth", "seed"], sort=False)
    ]


def here(frame: pd.DataFrame) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in in_plane(frame)[:12])


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, depth, seed), rows in frame[frame["what"] == "path"].groupby(["label", "depth", "seed"], sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        parts.append(
            f"{listed(label, depth, f'seed {seed}')}: loss from {short(first['loss'], 3)} to {short(last['loss'], 3)}, "
            f"at most {rows['outside'].max():.0%} outside the plane"
        )
    return f"Paths of training over the loss in their own planes. {'; '.join(parts[:12])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A row a run: its plane, and its losses."""
    runs = list(frame.groupby("run", sort=False))
    height = 3.2
    tall = height * len(runs)
    figure = Figure(figsize=(style.WIDTH, tall))
    for place, (_, group) in enumerate(runs):
        bottom = tall - (place + 1) * height
        head = group.iloc[0]
        name = listed(f"{head['label']} {head['depth']}", str(head["condition"]), f"seed {head['seed']}")
        held = f"two axes hold {head['explained_1']:.0%} and {head['explained_2']:.0%} of the path"
        style.heading(figure, f"{name}: {held}", bottom + height, 110, 9)
        box = (bottom + 0.45) / tall, (height - 0.85) / tall
        plane = figure.add_axes((0.6 / style.WIDTH, box[0], 4.0 / style.WIDTH, box[1]))
        bar = figure.add_axes((4.7 / style.WIDTH, box[0], 0.012, box[1]))
        share = figure.add_axes((6.1 / style.WIDTH, box[0], 3.2 / style.WIDTH, 0.24 * box[1]))
        losses = figure.add_axes((6.1 / style.WIDTH, box[0] + 0.36 * box[1], 3.2 / style.WIDTH, 0.64 * box[1]))
        image = _plane(plane, group)
        figure.colorbar(image, cax=bar, label="loss, nats a token")
        _losses(losses, share, group[group["what"] == "path"])
    return figure


def _plane(axes: Axes, rows: pd.DataFrame) -> Any:
    table = landscape.grid(rows[rows["what"] == "plane"])
    a, b, losses = table.columns.to_numpy(float), table.index.to_numpy(float), table.to_numpy(float)
    norm = landscape.scale(losses)
    image = landscape.heat(axes, a, b, losses, norm)
    path = rows[rows["what"] == "path"]
    axes.plot(path["a"], path["b"], color="#ffffff", linewidth=1.6)
    (line,) = axes.plot(path["a"], path["b"], ".-", color="#d62728", linewidth=0.9, markersize=5)
    style.mark(line, str(rows["method"].iloc[0]), "path", list(zip(path["step"], path["loss"], strict=True)))
    axes.plot(
        path["a"].iloc[:1], path["b"].iloc[:1], "o", color="#d62728", markersize=7, markerfacecolor="none", mew=1.6
    )
    axes.plot([0], [0], "x", color="#d62728", markersize=8, mew=2)
    axes.set_xlabel("along the first axis, ‖Δθ‖")
    axes.set_ylabel("along the second axis")
    return image


def _losses(losses: Axes, share: Axes, path: pd.DataFrame) -> None:
    """Above the loss at every snapshot and at its projection, below the share of its displacement outside the plane."""
    method = str(path["method"].iloc[0])
    hue = style.colour(method)
    dashed: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (4, 2)), "label": "at its projection"}
    (true,) = losses.plot(path["step"], path["loss"], color=hue, linewidth=1.6, label="loss at the snapshot")
    (there,) = losses.plot(path["step"], path["projected"], color=hue, **dashed)
    (outside,) = share.plot(path["step"], path["outside"], color=hue, linewidth=1.2)
    for line, name in (
        (true, "loss at the snapshot"),
        (there, "loss at its projection"),
        (outside, "outside the plane"),
    ):
        style.mark(line, method, name)
    style.legend(losses, [true, there], loc="upper right", fontsize=7)
    losses.set_ylabel("loss, nats a token")
    losses.tick_params(labelbottom=False)
    share.set_ylim(0, 1)
    share.set_ylabel("outside")
    share.set_xlabel("step (updates done)")
    for axes in (losses, share):
        axes.grid(True)


PICTURE: Picture[Landscape] = Picture(
    name="path_plane",
    short="The path of training",
    room="surfaces",
    caption="DeepNet Fig. 5 (journal version); by default in the path's principal axes (Li et al. 2018, §7).",
    see="a plane that holds nearly all of the path, without hills along it",
    here=here,
    read=always(
        (
            "Left: the loss in a plane through the path (its first two principal axes; with --path hao its two ends "
            "and the first axis of the rest), each axis over the path's own range, with the snapshots projected into "
            "it, from the ring (the first) to the cross (the last weights)."
        ),
        (
            "Right: the loss at the snapshots themselves (solid) and at their projections (dashed): where these "
            "differ, the contours are not those of the path. Below: the share of the displacement from the last "
            "weights that lies outside the plane."
        ),
    ),
    columns=COLUMNS,
    value="loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run kept enough of its path to draw it.",
    grid=False,
    optional=True,
)
