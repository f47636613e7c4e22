"""Which link of DeepNet §2's chain breaks, and when: the first step at which each is beyond its limit, run by run.

    update          ‖ΔF‖ (eq. 1) beyond half of √(2d)
    LN input        its mean over the sub-layers half as large again as at step 0
    gradient        first/last layer below the one limit for a vanished gradient
    token cosine    tokens' output states beyond a mean cosine of 0.9: no link of the paper's, a candidate

The paper's order is from the top down: the update explodes, LN inputs grow, the gradient vanishes as training goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS, shown
from stabkit.figures.shared.numbers import centre, chain, lowest_ratio, series
from stabkit.figures.shared.once import once
from stabkit.figures.shared.points import LOWEST
from stabkit.figures.shared.words import listed, several, short
from stabkit.results.chain import SATURATED, gradient_ratio, ln_growth
from stabkit.results.outcome import GROWN, VANISHED
from stabkit.spec import depth_text
from stabkit.storage.store import Run

COLLAPSED = 0.9
"""A mean cosine between tokens above this: they are nearly one direction."""
LinkName = Literal["update", "ln_input", "gradient", "token_cosine"]
LINKS: dict[LinkName, str] = {
    "update": f"‖ΔF‖ beyond {SATURATED:g} of √(2d)",
    "ln_input": f"LN input {GROWN:g} times its first",
    "gradient": f"gradient ratio below {VANISHED:g}",
    "token_cosine": f"token cosine above {COLLAPSED:g}",
}
COLUMNS = (*FACTS, "link", "step", "last")
NEVER = -1
STEP = "first step at which the link is beyond its limit"


def first(run: Run, link: LinkName) -> int | None:
    """The first step at which a link is beyond its limit; NEVER where it never was, None where it was not recorded."""
    if link == "update":
        steps, values = series(run, "update", "state")
        beyond = values > SATURATED * math.sqrt(2 * run.spec.model.hidden)
    elif link == "token_cosine":
        steps, values = series(run, "token_cosine", "state")
        beyond = values > COLLAPSED
    else:
        table = run.records.get("ln_input" if link == "ln_input" else "grad_norm")
        if table is None or not len(table.steps):
            return None
        steps = table.steps
        if link == "gradient":
            beyond = gradient_ratio(table) < VANISHED
        else:
            beyond = ln_growth(table) > GROWN
    if not len(steps):
        return None
    places = np.flatnonzero(beyond)
    return int(steps[places[0]]) if len(places) else NEVER


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and link that it recorded."""
    rows = []
    for placed in shown(runs):
        for link in LINKS:
            step = first(placed.run, link)
            if step is not None:
                rows.append({**placed.facts(), "link": link, "step": step, "last": placed.run.spec.train.steps})
    return pd.DataFrame(rows, columns=list(COLUMNS))


@once
def sentence(runs: Sequence[Run]) -> str:
    """Which link these runs break, and whether in the paper's order: counted, and nothing where none has a gradient."""
    by: dict[str, dict[str, int]] = {}
    places: dict[str, tuple[str, str]] = {}
    for row in select(runs).itertuples():
        by.setdefault(str(row.run), {})[str(row.link)] = int(str(row.step))
        places[str(row.run)] = str(row.label), str(row.depth)
    seen = {run: links for run, links in by.items() if "gradient" in links}
    if not seen:
        return ""
    gone = [run for run, links in seen.items() if links["gradient"] == 0]
    lost = [run for run, links in seen.items() if links["gradient"] > 0]
    ordered = [run for run in lost if 0 < seen[run].get("ln_input", NEVER) <= seen[run]["gradient"]]
    grown = [run for run, links in seen.items() if links.get("ln_input", NEVER) > 0]
    count = len(seen)
    parts = [f"of {count} run{'s' * (count != 1)} {len(gone)} began with a vanished gradient, before any update"]
    if gone:
        parts[0] += f" ({_cells(places[run] for run in gone)}{_fall(run for run in runs if run.run_id in gone)})"
    parts.append(f"{len(lost)} fell below the limit later")
    if lost:
        training = sum(run.outcome.word == "trains" for run in runs if run.run_id in lost)
        parts[-1] += f", {len(ordered)} of them after their LN inputs had grown by half"
        parts[-1] += f" ({training} of the {len(lost)} train)" if training else ""
    parts.append(f"LN inputs grew by half in {len(grown)}")
    end = ""
    if not any(run.outcome.word in ("stuck", "diverged") for run in runs):
        end = "; none of them was judged to fail, so this is no verdict on the chain"
    elif gone and not lost:
        end = ": the gradient is weak before the update explodes, where the paper's chain has it vanish after"
    elif ordered and not gone:
        end = ": in the order of the paper's chain"
    return f"{listed(*parts[:-1])}, and {parts[-1]}{end}"


def _fall(runs: Iterable[Run]) -> str:
    """`; training took it from 0.003 to 2·10⁻⁷`: the medians of what these runs began with and of their lowest, where
    it fell ten-fold."""
    kept = list(runs)
    began = centre(max(chain(run, "gradient_ratio_start"), LOWEST) for run in kept)
    lowest = centre(map(lowest_ratio, kept))
    return f"; training took it from {short(began, 1)} to {short(lowest, 1)}" if lowest < 0.1 * began else ""


