"""What an item costs beyond what the store holds, and which items fit a budget: the cheapest evidence first.

Runs are shared between items, so an item's cost is that of the runs that neither the store nor an item planned before
it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stabkit import methods, words
from stabkit.errors import UsageError
from stabkit.paper.item import Item
from stabkit.running import cost, surfaces
from stabkit.running.request import Request


@dataclass(frozen=True, slots=True)
class Piece:
    """What an item needs of one run: that it is trained, that surfaces are drawn around it."""

    kind: Literal["run", "surfaces"]
    run: str
    """Its id."""
    item: str = ""
    """The key of the item whose surfaces they are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An item with its commands read, and what they come to, in seconds on all workers."""

    item: Item
    requests: tuple[Request, ...]
    work: Mapping[Piece, float]


def asked(item: Item, requests: Sequence[Request]) -> Asked:
    """What the commands of an item come to; a run that several of them share once."""
    work: dict[Piece, float] = {}
    for request in requests:
        for spec in request.specs:
            run_id = spec.run_id
            work[Piece("run", run_id)] = cost.seconds(spec) / request.workers
            if request.surfaces:
                drawn = surfaces.seconds(spec, request.surfaces, len(set(map(methods.label_of, request.specs))))
                work[Piece("surfaces", run_id, item=item.key)] = drawn / request.workers
    return Asked(item, tuple(requests), work)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An item's place in the plan."""

    asked: Asked
    missing: int
    """Runs to train, beyond the store and the items before."""
    seconds: float
    """On all workers."""
    fits: bool


def seconds(asked: Asked, held: Collection[Piece], pace: float = 1.0) -> float:
    """What is left of an item, where `held` is there already; `pace`: how much longer than estimated runs took."""
    return pace * sum(need for piece, need in asked.work.items() if piece not in held)


def missing(asked: Asked, held: Collection[Piece]) -> int:
    """How many of its runs are left to train."""
    return sum(piece not in held for piece in asked.work if piece.kind == "run")


def plan(items: Sequence[Asked], held: Collection[Piece], budget: float | None) -> list[Step]:
    """The items in the order in which they are to run, those that do not fit last.

    Again and again the item that adds the least is taken, as long as the budget holds all that was taken. Raises
    UsageError when not even the cheapest fits.
    """
    have = set(held)
    left, steps, spent = list(items), list[Step](), 0.0
    while left:
        needs = {one.item.key: seconds(one, have) for one in left}
        taken = min(left, key=lambda one: needs[one.item.key])
        left.remove(taken)
        need = needs[taken.item.key]
        fits = budget is None or spent + need <= budget
        steps.append(Step(asked=taken, missing=missing(taken, have), seconds=need, fits=fits))
        if fits:
            spent += need
            have |= set(taken.work)
    if steps and not any(step.fits for step in steps):
        cheapest = steps[0]
        raise UsageError(
            f"--budget: nothing fits; the cheapest item, {cheapest.asked.item.key}, needs about "
            f"{words.duration(cheapest.seconds)}: give --budget {rounded(cheapest.seconds)} or more"
        )
    return steps


def rounded(need: float) -> str:
    """A budget that holds so many seconds: `45s`, `3m`, `2h`."""
    for unit, size in (("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if need <= 90 * size or unit == "h":
            return f"{int(need / size) + 1}{unit}"
    raise AssertionError
