"""`stabkit probe`: the user's model probed in workers; a table, a page, an exit code."""

from __future__ import annotations

import inspect
from pathlib import Path

from stabkit import api
from stabkit.cli import console
from stabkit.cli.command import Invocation
from stabkit.cli.commands import gate
from stabkit.cli.commands.train import again
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns, StabkitError, Undecided, Unstable
from stabkit.options.commands import ProbeOptions
from stabkit.report import json_document
from stabkit.report.own import document
from stabkit.report.own.document import BaselineJson
from stabkit.report.result import CoordinatesResult, ProbeResult
from stabkit.results.own.forecast import ONE_BATCH, RATE, USUAL, scored
from stabkit.results.own.judged import Judged
from stabkit.results.own.outcome import ENOUGH
from stabkit.results.own.rules import FINE, STUCK
from stabkit.results.own.verdict import Verdict
from stabkit.running.probes import ProbeRequest
from stabkit.wording import anatomy, links
from stabkit.words import scientific

RATES = "1e-4,3e-4,1e-3"
"""Rates that are proposed."""
SHORT, BESIDE, PAIR = ENOUGH, 6, 2
"""Updates of a training that decides what a forecast leaves open, the layers that its deepest is compared with where
the loss is the user's own, and its seeds: two on two cores take as long as one."""


def probe(invocation: Invocation) -> None:
    """Probe, show, write the page; raises Unstable where a link fails, FailedRuns where a depth has no result."""
    file, screen = invocation.params.get("baseline"), Screen(quiet=invocation.flag("quiet"), command=again())
    with Signals(screen.command), gate.annotated(invocation.params):
        before = gate.read(invocation.params, invocation.given)
        result = inspect.unwrap(api.probe)(ProbeOptions(**invocation.given), screen)
        page = result.page
    if isinstance(result, CoordinatesResult):
        _coordinates(result, json=invocation.flag("json"), strict=invocation.flag("strict"))
        return
    held = None
    if before is not None and not result.failed:  # what was not measured is neither better nor worse
        held = gate.compared(result, before, str(file))
    if invocation.flag("json"):
        against: BaselineJson | None = None if held is None else {"file": held.file, "worse": list(held.worse)}
        body = document.body(result.judged, result.done, result.request, page, against)
        console.document(json_document.text(body))
    else:
        _table(result, page, quiet=invocation.flag("quiet"))
    ends = _ends(result, strict=invocation.flag("strict"), no_fail=invocation.flag("no_fail"))
    if invocation.flag("update_baseline") and not result.failed:
        gate.write(result, Path(str(file)))
        ends = None if isinstance(ends, Unstable) else ends  # it is accepted
    if held is not None:
        if held.worse:
            cure = result.judged.cure
            mended = f"it is likely to train with {cure.label}, `{cure.code}`; " if cure else ""
            ends = Unstable(f"{held.sentence}; {mended}revert the change, or accept it with --update-baseline")
        else:
            ends = None if isinstance(ends, Unstable) else ends  # it was so before
            console.note(held.sentence)
    gate.announce(result, held, ends)
    if ends is not None:
        raise ends


def _coordinates(result: CoordinatesResult, *, json: bool, strict: bool) -> None:
    """`--widths`: a row a coordinate; raises FailedRuns, and with --strict Unstable where one drifts."""
    from stabkit.report.own import coordinates as page

    verdict = result.found.verdict
    if json:
        console.document(json_document.text(document.widths(result.found, result.verdict, result.page)))
    else:
        heads = ("width", *map(str, page.widths(result.found)), "exponent", "verdict")
        console.table(
            "Size per coordinate",
            heads,
            [(name, *sizes, law, said) for name, _, sizes, law, said in page.rows(result.found)],
        )
        console.say()
        console.paragraph(result.verdict)
        console.say(f"report: {result.page}")
    if result.failed:
        spec, first = result.failed[0]
        raise FailedRuns(f"{spec.name} has no result: {first.reason}")
    if strict and verdict == "drifts":
        raise Unstable("coordinates drift with width; without --strict the exit code is 0")


def _ends(result: ProbeResult, *, strict: bool, no_fail: bool) -> StabkitError | None:
    """What it ends with: 3 before 7; 7 for `likely stuck` or stuck; with --strict 8 for open or out of range."""
    if result.failed:
        spec, first = result.failed[0]
        where = f"depth {spec.depth}" if spec.depth is not None else "the model"
        log = f"; full traceback: {first.log}" if first.log else ""
        return FailedRuns(f"{where}, seed {spec.seed} has no result: {first.reason}{log}")
    worst = result.judged.worst
    if worst.word in STUCK and not no_fail:
        named = f" ({' and '.join(worst.failing)})" if worst.failing else ""
        word = "it does not train as it stands" if worst.broken else worst.word
        return Unstable(f"{word}{named}: exit code 7, or 0 with --no-fail")
    if strict and worst.word not in FINE:
        return Undecided(f"{worst.word}: --strict needs a model that is likely to train")
    return None


