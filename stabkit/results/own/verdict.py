"""The chain of a user's model, link by link, and what follows for its training.

Whether it trains is a forecast (`forecast.py`), or what a training of it showed (`looks.py`), a word a depth. The links
explain it: each has a number, the range that models have that train, and a word of its own. Three can fail, by
`rules.py`. Four are shown beside models that train:

    update    ‖ΔF‖/‖F‖ after the last update: how far the output is from where it began. It never fails: Pre-LN
              saturates as Post-LN does, and trains
    scores    what the scores tell of their input, H(mean p) − mean H(p), while the rate rises to sixteen times its
              highest, the geometric mean over nine readings: near 0 every token is given the same, and the loss is the
              unigram entropy
    tokens    mean cosine between different tokens of the output after the last update: near 1 it says nothing of them
    loss      what the loss fell by, nats
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from stabkit.results.depth_fit import depth_fit, geometric
from stabkit.results.forecast.logistic import Word
from stabkit.results.own.cell import ModelCell, last_of_all
from stabkit.results.own.decided import decided, least, numbers
from stabkit.results.own.forecast import LOST, RATE, Healthy, OwnForecast, forecast, ours
from stabkit.results.own.looks import Decision
from stabkit.results.own.measured import loss_fall, ramp_information
from stabkit.results.own.rules import (
    LIMITS,
    Evidence,
    Ground,
    Limits,
    LinkVerdict,
    broken,
    by_seed,
    deepest,
    evidence,
    healthy,
    means,
    rules,
)

UPDATE_FULL = 0.9
"""‖ΔF‖/‖F‖ from which on no law in depth is fitted. Two outputs that have nothing to do with one another are √2
apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthVerdict:
    """What becomes of a model at one depth and rate."""

    depth: int | None
    decision: Decision
    """Of the seed that is least likely to train."""
    seed: int
    """That seed."""
    seeds: tuple[Decision, ...]
    """Of every seed that was asked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The words of all depths, the forecast of the deepest and all links, at one rate."""

    lr: float
    """0: the optimiser's own."""
    depths: tuple[DepthVerdict, ...]
    """The shallowest first."""
    forecast: OwnForecast
    gradient: LinkVerdict
    scores: LinkVerdict
    update: LinkVerdict
    stream: LinkVerdict
    tokens: LinkVerdict
    loss: LinkVerdict
    finite: LinkVerdict

    @property
    def links(self) -> Mapping[str, LinkVerdict]:
        return {own.name: link for own in fields(self) if isinstance(link := getattr(self, own.name), LinkVerdict)}

    @property
    def failing(self) -> list[str]:
        """The links that fail."""
        return [name for name, link in self.links.items() if link.verdict == "fail"]

    @property
    def decision(self) -> Decision:
        """Of the deepest."""
        return self.depths[-1].decision

    @property
    def word(self) -> Word:
        return self.decision.word


def verdict(cells: Sequence[ModelCell], limits: Limits = LIMITS) -> Verdict:
    """Of all cells at one rate. Beyond the rates of all tested models no number of an update is held against theirs."""
    (lr,) = {cell.facts.lr for cell in cells}
    links = rules([numbers(cell) for cell in cells], limits)
    whole = Verdict(
        lr=lr,
        depths=depths(cells, links),
        forecast=forecast(deepest(cells)),
        scores=_scores(cells),
        update=_update(cells),
        tokens=_tokens(cells),
        loss=_loss(cells),
        **links,
    )
    if RATE not in whole.forecast.axes:
        return whole
    alone = {name: replace(link, healthy=None) for name, link in whole.links.items() if name != "stream"}
    return replace(whole, **alone)  # type: ignore[arg-type]  # its own links


def depths(cells: Sequence[ModelCell], links: Mapping[str, LinkVerdict]) -> tuple[DepthVerdict, ...]:
    """The word of every depth. The deepest fails too where the stream does by its law over all of them, unless a
    training was seen to learn."""
    found = []
    for depth in sorted({cell.depth for cell in cells}):
        own = [cell for cell in cells if cell.depth == depth]
        said = [decided(cell) for cell in own]
        if depth == max(cell.depth for cell in cells) and broken({"stream": links["stream"]}):
            said = [one if one.basis == "seen" else replace(one, word="fails", probability=LOST) for one in said]
        worst = least(said)
        at = own[said.index(worst)]
        found.append(DepthVerdict(depth=at.facts.depth, decision=worst, seed=at.facts.seed, seeds=tuple(said)))
    return tuple(found)


def _update(cells: Sequence[ModelCell]) -> LinkVerdict:
    step = last_of_all(cells, "update")
    values = by_seed(cells, lambda cell: cell.records["update"].value("state@relative", step))
    rows = evidence(values)
    saturated = rows[-1].value > UPDATE_FULL
    shown = _shown(Ground(key="update"), rows, step, healthy("update_last", rows[-1].value, step))
    return replace(shown, fit=None if saturated else depth_fit(values), saturated=saturated)


def _tokens(cells: Sequence[ModelCell]) -> LinkVerdict:
    if any("token_cosine" not in cell.records for cell in cells):
        return _untold(Ground(key="no tokens"))
    step = last_of_all(cells, "token_cosine")
    rows = means(by_seed(cells, lambda cell: cell.records["token_cosine"].value("state", step)))
    return _shown(Ground(key="tokens"), rows, step, healthy("cosine_last", rows[-1].value, step))


def _scores(cells: Sequence[ModelCell]) -> LinkVerdict:
    having = [c for c in cells if {"ramp_loss", "scores"} <= c.records.keys() and not c.facts.regression]
    if not having:
        return _untold(Ground(key="no scores"))
    rows = evidence(by_seed(having, lambda cell: geometric(list(ramp_information(cell)))))
    step = int(having[-1].records["ramp_loss"].steps[-1])
    return _shown(Ground(key="scores"), rows, step, ours().healthy("ramp_information", rows[-1].value))


def _loss(cells: Sequence[ModelCell]) -> LinkVerdict:
    step = min(int(cell.records["loss"].steps[-1]) for cell in cells)
    rows = means(by_seed(cells, loss_fall))
    losses = [cell.records["loss"].at("train") for cell in deepest(cells)]
    first, last = (float(np.mean([loss[some].mean() for loss in losses])) for some in (slice(None, 3), slice(-3, None)))
    frequencies = deepest(cells)[0].facts.frequencies
    ground = Ground(key="loss", loss_first=first, loss_last=last, frequencies=frequencies)
    nats = not any(cell.facts.regression for cell in cells)
    return _shown(ground, rows, step, healthy("loss_fall", rows[-1].value, step) if nats else None)


def _shown(ground: Ground, rows: tuple[Evidence, ...], step: int, among: Healthy | None) -> LinkVerdict:
    """A link that explains and never fails, beside models that train."""
    return LinkVerdict(
        verdict="pass", ground=ground, level=rows[-1].value, limit=math.nan, step=step, evidence=rows, healthy=among
    )


def _untold(ground: Ground) -> LinkVerdict:
    """A link without a number."""
    return LinkVerdict(verdict="cannot tell", ground=ground, level=math.nan, limit=math.nan, step=0)
