"""DeepNet Table 1 in its own shape: methods in their groups down, depths across, what became of the runs of each.

The paper gives BLEU or "diverged" of one run a cell. Here a cell is a rate over seeds and the median validation loss of
the seeds that train, or the word for a single run, marked as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.palette import OUTCOME_COLOURS
from stabkit.figures.picture import Picture, RunPicture, always
from stabkit.results.conditions import FACTS, GROUPS, condition_order, method_group, shown
from stabkit.results.once import once
from stabkit.results.outcome import NOT_JUDGED
from stabkit.results.run import Run
from stabkit.words import listed, several, short, some

COLUMNS = (*FACTS, "group", "steps", "unigram_loss", "validation_loss")
ROW, HEAD, LABEL, MOST_COLUMNS = 0.36, 0.62, 1.55, 6
"""Inches: a row, what stands over and under the rows, the methods' names; conditions drawn, the frame holds all."""


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run, in the order of the table; nothing where no run was judged."""
    turn = condition_order([run.spec for run in runs])
    placed = [each for each in shown(runs) if each.run.spec.alpha_scale == 1 == each.run.spec.beta_scale]
    placed.sort(key=lambda each: (turn[each.condition], GROUPS.index(method_group(each.run.spec))))
    rows = [
        {
            **each.facts("steps", "unigram_loss", "validation_loss"),
            "group": method_group(each.run.spec),
        }
        for each in placed
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame if set(frame["outcome"]) - {NOT_JUDGED} else frame.head(0)


def words(rows: pd.DataFrame) -> tuple[str, str]:
    """(how many train, what the others did) of a cell: `("5/5 train", "4.91")`, `("1 run: stuck", "5.99")`."""
    count = Counter(rows["outcome"])
    trains = rows[rows["outcome"] == "trains"]
    loss = short(float((trains if len(trains) else rows)["validation_loss"].median()), 3)
    if set(count) == {NOT_JUDGED} and len(rows) > 1:
        return f"{len(rows)} {NOT_JUDGED}", loss
    if len(rows) == 1:
        return f"1 run: {rows['outcome'].iloc[0]}", loss
    rest = ", ".join(f"{n} {word}" for word, n in sorted(count.items()) if word != "trains")
    return f"{count['trains']}/{len(rows)} train", f"{loss}; {rest}" if rest else loss


def title(runs: Sequence[Run]) -> str:
    """Which methods train in every run at the deepest depth that has several seeds, and which in none; of several
    conditions under the first of those with most seeds."""
    frame = select(runs)
    if frame.empty:
        return "Which method trains at which depth"
    most = frame.groupby("condition", sort=False)["seed"].nunique().idxmax()
    first = frame[frame["condition"] == most]
    seeds = first.groupby(["depth", "label"])["seed"].nunique().groupby("depth").max()
    deep = [depth for depth in _depths(first) if seeds.get(depth, 0) > 1] or _depths(first)
    here = first[(first["depth"] == deep[-1]) & (first["outcome"] != NOT_JUDGED)]
    shares = here.groupby("label", sort=False)["outcome"].agg(lambda column: float((column == "trains").mean()))
    all_, none = [str(k) for k in shares.index[shares == 1]], [str(k) for k in shares.index[shares == 0]]
    single = here.groupby("label")["seed"].size().max() == 1
    every, no = ("", "does not" if len(none) == 1 else "do not") if single else (" in every run", "in none")
    parts = [f"{several(all_, len(shares))} train{'s' * (len(all_) == 1)}{every}"] if all_ else []
    parts += [f"{several(none, len(shares))} {no}"] if none else []
    where = listed(deep[-1], str(first["condition"].iloc[0]))
    if not parts:
        return f"At {where} every method trains in some runs, none in all" if len(shares) else "Nothing was judged yet"
    rest = " of those judged" if len(here) < (first["depth"] == deep[-1]).sum() else ""
    return f"At {where} {', '.join(parts)}{rest}"


def _depths(frame: pd.DataFrame) -> list[str]:
    """Shallow before deep."""
    order = frame.assign(total=frame["encoder_layers"] + frame["decoder_layers"])
    return list(order.sort_values(["total", "encoder_layers"], kind="stable")["depth"].unique())


def alt(frame: pd.DataFrame) -> str:
    cells = [
        f"{listed(label, depth, condition)} {words(rows)[0]}"
        for (condition, label, depth), rows in frame.groupby(["condition", "label", "depth"], sort=False)
    ]
    return f"Table of outcomes. {some(cells, 60)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A grid a condition."""
    panels = list(frame.groupby("condition", sort=False))[:MOST_COLUMNS]
    heights = [_height(group) for _, group in panels]
    tall = sum(heights)
    figure = Figure(figsize=(style.WIDTH, tall))
    top = tall
    for (condition, group), height in zip(panels, heights, strict=True):
        depths = _depths(group)
        wide = min(style.WIDTH - LABEL - 0.1, 1.75 * len(depths))
        axes = style.placed(figure, LABEL, top - height + 0.1, wide, height - HEAD)
        _grid(axes, str(condition), group, depths)
        top -= height
    return figure


