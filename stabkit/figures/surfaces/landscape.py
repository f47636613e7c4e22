"""Loss surfaces around weights as contour maps, one method beside the other: DeepNet Fig. 1.

Directions are Gaussian, by default filter-normalised (Li et al. 2018). A row a ruler, a column a method; one scale of
loss a depth, so that colours compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Picture, always
from stabkit.results.conditions import FACTS
from stabkit.results.landscape import Landscape, Normalisation
from stabkit.surface import roughness
from stabkit.words import listed, percent, short

COLUMNS = (*FACTS, "ruler", "how", "a", "b", "loss")
CONTOURS = 9
MAP = "cividis"


def every(drawn: Landscape) -> pd.DataFrame:
    """One row a point, ruler and surface, of all seeds."""
    return drawn.points("surface", COLUMNS, lambda seen: {"ruler": seen.ruler, "how": seen.how})


def select(drawn: Landscape) -> pd.DataFrame:
    """Those of the first seed."""
    frame = every(drawn)
    return pd.DataFrame(frame[frame["seed"] == frame["seed"].min()].reset_index(drop=True))


def grid(rows: pd.DataFrame) -> pd.DataFrame:
    """A surface as a table: b down, a across."""
    return rows.pivot(index="b", columns="a", values="loss")


def rough(
    frame: pd.DataFrame,
    each: str = "run",
    losses: Callable[[pd.DataFrame], NDArray[np.float64]] = lambda rows: grid(rows).to_numpy(dtype=float),
) -> pd.DataFrame:
    """Roughness, share of negative curvature and curvature of every surface, or of what else `each` sets apart, whose
    rows hold these `losses`."""
    names = ["depth", "seed", "ruler", "label", each]
    rows = []
    for key, group in frame.groupby(names, sort=False):
        values = losses(group)
        measures = (roughness.roughness, roughness.negative_curvature, roughness.curvature)
        rows.append((*key, *(measure(values) for measure in measures)))
    return pd.DataFrame(rows, columns=[*names, "roughness", "negative", "curvature"])


def against(table: pd.DataFrame, labels: Sequence[str], share: Callable[[pd.DataFrame], pd.Series[float]]) -> str:
    """`17% against 3% along Post-LN’s, …`: two shares of negative curvature under every ruler that has both."""
    texts = []
    for ruler in dict.fromkeys(table["ruler"]):
        by = share(table[table["ruler"] == ruler])
        if len(by) == len(labels) == 2:
            texts.append(f"{percent(by[labels[0]])} against {percent(by[labels[1]])} along {ruler.whose}")
    return ", ".join(texts)


ROUGHER = 0.1
"""Of the second differences: so much more negative curvature, the median over seeds, is rougher."""


def title(drawn: Landscape) -> str:
    """Whether one method's surface is rougher than the other's, and at whose scale, at the deepest depth with both; of
    one method alone how much of its own curvature is negative."""
    shares = rough(every(drawn))
    where, table = deepest(shares)
    if len(table):
        return rougher(table, *dict.fromkeys(table["label"]), where=where)
    alone = shares[shares["depth"] == shares["depth"].iloc[-1]] if shares["label"].nunique() == 1 else shares.iloc[:0]
    if alone.empty:
        return "The loss around the weights"
    share = float(alone["negative"].median())
    shape = "is no bowl" if share >= ROUGHER else "is a bowl"
    return f"{alone['label'].iloc[0]}'s loss surface {shape}: {percent(share)} of its curvature is negative"


def deepest(table: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The rows of the deepest depth that has two methods, and `At 50L-50L ` where there are others; none without."""
    depths = list(dict.fromkeys(table["depth"]))
    for depth in reversed(depths):
        own = table[table["depth"] == depth]
        if own["label"].nunique() == 2:
            return (f"At {depth} " if len(depths) > 1 else ""), own
    return "", table.iloc[:0]


