"""How each sentence that compares methods is tried to be broken: experiments and variations, written before the runs.

An experiment is the `stabkit` commands that a sentence came from. A variation changes one thing of them: two further
seeds, the rate, each method's own best rate, the task, the batch, the number of updates. What an experiment then says
is judged by `judges.py`, by the same rule in every cell. The cheapest experiments come first.

The best rate is searched outward by factors of 2 with seed 0, as in `studies/recent`; the three other seeds, which have
chosen nothing, are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stabkit import api
from stabkit.options import lines
from stabkit.options.ranges import flag
from stabkit.paper.item import TINY
from studies import ladder
from studies.recent import design as recent
from studies.recent.table import RecentTable
from studies.rows import from_csv
from studies.study import Design

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
Options = Mapping[str, str]
"""{option: value} of a command."""

RUNGS = tuple(float(f"{1.25e-4 * 2**k:.3g}") for k in range(12))
"""1.25e-4 to 0.256."""
SPENT = "not run: the four hours of two cores that this design may take are spent; the cheapest cells came first"
LATE = "400"
"""Updates on the synthetic task, where it is seen later which methods train (`studies/forecast/corpus.py`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """One thing that is changed; `of` gives the options of a command, changed."""

    key: str
    head: str
    of: Callable[[Options], Options]
    searched: bool = False
    joined: bool = False
    """Whether its runs are judged together with those as stated."""


def _rates(lr: str, times: float) -> str:
    return ",".join(f"{float(rate) * times:.3g}" for rate in lr.split(","))


def _synthetic(given: Options) -> Options:
    steps = LATE if given["steps"] == "250" else given["steps"]
    return {**given, "data": "", "source": "", "target": "", "steps": steps}


VARIATIONS = (
    Variation(key="stated", head="as stated", of=lambda given: given),
    Variation(key="seeds", head="with two further seeds", of=lambda given: {**given, "seeds": "3,4"}, joined=True),
    Variation(key="lower", head="a third of the rate", of=lambda given: {**given, "lr": _rates(given["lr"], 1 / 3)}),
    Variation(key="higher", head="three times the rate", of=lambda given: {**given, "lr": _rates(given["lr"], 3)}),
    Variation(
        key="best",
        head="each at its own best rate",
        of=lambda given: {**given, "lr": ",".join(f"{rate:g}" for rate in RUNGS), "seeds": "0..3"},
        searched=True,
    ),
    Variation(key="synthetic", head="synthetic task", of=_synthetic),
    Variation(
        key="batch",
        head="twice the batch",
        of=lambda given: {**given, "max_tokens": str(2 * int(given["max_tokens"]))},
    ),
    Variation(
        key="longer", head="twice the updates", of=lambda given: {**given, "steps": str(2 * int(given["steps"]))}
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """The runs that a sentence came from, and why a variation of them is not run, where one is not."""

    key: str
    commands: tuple[str, ...]
    left: Mapping[str, str] = field(default_factory=dict)
    """{variation: why it is left out}."""


ONE = "--warmup 0 --max-tokens 256 --steps 250 --seeds 0..2"
LLAMA = f"--arch decoder-only --block llama --optimizer adamw {ONE}"
EMBEDDINGS = (HERE / "embeddings.py").relative_to(HERE.parents[1])
TIMES = (1, 2, 4, 8, 16, 32, 64)


def _order() -> tuple[str, ...]:
    """At 50 layers every method at the rate that `studies/recent` found for it, under each optimiser; 40 commands."""
    table = RecentTable(from_csv(DOCS / "2026.csv"), (*recent.KEYS, *recent.STARTS))
    by: dict[tuple[str, str], list[str]] = {}
    for cell in table.cells:
        if cell.depth == 50 and cell.best is not None:
            by.setdefault((cell.optimizer, ladder.written(cell.best.rate)), []).append(cell.variant)
    return tuple(
        f"sweep --models {','.join(variants)} --arch decoder-only --block llama --optimizer {optimizer} --depths 50 "
        f"--lr {rate} --warmup 0 --max-tokens 256 --steps 250 --seeds 0"
        for (optimizer, rate), variants in sorted(by.items())
    )


EXPERIMENTS = (
    Experiment(
        key="update-depth",
        commands=(
            "sweep --models post-ln,deepnorm --depths 6,18,50,100 --lr 5e-4 --warmup 4000 --max-tokens 256 --steps 16 "
            "--seeds 0..2",
        ),
        left={"best": "sixteen updates have no best rate"},
    ),
    Experiment(
        key="goal",
        commands=("slope --models post-ln,deepnorm --depths 6,18,50 --seeds 0..2",),
        left={
            "lower": "one step, so small that the model is linear in it: it has no rate",
            "higher": "one step, so small that the model is linear in it: it has no rate",
            "best": "one step, so small that the model is linear in it: it has no rate",
            "longer": "it is one step",
        },
    ),
    Experiment(
        key="stuck-18",
        commands=(
            "sweep --models post-ln,post-ln-init,admin,deepnorm --depths 18 --lr 5e-4 --warmup 0 --max-tokens 512 "
            "--steps 250 --seeds 0..2",
        ),
    ),
    Experiment(
        key="mhc-start",
        commands=(
            "sweep --models mhc,mhc:start=identity,mhc:start=static,hyper-connections,pre-ln --depths 18 --lr 2e-3 "
            + LLAMA,
        ),
    ),
    Experiment(
        key="embedding",
        commands=(
            "sweep --models "
            + ",".join(f"{EMBEDDINGS}:{name}:times={times}" for name in ("pre_ln", "depth_mup") for times in TIMES)
            + f" --depths 50 --lr 1e-3 {LLAMA}",
        ),
        left={
            **dict.fromkeys(("stated", "lower", "higher"), "the sentence is about best rates"),
            **dict.fromkeys(
                ("seeds", "synthetic", "batch", "longer"),
                "a search of its own, a quarter of an hour of two cores; not run",
            ),
        },
    ),
    Experiment(
        key="hundred",
        commands=(
            f"sweep --models post-ln,mix-ln,dyt,pre-ln,deepnorm --depths 100 --lr 1e-3 --arch decoder-only "
            f"{ONE.replace('0..2', '0')}",
        ),
    ),
    Experiment(
        key="order",
        commands=_order(),
        left={
            "best": "the sentence is about best rates: it is so as stated",
            "seeds": "three seeds at these rates stand in docs/2026.csv",
            **dict.fromkeys(("batch", "longer"), SPENT),
        },
    ),
)
"""The cheapest first."""


def lines_of(experiment: Experiment, variation: Variation) -> tuple[str, ...]:
    """The commands of one cell of the table; none where it is left out."""
    if variation.key in experiment.left:
        return ()
    made = []
    for text in experiment.commands:
        command, options = lines.words(text, api.COMMANDS)
        changed = variation.of({**PLAIN, **options})
        kept = {name: value for name, value in changed.items() if name in options or value != PLAIN.get(name)}
        made.append(" ".join([command, *(f"{flag(name)} {value or repr('')}" for name, value in kept.items())]))
    return tuple(made)


PLAIN = {"lr": "5e-4", "steps": "1", "max_tokens": "512", "seeds": "0"}
"""What a command that names none of these has (`slope`)."""
CELLS = {(e.key, v.key): lines_of(e, v) for e in EXPERIMENTS for v in VARIATIONS}
"""{(experiment, variation): its commands}."""


def _searches() -> dict[str, float]:
    found = dict[str, float]()
    for experiment in EXPERIMENTS:
        command, options = lines.words(experiment.commands[0], api.COMMANDS)
        first = float(str(options.get("lr", "1e-3")).partition(",")[0])
        near = min(RUNGS, key=lambda rung: abs(rung - first))
        found |= {line: near for v in VARIATIONS if v.searched for line in CELLS[experiment.key, v.key]}
    return found


DESIGN = Design(
    key="findings",
    title="What was found, tried to be broken",
    question="Which of the sentences that people will quote survive another rate, another seed, another task, another "
    "batch and twice the updates?",
    scaled=f"{TINY}; 6 to 500 layers, 250 updates.",
    commands=tuple(dict.fromkeys(line for lines_ in CELLS.values() for line in lines_)),
    searches=_searches(),
    ends=True,
)
