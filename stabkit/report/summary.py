"""What runs say together, computed once a command: the verdict matrix, the sentence that answers, the claims. The
terminal, the page and the `--json` document all show this one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.claims import Finding, findings
from stabkit.results.conditions import apart, trained
from stabkit.results.matrix import Matrix, matrix
from stabkit.results.once import Runs
from stabkit.results.run import Run
from stabkit.results.surface import Surface
from stabkit.spec import RunSpec
from stabkit.wording.answer import answer, instead
from stabkit.wording.breaks import goes_first


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Runs, and what was made of them."""

    runs: Runs
    """All, each once."""
    apart: Runs
    """Without those that are another's training once more, with other probes."""
    trained: Runs
    """Of these without single steps of SGD, which have no verdict; where there is nothing else, those."""
    failed: tuple[tuple[RunSpec, str], ...]
    """The runs without a result, and why."""
    surfaces: tuple[Surface, ...]
    claims: tuple[Finding, ...]
    matrix: Matrix
    answer: str
    """Which methods train at which depths, and the link that goes first; "" without a verdict or a forecast."""
    instead: str
    """What they say where they have no answer."""


@np.errstate(all="ignore")  # runs diverge as they like: what comes of it is NaN or infinity and is told as such
def summarise(
    runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = (), surfaces: Sequence[Surface] = ()
) -> Summary:
    """The summary of these runs."""
    every = Runs({run.run_id: run for run in runs}.values())
    distinct = Runs(apart(every))
    learnt = trained(distinct)
    verdicts = matrix([run for run in learnt if not run.spec.single_step], failed)
    return Summary(
        runs=every,
        apart=distinct,
        trained=learnt,
        failed=tuple(failed),
        surfaces=tuple(surfaces),
        claims=tuple(findings(distinct, surfaces)),
        matrix=verdicts,
        answer=(answered := " ".join(filter(None, (answer(verdicts), goes_first(learnt))))),
        instead="" if answered else instead(learnt, failed),
    )