def rougher(table: pd.DataFrame, first: str, second: str, *, where: str = "") -> str:
    """`Post-LN's loss is rougher than DeepNorm's, but not along DeepNorm's directions`: by the share of
    negative curvature, by ROUGHER or more in the median over seeds, and more in every seed."""
    rulers: list[Normalisation] = list(dict.fromkeys(table["ruler"]))
    more = {ruler: _apart(table[table["ruler"] == ruler], first, second) for ruler in rulers}
    own = next((apart for ruler, apart in more.items() if ruler.own), [])
    if own and max(own) < 0:
        first, second = second, first
        more = {ruler: [-value for value in apart] for ruler, apart in more.items()}
    found = {ruler.label or "own": _clear(apart) for ruler, apart in more.items() if apart}
    at = tuple(found.get(name) for name in ("own", first, second))
    whose = f"{where}{first}'s loss"
    if at == (False, False, False):
        return f"{whose} is not clearly rougher than {second}'s along either's directions"
    if set(found) == {"own"}:
        return f"{whose} is {'' if found['own'] else 'no '}rougher than {second}'s, each along its own directions"
    sentences: dict[tuple[bool | None, ...], str] = {
        (True, True, False): f"{whose} is rougher than {second}'s, but not along {second}'s directions",
        (True, False, False): f"{whose} is rougher than {second}'s each along its own directions, not along one's",
        (True, True, True): f"{whose} is rougher than {second}'s along either's directions",
    }
    return sentences.get(at, f"Whether {whose} is rougher than {second}'s depends on the directions")


def found(drawn: Landscape) -> list[str]:
    """The title; then the shares under every normalisation, medians over seeds, where there are two methods."""
    where, table = deepest(rough(every(drawn)))
    by = against(table, list(dict.fromkeys(table["label"])), lambda rows: rows.groupby("label")["negative"].median())
    seeds = ", medians over seeds" if len(table) and table["seed"].nunique() > 1 else ", one seed"
    return [title(drawn), *([f"{where}Share of negative curvature{seeds}: {by}"] if by else [])]


def _apart(table: pd.DataFrame, first: str, second: str) -> list[float]:
    """The share of the one less that of the other, a number a seed that has both."""
    by = table.pivot_table(index="seed", columns="label", values="negative")
    return list((by[first] - by[second]).dropna()) if {first, second} <= set(by) else []


def _clear(apart: Sequence[float]) -> bool:
    return float(np.median(apart)) >= ROUGHER and min(apart) > 0


def shares_of(table: pd.DataFrame, share: Callable[[pd.DataFrame], pd.Series[float]]) -> str:
    """`27% against 0% by each one's own directions, …` of a table of `rough`, by any mean over what it holds of a
    method, at every depth that has both; "" where none has."""
    told = []
    for depth, own in table.groupby("depth", sort=False):
        labels = list(dict.fromkeys(own["label"]))
        if shares := against(own, labels, share):
            told.append(f"{labels[0]} against {labels[1]} at {depth}: {shares}")
    return f"negative curvature, {'; '.join(told)}" if told else ""


def alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{listed(row['label'], row['depth'], row['ruler'])}: roughness {short(row['roughness'])}, "
        f"{percent(row['negative'])} negative curvature"
        for _, row in rough(frame).iterrows()
    ]
    return f"Contour maps of the loss around weights. {'; '.join(parts[:18])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A row a depth, seed and ruler, a column a method."""
    if not np.isfinite(frame["loss"].astype(float)).any():
        return style.empty("No surface has a finite loss.")
    labels = list(dict.fromkeys(frame["label"]))
    rows = list(frame.groupby(["depth", "seed", "ruler"], sort=False))
    width, height = (style.WIDTH - 0.9) / max(len(labels), 2), 3.1
    tall = len(rows) * height
    figure = Figure(figsize=(style.WIDTH, tall))
    for place, ((depth, seed, ruler), group) in enumerate(rows):
        norm = scale(frame[frame["depth"] == depth]["loss"].to_numpy(dtype=float))
        bottom = tall - (place + 1) * height
        head = f"{depth}, seed {seed}: {ruler}; {group['how'].iloc[0]}"
        style.heading(figure, head, bottom + height)
        last: Any = None
        for label, surface in group.groupby("label", sort=False):
            column = labels.index(label)
            axes = style.placed(figure, 0.66 + column * width, bottom + 0.45, width - 0.62, height - 1.05)
            table = grid(surface)
            a, b = table.columns.to_numpy(float), table.index.to_numpy(float)
            last = drawn(axes, a, b, table.to_numpy(float), norm, str(label))
            if column == 0:
                axes.set_ylabel("b, along η")
        box = (style.WIDTH - 0.75) / style.WIDTH, (bottom + 0.45) / tall, 0.012, (height - 1.05) / tall
        bar = figure.add_axes(box)
        figure.colorbar(last, cax=bar, label="loss, nats a token")
    return figure


