"""What a probe tells a continuous integration: what became worse than a committed baseline, GitHub's annotations and
step summary."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stabkit import outside
from stabkit.cli import console
from stabkit.errors import StabkitError, UsageError
from stabkit.options import probe as options
from stabkit.options.commands import ProbeOptions
from stabkit.report.result import ProbeResult
from stabkit.results.own import baseline
from stabkit.results.own.baseline import Baseline
from stabkit.storage.folder import write_file
from stabkit.wording import links

Level = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """A probe beside its baseline."""

    file: str
    worse: tuple[str, ...]
    """What became worse, a sentence each."""
    steady: str
    """Before and now, where nothing did."""
    at: str
    """` at 12 layers`, the depth whose word is held; "" without one."""

    @property
    def sentence(self) -> str:
        """`no worse than depth.json at 12 layers: trains (0.96 before, 0.97 now)`."""
        said = f"{'' if self.worse else 'no '}worse than {self.file}{self.at}"
        return f"{said}: {'; '.join(self.worse) or self.steady}"


def read(params: Mapping[str, Any], given: Mapping[str, Any]) -> Baseline | None:
    """The baseline that a probe is to be held against; None where there is none, or it is written anew. Raises
    UsageError, before anything is probed, where it cannot be read or is of another probe."""
    file, update = params.get("baseline"), params.get("update_baseline")
    if update and not file:
        raise UsageError("--update-baseline writes --baseline FILE: name the file")
    if update:
        outside.writable("--baseline", str(file))
    if update or not file:
        return None
    before = baseline.parse(f"--baseline {file}", outside.document("--baseline", file, baseline.LARGEST, baseline.ANEW))
    asked, _ = options.probe(ProbeOptions(**given))
    lrs = [lr or None for lr in asked.lrs]
    baseline.comparable(before, asked.factory, asked.depths, asked.seeds, asked.steps, lrs, quick=asked.quick)
    return before


def compared(result: ProbeResult, before: Baseline, file: str) -> AgainstBaseline:
    """What became worse than the baseline in this file."""
    now = _now(result)
    worse = tuple(baseline.worse(before, now))
    at = f" at {now.depths[-1]} layers" if now.depths[-1] else ""
    return AgainstBaseline(file, worse, "" if worse else baseline.steady(before, now), at)


def write(result: ProbeResult, path: Path) -> None:
    """`--update-baseline`: what this probe says, as a file to commit."""
    write_file(path, (json.dumps(_now(result).to_json(), indent=1) + "\n").encode())
    word, depth = result.judged.worst.word, result.judged.worst.depths[-1].depth
    already = f"; it says `{word}`{f' at {depth} layers' if depth else ''} already: only worse than that is caught"
    console.note(f"baseline: {path} written{already * (word != 'trains')}; commit it")


def _now(result: ProbeResult) -> Baseline:
    asked = result.request
    return baseline.of(result.judged, asked.factory, asked.depths, asked.seeds, asked.steps, quick=asked.quick)


def announce(result: ProbeResult, held: AgainstBaseline | None, ends: StabkitError | None) -> None:
    """Within a job of GitHub: an annotation, and a table in the summary of the step."""
    if not _in_job():
        return
    fine = held is not None or result.judged.worst.word == "trains"
    level: Level = "error" if ends else "notice" if fine else "warning"
    _annotate(level, result.request.factory, _message(result, held, ends))
    _summarised(_markdown(result, held, ends))


@contextlib.contextmanager
def annotated(params: Mapping[str, Any]) -> Iterator[None]:
    """What keeps a probe from any result, a factory that raises, say: an annotation and a summary within a job of
    GitHub."""
    try:
        yield
    except StabkitError as error:
        factory = str(params.get("factory") or "")
        if _in_job():
            _annotate("error", factory, str(error))
            _summarised(f"### stabkit probe\n\n**No result**: {error}\n\n")
        raise


def _in_job() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _summarised(text: str) -> None:
    """Beside the result: where it cannot be written that is a note."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as summary:
                summary.write(text)
        except (OSError, ValueError) as error:
            console.note(f"no step summary: {getattr(error, 'strerror', None) or error}: {path}")


def _annotate(level: Level, factory: str, message: str) -> None:
    console.note(f"::{level} title=stabkit probe {_escaped(factory)}::{_escaped(message)}")


def _message(result: ProbeResult, held: AgainstBaseline | None, ends: StabkitError | None) -> str:
    """Why a job ends as it does, in a line."""
    if held is None:
        return str(ends) if result.failed else result.verdict
    if held.worse and ends:
        return str(ends)
    return f"{held.sentence}; {ends}" if ends else held.sentence


def _escaped(text: str) -> str:
    """As GitHub's workflow commands want it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _markdown(result: ProbeResult, held: AgainstBaseline | None, ends: StabkitError | None) -> str:
    lines = ["### stabkit probe", ""]
    if result.failed:
        lines += [f"**{ends}**", ""]
    if held is not None:
        lines += [f"**{held.sentence[0].upper()}{held.sentence[1:]}.**", ""]
    lines += [result.verdict, ""]
    for rate in links.rates(result.judged):
        head = ("link", "", "with depth", *rate["depths"], "among models that train")
        lines += ["", f"{rate['name']}: **{rate['word']}**", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for link in rate["links"]:
            row = (link["name"], link["word"], link["exponent"], *link["values"], link["among"])
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join([*lines, "", ""])
