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
from stabkit.wording.answer import answer, in_short, instead, setting
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
    headline: str
    """Of surfaces which method's is rougher, of factors with which a method trains; "" of other runs."""
    answer: str
    """The headline, which methods train at which depths, and the link that goes first; "" without any of them."""
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
    (headline, *said), about = _factors(learnt) or [""], _surfaces(every, surfaces)
    whole, brief = answer(verdicts), in_short(verdicts)
    about = about or [brief] * (brief.removesuffix(".") not in whole)
    answered = [*said, setting(verdicts)] if said else [*about, whole, goes_first(learnt)]
    text = " ".join(filter(None, answered))
    return Summary(
        runs=every,
        apart=distinct,
        trained=learnt,
        failed=tuple(failed),
        surfaces=tuple(surfaces),
        claims=tuple(findings(distinct, surfaces)),
        matrix=verdicts,
        headline=headline or "".join(about[:1]),
        answer=text,
        instead="" if text else instead(learnt, failed),
    )


def _surfaces(runs: Sequence[Run], surfaces: Sequence[Surface]) -> list[str]:
    """Which method's surface is rougher, and its shares; nothing without surfaces."""
    if not surfaces:
        return []
    from stabkit.figures.surfaces import landscape  # with pandas, which a terminal's table of runs does without
    from stabkit.results.landscape import Landscape

    return [f"{sentence}." for sentence in landscape.found(Landscape(runs, surfaces))]


def _factors(runs: Sequence[Run]) -> list[str]:
    """The headline and the sentences of factors on α and β; nothing of runs without factors, or without a verdict."""
    if not any(run.spec.alpha_scale != 1 or run.spec.beta_scale != 1 for run in runs):
        return []
    from stabkit.results import scales  # with pandas
    from stabkit.wording import factors

    said = factors.sentences(scales.frame(runs))
    return [factors.in_short(said), *(one.whole for one in said)] if said else []
