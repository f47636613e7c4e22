"""Changes that may mend a model which fails: what each is called, the code that makes it, and which come first.

Each is tried on a copy, probed as the model itself was, at the deepest depth that fails (`own/probe/changes.py` makes
it). What comes first follows from the link that breaks (LINKS): what acts on that link, one of each kind before two of
a kind. Those with which the forecast says that it may train are trained, side by side with the model as it is, on the
same batches, until two are seen to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stabkit.results.forecast.logistic import Word
from stabkit.results.own import looks
from stabkit.results.own.cell import Facts, ModelCell
from stabkit.results.own.decided import decided, known, losses
from stabkit.results.own.forecast import LOST, USUAL, ours
from stabkit.results.own.looks import Basis, Decision
from stabkit.results.own.rules import LinkVerdict
from stabkit.results.own.verdict import Verdict
from stabkit.words import scientific

WARMUP, CLIP, HEAD = 200, 1.0, 10
"""Updates of the warm-up that is tried; the norm that gradients are clipped to; what the head is divided by."""


Edit = Literal["smaller", "rate", "warmup", "clip", "head", "embedding", "last", "deepnorm", "before", "branch"]
"""What is done to a model: `own/probe/changes.py` has a function for each."""
IF_NAMED = "if n.endswith({facts.changed!r}) else 1"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what is done, by how much, and the code that does it."""

    key: str
    label: str
    line: str
    """A line of Python, of the model that it was tried on."""
    edit: Edit
    by: float = 0.0
    """What the rate is divided by (0: by what it is over the usual one); a branch is multiplied by this power of N."""

    def code(self, facts: Facts) -> str:
        """Its line, of this model."""
        rates = (facts.rate, (self.by or facts.factors[0]) * facts.rate) if self.edit == "rate" else ()
        one_stack = self.edit == "deepnorm" and math.isclose(facts.factors[0], (2 * facts.layers) ** 0.25)
        plain = self.line.format(
            *(scientific(rate, 3) for rate in rates),
            facts=facts,
            head=facts.guess.head if facts.guess else "",
            names=list(facts.changed),
            twice=2 * facts.layers,
            by_depth=BY_DEPTH * one_stack,
        )
        return f"x = norm({plain.removeprefix('x = ')})" if facts.normed_sums and self.edit == "branch" else plain


BY_DEPTH = "; at any depth (2 * depth)**0.25 and (8 * depth)**-0.25"
RATE_LINE = "lr = {}  # was {}"
WARMUP_LINE = f"lambda t: min(1.0, (t + 1) / {WARMUP})"
CLIP_LINE = f"torch.nn.utils.clip_grad_norm_(model.parameters(), {CLIP:g})  # before optimizer.step()"
HEAD_LINE = f"model.get_parameter({{head!r}}).data /= {HEAD}"
EVERY_PARAMETER = "for n, p in model.named_parameters(): p.data /="
DEEPNORM_LINE = (
    "x = norm({facts.factors[0]:.3g} * x + f(x))  # after initialisation: weights of values, outputs, feed-forward "
    "*= {facts.factors[1]:.3g}{by_depth}"
)
BEFORE_LINE = "x = x + f(norm(x))  # and one norm after the last"
CHANGES = (
    Change(
        "smaller",
        "matrices drawn as small as is usual",
        f"{EVERY_PARAMETER} {{facts.factors[0]:.3g}} {IF_NAMED}",
        "smaller",
    ),
    Change("rate=usual", "the usual rate of its optimiser", RATE_LINE, "rate"),
    Change("rate/3", "a third of the rate", RATE_LINE, "rate", 3),
    Change("rate/10", "a tenth of the rate", RATE_LINE, "rate", 10),
    Change(
        "warmup",
        f"a warm-up over {WARMUP} updates",
        f"torch.optim.lr_scheduler.LambdaLR(optimizer, {WARMUP_LINE})",
        "warmup",
    ),
    Change("clip", f"gradients clipped to a norm of {CLIP:g}", CLIP_LINE, "clip"),
    Change("head", f"a head {HEAD} times smaller", HEAD_LINE, "head"),
    Change(
        "embedding",
        "an embedding of standard deviation 1",
        "for n in {names}: (p := model.get_parameter(n)).data /= p.std()",
        "embedding",
    ),
    Change(
        "last/sqrt(2N)",
        "the last matrix of every branch times 1/√(2N)",
        f"{EVERY_PARAMETER} math.sqrt({{twice}}) {IF_NAMED}",
        "last",
    ),
    Change("deepnorm", "DeepNorm in place of Post-LN", DEEPNORM_LINE, "deepnorm"),
    Change("norm before", "the norm before the branch", BEFORE_LINE, "before"),
    Change("branch/sqrt(N)", "every branch times 1/√N", "x = x + f(x) / math.sqrt({facts.layers})", "branch", -0.5),
    Change("branch/N", "every branch times 1/N", "x = x + f(x) / {facts.layers}", "branch", -1.0),
    Change("rate*3", "three times the rate", RATE_LINE, "rate", 1 / 3),
    Change("rate*10", "ten times the rate", RATE_LINE, "rate", 0.1),
)
BY_KEY = {change.key: change for change in CHANGES}
ALWAYS = ("smaller", "rate=usual")
"""Before all others, where there is something to change: what lies far from all tested models."""
LINKS: Mapping[str, tuple[str, ...]] = {
    # DeepNet's own constants (2203.00555, table 2); x + f(N(x)) in place of N(x + f(x)) is the rule of Google's tuning
    # playbook and of 2002.04745, whose other cure of Post-LN is a warm-up; a third of the rate by our own counts
    "gradient": ("deepnorm", "norm before", "warmup", "rate/3", "last/sqrt(2N)", "rate/10"),
    # 1/√(2N) on a branch's last matrix: GPT-2, and BigScience's lessons of 104B; 1/√N and 1/N: depth-μP, CompleteP
    "stream": ("last/sqrt(2N)", "rate/3", "branch/sqrt(N)", "norm before", "branch/N"),
    # untied or small heads, an embedding of standard deviation 1 (Takase et al. 2312.16903)
    "start": ("head", "embedding", "rate/3"),
    # branches or a rate too small to learn by: our own counts
    "slow": ("rate*3", "rate*10", "embedding"),
    # the playbook's order is warm-up, clipping, rate; by our own counts the rate helps oftener, and comes first
    "scores": ("rate/3", "warmup", "clip", "rate/10", "norm before", "deepnorm", "last/sqrt(2N)"),
}
"""{what breaks: the changes that act on it, the likeliest first, with their sources}; the others follow."""
LOW = 1 / 3
"""Of the usual rate: below it nothing learnt may be a matter of time."""