def _cells(places: Iterable[tuple[str, str]]) -> str:
    """`Post-LN at 18L-18L, 50L-50L and 100L-100L; ADMIN at 50L-50L`."""
    by: dict[str, list[str]] = {}
    for label, depth in dict.fromkeys(places):
        by.setdefault(label, []).append(depth)
    return "; ".join(f"{label} at {several(depths, len(depths) + 1, 'depths')}" for label, depths in by.items())


def title(runs: Sequence[Run]) -> str:
    """How many runs had no gradient from the first on, and how many lost it."""
    steps = [int(step) for step in select(runs).query("link == 'gradient'")["step"]]
    if not steps:
        return "When each link of the chain breaks"
    gone, lost = sum(step == 0 for step in steps), sum(step > 0 for step in steps)
    count = f"{len(steps)} run{'s' * (len(steps) != 1)}"
    return f"The gradient was below the limit before the first update in {gone} of {count}, later in {lost} more"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for link, text in LINKS.items():
        rows = frame[frame["link"] == link]
        if rows.empty:
            continue
        start, never = int((rows["step"] == 0).sum()), int((rows["step"] == NEVER).sum())
        parts.append(f"{text}: {start} before any update, {len(rows) - start - never} later, {never} never")
    return f"First steps at which links of the chain break, a row a link. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A row a link, a line of marks a method."""
    links = [link for link in LINKS if link in set(frame["link"])]
    methods = list(dict.fromkeys(zip(frame["label"], frame["method"], frame["condition"], strict=True)))
    several_conditions = frame["condition"].nunique() > 1
    lines = len(methods) + 1.4  # a line a method under the link's name
    figure, (axes,) = style.panels(1, 1, 0.75 + len(links) * lines * 0.155)
    last = max(2, int(frame["last"].max()))
    never = last * 2.2
    for place, link in enumerate(links):
        top = place * lines
        axes.text(0.006, top + 0.75, LINKS[link], transform=axes.get_yaxis_transform(), fontsize=8, fontweight="bold")
        for turn, (label, method, condition) in enumerate(methods):
            rows = frame[(frame["link"] == link) & (frame["label"] == label) & (frame["condition"] == condition)]
            name = condition if several_conditions else ""
            _marks(axes, rows, top + 1.5 + turn, method, str(label), str(name), never, LINKS[link])
        if place:
            axes.axhline(top, color=style.INK, linewidth=0.5, alpha=0.3)
    axes.set_ylim(len(links) * lines, 0)
    axes.set_yticks([])
    ticks = [tick for tick in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096) if tick <= last][-6:]
    style.log_axis(axes, "x", 0.3, never * (12 if several_conditions else 3.2), ticks=[START, *ticks, never])
    axes.set_xticks([START, *ticks, never], ["at the start", *map(str, ticks), "never"])
    for edge in (0.75, last * 1.6):
        axes.axvline(edge, color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.6)
    axes.set_xlabel(STEP)
    return figure


START = 0.35
"""Where what was so before any update stands on the axis."""


def _marks(
    axes: Axes, rows: pd.DataFrame, y: float, method: str, label: str, condition: str, never: float, link: str
) -> None:
    """One method's runs on one line: a mark a step and outcome. Its name and depths stand once beside those of the left
    edge, once beside the last of those in training and once beside those of the right edge."""
    hue = style.colour(method)
    for _, here in rows.groupby(np.sign(rows["step"]), sort=True):
        for step, marks in here.groupby("step", sort=True):
            x = never if step == NEVER else max(float(str(step)), START)
            for word in dict.fromkeys(marks["outcome"]):
                look = {**MARKS.get(str(word), MARKS["early"]), "markersize": 5}
                (drawn,) = axes.plot([x], [y], linestyle="", color=hue, clip_on=False, **look)
                style.mark(drawn, method, listed(label, condition, link), x=STEP)
        shapes = zip(here["encoder_layers"], here["decoder_layers"], strict=True)
        depths = ", ".join(f"{n}L" if n and m else depth_text(n, m) for n, m in dict.fromkeys(shapes))
        name = lettering.safe(listed(f"{label} {depths}", condition), 44)
        beside = axes.annotate(name, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=6.5)
        style.mark(beside, method)


PICTURE: RunPicture = Picture(
    name="chain_order",
    short="Which link breaks, and when",
    room="chain",
    caption="DeepNet §2 (journal version), the chain of causes: not drawn in the paper.",
    see=(
        "A mark is one run on one link, at the first step at which that link is beyond its limit; those at the left "
        "edge were so before any update, those at the right never."
    ),
    read=(
        Note(
            "By the paper's chain a run that fails would pass from the top row to the bottom ones as training goes on. "
            "The marks' shapes are the outcomes."
        ),
    ),
    columns=COLUMNS,
    value="step",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has recorded its chain.",
    optional=True,
)
