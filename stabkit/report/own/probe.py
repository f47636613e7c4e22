"""The page of `stabkit probe`: does this model stay stable with depth, and if not, which link of the chain breaks?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stabkit.figures.drawing import svg
from stabkit.figures.model_curves import OWN
from stabkit.figures.own_losses import LOSSES
from stabkit.figures.picture import Picture
from stabkit.report.cards import card
from stabkit.report.frame import once, page, shell
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.forecast import ours
from stabkit.results.own.judged import Judged
from stabkit.results.own.measured import RAMP, TOP
from stabkit.results.own.rules import NAMES, ORDER
from stabkit.storage.folder import reports
from stabkit.wording.anatomy import UNSEEN, WHY, anatomy, notes
from stabkit.wording.links import answer, cures, in_short, rates
from stabkit.words import listed, plain, scientific, short

if TYPE_CHECKING:
    import pandas as pd

    from stabkit.running.plan import Done
    from stabkit.running.probes import ProbeRequest, ProbeSpec

TITLE = "Will your model train at this depth?"


def write(judged: Judged, done: Done[ProbeSpec, ModelCell], asked: ProbeRequest, command: str) -> Path:
    """Write the page; returns where."""
    name = asked.factory.replace(":", "-").replace(".", "-")[:60]
    digests = [cell.digest for cell in judged.cells]  # a model that was edited has a page of its own
    words = (asked.depths, asked.seeds, asked.lrs, asked.steps, asked.blocks, asked.warmup, digests)
    key = hashlib.sha256(repr(words).encode()).hexdigest()[:4]
    path = reports(asked.out) / f"{'-'.join(['probe', name, *_ends(asked.depths), key])}.html"
    found = [len(done.results), len(done.lost), len(judged.cures), judged.untried]
    return once(asked.out, path, found, lambda: render(judged, done, command))


def _ends(depths: Sequence[int | None]) -> list[str]:
    """`6L`, `48L`: the first and the last, of a factory that takes a depth."""
    return [f"{depth}L" for depth in dict.fromkeys((*depths[:1], *depths[-1:])) if depth is not None]


@np.errstate(all="ignore")
def render(judged: Judged, done: Done[ProbeSpec, ModelCell], command: str) -> str:
    """The page as one HTML file."""
    worst = judged.worst
    return page(
        "probe.html.j2",
        shell(TITLE, command, [in_short(judged), answer(judged)]),
        word=worst.word,
        rates=rates(judged),
        several=len(judged.verdicts) > 1,
        names=NAMES,
        cures=sorted(cures(judged), key=lambda row: row["word"] != "trains"),
        untried=judged.untried,
        updates=max(cell.facts.steps for cell in judged.cells),
        deepest=worst.forecast.depth,
        runs=ours().runs,
        judged=ours().judged,
        ramp=RAMP,
        top=f"{TOP:g}",
        losses=card(LOSSES, LOSSES.select(judged), judged),
        cards=[card(figure, frame, judged) for figure, frame in _shown(judged)],
        anatomy=anatomy(judged.cells),
        notes=notes(judged.cells),
        failed=[(_where(s.depth, s.lr, s.seed), plain(lost.reason), plain(lost.log)) for s, lost in done.lost],
        cells=[_cell(cell) for cell in judged.cells],
        unseen=UNSEEN,
        unseen_why=WHY,
    )


def save_first(judged: Judged, path: Path) -> None:
    """Write the page's first picture of a link to an .svg, .png or .pdf file."""
    figure, frame = next(_shown(judged))
    svg.save(figure.drawn(frame), path)


def _shown(judged: Judged) -> Iterator[tuple[Picture[Judged], pd.DataFrame]]:
    """The pictures that have something to show, with it."""
    frames = ((figure, figure.select(judged)) for figure in _worst_first(judged))
    return ((figure, frame) for figure, frame in frames if not (figure.optional and frame.empty))


def _worst_first(judged: Judged) -> list[Picture[Judged]]:
    """The pictures, that of the link that holds least first: what fails, then what is least as in models that train."""
    links = judged.worst.links

    def odd(name: str) -> float:
        healthy = links[name].healthy
        return abs(healthy.percent - 50) if healthy is not None else 0.0

    return [OWN[name] for name in sorted(OWN, key=lambda name: (-ORDER.index(links[name].verdict), -odd(name)))]


def _where(depth: int | None, lr: float, seed: int) -> str:
    return listed(
        f"{depth} layers" if depth is not None else "", f"rate {scientific(lr)}" if lr else "", f"seed {seed}"
    )


def _cell(cell: ModelCell) -> dict[str, str]:
    facts, loss = cell.facts, cell.records["loss"]
    ratios = np.concatenate([cell.gradient_ratio(stack) for stack in cell.stacks])
    seen = [float(value) for value in ratios if np.isfinite(value)]
    return {
        "name": _where(facts.depth, facts.lr, facts.seed),
        "loss": f"{short(float(loss.values[0, 0]))} → {short(float(loss.values[-1, 0]))}",
        "updates": str(int(loss.steps[-1])),
        "growth": ", ".join(short(cell.growth(stack)) for stack in cell.stacks),
        "update": short(float(cell.update()[-1])),
        "gradient": short(max(seen, key=lambda value: abs(np.log(max(value, 1e-300))))) if seen else "–",
        "broke": plain(str(facts.broke)) if facts.broke else "–",
        "digest": cell.digest,
    }