def _rows(own: pd.DataFrame) -> list[tuple[str, str]]:
    """(group, label) down the grid, a group's name as a row of its own with an empty label."""
    rows: list[tuple[str, str]] = []
    for group, label in own[["group", "label"]].drop_duplicates().itertuples(index=False):
        if not rows or rows[-1][0] != group:
            rows.append((str(group), ""))
        rows.append((str(group), str(label)))
    return rows


def _height(rows: pd.DataFrame) -> float:
    heads = sum(not label for _, label in _rows(rows))
    return HEAD + ROW * (len(_rows(rows)) - 0.4 * heads)


def _grid(axes: Axes, condition: str, rows: pd.DataFrame, depths: list[str]) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlim(-0.5, len(depths) - 0.5)
    axes.set_xticks(range(len(depths)), depths)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks([])
    steps = sorted({int(n) for n in rows["steps"]})
    losses = sorted({round(float(n), 2) for n in rows["unigram_loss"].dropna()})
    about = f"after {steps[-1]} updates, unigram loss {' or '.join(map(str, losses[:2]))}"
    axes.set_title(listed(condition, about), pad=16)
    at = 0.0
    for group, label in _rows(rows):
        if not label:
            axes.text(-0.52, at + 0.3, group, ha="right", va="center", fontsize=7.5, alpha=0.75)
            at += 0.6
            continue
        mine = rows[rows["label"] == label]
        method = str(mine["method"].iloc[0])
        name = axes.text(-0.52, at + 0.5, lettering.safe(label, 24), ha="right", va="center")
        style.mark(name, method)
        for x, depth in enumerate(depths):
            here = mine[mine["depth"] == depth]
            if len(here):
                _cell(axes, x, at, method, here)
        at += 1.0
    axes.set_ylim(at, 0.0)


def _cell(axes: Axes, x: int, at: float, method: str, here: pd.DataFrame) -> None:
    seen = set(here["outcome"])
    word = "some" if "trains" in seen and len(seen) > 1 else next(iter(sorted(seen)))
    fill = OUTCOME_COLOURS.get(word, OUTCOME_COLOURS[NOT_JUDGED])
    single: dict[str, Any] = {"edgecolor": "none", "linewidth": 0.0}
    if len(here) == 1:
        single = {"edgecolor": style.INK, "linewidth": 0.8, "linestyle": (0, (2, 2))}
    patch = axes.add_patch(Rectangle((x - 0.485, at + 0.05), 0.97, 0.9, facecolor=fill, **single))
    style.mark(patch, method)
    first, second = words(here)
    for text, height, size in ((first, 0.34, 7.5), (second, 0.72, 6.5)):
        style.mark(axes.text(x, at + height, text, ha="center", va="center", fontsize=size, color="#000000"), method)


PICTURE: RunPicture = Picture(
    name="table1",
    short="Who trains",
    room="methods",
    caption="Drawn as DeepNet's Table 1 (journal version: BLEU or “diverged” by method and depth), for these runs.",
    see="How many of a cell's runs train, and their median validation loss; below it, the outcomes of the others.",
    read=always(
        "“1 run”, dashed, is a single run: one seed gives no rate. “Early” is neither trained nor stuck after so "
        "many updates. Groups as in the paper, by the place of the norm."
    ),
    columns=COLUMNS,
    value="validation_loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run was judged.",
    grid=False,
    optional=True,
)
