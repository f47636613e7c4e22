"""The pictures of a user's model: of `stabkit probe` a curve a depth, of a watch lines against the updates.

A row of either table holds its texts, what it takes from the records and how that is drawn. All stand in one file,
above 400 lines, because they show the same links of the chain and are drawn alike: in one hue, the later in the order
(the deeper) the heavier, logarithmic in y, with the limits that are near.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.picture import Note, Picture, always
from stabkit.results.depth_fit import geometric
from stabkit.results.outcome import LOST, RECOVERED
from stabkit.results.own.alarm import WEAK
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.judged import Judged
from stabkit.results.own.measured import EVERY, RAMP, SILENT, TOP, ramp_information
from stabkit.results.own.rules import NAMES
from stabkit.results.points import drawable_rows, evenly
from stabkit.wording import chain
from stabkit.words import scientific, share, short, times

if TYPE_CHECKING:
    from stabkit.storage.watched import Watched

Link = Literal["stream", "update", "gradient", "scores"]
Points = Sequence[tuple[float, float]]
Line = tuple[str, str, NDArray[np.int64], NDArray[np.float64]]
"""(name, panel, updates, values)."""

PROBED = ("run", "panel", "depth", "seed", "x", "value")
WATCHED_COLUMNS = ("run", "panel", "x", "value")
"""Columns of the frame of a probe, and of a watch."""
MOST_LINES, MOST_POINTS = 6, 240
"""That one picture of a watch draws of a stack, and that one line has."""
HUE, GREY = "#0072B2", "#767676"
LINEAR = 16
"""Updates up to which the axis is linear; logarithmic beyond."""
NOTHING = "Nothing was recorded."
NEAR_ZERO = 1e-3
"""Nats of information up to which a curve is called near 0."""


def _probed(
    link: Link,
    *,
    read: str,
    points: Callable[[Judged, ModelCell, str], Points],
    by_stack: bool = True,
    rates: bool = False,
    x_name: str,
    x_note: str = "",
    y_label: str,
    limits: Mapping[float, str],
    reads: str,
    **texts: Any,
) -> Picture[Judged]:
    """A curve a depth: the `points` of every cell, stack by stack; its title is what the link's verdict says. With
    `rates` x is a multiple of the rate, and logarithmic."""

    def select(source: Judged) -> pd.DataFrame:
        rows: list[dict[str, object]] = []
        for cell in source.cells:
            for stack in cell.stacks if by_stack else [""]:
                rows += _rows(cell, _panel(source, cell, stack), points(source, cell, stack))
        return pd.DataFrame(rows, columns=list(PROBED))

    return Picture(
        name=f"own_{link}",
        short=NAMES[link],
        read=always(read),
        columns=PROBED,
        value="value",
        select=select,
        draw=lambda frame: by_depth(frame, x_name, x_note, y_label, limits, rates=rates),
        optional=rates,
        title=lambda source: f"{NAMES[link]}: {chain.brief(source.worst.links[link])}",
        alt=lambda frame: _depth_ends(frame, reads),
        **texts,
    )


def _deepest(frame: pd.DataFrame) -> pd.DataFrame:
    """The curves of the greatest depth."""
    deepest: pd.DataFrame = frame[frame["depth"] == frame["depth"].max()]
    return deepest


def _lowest(frame: pd.DataFrame) -> str:
    """`2.8e-9 at the lowest layer, at 24 layers`: of the deepest, in the panel where that is farthest from 1."""
    rows = _deepest(frame)
    last = rows[rows["x"] == rows["x"].max()].groupby("panel")["value"]
    values = [value for _, seeds in last if (value := geometric(seeds.tolist())) > 0]
    if not values:
        return f"no number above 0{_at_depth(rows)}"
    return f"{short(max(values, key=lambda value: abs(math.log(value))))} at the lowest layer{_at_depth(rows)}"


def _at_depth(rows: pd.DataFrame) -> str:
    depth = int(rows["depth"].max())
    return f", at {depth} layers" if depth else ""


def _growth(frame: pd.DataFrame) -> str:
    """`from 1 to 3.2, at 24 layers`."""
    rows = _deepest(frame)
    first, last = (geometric(rows[rows["x"] == x]["value"].tolist()) for x in (rows["x"].min(), rows["x"].max()))
    return f"from {short(first)} to {short(last)}{_at_depth(rows)}"


def _information_range(frame: pd.DataFrame) -> str:
    """`from 0.4, 1.1 at its most, to 0.02 at 16 times the rate`; of what tells nothing, how little."""
    rows = _deepest(frame)
    if (top := float(rows["value"].max())) < NEAR_ZERO:
        return f"near 0 throughout, at most {short(top)}{_at_depth(rows)}" if top else f"0 throughout{_at_depth(rows)}"
    by_rate = rows.groupby("x")["value"].apply(lambda seeds: geometric(seeds.tolist()))
    first, last, most = float(by_rate.iloc[0]), float(by_rate.iloc[-1]), float(by_rate.max())
    between = f", {short(most)} at its most," if most > 1.5 * max(first, last) else ""
    to = f"{short(last)} at {short(float(by_rate.index[-1]))} times the rate"
    return f"from {short(first)}{between} to {to}{_at_depth(rows)}"


def _moved(frame: pd.DataFrame) -> str:
    """`0.3 at 6 layers, 1.2 at 24 layers`, after the last update."""
    parts = []
    for depth in sorted(frame["depth"].unique().tolist()):
        rows = frame[frame["depth"] == depth]
        last = geometric(rows[rows["x"] == rows["x"].max()]["value"].tolist())
        parts.append(f"{short(last)} at {depth} layers" if depth else short(last))
    return f"{', '.join(parts)}, after {int(frame['x'].max())} updates"


def _stream_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """x is the share of the way through the stack."""
    names = [stack, *(sublayer.name for sublayer in cell.of(stack))]
    stream = cell.records["stream"]
    return [(i / (len(names) - 1), float(stream.at(name)[0])) for i, name in enumerate(names)]


def _update_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """Step 0, at which nothing has moved, is left out."""
    steps = cell.records["update"].steps
    return [(int(step), float(value)) for step, value in zip(steps[1:], cell.update()[1:], strict=True)]


def _gradient_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """At the step judged; x is the share of the way from the top layer to the lowest."""
    norms = cell.gradients(stack)
    if norms.shape[1] < 2:
        return []
    steps = {verdict.lr: verdict.gradient.step for verdict in source.verdicts}
    layers = norms[min(steps[cell.facts.lr], len(norms) - 1)]
    top = float(layers[-1]) or float("nan")
    return [(i / (len(layers) - 1), float(value) / top) for i, value in enumerate(layers[::-1])]


def _scores_points(source: Judged, cell: ModelCell, stack: str) -> Points:
    """On the ramp; x is the rate of the update before, over the highest of the schedule. What is silent has 0."""
    told = ramp_information(cell)
    factors = [TOP ** (max(EVERY * i - 1, 0) / (RAMP - 1)) for i in range(len(told))]
    return [(x, max(float(v), 0.0) * (v > SILENT)) for x, v in zip(factors, told, strict=True) if v == v]


OWN: Mapping[Link, Picture[Judged]] = {
    "scores": _probed(
        "scores",
        caption=(
            "H(mean p) − mean H(p) in nats, p the scores' softmax at the tokens of the batch, while the "
            f"rate rises geometrically in {RAMP} updates from its schedule's highest value to {TOP:g} times that; "
            f"values up to {short(SILENT)}, and those that were lost, are not drawn."
        ),
        see="level or rising: the model tells tokens apart at all of these rates",
        here=_information_range,
        read=(
            "Where it drops to 0, every token has the same scores, and the loss is that of knowing only the "
            "frequencies. A curve that drops soon means a rate near its limit; a curve that is low throughout means "
            "a model that has not learnt yet."
        ),
        points=_scores_points,
        by_stack=False,
        rates=True,
        x_name="rate",
        x_note=", times the highest of the schedule",
        y_label="nats of information on the input",
        limits={},
        reads="Information about the input in the scores",
    ),
    "stream": _probed(
        "stream",
        caption="rms of x_i before any update, x_i the output of sub-layer i; the band is the range over seeds.",
        see="level if every sub-layer ends in a norm; else it rises like the square root of the way",
        read="The axis is logarithmic: a straight slope is growth by a factor per layer.",
        here=_growth,
        points=_stream_points,
        x_name="way through the stack",
        x_note=", from the first sub-layer to the last",
        y_label="rms of x",
        limits={},
        reads="rms of the residual stream",
    ),
    "update": _probed(
        "update",
        caption=(
            "‖F(θ_t) − F(θ_0)‖/‖F(θ_0)‖, F the last stack's output after its final norm, mean over the batch's tokens."
        ),
        see="curves of all depths lie on each other",
        here=_moved,
        read="At √2 the output has nothing in common with the start: a plateau there is saturation, not stability.",
        points=_update_points,
        by_stack=False,
        x_name="update",
        y_label="‖ΔF‖ ÷ ‖F‖",
        limits={math.sqrt(2): "√2: unrelated"},
        reads="Change of the output, relative to its size",
    ),
    "gradient": _probed(
        "gradient",
        caption=(
            "‖∂L/∂θ‖ over all parameters of a layer, over that of the top layer, before the update of the step judged."
        ),
        see="level, or rising a little; the matrix above says what is usual",
        here=_lowest,
        read=(
            "Falling to the right: the lower layers receive almost no gradient and do not move; rising: their "
            "gradients explode."
        ),
        points=_gradient_points,
        x_name="way through the stack",
        x_note=", from the top layer to the lowest",
        y_label="gradient ÷ top layer's",
        limits={1e-4: "fails below"},
        reads="Gradient of each layer over the top layer's",
    ),
}
"""{link of the chain: its picture}, of `stabkit probe`."""


def _panel(judged: Judged, cell: ModelCell, stack: str = "") -> str:
    """Where a cell is drawn: by rate where there are several, by stack where there are."""
    rate = f"rate {scientific(cell.facts.lr)}" if len(judged.verdicts) > 1 else ""
    stack = stack if len(cell.stacks) > 1 else ""
    return ", ".join(word for word in (rate, stack) if word)


def _depth_text(cell: ModelCell) -> str:
    """`12 layers`; of a factory that takes no depth, the sub-layers found."""
    depth = cell.facts.depth
    return f"{depth} layers" if depth is not None else f"{len(cell.facts.sublayers)} sub-layers"


def _rows(cell: ModelCell, panel: str, points: Points) -> list[dict[str, object]]:
    """A curve as rows of a frame."""
    return [
        {
            "run": f"{_depth_text(cell)}, seed {cell.facts.seed}{f', {panel}' if panel else ''}",
            "panel": panel,
            "depth": cell.depth,
            "seed": cell.facts.seed,
            "x": x,
            "value": value,
        }
        for x, value in points
    ]


def _depth_ends(frame: pd.DataFrame, reads: str) -> str:
    """The picture in words: where each depth ends."""
    if frame.empty:
        return NOTHING
    parts = []
    for (panel, depth), rows in frame.groupby(["panel", "depth"], sort=False):
        last = geometric(rows[rows["x"] == rows["x"].max()]["value"].tolist())
        where = f"{depth} layers" if depth else "the model"
        parts.append(f"{where}{f', {panel}' if panel else ''}: {short(last)}")
    return f"{reads}, at its right end: {'; '.join(parts)}."


def _watched(
    name: str,
    *,
    read: str = "",
    lines: Callable[[Watched], Iterable[Line]],
    says: Callable[[pd.DataFrame], str],
    y_label: str,
    limits: Mapping[float, str],
    reads: str,
    **texts: Any,
) -> Picture[Watched]:
    """Lines against the updates; `says`: what they show, for the title too."""
    return Picture(
        name=f"watched_{name}",
        short=name.capitalize(),
        read=(Note(read),) if read else (),
        columns=WATCHED_COLUMNS,
        value="value",
        select=lambda watch: _frame(lines(watch)),
        title=lambda watch: (
            f"{name.capitalize()}: {_unreached(watch) * (name == 'gradient') or says(_frame(lines(watch)))}"
        ),
        here=says,
        draw=lambda frame: by_update(frame, y_label, limits),
        alt=lambda frame: _line_ends(frame, reads),
        **texts,
    )


def _gradient_lines(watch: Watched) -> Iterable[Line]:
    """At most six layers of a stack."""
    table = watch.cell.records.get("gradient")
    for stack in watch.cell.stacks if table is not None else ():
        norms = watch.cell.gradients(stack)
        if table is None or norms.shape[1] < 2:
            continue
        with np.errstate(all="ignore"):
            ratio = norms / norms[:, -1:]
        panel = stack if len(watch.cell.stacks) > 1 else ""
        for layer in evenly(range(norms.shape[1] - 1), MOST_LINES):
            yield f"{stack}.{layer + 1}", panel, table.steps, ratio[:, layer]


def _unreached(watch: Watched) -> str:
    """How many layers no gradient arrived at; "" where it did at all."""
    norms = [watch.cell.gradients(stack) for stack in watch.cell.stacks] if "gradient" in watch.cell.records else []
    without = sum(int(np.isnan(own).all(axis=0).sum()) for own in norms if len(own))
    return f"none arrives at {without} of {sum(own.shape[1] for own in norms)} layers" if without else ""


def _farthest(frame: pd.DataFrame) -> str:
    """How far a layer came from the top layer's gradient."""
    frame = frame[np.isfinite(frame["value"])]
    if frame.empty:
        return "no two layers could be compared"
    far = frame.loc[np.log(frame["value"].clip(lower=1e-300)).abs().idxmax()]
    return f"{far['run']} receives {times(float(far['value']))} the top layer's at update {far['x']:,}"


