"""The studies' command: train what has no row, as long as a budget lasts, and write the page from the rows.

    python -m studies forecast --data DIR --source de --target en --rows docs/evidence/forecast.csv
    python -m studies later --data DIR --source de --target en --rows docs/evidence/later.csv
    python -m studies recent --data DIR --source de --target en --rows docs/evidence/2026.csv
    python -m studies coefficients     fit them on the rows of all three, and write them into the package

The first two make the page of the forecast, the third its own; `python3 dev.py evidence forecast` and `… recent` call
them. Options are those of `stabkit paper`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stabkit import words
from stabkit.cli import console
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns, StabkitError, UsageError
from stabkit.options import machine, ranges
from stabkit.report import json_document
from stabkit.results.forecast.model import FILE
from stabkit.running import cost
from stabkit.storage import locks
from stabkit.storage.store import Store
from studies import study
from studies.forecast import corpus, later
from studies.forecast import page as forecast_page
from studies.forecast.coefficients import document
from studies.forecast.evaluation import Evaluation
from studies.forecast.joined import rows_beside
from studies.recent import design as recent_design
from studies.recent import page as recent_page
from studies.rows import from_csv

DOCS = Path(__file__).parents[1] / "docs" / "evidence"
DESIGNS = {
    "forecast": corpus.DESIGN,
    "later": later.DESIGN,
    "recent": recent_design.DESIGN,
}
PAGES: dict[str, Any] = {
    "forecast": forecast_page,
    "later": forecast_page,
    "recent": recent_page,
}
PLACE = {"workers": "auto", "device": "auto", "executor": "processes", "scheduler": "", "shard": "", "out": ""}
MACHINE = {"vocab": "2000", **PLACE}
"""Options of `stabkit sweep` that its commands take over, and their defaults."""


def main(arguments: Sequence[str]) -> int:
    """The exit code; what goes wrong is one line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=(*DESIGNS, "coefficients"))
    for name in ("data", "source", "target"):
        parser.add_argument(f"--{name}", default="")
    for name, default in MACHINE.items():
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--rows", default="", help="a run that has a row is not trained; default: in OUT/studies/")
    parser.add_argument("--budget", default="", help="time that training may take: 45m, 2h")
    for name in ("json", "dry-run", "quiet", "retry-failed"):
        parser.add_argument(f"--{name}", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        if asked.study == "coefficients":
            write_coefficients()
        else:
            run(asked, shlex.join(["python", "-m", "studies", *arguments]))
    except StabkitError as error:
        console.error(error)
        return error.exit_code
    return 0


def run(asked: argparse.Namespace, command: str) -> None:
    """Train what has no row, write the page, and print its answer."""
    chosen = DESIGNS[asked.study]
    if not asked.data:
        raise UsageError(f"{chosen.key} studies a text beside the synthetic task: --data DIR --source de --target en")
    limit = ranges.duration("--budget", asked.budget)
    options = {name: getattr(asked, name) for name in ("data", "source", "target", *MACHINE)}
    requests, commands = study.requests(chosen, options)
    store = Store(machine.output(asked.out))
    rows = Path(asked.rows) if asked.rows else store.out / "studies" / f"{chosen.key}.csv"
    state = study.begun(chosen, commands, requests, rows)
    if asked.dry_run:
        need = sum(map(cost.seconds, state.missing)) / requests[0].place.workers
        console.say(f"{chosen.key}: {len(state.missing)} runs, about {words.duration(need)}")
        return
    page = PAGES[asked.study]
    path = store.out / "reports" / f"{chosen.key}{page.SUFFIX}"
    store.writable()
    with Signals(command), locks.awaited(store.runs, f"study-{chosen.key}"):  # its rows are one command's
        screen = Screen(quiet=asked.quiet)
        state = study.run(state, requests, store, screen, limit=limit, retry_failed=asked.retry_failed)
        content = page.write(state, path, command)
    if asked.json:
        console.document(json_document.text({"schema": json_document.SCHEMA, "report": str(path), **content}))
    else:
        console.paragraph(str(content["answer"]))
        console.say(f"rows: {rows}")
        console.say(f"report: {path}")
    if state.failed:
        raise FailedRuns(f"{len(state.failed)} runs have no result; --retry-failed tries again")


def write_coefficients() -> None:
    """Those of the package, by the committed rows: a second. A test fits them again and compares."""
    body = document(Evaluation(from_csv(DOCS / "forecast.csv")).fitted_rows, rows_beside(DOCS))
    FILE.write_text(json.dumps(body, separators=(",", ":")) + "\n", encoding="utf-8")
    console.say(f"{body['runs']} runs, corpus {body['corpus'][:12]}…, {FILE.stat().st_size:,} bytes: {FILE}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
