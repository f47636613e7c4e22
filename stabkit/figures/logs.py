"""The picture of `stabkit log`: the losses of up to twelve trainings, their levels, bands, spikes and restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.picture import Note, Picture
from stabkit.results.log import DRAWN, TEXT, LogJudgement
from stabkit.results.stop import LOOKS, Stop
from stabkit.words import short

COLUMNS = ("run", "kind", "x", "value", "unit")
LOSS, LEVEL, GUESS, EDGE = "loss", "level", "uniform guess", "edge of the band"
MARKS = {"spiked": ("^", 7), "restarted": ("|", 26), "no number": ("x", 9)}
"""{what happened: (its marker, points)}."""
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--")
HUGE = 1e100
"""Beyond it nothing is drawn."""
LONGER, SINGLY = 10, 50
"""Times the shortest log, from which on steps stand on a logarithmic scale, as under a band; entries drawn singly."""


@dataclass(frozen=True, slots=True)
class LogPicture:
    """What is drawn."""

    logs: Sequence[LogJudgement]
    stops: Sequence[Stop | None]


def select(source: LogPicture) -> pd.DataFrame:
    """Means of each curve's parts; its level and band; its events at the loss after them."""
    rows: list[tuple[str, str, float, float, str]] = []
    for own, stop in zip(source.logs, source.stops, strict=True):
        name, unit, curve = own.log.name, own.log.unit, own.curve
        begin, blocks = curve.at(slice(0, SINGLY)), curve.at(slice(SINGLY, None)).means(DRAWN - SINGLY)
        for part in (begin, blocks):
            rows += [(name, LOSS, float(x), float(y), unit) for x, y in zip(part.steps, part.values, strict=True)]
        if own.level is not None and len(curve):
            kind = LEVEL if own.level_of in ("given", "counted") else GUESS
            rows += [(name, kind, float(x), own.level, unit) for x in (curve.steps.min(), curve.steps.max())]
        if own.lost and own.since is not None and len(curve):
            rows.append((name, "no number", own.since, float(curve.values[-1]), unit))
        rows += [(name, one.kind, one.step, one.after, unit) for one in own.events if one.kind != "sum"]
        if stop is not None and stop.looks:
            rows += [(name, EDGE, float(x), float(y), unit) for x, y in zip(LOOKS, stop.edge, strict=True)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def draw(frame: pd.DataFrame) -> Figure | None:
    """None without a number."""
    finite = frame[np.isfinite(frame["value"].astype(float)) & (frame["value"].astype(float).abs() < HUGE)]
    losses = finite[finite["kind"] == LOSS]
    if losses.empty:
        return None
    with style.look():
        figure, (axes,) = style.panels(1, 1, 3.4, right=1.8)
        ends: list[End] = []
        levels: dict[float, str] = {}
        for i, (name, rows) in enumerate(finite.groupby("run", sort=False)):
            ink = HUES[i % len(HUES)]
            curve = rows[rows["kind"] == LOSS]
            if curve.empty:
                continue
            dash = DASHES[i // len(HUES) % 2]
            (line,) = axes.plot(curve["x"], curve["value"], dash, color=ink, linewidth=1.5)
            style.mark(line, "", str(name), x=str(rows["unit"].iloc[0]))
            ends.append((float(curve["value"].iloc[-1]), str(name), ink, ""))
            edge = rows[rows["kind"] == EDGE]
            axes.plot(edge["x"], edge["value"], ":", color=ink, linewidth=1.2)
            for kind, (marker, size) in MARKS.items():
                own = rows[rows["kind"] == kind]
                axes.plot(own["x"], own["value"], marker, color=ink, markersize=size, markeredgewidth=1.5)
            dashed = rows[rows["kind"].isin((LEVEL, GUESS))]
            levels |= dict(zip(dashed["value"], dashed["kind"], strict=True))
        for level in levels:
            axes.axhline(level, color=style.INK, linewidth=0.9, linestyle="--", alpha=0.7)
        firsts = losses.groupby("run")["value"].first()
        begin, most = max([*firsts, *levels]), float(losses["value"].max())
        low, high = min([*losses["value"], *levels]), most if most < 2 * begin else begin  # what diverges leaves it
        span = max(high - low, 0.1 * abs(high), 1e-12)
        axes.set_ylim(low - 0.05 * span, high + 0.12 * span)
        lengths = losses.groupby("run")["x"].max()
        if lengths.max() > LONGER * lengths.min() > 0 or (finite["kind"] == EDGE).any():
            style.log_axis(axes, "x", max(1.0, float(losses["x"].min())), float(lengths.max()))
        axes.set_xlabel(" or ".join(dict.fromkeys(losses["unit"])))
        axes.set_ylabel("loss")
        label_ends(axes, [*ends, *((level, kind, style.INK, "") for level, kind in levels.items())], 0.075)
        return figure


def alt(frame: pd.DataFrame) -> str:
    """Where each ends."""
    parts = [
        f"{name} ends at {short(float(rows['value'].iloc[-1]), 3)} at {rows['unit'].iloc[0]} {rows['x'].max():,.0f}"
        for name, rows in frame[frame["kind"] == LOSS].groupby("run", sort=False)
    ]
    return f"Loss as it was logged: {'; '.join(parts) or 'no number'}."


def title(source: LogPicture) -> str:
    """Of one log its word, of several how many."""
    if len(source.logs) > 1:
        return f"The losses of {len(source.logs)} logs"
    own = source.logs[0]
    by = own.since if own.lost and own.since is not None else own.updates
    return f"Loss: {short(own.first, 3)} to {short(own.last, 3)} by {own.log.unit} {by:,.0f}, {own.word}"


PICTURE: Picture[LogPicture] = Picture(
    name="log_losses",
    short="Losses",
    caption=(
        "The loss as it was logged; of a long log means of its parts. Dashed: its level, or a uniform guess. "
        "Dotted: the loss above which --stop ends it. ▲ a spike, | a restart, × no number from here on."
    ),
    see="a curve that goes flat early has stopped learning",
    read=(
        Note("The level is what knowing only how often each answer occurs costs: the unigram entropy."),
        Note("A text's level lies at {} to {} of the uniform guess.".format(*TEXT)),
        Note("What diverges leaves the panel."),
    ),
    columns=COLUMNS,
    value="value",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
