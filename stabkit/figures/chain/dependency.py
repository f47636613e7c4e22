"""How much every residual sum depends on every sub-layer, before training: ADMIN's dependency matrix.

With branch and shortcut uncorrelated, a sum ω·x + γ·G(x) takes the share f²/(f² + s²) of its variance from its own
branch, f² and s² their mean squares (probe `branch_ratio`), and leaves the rest to what x was made of. Row i, column j:
the share of sub-layer j in sum i; column 0 is the stack's input. A norm scales all shares alike. Rows sum to 1. Not of
DLCL, whose layers read all before them. Liu et al. 2020, §4; X. Liu et al. 2020, §3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import share
from stabkit.results.conditions import FACTS, Shown, depth_rank, shown
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.words import listed, short

COLUMNS = (*FACTS, "sum", "branch", "share")
MOST = 12
LIMIT = 24
"""Sub-layers a side above which the frame keeps every so many; the picture draws the frame."""


def shares(branch: NDArray[np.float64], shortcut: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, n + 1): the share of the input and of each branch in each sum, from mean squares (n,)."""
    n = len(branch)
    table = np.zeros((n, n + 1))
    above = np.zeros(n + 1)
    above[0] = 1.0
    for i in range(n):
        share = branch[i] / (branch[i] + shortcut[i])
        above = above * (1 - share)
        above[i + 1] = share
        table[i] = above
    return table


def dependencies(run: Run) -> NDArray[np.float64]:
    """The shares of a run's output stack at step 0; empty where they were not recorded."""
    table = run.records.get("branch_ratio")
    names = share.output_sites(table.sites) if table is not None else []
    if table is None or not len(table.steps) or not share.chained(run.spec) or f"{names[0]}@branch" not in table.sites:
        return np.empty((0, 1))
    branch, shortcut = (table.select([f"{name}@{part}" for name in names])[0] for part in ("branch", "shortcut"))
    return shares(branch, shortcut)


@once
def deepest(runs: Sequence[Run]) -> dict[str, tuple[Shown, NDArray[np.float64]]]:
    """{label: the deepest model with each method, first condition and seed, and its dependencies}."""
    placed = shown(runs)
    rank = max((depth_rank(entry.run.spec) for entry in placed), default=None)
    chosen: dict[str, tuple[Shown, NDArray[np.float64]]] = {}
    for entry in placed:
        if depth_rank(entry.run.spec) == rank and entry.label not in chosen and len(table := dependencies(entry.run)):
            chosen[entry.label] = (entry, table)
    return chosen


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """Of the deepest model with each method, first condition and seed: a row a pair of sum and branch."""
    rows = []
    for entry, table in list(deepest(runs).values())[:MOST]:
        facts = entry.facts()
        kept = np.unique(np.linspace(0, len(table) - 1, min(len(table), LIMIT)).round().astype(int))
        edges = [0, 1, *(kept + 2).tolist()]  # the branches between two kept ones are one column
        for i in kept:
            parts = np.add.reduceat(np.append(table[i], 0.0), edges[:-1])
            rows += [
                {**facts, "sum": int(i) + 1, "branch": int(last) - 1, "share": float(part)}
                for last, part in zip(edges[1:], parts, strict=True)
            ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(runs: Sequence[Run]) -> str:
    """How much of the output is the last branch's, under the method where it is most and where it is least."""
    chosen = deepest(runs)
    last = {label: float(table[-1, -1]) for label, (_, table) in chosen.items() if np.isfinite(table[-1, -1])}
    if len(last) < 2:
        return "What each residual sum consists of"
    most, least = max(last, key=lambda key: last[key]), min(last, key=lambda key: last[key])
    depth = next(iter(chosen.values()))[0].run.spec.depth
    return (
        f"At {depth} the last branch makes {short(100 * last[most])} % of the output under {most}, "
        f"{short(100 * last[least])} % under {least}"
    )


def alt(frame: pd.DataFrame) -> str:
    group = frame[frame["sum"] == frame["branch"]]
    parts = [
        f"{listed(str(label), str(depth))} {short(float(rows['share'].iloc[-1]))}"
        for (label, depth), rows in group.groupby(["label", "depth"], sort=False)
    ]
    return f"Heat maps of shares. Share of its own branch in the last sum: {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a method, colour logarithmic in the share."""
    panels = list(frame.groupby(["label", "depth", "condition"], sort=False))
    figure, all_axes = style.panels(len(panels), 4, 2.5, legend=3)
    image = None
    for place, (axes, ((label, depth, condition), group)) in enumerate(zip(all_axes, panels, strict=True)):
        lettering.entitle(axes, listed(str(label), str(depth), str(condition)))
        table = group.pivot(index="sum", columns="branch", values="share")
        last = int(group["sum"].max())
        shown_ = np.log10(np.clip(table.to_numpy(float), 1e-3, 1.0))
        shown_ = np.where(table.columns.to_numpy()[None, :] > table.index.to_numpy()[:, None], np.nan, shown_)
        image = axes.imshow(
            shown_, cmap="cividis", vmin=-3, vmax=0, aspect="auto", extent=(-0.5, last + 0.5, last + 0.5, 0.5)
        )
        axes.set_xlabel("made by sub-layer (0: input)")
        if place % 4 == 0:
            axes.set_ylabel("sum after sub-layer")
    if image is not None:
        tall = figure.get_figheight()
        box = (style.LEFT / style.WIDTH, 0.42 / tall, 2.4 / style.WIDTH, 0.1 / tall)
        bar = figure.colorbar(image, cax=figure.add_axes(box), orientation="horizontal")
        bar.set_ticks([-3, -2, -1, 0], labels=["≤ 0.1 %", "1 %", "10 %", "100 %"])
        bar.set_label("share of the sum's variance")
    return figure


PICTURE: RunPicture = Picture(
    name="dependency",
    short="Dependency of sums on branches",
    room="chain",
    caption=(
        "Liu et al. 2020 (ADMIN; Very Deep Transformers §3 builds on it), the dependency β_{i,j}; step 0, one seed."
    ),
    see=(
        "Rows: the residual sums of the decoder (or of an encoder-only model), from input to output. Columns: the "
        "sub-layers that they consist of, the stack's input first."
    ),
    read=(
        Note(
            "A bright band along the diagonal: only the last few branches count, each new one displaces the others, "
            "and changes of the weights are amplified. A broad floor: all branches count. One colour scale for all."
        ),
    ),
    columns=COLUMNS,
    value="share",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has recorded its branches and shortcuts.",
    grid=False,
    optional=True,
    at_start=True,
)
