"""The figures of a page of runs, and in which order it tells: the question of its command, the figures that carry the
answer, the rest by section.

The command is known by its runs, so that a page made again from a store is the same: surfaces are `landscape`'s, scaled
α or β `ablate`'s, and all else is a sweep; one of single steps alone asks a question of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stabkit.figures.catalogue import FIGURES, SURFACES
from stabkit.figures.picture import Picture, Room, RunPicture
from stabkit.figures.probes import recorded
from stabkit.report.cards import Card, card
from stabkit.results.conditions import trained
from stabkit.results.landscape import Landscape
from stabkit.results.once import Runs
from stabkit.results.run import Run
from stabkit.results.surface import Surface

FIRST = 3
"""Figures that stand open; of surfaces one more, the path among them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageOrder:
    """One command's page: what it asks, and its figures in the order in which they answer that."""

    asks: str
    leads: tuple[str, ...]
    figures_first: bool = False
    """Where they are the answer, and what became of the runs stands below them."""


SWEEP = PageOrder(
    asks="Does it stay stable at this depth?",
    leads=("chain_order", "update_depth", "grad_norm", "update"),
)
JUDGED = PageOrder(
    asks=SWEEP.asks,
    leads=("table11", "validation_loss", "chain_order", "grad_norm", "update_depth", "table1", "update"),
)
"""A sweep of which some runs have a verdict."""
SLOPE = PageOrder(
    asks="How far does one small step move the output at each depth?",
    leads=("slope",),
    figures_first=True,
)
ABLATE = PageOrder(
    asks="How wrong may α and β be?",
    leads=("ablation", "table11", "robustness"),
)
LANDSCAPE = PageOrder(
    asks="How rough is the loss around the weights, and under which normalisation?",
    leads=("surface3d", "landscape", "cuts", "path_plane"),
    figures_first=True,
)

ROOMS: Mapping[Room, str] = {
    "surfaces": "The loss around the weights",
    "ablation": "Factors and parts",
    "methods": "The methods compared",
    "chain": "Link by link",
    "depth": "Depth, and what theory says about it",
    "probes": "More probes",
}
"""{room of `figures`: its heading}, in the order of the page."""


def kind(runs: Sequence[Run], surfaces: Sequence[Surface] = ()) -> PageOrder:
    """Whose page this is."""
    if surfaces:
        return LANDSCAPE
    if runs and all(run.spec.single_step for run in runs):
        return SLOPE
    if len({(run.spec.alpha_scale, run.spec.beta_scale) for run in runs}) > 1:
        return ABLATE
    return JUDGED if any(run.outcome.word != "early" for run in runs) else SWEEP


def source(figure: RunPicture, runs: Sequence[Run]) -> Sequence[Run]:
    """What a figure of runs is made of: all of them where single steps are its matter, else those that were trained."""
    return runs if figure.single_steps else trained(runs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """Figures of one subject, folded."""

    key: Room
    title: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """The figures of a page as it shows them."""

    leads: tuple[Card, ...]
    sections: tuple[Section, ...]
    nothing: tuple[Card, ...] = ()
    """Those without anything to show: each says what it needs."""
    undrawn: tuple[str, ...] = ()
    """What the others are called, where the page has only those that lead."""


def order(
    runs: Sequence[Run],
    surfaces: Sequence[Surface] = (),
    probed: Sequence[Run] = (),
    *,
    leads: Sequence[str],
    every: bool = True,
) -> Order:
    """The first that have something to show of those that lead, and by room those of the user's own probes; of `every`
    figure also the others. A figure that is optional stands there only where it has something to show; of single steps
    alone only those at the start. `probed`: the runs again with those that differ in further probes alone."""
    made_of = dict(sources(runs, surfaces, probed))
    by_name = {figure.name: figure for figure in made_of}
    made: dict[str, Card] = {}
    for name in (name for name in leads if name in by_name):
        figure, frame = by_name[name], by_name[name].select(made_of[by_name[name]])
        if frame.empty or (figure.tells is not None and not figure.tells(frame)):
            continue
        if not (first := card(figure, frame, made_of[figure])).needs:
            made[name] = first
        if len(made) == FIRST + bool(surfaces):
            break
    rest = [figure for figure in made_of if figure.name not in made]
    asked = [figure for figure in rest if every or figure.name.startswith("probe-own-")]
    others = [each for figure in asked if (each := _card(figure, made_of)) is not None]
    sections = [
        Section(key=room, title=title, cards=tuple(each for each in others if each.room == room and not each.needs))
        for room, title in ROOMS.items()
    ]
    return Order(
        leads=tuple(made.values()),
        sections=tuple(section for section in sections if section.cards),
        nothing=tuple(each for each in others if each.needs),
        undrawn=tuple(figure.short for figure in rest if figure not in asked and not figure.optional),
    )


def sources(
    runs: Sequence[Run], surfaces: Sequence[Surface], probed: Sequence[Run]
) -> Iterator[tuple[Picture[Any], Any]]:
    """Every figure that may stand on the page, and what it is made of: those of surfaces first."""
    if not runs:
        return
    steps_only = all(run.spec.single_step for run in runs)
    if surfaces:
        landscape = Landscape(runs, surfaces)
        yield from ((figure, landscape) for figure in SURFACES if figure.at_start or not steps_only)
    every, later, whole = Runs.of(runs), trained(runs), trained(probed or runs)
    for figure in (*FIGURES, *recorded.of_runs(whole)):
        if figure.at_start or not steps_only:
            yield figure, every if figure.single_steps else whole if figure not in FIGURES else later


def _card(figure: Picture[Any], made_of: Mapping[Picture[Any], Any]) -> Card | None:
    """Its card, if it has a place here."""
    frame = figure.select(made_of[figure])
    return None if figure.optional and frame.empty else card(figure, frame, made_of[figure])