def _stream_lines(watch: Watched) -> Iterable[Line]:
    """At most six sub-layers of a stack."""
    stream = watch.cell.records["stream"]
    for stack in watch.cell.stacks:
        panel = stack if len(watch.cell.stacks) > 1 else ""
        for name in evenly([stack, *(sublayer.name for sublayer in watch.cell.of(stack))], MOST_LINES):
            yield f"{stack}, input" if name == stack else name, panel, stream.steps, stream.at(name)


def _grown(frame: pd.DataFrame) -> str:
    """How much the end of the last stack grew from the first reading to the last."""
    last = frame["run"].iloc[-1]
    values = frame[frame["run"] == last]["value"]
    return (
        f"{last} ends at {share(float(values.iloc[-1] / values.iloc[0]) if values.iloc[0] else math.nan)} at the start"
    )


OUTPUT, WEIGHTS, LOSS = "output", "largest step", "loss"


def _update_lines(watch: Watched) -> Iterable[Line]:
    """How far the output is from the start, and the largest step of the weights."""
    update, delta = watch.cell.records["update"], watch.cell.records.get("delta")
    yield OUTPUT, "", update.steps, update.at("state@relative")
    if delta is not None:
        names = [f"{sublayer.name}@relative" for sublayer in watch.cell.facts.sublayers]
        yield WEIGHTS, "", delta.steps, delta.select(names).max(axis=1)


