"""Changes that may mend a model which is likely stuck: what each is called, and the code that makes it.

Each is tried on a copy by one more probe at the deepest depth (`own/probe/changes.py` makes it), the cheapest first: a
change of the training before one of the model. Two come before all others: weights drawn far too large are made
smaller, and a rate far from all tested ones becomes the usual one. A higher rate comes last: it mends what is too slow,
and no other change is named then. Where no single one is enough, the likeliest of the training and the likeliest of the
model are tried together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stabkit.results.own.cell import Facts, ModelCell
from stabkit.results.own.rules import Word
from stabkit.results.own.verdict import verdict
from stabkit.words import scientific

WARMUP, CLIP, HEAD = 200, 1.0, 10
"""Updates of the warm-up that is tried; the norm that gradients are clipped to; what the head is divided by."""


Edit = Literal["smaller", "rate", "warmup", "clip", "head", "embedding", "last", "deepnorm", "branch"]
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
    model: bool = False
    """Whether it changes the model, and not its training."""

    def code(self, facts: Facts) -> str:
        """Its line, of this model."""
        rates = (facts.rate, (self.by or facts.factors[0]) * facts.rate) if self.edit == "rate" else ()
        plain = self.line.format(
            *(scientific(rate, 3) for rate in rates),
            facts=facts,
            head=facts.guess.head if facts.guess else "",
            names=list(facts.changed),
            twice=2 * facts.layers,
        )
        return f"x = norm({plain.removeprefix('x = ')})" if facts.normed_sums and self.edit == "branch" else plain


RATE_LINE = "lr = {}  # was {}"
WARMUP_LINE = f"lambda t: min(1.0, (t + 1) / {WARMUP})"
CLIP_LINE = f"torch.nn.utils.clip_grad_norm_(model.parameters(), {CLIP:g})  # before optimizer.step()"
HEAD_LINE = f"model.get_parameter({{head!r}}).data /= {HEAD}"
EVERY_PARAMETER = "for n, p in model.named_parameters(): p.data /="
DEEPNORM_LINE = (
    "x = norm({facts.factors[0]:.3g} * x + f(x))  # values, outputs, feed-forward at first * {facts.factors[1]:.3g}"
)
CHANGES = (
    Change(
        "smaller",
        "matrices drawn as small as is usual",
        f"{EVERY_PARAMETER} {{facts.factors[0]:.3g}} {IF_NAMED}",
        "smaller",
        model=True,
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
    Change("head", f"a head {HEAD} times smaller", HEAD_LINE, "head", model=True),
    Change(
        "embedding",
        "an embedding of standard deviation 1",
        "for n in {names}: (p := model.get_parameter(n)).data /= p.std()",
        "embedding",
        model=True,
    ),
    Change(
        "last/sqrt(2N)",
        "the last matrix of every branch times 1/√(2N)",
        f"{EVERY_PARAMETER} math.sqrt({{twice}}) {IF_NAMED}",
        "last",
        model=True,
    ),
    Change("deepnorm", "DeepNorm in place of Post-LN", DEEPNORM_LINE, "deepnorm", model=True),
    Change(
        "branch/sqrt(N)",
        "every branch times 1/√N",
        "x = x + f(x) / math.sqrt({facts.layers})",
        "branch",
        -0.5,
        model=True,
    ),
    Change("branch/N", "every branch times 1/N", "x = x + f(x) / {facts.layers}", "branch", -1.0, model=True),
    Change("rate*3", "three times the rate", RATE_LINE, "rate", 1 / 3),
    Change("rate*10", "ten times the rate", RATE_LINE, "rate", 0.1),
)
BY_KEY = {change.key: change for change in CHANGES}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cure:
    """A change as it was tried."""

    change: str
    label: str
    word: Word
    probability: float | None
    code: str
    seeds: int = 1
    """In how many seeds it was tried."""

    @property
    def training(self) -> bool:
        """Whether it changes the training alone."""
        return not any(BY_KEY[key].model for key in self.change.split(AND))

    @property
    def marked(self) -> str:
        """Its lines as code in a sentence."""
        return " and ".join(f"`{line}`" for line in self.code.splitlines())


AND = "+"
"""Between the keys of changes that are made together."""


def cure(cells: Sequence[ModelCell]) -> Cure:
    """What a changed model's cells say, a seed each; a link that still fails counts, as in the model itself."""
    facts = cells[0].facts
    made = [BY_KEY[key] for key in facts.change.split(AND)]
    said = verdict(cells)
    return Cure(
        change=facts.change,
        label=" and ".join(change.label for change in made),
        word=said.word,
        probability=said.forecast.probability,
        code="\n".join(change.code(facts) for change in made),
        seeds=len(cells),
    )


def together(tried: Mapping[str, tuple[Word, float]]) -> str:
    """Of {change: (word, probability)} the pair to try next: the likeliest of the training that is open and the
    likeliest of the model that is; "" where one is enough, or there is no such pair, or it was tried."""
    if any(word == "likely trains" for word, _ in tried.values()):
        return ""
    best = []
    for model in (False, True):
        kind = {key: p for key, (word, p) in tried.items() if word == "open" and key in BY_KEY}
        kind = {key: p for key, p in kind.items() if BY_KEY[key].model is model}
        best.append(max(kind, key=lambda key: kind[key], default=""))
    pair = AND.join(best)
    return pair if all(best) and pair not in tried else ""
