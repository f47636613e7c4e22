"""The chain of a user's model as rows: what each pass left, turned into the numbers of `probes/tools/quantities.py`.

update        F = output of the last stack after its final norm: `state` ‖ΔF‖, `state@step` against θ_{t−1},
              `state@relative` over ‖F(θ_0)‖, `state@size` ‖F‖ over √d, `logits` as `state`
layer_update  per sub-layer: mean ‖Δx_i‖/‖x_i(θ_0)‖
stream        x_0 (`stack`) and x_i of each sub-layer: rms, ‖x_i‖/√d; `@room` the largest number of the type that the
              stack runs in over its largest entry
branch        ‖γ·f_i‖/‖ω·x_i‖
cosine        cos(x_i, x_{i−1})
token_cosine  mean cosine between different tokens of F
attention     the largest attention logit of each sub-layer with attention, by `sublayers/attention.py`, and of all
              (`largest`); no row of a pass with another number of them
scores        `information` what the scores tell of their input: H(mean p) − mean H(p), nats, p their softmax at up to
              MOST_SCORED tokens; 0 where every token is given the same: the loss is that of who knows frequencies
              alone. `log_z` the mean of ln Σ exp(score) at them
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Set
from dataclasses import replace

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.reading import ResidualStream, States
from stabkit.own.sublayers.run import Call
from stabkit.probes.tools import quantities
from stabkit.results.own.guess import Guess
from stabkit.results.records import Recorder, Table


def masks(model: nn.Module, call: Call) -> dict[str, torch.Tensor]:
    """{argument: true at the tokens that are not padding}, (sentences × tokens), of `attention_mask` and
    `decoder_attention_mask` where the call has them, by place or by name."""
    names = ("attention_mask", "decoder_attention_mask")
    try:
        bound = inspect.signature(model.forward).bind(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):  # a forward that hides what it takes
        bound = {}
    given = {name: call.kwargs.get(name, bound.get(name)) for name in names}
    return {name: m.bool() for name, m in given.items() if isinstance(m, torch.Tensor) and m.dim() == 2}


class Reader:
    """Turns the states of each pass into rows; remembers those of θ_0 and of the pass before."""

    def __init__(self, stream: ResidualStream, masks: Mapping[str, torch.Tensor], model: nn.Module) -> None:
        self.stream, self.masks = stream, masks
        self.head = stream.head, dict(model.named_parameters(remove_duplicate=False)).get(stream.head)
        """What makes the scores: (name, weight)."""
        self.first: States | None = None
        self.last: torch.Tensor | None = None
        """F of the pass before."""
        self.width = self.tokens = 0
        self.dtype = ""
        self.guess: Guess | None = None
        """What the scores of the first pass were worth; None without scores."""

    def read(self, recorder: Recorder, step: int, now: States) -> None:
        """A row of every quantity of activations."""
        first, last = self.first or now, now.output if self.last is None else self.last
        f, last_stack = now.output, self.stream.stacks[-1]
        if self.first is None and now.logits is not None:
            self.guess = guessed(now.logits, self._keep(last_stack, now.logits), self.head)
        mask, self.dtype = self._keep(last_stack, f), now.dtype
        self.width, self.tokens = f.shape[-1], int(mask.sum()) if mask is not None else f[..., 0].numel()
        if f.shape != first.output.shape:
            raise UsageError(f"the model's output has shape {list(f.shape)}; before it had {list(first.output.shape)}")
        rows: dict[str, dict[str, torch.Tensor]] = {
            "update": {
                "state": quantities.moved(f, first.output, mask),
                "state@step": quantities.moved(f, last, mask),
                "state@relative": quantities.relative(f, first.output, mask),
                "state@size": quantities.mean(quantities.lengths(f), mask) / math.sqrt(f.shape[-1]),
            },
            "layer_update": {},
            "stream": {},
            "cosine": {},
            "token_cosine": {"state": quantities.token_cosine(f, mask)},
        }
        if now.logits is not None and first.logits is not None and now.logits.shape == first.logits.shape:
            rows["update"]["logits"] = quantities.moved(now.logits, first.logits, self._keep(last_stack, now.logits))
        self.scores(recorder, step, now.logits)
        for stack in self.stream.stacks:
            names = [stack, *(place.name for place in self.stream.sublayers if place.stack == stack)]
            x, before = now.x[stack], first.x[stack]
            for i, name in enumerate(names):
                tensor = self._keep(stack, x[i])
                rows["stream"][name] = quantities.mean(quantities.lengths(x[i]), tensor) / math.sqrt(x[i].shape[-1])
                if i:
                    rows["layer_update"][name] = quantities.relative(x[i], before[i], tensor)
                    alike = x[i].shape == x[i - 1].shape
                    cosine = quantities.cosine(x[i], x[i - 1], tensor) if alike else torch.tensor(math.nan)
                    rows["cosine"][name] = cosine
        for stack, room in now.room.items():
            rows["stream"][f"{stack}@room"] = torch.tensor(room, dtype=torch.float64)
        if now.branches:
            rows["branch"] = {
                place.name: quantities.mean(quantities.weight(branch, total), self._keep(place.stack, total))
                for place, (branch, total) in zip(self.stream.sublayers, now.branches, strict=True)
            }
        names = [place.name for place in self.stream.sublayers if place.attends]
        if names and len(names) == len(now.attention):
            each = dict(zip(names, now.attention, strict=True))
            rows["attention"] = {"largest": torch.stack(list(now.attention)).max(), **each}
        for probe, row in rows.items():
            recorder.add(probe, step, tuple(row), torch.stack([v.double().cpu() for v in row.values()]).tolist())
        self.first, self.last = replace(first, branches=()), f

    def scores(self, recorder: Recorder, step: int, given: torch.Tensor | None) -> None:
        """A row of what scores tell; none of a model without scores."""
        if given is not None and given.dim() > 1 and given.shape[-1] > 1:
            rows = _rows(given, self._keep(self.stream.stacks[-1], given))
            chosen = _spread(rows).double()
            log_z = float(torch.logsumexp(chosen, -1).mean()) if len(chosen) else math.nan
            values = [information(chosen), float(len(rows)), log_z]
            recorder.add("scores", step, ("information", "rows", "log_z"), values)

    def rows(self, states: States, site: str) -> str:
        """`1 of 8 rows` of this site's state have a number that is not finite; "" where all are."""
        for stack in self.stream.stacks:
            names = [stack, *(place.name for place in self.stream.sublayers if place.stack == stack)]
            for name, x in zip(names, states.x[stack], strict=True):
                if name == site and x.dim() > 1:
                    lost = int((~x.isfinite()).flatten(1).any(1).sum())
                    return f"{lost} of {len(x)} rows" if lost else ""
        return ""

    def _keep(self, stack: str, x: torch.Tensor) -> torch.Tensor | None:
        """The mask of a stack's tokens, sentences first or tokens first; None where there is none that fits."""
        two = "encoder" in self.stream.stacks
        mask = self.masks.get("decoder_attention_mask" if two and stack == "decoder" else "attention_mask")
        if mask is None or x.dim() != 3:
            return None
        return next((m for m in (mask, mask.T) if m.shape == x.shape[:2]), None)


