"""What a probe tells a continuous integration: what became worse than a committed baseline, GitHub's annotations and
step summary, JUnit."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from stabkit.cli import console
from stabkit.errors import UsageError
from stabkit.report.own import links
from stabkit.report.result import ProbeResult
from stabkit.results.own import baseline
from stabkit.storage.folder import write_file

Level = Literal["error", "warning", "notice"]


def compared(result: ProbeResult, path: Path, *, update: bool) -> list[str] | None:
    """What became worse than the baseline in this file; None after it was written, which `update` asks for."""
    asked = result.request
    now = baseline.of(result.judged, asked.factory, asked.depths, asked.seeds, asked.steps)
    if update:
        try:
            write_file(path, (json.dumps(now.to_json(), indent=1) + "\n").encode())
        except OSError as error:
            raise UsageError(f"--baseline {path} cannot be written: {error.strerror}") from error
        console.note(f"baseline: {path} written; commit it")
        return None
    return baseline.worse(baseline.read(path), now)


def announce(result: ProbeResult, worse: Sequence[str], *, failed: bool) -> None:
    """Within a job of GitHub: an annotation, and a table in the summary of the step."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    level: Level = "error" if failed else "notice" if result.judged.worst.word == "likely trains" else "warning"
    message = "; ".join(worse) or result.verdict
    console.note(f"::{level} title=stabkit probe {_escaped(result.request.factory)}::{_escaped(message)}")
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(_markdown(result, worse))


def _escaped(text: str) -> str:
    """As GitHub's workflow commands want it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _markdown(result: ProbeResult, worse: Sequence[str]) -> str:
    lines = ["### stabkit probe", "", links.in_short(result.judged), ""]
    lines += [f"- Worse than the baseline: {sentence}." for sentence in worse]
    for rate in links.rates(result.judged):
        head = ("link", "verdict", "with depth", *rate["depths"], "among models that train")
        lines += ["", f"{rate['name']}: **{rate['word']}**", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for link in rate["links"]:
            row = (link["name"], link["verdict"], link["exponent"], *link["values"], link["among"])
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join([*lines, "", ""])


def junit(result: ProbeResult, worse: Sequence[str], path: Path, *, failed: bool) -> None:
    """Write a test suite: a case for the verdict, one a link and rate."""
    suite = ET.Element("testsuite", name=f"stabkit probe {result.request.factory}")
    verdict = ET.SubElement(suite, "testcase", classname="stabkit.probe", name="verdict")
    if failed:
        ET.SubElement(verdict, "failure", message="; ".join(worse) or result.verdict)
    for rate in links.rates(result.judged):
        for link in rate["links"]:
            name = f"{link['name'].lower()}, {rate['name']}"
            case = ET.SubElement(suite, "testcase", classname="stabkit.probe.links", name=name)
            if link["verdict"] == "fail" and failed:
                ET.SubElement(case, "failure", message=link["why"])
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    try:
        write_file(path, ET.tostring(suite, encoding="utf-8", xml_declaration=True))
    except OSError as error:
        raise UsageError(f"--junit {path} cannot be written: {error.strerror}") from error
