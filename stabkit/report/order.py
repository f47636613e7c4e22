"""The figures of a page of runs, and in which order it tells: the question of its command, the figures that carry the
answer, the rest by section.

The command is known by its runs, so that a page made again from a store is the same: surfaces are `landscape`'s, scaled
α or β `ablate`'s, and all else is a sweep; one of single steps alone asks a question of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""Figures that stand open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageOrder:
    """One command's page: what it asks, and its figures in the order in which they answer that."""

    asks: str
    leads: tuple[str, ...]
    figures_first: bool = False
    """Where they are the answer, and what became of the runs stands below them."""


SWEEP = PageOrder(
    asks="Does it stay stable at this depth?",
    leads=("chain_order", "update_depth", "grad_norm", "update", "branch_ratio"),
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
    asks="How wrong may α and β be, and which part is needed?",
    leads=("ablation", "table11", "robustness", "validation_loss"),
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
    if any(run.spec.alpha_scale != 1 or run.spec.beta_scale != 1 for run in runs):
        return ABLATE
    return JUDGED if any(run.outcome.word != "early" for run in runs) else SWEEP


def source(figure: RunPicture, runs: Sequence[Run]) -> Sequence[Run]:
    """What a figure of runs is made of: all of them where single steps are its matter, else those that were trained."""
    return runs if figure.single_steps else trained(runs)


def cards(runs: Sequence[Run], surfaces: Sequence[Surface] = (), probed: Sequence[Run] = ()) -> list[Card]:
    """A card a figure, those of surfaces first; an optional one only where it has something to show, and of single
    steps alone only those at the start. `probed`: the runs again with those that differ in further probes alone."""
    steps_only = bool(runs) and all(run.spec.single_step for run in runs)
    landscape = Landscape(runs, surfaces)
    every, later = Runs.of(runs), trained(runs)
    sources: list[tuple[Picture[Any], Any]] = [(figure, landscape) for figure in SURFACES if surfaces]
    sources += [(figure, every if figure.single_steps else later) for figure in FIGURES]
    whole = trained(probed or runs)
    sources += [(figure, whole) for figure in recorded.of_runs(whole)]
    frames = [(figure, figure.select(made_of), made_of) for figure, made_of in sources]
    return [
        card(figure, frame, made_of)
        for figure, frame, made_of in frames
        if not (figure.optional and frame.empty) and (figure.at_start or not steps_only)
    ]


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
    nothing: tuple[Card, ...]
    """Those without anything to show: each says what it needs."""


def order(shown: Sequence[Card], leads: Sequence[str]) -> Order:
    """The first that have something to show of those that lead; the others by room."""
    some = {card.name: card for card in shown if not card.needs}
    first = [some[name] for name in leads if name in some][:FIRST]
    rest = [card for card in some.values() if card not in first]
    sections = [
        Section(key=room, title=title, cards=tuple(card for card in rest if card.room == room))
        for room, title in ROOMS.items()
    ]
    return Order(
        leads=tuple(first),
        sections=tuple(section for section in sections if section.cards),
        nothing=tuple(card for card in shown if card.needs),
    )