def _rows(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """(rows, V) of scores (…, V), padding left out."""
    whole: torch.Tensor = scores.full_tensor() if hasattr(scores, "full_tensor") else scores  # of a DTensor
    return (whole if mask is None else whole[mask]).detach().flatten(0, -2)


def _spread(rows: torch.Tensor) -> torch.Tensor:
    """MOST_SCORED of them at most, evenly spread."""
    count = min(len(rows), MOST_SCORED)
    return rows[torch.linspace(0, len(rows) - 1, count).long().to(rows.device)] if count else rows


def information(scores: torch.Tensor) -> float:
    """H(mean p) − mean H(p) of scores (rows, V), nats: ≥ 0, at most ln V and ln of the rows; NaN where one is none."""
    if not len(scores):
        return 0.0
    log_p = torch.log_softmax(scores.double(), -1)
    mean = torch.logsumexp(log_p, 0) - math.log(len(scores))
    each = -(log_p.exp() * log_p).nansum(-1).mean()
    told = float(-(mean.exp() * mean).nansum() - each)
    return told if not log_p.isnan().any() else math.nan


MOST_SCORED = 64
"""Tokens, evenly spread."""


def guessed(scores: torch.Tensor, mask: torch.Tensor | None, head: tuple[str, torch.Tensor | None]) -> Guess | None:
    """What scores (…, V) are worth: `results/own/guess.py`."""
    classes = scores.shape[-1]
    if classes < 2 or scores.dim() < 2:
        return None
    z = scores.detach().double()
    cost = float(quantities.mean(torch.logsumexp(z, -1) - z.mean(-1), mask))
    name, weight = head
    scale = 0.0
    if weight is not None and weight.dim() == 2 and classes in weight.shape:
        width = weight.shape[1] if weight.shape[0] == classes else weight.shape[0]
        scale = float(weight.detach().double().std(correction=0)) * math.sqrt(width)
    return Guess(classes=classes, cost=cost, head=name if scale else "", scale=scale)


def lost(tables: Mapping[str, Table], step: int, missing: Set[str] = frozenset()) -> tuple[str, str] | None:
    """(probe, site) of the first number of this step that is not finite, in the order of a pass; `missing`: whom no
    gradient reached."""
    for probe in ("stream", "update", "loss", "gradient"):
        table = tables.get(probe)
        if table is None or int(table.steps[-1]) != step:
            continue
        for site, value in zip(table.sites, table.values[-1], strict=True):
            ours = "@" in site or (probe == "gradient" and site in missing)  # a quotient of ours, or no number at all
            if not math.isfinite(value) and not ours:
                return probe, site
    return None
