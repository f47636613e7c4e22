"""What becomes of a probed model, by one cell alone: a link that breaks, the forecast, and the losses of a training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stabkit.results.forecast.logistic import WORDS
from stabkit.results.own import looks
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.forecast import LOST, of_cell, ours, scored
from stabkit.results.own.looks import Decision, Known, Looks
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.rules import CellNumbers, LinkVerdict, StackNumbers, broken, doubtful, rules


def losses(cell: ModelCell) -> list[float]:
    """Of every update that was made, the probe's and those of the training after it; the loss that no update followed
    is not among them."""
    made: list[float] = cell.records["loss"].at("train")[:-1].tolist()
    more = cell.records.get("trained")
    return made if more is None else [*made, *more.at("train").tolist()]


def known(cell: ModelCell) -> Known | None:
    """What a training of it is looked at with; None where a level is not known, and of batches seen before."""
    facts = cell.facts
    level, guessed = facts.frequencies, facts.frequencies is None
    if level is None:
        level = facts.start
        if facts.guess is not None and scored(cell):
            level = min(level, facts.guess.summed(level) * facts.guess.uniform)
    if not facts.fresh or not 0 < level < math.inf:
        return None
    return Known(of_cell(cell, ours())[0], level, facts.entropy, guessed)


def decided(cell: ModelCell) -> Decision:
    """The word of one model at one depth, rate and seed."""
    made, links = losses(cell), rules([numbers(cell)])
    if cell.facts.broke is not None:
        return Decision("fails", "seen", LOST, cell.facts.broke.step, diverges=True)
    lost = len(made) if made and not math.isfinite(made[-1]) else None
    return decision(links, of_cell(cell, ours())[0], known(cell), looks.tens(made), ours().looks, len(made), lost)


def decision(
    links: Mapping[str, LinkVerdict], forecast: float | None, given: Known | None, tens: Sequence[float], by: Looks,
    updates: int = UPDATES, lost: int | None = None,
) -> Decision:  # fmt: skip
    """The word of a model by its links, its forecast and the means of ten updates of its training: what a link that
    breaks decides nothing else does."""
    if broken(links):
        silent = links["gradient"].verdict == "fail" and not links["gradient"].level
        return Decision("fails", "seen" if silent else "forecast", LOST, updates)
    if given is None or (len(tens) < looks.FIRST // looks.TEN and lost is None):
        found = looks.at_once(forecast, updates)
    else:
        found = by.decide(tens, given, lost=lost)
    if doubtful(links) and found.basis == "forecast" and found.word in ("trains", "probably trains"):
        return replace(found, word="undecided")
    return found


def numbers(cell: ModelCell) -> CellNumbers:
    """What the rules read of a probed cell."""
    facts = cell.facts
    return CellNumbers(
        depth=cell.depth,
        seed=facts.seed,
        stacks={
            stack: StackNumbers(
                growth=cell.growth(stack),
                room=cell.room(stack),
                dilution=cell.dilution(stack),
                normed=stack in facts.normed,
                gradient=cell.gradient_ratio(stack).tolist(),
            )
            for stack in cell.stacks
        },
        updates=int(cell.records["gradient"].steps[-1]),
        broke=facts.broke,
        dtype=facts.dtype,
        unreached=facts.unreached,
        unreached_share=facts.unreached_share,
        unregistered=facts.unregistered,
    )


def least(decisions: Sequence[Decision]) -> Decision:
    """Of seeds: the one that is least likely to train, by its word and then by its probability."""
    return max(decisions, key=lambda one: (WORDS.index(one.word), -1 if one.probability is None else -one.probability))