def _moved_by(frame: pd.DataFrame) -> str:
    """Where the output is in the end, and the largest step of the weights."""
    moved, steps = (frame[frame["run"] == name]["value"].to_numpy() for name in (OUTPUT, WEIGHTS))
    known = steps[np.isfinite(steps)] if len(steps) else steps
    most = f", one update moves weights by up to {np.max(known):.2g} of their norm" if len(known) else ""
    return (
        f"the output has moved by {share(float(moved[-1]))}{most}" if len(moved) else f"the output was read once{most}"
    )


def _loss_lines(watch: Watched) -> Iterable[Line]:
    """The loss and, of logits over V classes, ln V; none where no loss was given."""
    loss, guess = watch.cell.records.get("loss"), watch.cell.facts.guess
    if loss is None:
        return
    if guess is not None and guess.classes > 1 and len(loss.steps) > 1:
        ends = loss.steps[[0, -1]]
        yield "uniform guess", "", ends, np.full(len(ends), guess.uniform)
    yield LOSS, "", loss.steps, loss.at("train")


def _fallen(frame: pd.DataFrame) -> str:
    """Its first, least and last."""
    values = frame[frame["run"] == LOSS]["value"]
    if values.empty:
        return "the watch received none"
    return f"{values.iloc[0]:.3g} at the start, {values.min():.3g} at its lowest, {values.iloc[-1]:.3g} at the end"


