"""Changes that may mend a model which is likely stuck: what each is called, and the code that makes it.

Each is tried on a copy by one more probe at the deepest depth (`own/probe/changes.py` makes it), the cheapest first: a
change of the training before one of the model. Two come before all others: weights drawn far too large are made
smaller, and a rate far from all tested ones becomes the usual one. A higher rate comes last: it mends what is too slow,
and no other change is named then. Where no single one is enough, the likeliest of the training and the likeliest of the
model are tried together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stabkit.results.own.cell import Facts, ModelCell
from stabkit.results.own.rules import Word
from stabkit.results.own.verdict import verdict
from stabkit.words import scientific

WARMUP, CLIP, HEAD = 200, 1.0, 10
"""Updates of the warm-up that is tried; the norm that gradients are clipped to; what the head is divided by."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change."""

    key: str
    label: str
    code: Callable[[Facts], str]
    """A line of Python, of the model that it was tried on."""
    model: bool = False
    """Whether it changes the model, and not its training."""


def _rate(divisor: float) -> Callable[[Facts], str]:
    def line(facts: Facts) -> str:
        return f"lr = {scientific(facts.rate, 3)}  # was {scientific(divisor * facts.rate, 3)}"

    return line


def _usual(facts: Facts) -> str:
    return f"lr = {scientific(facts.rate, 3)}  # was {scientific(facts.factors[0] * facts.rate, 3)}"


def _branch(divisor: str) -> Callable[[Facts], str]:
    def line(facts: Facts) -> str:
        added = f"x + f(x) / {divisor.format(facts.layers)}"
        return f"x = norm({added})" if facts.normed_sums else f"x = {added}"

    return line


CHANGES: tuple[Change, ...] = (
    Change(
        "smaller",
        "matrices drawn as small as is usual",
        lambda facts: (
            f"for n, p in model.named_parameters(): p.data /= {facts.factors[0]:.3g} "
            f"if n.endswith({facts.changed!r}) else 1"
        ),
        model=True,
    ),
    Change("rate=usual", "the usual rate of its optimiser", _usual),
    Change("rate/3", "a third of the rate", _rate(3)),
    Change("rate/10", "a tenth of the rate", _rate(10)),
    Change(
        "warmup",
        f"a warm-up over {WARMUP} updates",
        lambda facts: f"torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min(1.0, (t + 1) / {WARMUP}))",
    ),
    Change(
        "clip",
        f"gradients clipped to a norm of {CLIP:g}",
        lambda facts: f"torch.nn.utils.clip_grad_norm_(model.parameters(), {CLIP:g})  # before optimizer.step()",
    ),
    Change(
        "head",
        f"a head {HEAD} times smaller",
        lambda facts: f"model.get_parameter({facts.guess.head if facts.guess else ''!r}).data /= {HEAD}",
        model=True,
    ),
    Change(
        "embedding",
        "an embedding of standard deviation 1",
        lambda facts: f"for n in {list(facts.changed)}: (p := model.get_parameter(n)).data /= p.std()",
        model=True,
    ),
    Change(
        "last/sqrt(2N)",
        "the last matrix of every branch times 1/√(2N)",
        lambda facts: (
            f"for n, p in model.named_parameters(): p.data /= math.sqrt({2 * facts.layers}) "
            f"if n.endswith({facts.changed!r}) else 1"
        ),
        model=True,
    ),
    Change(
        "deepnorm",
        "DeepNorm in place of Post-LN",
        lambda facts: (
            f"x = norm({facts.factors[0]:.3g} * x + f(x))  # values, outputs, feed-forward at first * "
            f"{facts.factors[1]:.3g}"
        ),
        model=True,
    ),
    Change("branch/sqrt(N)", "every branch times 1/√N", _branch("math.sqrt({})"), model=True),
    Change("branch/N", "every branch times 1/N", _branch("{}"), model=True),
    Change("rate*3", "three times the rate", _rate(1 / 3)),
    Change("rate*10", "ten times the rate", _rate(0.1)),
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