def scale(losses: Any) -> Normalize:
    """One scale for a depth: logarithmic where decades matter."""
    finite = losses[np.isfinite(losses)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if low > 0 and high / low > 10:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + 1)


def heat(axes: Axes, a: Any, b: Any, losses: Any, norm: Normalize) -> Any:
    """A surface in colours under its contours; what is not finite is grey."""
    axes.set_facecolor("#9aa0a8")
    cmap, seen = matplotlib.colormaps[MAP], np.ma.masked_invalid(losses)
    image = axes.pcolormesh(a, b, seen, norm=norm, cmap=cmap, shading="nearest", rasterized=True)
    contours(axes, a, b, losses, norm)
    return image


def contours(axes: Axes, a: Any, b: Any, losses: Any, norm: Normalize) -> None:
    """Lines of equal loss, evenly over the scale."""
    space = np.geomspace if isinstance(norm, LogNorm) else np.linspace
    levels = space(float(norm.vmin or 0.0), float(norm.vmax or 1.0), CONTOURS + 2)[1:-1]
    finite = losses[np.isfinite(losses)]
    seen = [level for level in levels if len(finite) and finite.min() < level < finite.max()]
    if seen and min(losses.shape) > 1:
        axes.contour(a, b, np.ma.masked_invalid(losses), levels=seen, colors="#ffffff", linewidths=0.6, alpha=0.8)


def drawn(axes: Axes, a: Any, b: Any, losses: Any, norm: Normalize, label: str) -> Any:
    """One surface with its name and share of negative curvature: colours, contours, and the cross at θ."""
    image = heat(axes, a, b, losses, norm)
    axes.plot([0], [0], "+", color="#ffffff", markersize=9, mew=1.6)
    share = percent(roughness.negative_curvature(losses))
    axes.set_title(f"{lettering.safe(label, 40)}: {share} negative curvature")
    axes.set_xlabel("a, along δ")
    return image


PICTURE: Picture[Landscape] = Picture(
    name="landscape",
    short="Loss surfaces",
    room="surfaces",
    caption="DeepNet Fig. 1 (journal version), which shows the first row, filter-normalised, early in training.",
    see="a bowl, without negative curvature, under every normalisation",
    here=lambda frame: f"seed {frame['seed'].iloc[0]}, a loss of at most {short(float(frame['loss'].max()))}",
    read=always(
        "The loss on a fixed held-out batch at θ + a·δ + b·η; the cross is θ itself. Step, normalisation and range "
        "stand above each row. First row: each method along directions made for its own weights. Normalised, "
        "these are as long as the weights, as in the papers; a method with small weights then moves less. "
        "Other rows: the same absolute directions for both. Roughness is Σ|Δ²L|/Σ|ΔL| over neighbouring points, "
        "which has no unit; – where a point is not finite. Grey: not finite. The headline's shares are medians over "
        "seeds."
    ),
    columns=COLUMNS,
    value="loss",
    select=select,
    draw=draw,
    title=lambda drawn: "The same as contours, with the share of negative curvature",
    alt=alt,
    none="No surface was drawn.",
    grid=False,
    optional=True,
)