WATCHED: tuple[Picture[Watched], ...] = (
    _watched(
        "gradient",
        caption="‖∂L/∂θ‖ over all parameters of a layer, over that of the top layer, before every update.",
        see=f"level lines between {WEAK:g} and {1 / WEAK:g}, most often near 1",
        read=(
            "A falling line: that layer receives less and less and stops moving; few of stabkit's own runs "
            "recovered from below 0.01. A rising line: its gradient explodes. Three updates beyond a limit warn."
        ),
        lines=_gradient_lines,
        says=_farthest,
        y_label="gradient ÷ top layer's",
        limits={
            WEAK: "warns below",
            LOST: "{} of {} trained".format(*RECOVERED),
            1 / WEAK: "warns above",
        },
        reads="Gradient of each layer over the top layer's",
    ),
    _watched(
        "stream",
        caption="‖x_i‖/√d, mean over the probe batch's tokens, x_i the output of sub-layer i, in eval mode.",
        see="lines that keep their initial level",
        read="A jump between two readings at an unchanged rate comes from an update that was too large.",
        lines=_stream_lines,
        says=_grown,
        y_label="rms of x",
        limits={},
        reads="rms of the residual stream",
    ),
    _watched(
        "update",
        caption=(
            "‖F(θ_t) − F(θ_0)‖/‖F(θ_0)‖, F the last stack's output after its final norm; ‖θ_t − θ_{t−1}‖/‖θ_{t−1}‖ of "
            "the sub-layer that the update moves most."
        ),
        see="a largest step far below 1 (1: the norm of the weights it moves)",
        read=(
            "Output: at √2 it has nothing in common with the start. Largest step: if one update moves a sub-layer by "
            "as much as its own norm, the rate is too high for it."
        ),
        lines=_update_lines,
        says=_moved_by,
        y_label="relative movement",
        limits={1.0: "1: weights' norm"},
        reads="Relative movement",
    ),
    _watched(
        "loss",
        caption="The training loss, as given to watch.loss(…); a uniform guess over V classes has ln V.",
        see="it falls and stays low",
        lines=_loss_lines,
        says=_fallen,
        y_label="loss",
        limits={},
        reads="Training loss",
    ),
)


