"""One-dimensional cuts through the loss over several random directions: how rough, with a band over directions.

A single plane says little: its roughness varies with the directions drawn. Here each ruler has a panel, each method a
curve (median over direction seeds) in its band (least to greatest), and every method's share of negative curvature is
told, with the roughness Σ|Δ²L|/Σ|ΔL| beside it.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Picture, always
from stabkit.figures.surfaces import landscape
from stabkit.results.conditions import FACTS
from stabkit.results.landscape import Landscape
from stabkit.results.readings import centre
from stabkit.words import listed, percent, short

COLUMNS = (*FACTS, "ruler", "direction_seed", "a", "loss")


def select(drawn: Landscape) -> pd.DataFrame:
    """One row a point, ruler and cut."""
    return drawn.points(
        "cut", COLUMNS, lambda seen: {"ruler": seen.ruler, "direction_seed": seen.surface.spec.plane.seed}
    )


def rough(frame: pd.DataFrame) -> pd.DataFrame:
    """Roughness, share of negative curvature and curvature of every cut."""
    return landscape.rough(frame, "direction_seed", lambda rows: rows.sort_values("a")["loss"].to_numpy(dtype=float))


def title(drawn: Landscape) -> str:
    """Whether the one method's cuts are rougher than the other's, at whose scale, at the deepest depth with both."""
    where, table = landscape.deepest(rough(select(drawn)))
    if not len(table):
        return "How rough the loss is along random directions"
    along = f"{where}along cuts" if where else "Along cuts"
    return landscape.rougher(table, *dict.fromkeys(table["label"]), where=f"{along} ")


def shares(frame: pd.DataFrame) -> str:
    """The two methods' shares of negative curvature under each ruler: mean over directions, median over seeds."""

    def mean(rows: pd.DataFrame) -> pd.Series[float]:
        return rows.groupby(["label", "seed"])["negative"].mean().groupby("label").median()

    return landscape.shares_of(rough(frame), mean)


def alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{listed(label, depth, ruler)}: {percent(rows['negative'].mean())} negative curvature"
        for (depth, ruler, label), rows in rough(frame).groupby(["depth", "ruler", "label"], sort=False)
    ]
    return f"Loss along random directions, one panel per normalisation. {'; '.join(parts[:18])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth, seed and ruler; methods by colour."""
    if not np.isfinite(frame["loss"].astype(float)).any():
        return style.empty("No cut has a finite loss.")
    groups, more = style.drawn_groups(list(frame.groupby(["depth", "seed", "ruler"], sort=False)))
    many = frame["seed"].nunique() > 1
    titles = [lettering.wrapped(listed(d, f"seed {s}" if many else ""), str(r)) for (d, s, r), _ in groups]
    figure, all_axes = style.panels(len(groups), 3, 3.2, titles=max(map(len, titles)), legend=0, more=more)
    table = rough(frame)
    for place, (axes, ((depth, seed, ruler), group)) in enumerate(zip(all_axes, groups, strict=True)):
        lettering.entitle(axes, listed(depth, f"seed {seed}" if many else ""), str(ruler))
        handles = []
        for label, rows in group.groupby("label", sort=False):
            method = str(rows["method"].iloc[0])
            by = rows.groupby("a")["loss"]
            middle = by.median()
            mine = table[(table["label"] == label) & (table["ruler"] == ruler)]
            of_place = (mine["depth"] == depth) & (mine["seed"] == seed)
            values = mine.loc[of_place, "negative"].to_numpy(dtype=float)
            name = f"{lettering.safe(str(label), 24)}: {percent(values.mean())}"
            if len(values) > 1 and math.isfinite(values.min()):
                name += f" ({percent(values.min())}–{percent(values.max())})"
            name += f", {short(centre(mine.loc[of_place, 'roughness']))}"
            hue = style.colour(method)
            band = axes.fill_between(middle.index, by.min(), by.max(), color=hue, alpha=0.18, linewidth=0)
            (line,) = axes.plot(middle.index, middle, linewidth=1.6, label=name, **style.signed(method, middle))
            style.mark(band, method)
            style.mark(line, method, listed(str(label), str(depth), str(ruler)), x="a")
            handles.append(line)
        axes.set_xlabel("a, along δ")
        if place % 3 == 0:
            axes.set_ylabel("loss, nats a token")
        else:
            axes.tick_params(labelleft=True)
        style.legend(axes, handles, loc="upper center", fontsize=7)
    return figure


PICTURE: Picture[Landscape] = Picture(
    name="cuts",
    short="Cuts and roughness",
    room="surfaces",
    caption="DeepNet Fig. 1 (journal version), as numbers: one-dimensional cuts over several direction seeds.",
    see="bowls of equal width, without negative curvature, under every normalisation",
    here=shares,
    read=always(
        "The loss along a random direction through θ: median over direction seeds, in a band from the lowest to "
        "the highest. The legend gives the cuts' share of negative curvature, mean and range over direction "
        "seeds; a smooth bowl has none. Then it gives their roughness Σ|Δ²L|/Σ|ΔL|; a bowl has some too. Where the "
        "ranges overlap, the methods do not differ under that normalisation."
    ),
    columns=COLUMNS,
    value="loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No cut was drawn.",
    optional=True,
)
