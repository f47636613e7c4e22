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
from stabkit.errors import FailedRuns, StabkitError, Undecided, Unstable, UsageError
from stabkit.options.commands import ProbeOptions
from stabkit.report import json_document
from stabkit.report.own import document
from stabkit.report.own.document import BaselineJson
from stabkit.report.result import ProbeResult, WidthsResult
from stabkit.wording import anatomy, links, widths


def probe(invocation: Invocation) -> None:
    """Probe, show, write the page; raises Unstable where a link fails, FailedRuns where a depth has no result."""
    png = invocation.params.get("png")
    if png and (Path(png).suffix.lower() not in (".png", ".svg", ".pdf") or invocation.params.get("widths")):
        raise UsageError(f"--png writes a .png, .svg or .pdf file, of a probe over depths; got {png!r}")
    file, screen = invocation.params.get("baseline"), Screen(quiet=invocation.flag("quiet"), command=again())
    with Signals(screen.command.replace(" --fresh", "")), gate.annotated(invocation.params):
        before = gate.read(invocation.params, invocation.given)
        result = inspect.unwrap(api.probe)(ProbeOptions(**invocation.given), screen)
        page = result.page
    if isinstance(result, WidthsResult):
        _widths(result, **{name: invocation.flag(name) for name in ("json", "strict", "no_fail")})
        return
    if png:
        from stabkit.report.own.probe import save_first

        save_first(result.judged, Path(png))
    held = None
    if before is not None and not result.failed:  # what was not measured is neither better nor worse
        held = gate.compared(result, before, str(file))
    if invocation.flag("json"):
        against: BaselineJson | None = None if held is None else {"file": held.file, "worse": list(held.worse)}
        body = document.body(result.judged, result.done, result.request, page, result.seconds, against)
        console.document(json_document.text(body))
    else:
        _table(result, page, quiet=invocation.flag("quiet"), goes_on=not (held and held.worse))
    ends = _ends(result, strict=invocation.flag("strict"), no_fail=invocation.flag("no_fail"))
    if invocation.flag("update_baseline") and not result.failed:
        gate.write(result, Path(str(file)))
        ends = None if isinstance(ends, Unstable) else ends  # it is accepted
    if held is not None:
        if held.worse and not invocation.flag("no_fail"):
            cure = result.judged.cure
            mended = f"it {cure.word} with {cure.label}, `{cure.code}`; " if cure else ""
            ends = Unstable(f"{held.sentence}; {mended}revert the change, or accept it with --update-baseline")
        else:
            ends = None if isinstance(ends, Unstable) else ends  # it was so before
            console.note(held.sentence)
    gate.announce(result, held, ends)
    if ends is not None:
        raise ends


def _widths(result: WidthsResult, *, json: bool, strict: bool, no_fail: bool) -> None:
    """`--widths`: a row a width; raises FailedRuns, Unstable where the widest fails, and with --strict Undecided where
    it does not train for sure."""
    if json:
        body = document.widths(result.words, result.request.predict, result.verdict, result.page)
        console.document(json_document.text(body))
    else:
        console.table("Words by width", ("width", *widths.HEADS), widths.rows(result.words))
        console.say()
        console.paragraph(result.verdict)
        console.say(f"report: {result.page}")
    if result.failed:
        spec, first = result.failed[0]
        raise FailedRuns(f"{spec.name} has no result: {first.reason}")
    word, said = result.words.widest.decision.word, widths.by_width(result.words)
    if word == "fails" and not no_fail:
        raise Unstable(f"it {said}: exit code 7, or 0 with --no-fail")
    if strict and word != "trains":
        raise Undecided(f"it {said}: --strict needs a model that trains")


def _ends(result: ProbeResult, *, strict: bool, no_fail: bool) -> StabkitError | None:
    """What it ends with: 3 before 7; 7 where it fails; with --strict 8 unless it trains."""
    if result.failed:
        spec, first = result.failed[0]
        where = f"depth {spec.depth}" if spec.depth is not None else "the model"
        log = f"; full traceback: {first.log}" if first.log else ""
        return FailedRuns(f"{where}, seed {spec.seed} has no result: {first.reason}{log}")
    worst = result.judged.worst
    if worst.word == "fails" and not no_fail:
        named = f" ({' and '.join(worst.failing)})" if worst.failing else ""
        return Unstable(f"it {links.by_depth(worst)}{named}: exit code 7, or 0 with --no-fail")
    if strict and worst.word != "trains":
        return Undecided(f"it {links.by_depth(worst)}: --strict needs a model that trains")
    return None


def _table(result: ProbeResult, page: Path, *, quiet: bool, goes_on: bool) -> None:
    """The words and links of every rate, the changes that were tried, the sentence, the page, and what to do next: what
    became worse is reverted or accepted."""
    judged, done = result.judged, result.done
    for row in links.rates(judged):
        said = [("", "", "", *(cell[i] for cell in row["said"])) for i in (1, 2)]  # the word, what it rests on
        rows = [(one["name"], one["word"], one["exponent"], *one["values"]) for one in row["links"]]
        heads = ("link", f"at {row['depths'][-1]}" * (len(row["depths"]) > 1), "with depth", *row["depths"])
        console.table(row["name"], heads, [*said, *rows])
        units = (f"{link['name']}: {link['unit']}" for link in row["links"] if link["unit"])
        console.paragraph(f"{'; '.join(units)}. {'Geometric means over seeds' if row['seeds'] > 1 else 'One seed'}.")
        console.say()
    if tried := links.cures(judged):
        heads = ("change", "", "loss", "without", "updates")
        rows = [(one["change"], f"{one['word']}, {one['basis']}", *(one[name] for name in heads[2:])) for one in tried]
        enough = "; two train, so later ones are left out" * (sum(one.trains for one in judged.cures) > 1)
        console.table(f"Changes tried on the deepest model{enough}", heads, rows)
        console.say()
    for note in () if quiet else anatomy.notes(judged.cells):
        console.paragraph(f"note: {note}")
    if done.reused and not quiet:
        console.say(f"{done.reused} of {len(judged.cells)} cached; --fresh probes them again")
    console.paragraph(result.verdict)
    console.say(f"report: {page}")
    if goes_on and not quiet and not result.failed:
        for line in f"next: {links.following(judged, result.request.factory, result.call)}".splitlines():
            console.say(line)