def _frame(lines: Iterable[Line]) -> pd.DataFrame:
    """One row a point; of a long line points that are a little more apart with every update. Of one reading before any
    update there is no line. Values have the digits of the page's CSV, so that title and caption say one number."""
    rows: list[dict[str, object]] = []
    for name, panel, steps, values in lines:
        for i in thinned(steps) if len(steps) > 1 or steps.any() else ():
            rows.append({"run": name, "panel": panel, "x": int(steps[i]), "value": float(f"{values[i]:.4g}")})
    return pd.DataFrame(rows, columns=list(WATCHED_COLUMNS))


def thinned(steps: NDArray[np.int64]) -> list[int]:
    """Places of at most MOST_POINTS of them, evenly in the update's logarithm, the first and the last among them."""
    if len(steps) <= MOST_POINTS:
        return list(range(len(steps)))
    wanted = np.geomspace(1, steps[-1] + 1, MOST_POINTS) - 1
    return sorted({0, len(steps) - 1, *np.searchsorted(steps, wanted).clip(max=len(steps) - 1).tolist()})


def _line_ends(frame: pd.DataFrame, reads: str) -> str:
    """The picture in words: where each line begins and ends."""
    if frame.empty:
        return NOTHING
    parts = [
        f"{name}: {short(float(rows['value'].iloc[0]))} to {short(float(rows['value'].iloc[-1]))}"
        for name, rows in frame.groupby("run", sort=False)
    ]
    return f"{reads}, from the first reading to the last: {'; '.join(parts)}."