def _table(result: ProbeResult, page: Path, *, quiet: bool) -> None:
    """The links of every rate, the changes that were tried, the sentence, the page, and what to do next."""
    judged, done = result.judged, result.done
    for row in links.rates(judged):
        console.table(
            f"{row['name']}: {row['word']}",
            ("link", "", "with depth", *row["depths"], "among models that train"),
            [(one["name"], one["word"], one["exponent"], *one["values"], one["among"]) for one in row["links"]],
        )
        units = (f"{link['name']}: {link['unit']}" for link in row["links"] if link["unit"])
        console.paragraph(f"{'; '.join(units)}. {'Geometric means over seeds' if row['seeds'] > 1 else 'One seed'}.")
        console.say()
    idle = links.leans(judged.worst) and judged.cure is None and links.helpful(judged) is None
    if (tried := links.cures(judged)) and not idle:
        rows = [(one["change"], one["word"], one["probability"]) for one in tried]
        which = "the seed least likely to train, " if judged.unchanged is not None else "seed "
        on = f", on {which}{judged.tried_on}" if judged.tried_on is not None else ""
        console.table(f"Changes tried at the greatest depth{on}", ("change", "forecast", "probability"), rows)
        console.say()
    for note in () if quiet else anatomy.notes(judged.cells):
        console.paragraph(f"note: {note}")
    if done.reused and not quiet:
        console.say(f"{done.reused} of {len(judged.cells)} cached; --fresh probes them again")
    console.paragraph(result.verdict)
    console.say(f"report: {page}")
    if not quiet and not result.failed:
        console.say(f"next: {_following(judged, result.request)}")


def _following(judged: Judged, asked: ProbeRequest) -> str:
    """What to do next: the change that mends it, a command, two lines of a training."""
    worst = judged.worst
    if judged.cure is not None:
        return judged.cure.code
    if worst.word == "out of range" and (near := links.helpful(judged)) is not None and RATE not in worst.forecast.axes:
        return near.code
    if ONE_BATCH in worst.forecast.axes:
        return "return (model, loss) from the factory, with a new batch at each step in loss(model, step); probe again"
    if (shorter := _trained(judged, worst, asked)) is not None:
        return shorter
    depths = ",".join(str(depth) for depth in asked.depths if depth is not None)
    given = f" --depths {depths}" if depths else ""
    if judged.wanted and worst.word == "likely stuck":
        lr = f" --lr {scientific(worst.lr)}" if worst.lr else ""
        return f"stabkit probe {asked.factory}{given}{lr} --cure-time {judged.wanted}  # tries the other changes"
    if worst.word in ("likely stuck", "open") and not links.leans(worst) and len(judged.verdicts) == 1:
        return f"stabkit probe {asked.factory}{given} --lr {RATES}  # does the rate break it, or the depth?"
    return "watch = stabkit.watch(model, optimizer) before your loop, watch.close() after it"


def _trained(judged: Judged, worst: Verdict, asked: ProbeRequest) -> str | None:
    """The command of a short training at one rate, which decides what is open; after one that was stuck, at the usual
    rate or a tenth. None where a loss of the user's own has no shallower model to be compared with."""
    deepest = max((cell for cell in judged.cells if cell.facts.lr == worst.lr), key=lambda own: own.facts.depth or 0)
    facts = deepest.facts
    own = facts.frequencies is None
    shallow = min(BESIDE, (facts.depth or 0) // 2) if own else 0
    undecided = worst.word in ("open", "stuck") or worst.forecast.axes == (RATE,)
    if own and shallow < 1:
        return None
    if not undecided or not facts.rate > 0 or not facts.fresh or not scored(deepest):
        return None
    rate, why = facts.rate, ""
    steps = max(2 * asked.steps, SHORT) if worst.trained else SHORT + facts.warmup // 2
    if worst.word == "stuck":
        usual = USUAL.get(next(iter(facts.optimizers), ""), 0.0)
        near = usual / 3 <= facts.rate <= 3 * usual
        rate, why = (facts.rate / 10, ", a tenth of the rate") if near or not usual else (usual, ", the usual rate")
        steps = asked.steps
    lr = f" --lr {scientific(rate)}" if worst.lr or worst.word == "stuck" else ""
    warmup = f" --warmup {asked.warmup}" if asked.warmup else ""
    depths = f" --depths {f'{shallow},' if shallow else ''}{facts.depth}" if facts.depth is not None else ""
    seeds = ",".join(map(str, asked.seeds[:PAIR]))
    given = f"{depths}{lr}{warmup} --steps {steps} --seeds {seeds}"
    ends = ", which ends where it has learnt" if not own and not why else ""
    return f"stabkit probe {asked.factory}{given}  # a short training{why}{ends}"
