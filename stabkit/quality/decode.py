"""Greedy and beam search over the decoder, one position at a time, batched, with remembered keys and values.

At every position each of the K beams of a sentence offers its likeliest continuations; of the 2K best of all, those
among the first K that end the sentence are finished hypotheses, and the first K that do not are the next beams. A
sentence is done when it has K finished hypotheses; at its longest length, LONGER × source + ROOM tokens, every beam
must end. The answer is the finished hypothesis with the greatest log p(y) / |y|^length_penalty, |y| counting the end
mark. One beam is greedy search. PAD and BOS are never written. Sums are in float64: their order decides nothing.

Shapes: B sentences, S source positions, K beams, V words; rows are sentence by sentence, beam by beam.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from stabkit.model.positions import MAX_POSITIONS
from stabkit.model.transformer import Transformer
from stabkit.results.translation import Search
from stabkit.tasks.base import BOS, EOS, PAD, Tokens

LONGER, ROOM = 2, 10
"""A translation has at most LONGER times its source's tokens and ROOM more, end marks included."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished translation: its tokens without the end mark, and its score."""

    tokens: tuple[int, ...]
    score: float


def limit(length: int) -> int:
    """The most tokens, end mark included, of the translation of a source of `length` tokens, end mark included."""
    return min(LONGER * length + ROOM, MAX_POSITIONS)


MOST_SCORES = 16_000_000
"""Rows × words of one step, so that a wide beam over a large vocabulary fits into memory: 128 MB a tensor."""


def pieces(sources: Sequence[Tokens], search: Search, vocab: int) -> Iterator[Tokens]:
    """The batches, cut where they would be too large; no word depends on it."""
    most = max(1, MOST_SCORES // (search.beam * vocab))
    for source in sources:
        for first in range(0, len(source), most):
            yield source[first : first + most]


@torch.no_grad()
def translate(model: Transformer, source: Tokens, search: Search) -> list[Hypothesis]:
    """The best hypothesis for every row of `source` (B, S), padded with PAD on the right."""
    model.eval()
    beams, width = search.beam, model.embedding.shape[0]
    source_BS = torch.from_numpy(source).to(model.device)
    sizes = (source_BS != PAD).sum(1)
    limits = [limit(int(size)) for size in sizes]
    rows = torch.arange(len(source), device=model.device).repeat_interleave(beams)
    memory, mask = model.encode(source_BS)
    if memory is None:
        raise ValueError("a model without an encoder has nothing to translate")
    memory = memory.index_select(1, rows)
    mask = None if mask is None else mask[rows]
    pasts = model.pasts()
    open_ = list(range(len(source)))
    """Sentences that are not done, in the order of the rows."""
    finished: list[list[Hypothesis]] = [[] for _ in open_]
    written = torch.full((len(rows), 1), BOS, device=model.device)
    scores = torch.full((len(open_), beams), -torch.inf, dtype=torch.float64, device=model.device)
    scores[:, 0] = 0.0  # all beams are alike at first: one of them speaks

    for position in range(max(limits)):
        log_p = torch.log_softmax(model.step(written[:, -1], position, memory, mask, pasts).double(), -1)
        log_p[:, [PAD, BOS]] = -torch.inf
        last = torch.tensor([position + 1 == limits[sentence] for sentence in open_], device=model.device)
        if bool(last.any()):
            end = log_p[:, EOS].clone()
            log_p[last.repeat_interleave(beams)] = -torch.inf
            log_p[:, EOS] = end
        offered = (scores[:, :, None] + log_p.view(len(open_), beams, width)).flatten(1)
        best, where = offered.topk(min(2 * beams, offered.shape[1]), dim=1)
        beam, word = where // width, where % width
        ends = (word == EOS) & (best > -torch.inf)
        for i, k in ends[:, :beams].nonzero().tolist():
            if len(finished[open_[i]]) < beams:
                tokens = written[i * beams + int(beam[i, k]), 1:].tolist()
                score = float(best[i, k]) / (position + 1) ** search.length_penalty
                finished[open_[i]].append(Hypothesis(tuple(tokens), score))
        going = [
            i for i, sentence in enumerate(open_) if len(finished[sentence]) < beams and position + 1 < limits[sentence]
        ]
        if not going:
            break
        kept = torch.tensor(going, device=model.device)
        best = best.masked_fill(word == EOS, -torch.inf)[kept]
        order = best.sort(dim=1, descending=True, stable=True).indices[:, :beams]
        scores = best.gather(1, order)
        chosen = (kept[:, None] * beams + beam[kept].gather(1, order)).flatten()
        written = torch.cat([written[chosen], word[kept].gather(1, order).flatten()[:, None]], dim=1)
        for site, past in pasts.items():
            if site.kind == "self" or len(going) < len(open_):  # the beams of one sentence share its source's
                past.keep(chosen)
        if len(going) < len(open_):
            mask = None if mask is None else mask[chosen]
            open_ = [open_[i] for i in going]
    nothing = Hypothesis((), -float("inf"))
    return [max(some, key=lambda hypothesis: hypothesis.score, default=nothing) for some in finished]