def by_depth(
    frame: pd.DataFrame, x_name: str, x_note: str, y_label: str, limits: Mapping[float, str], *, rates: bool = False
) -> Figure:
    """A panel a value of the column `panel`, a curve a depth: the geometric mean over seeds in the band of their
    range. With `rates` x doubles from tick to tick."""

    def curves(axes: Axes, rows: pd.DataFrame, usable: pd.DataFrame) -> list[End]:
        first, last = float(usable["x"].min()), float(usable["x"].max())
        room = 0.02 * (last - first or 1)
        if rates:
            ticks = [2.0**i for i in range(round(math.log2(TOP)) + 1)]
            axes.set_xscale("log", base=2)
            axes.set_xticks(ticks, [f"{tick:g} ×" for tick in ticks])
            axes.minorticks_off()
            axes.set_xlim(first / 1.03, last * 1.03)
        else:
            axes.set_xlim(first - room, last + room)
        depths = sorted(set(rows["depth"]))
        ends = []
        for place, depth in enumerate(depths):
            values = rows[rows["depth"] == depth].groupby("x")["value"]
            x = np.array(sorted(values.groups), dtype=float)
            mean = np.exp(values.apply(lambda seeds: np.log(seeds).mean()).to_numpy())
            axes.fill_between(x, values.min().to_numpy(), values.max().to_numpy(), color=HUE, alpha=0.15, linewidth=0)
            name = f"{depth}L" if depth else "all seeds"
            (line,) = axes.plot(x, mean, color=HUE, **style.depth_line(place, len(depths)), **_point(x))
            style.mark(line, "", name, x=x_name)
            ends.append((float(mean[-1]), name, HUE, ""))
        return ends

    return _panels(frame, x_name + x_note, y_label, limits, curves, right=1.0, apart=0.06)


def by_update(frame: pd.DataFrame, y_label: str, limits: Mapping[float, str]) -> Figure:
    """A panel a value of the column `panel`, a line a value of `run`."""
    last = int(frame["x"].max()) if len(frame) else 0

    def lines(axes: Axes, rows: pd.DataFrame, usable: pd.DataFrame) -> list[End]:
        axes.set_xscale("symlog", linthresh=LINEAR, linscale=1.5)
        few = (1, 2) if last < 8 else ()
        ticks = [t for t in (0, *few, 4, 8, 16, *(16 * 4**k for k in range(1, 12))) if t <= last / 2.2]
        ticks.append(last)
        axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlim(-0.5, max(last, 1) * 1.02)
        runs = list(rows.groupby("run", sort=False))
        ends = []
        for place, (run, line_rows) in enumerate(runs):
            x, look = line_rows["x"].to_numpy(), style.depth_line(place, len(runs))
            (line,) = axes.plot(x, line_rows["value"], color=HUE, **look, **_point(x))
            style.mark(line, "", str(run), x="update")
            ends.append((float(line_rows["value"].iloc[-1]), str(run), HUE, ""))
        return ends

    scale = f"update, logarithmic from {LINEAR} on" if last > LINEAR else "update"
    return _panels(frame, scale, y_label, limits, lines, right=1.1, apart=0.07)


def _point(x: NDArray[np.float64]) -> dict[str, Any]:
    """A marker for a line of one point, which is no line."""
    return {"marker": "o", "markersize": 4} if len(x) == 1 else {}


def _panels(
    frame: pd.DataFrame,
    x_label: str,
    y_label: str,
    limits: Mapping[float, str],
    lines: Callable[[Axes, pd.DataFrame, pd.DataFrame], list[End]],
    right: float,
    apart: float,
) -> Figure:
    """The panels on one scale; `lines` draws those of one and says where they end; names stand `apart` at least."""
    usable = frame[drawable_rows(frame["value"], log=True)]
    if usable.empty:
        return style.empty("Nothing that can be drawn was recorded.")
    groups, more = style.drawn_groups(list(usable.groupby("panel", sort=False)))
    figure, panels = style.panels(len(groups), 2 if len(groups) > 1 else 1, 3.0, right=right, more=more)
    low, high = usable["value"].min(), usable["value"].max()
    for value in limits:
        if low / 30 < value < high * 30:
            low, high = min(low, value), max(high, value)
    room = min(max((high / low) ** 0.1, 1.1), 1.3)
    for axes, (name, rows) in zip(panels, groups, strict=True):
        axes.set_title(str(name))
        style.log_axis(axes, "y", low / room, high * room)
        ends = lines(axes, rows, usable)
        for value, text in limits.items():
            if low <= value <= high:
                style.reference(axes, value)
                ends.append((value, text, GREY, ""))
        label_ends(axes, ends, apart)
        axes.set_xlabel(x_label)
    panels[0].set_ylabel(y_label)
    return figure