def first_tried(worst: Verdict, cells: Sequence[ModelCell]) -> list[str]:
    """The keys of CHANGES in the order in which they are tried on these cells, of the depth that fails."""
    facts = cells[0].facts
    usual = USUAL.get(next(iter(facts.optimizers), ""), math.nan)
    odd = {name: link for name, link in worst.links.items() if name in LINKS and _odd(link)}
    found: list[str] = [name for name in odd if odd[name].verdict == "fail"]
    if facts.guess is not None and facts.guess.high(facts.start) and facts.guess.summed(facts.start) == 1:
        found.append("start")
    if facts.rate < LOW * usual:
        found.append("slow")
    found += [*odd, "scores"]
    keys = [key for name in found for key in LINKS[name]]
    return list(dict.fromkeys([*ALWAYS, *keys, *BY_KEY]))


def _odd(link: LinkVerdict) -> bool:
    """Whether it fails, or nine of ten models that train have it otherwise."""
    healthy = link.healthy
    return link.verdict == "fail" or (healthy is not None and not healthy.low <= link.level <= healthy.high)


SIDE_BY_SIDE = 150
"""Updates that a change and the model as it is are trained, where the time lasts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cure:
    """A change as it was tried."""

    change: str
    label: str
    word: Word
    basis: Basis
    probability: float | None
    code: str
    loss: float | None
    """With it after `updates`, a mean of ten; None where it was not trained."""
    without: float | None
    """That of the model as it is, on the same batches; NaN where a number was lost before."""
    updates: int
    cut_off: bool = False
    """Whether the time ended its training."""

    @property
    def trains(self) -> bool:
        """Seen, not by a forecast."""
        return self.word == "trains" and self.basis == "seen"


def cure(cell: ModelCell, without: ModelCell | None = None) -> Cure:
    """What a changed model's cell says, beside the model's own; a link that still fails counts, as in the model
    itself."""
    facts = cell.facts
    made, given, said = losses(cell), known(cell), decided(cell)
    trained = "trained" in cell.records
    if trained and given is not None and facts.broke is None:  # to its end, whatever a look on the way says
        finite = bool(np.isfinite(made).all())
        lost = Decision("fails", "seen", LOST, len(made), diverges=True)
        said = ours().looks.at(looks.tens(made), given, SIDE_BY_SIDE) if finite else lost
    beside = losses(without) if without is not None else []
    if without is not None and decided(without).diverges:
        beside = [*beside, *[math.nan] * max(len(made) - len(beside), looks.TEN)]
    both = min(len(made), len(beside)) if trained and beside else len(made)
    return Cure(
        change=facts.change,
        label=BY_KEY[facts.change].label,
        word=said.word,
        basis=said.basis,
        probability=said.probability,
        code=BY_KEY[facts.change].code(facts),
        loss=_mean(made[:both]) if trained else None,
        without=_mean(beside[:both]) if trained and beside else None,
        updates=both,
        cut_off=bool(facts.within) and len(made) < SIDE_BY_SIDE,
    )


def _mean(some: Sequence[float]) -> float:
    return float(np.mean(some[-looks.TEN :]))
