"""The page of recent methods, as HTML and as Markdown, and its content as values."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.claims import OF_TODAY
from stabkit.claims.base import ORDER, Finding
from stabkit.claims.verdict import judge
from stabkit.errors import StoreError
from stabkit.figures.drawing import style
from stabkit.figures.picture import Picture
from stabkit.figures.shared.words import percent, plain, short
from stabkit.methods.today import OUT
from stabkit.report.cards import card
from stabkit.report.frame import shell, template
from stabkit.results.forecast.model import ours
from stabkit.storage.folder import write_file
from studies import row_run
from studies.forecast.coefficients import before
from studies.forecast.heldout_methods import TRUSTED, HeldOutRuns, held_out, to_json
from studies.markdown import finding_lines, table_lines
from studies.rows import digest
from studies.study import Study
from studies.today import along, design, page_tables, rates, sentences
from studies.today.page_tables import Costs, with_sign
from studies.today.table import MethodTable, Number

FIGURES: tuple[Picture[MethodTable], ...] = (along.LEAST, rates.PICTURE, along.GRADIENT, along.USE)
"""They select from a MethodTable; else they are as those of `stabkit.figures`."""
TIMES = ("block", "method", "ratio", "low", "high")
"""What the page reads of the times of a step."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """All that is on the page, from the study's rows and the times next to them."""

    study: Study
    table: MethodTable
    cost: Costs
    searched: HeldOutRuns
    """The search's runs by the forecast that has seen none of them."""
    tabled: HeldOutRuns
    """The table's likewise: other seeds, one rate."""
    findings: Sequence[Finding]

    @cached_property
    def scores(self) -> list[tuple[str, HeldOutRuns]]:
        return sentences.scores(self.searched, self.tabled)

    @cached_property
    def paragraphs(self) -> list[str]:
        """What follows the page's first sentence."""
        blocks, depth = sentences.block_sentences(self.table), sentences.depth_sentence(self.table)
        return [text for text in (*blocks, depth, *self.forecast) if text]

    @cached_property
    def forecast(self) -> list[str]:
        """How good the forecast is."""
        scores = sentences.forecast_sentences(self.searched, self.tabled)
        return [text for text in (*scores, sentences.given_sentence(ours().abstains)) if text]


def content(study: Study) -> Content:
    """Of a study as far as it has come."""
    table, (fit, highest) = design.read(study.rows), before()
    return Content(
        study=study,
        table=table,
        cost=costs(study.path.with_name(design.COSTS)),
        searched=held_out(table.halved, fit, highest),
        tabled=held_out(table.tabled, fit, highest),
        findings=findings(study),
    )


def write(study: Study, path: Path, command: str) -> dict[str, Any]:
    """Write the page; returns its content, for `--json` and the terminal."""
    page = content(study)
    write_file(path, render(page, command).encode())
    write_file(path.with_suffix(".md"), markdown(page).encode())
    table = page.table
    return {
        "answer": sentences.answer(table),
        "sentences": page.paragraphs,
        "rows": str(study.path),
        "missing": len(study.missing),
        "table": [cell.to_json() for cell in table.cells],
        "exponents": [
            {"block": block, "method": method, "value": n.value, "low": n.low, "high": n.high}
            for (block, method), n in table.exponents.items()
        ],
        "cost": [
            {"block": b, "method": m, "value": n.value, "low": n.low, "high": n.high} for (b, m), n in page.cost.items()
        ],
        "forecast": {name: to_json(runs) for name, runs in page.scores},
        "claims": [{"id": f.claim.key, "verdict": f.verdict, "measured": f.measured} for f in page.findings],
    }


def costs(path: Path) -> Costs:
    """{(block, method): a step's time over Pre-LN's}; nothing where it was not measured. Raises StoreError for a file
    that is none of `step_cost.py`."""
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            if not set(TIMES) <= set(rows.fieldnames or ()):
                raise ValueError(f"its first line must name {', '.join(TIMES)}")
            return {(row["block"], row["method"]): _ratio(row) for row in rows}
    except (OSError, UnicodeDecodeError, csv.Error, TypeError, ValueError) as error:
        raise StoreError(
            f"{path}: not the steps' times of studies.today.step_cost ({type(error).__name__}: {error}); "
            "write it anew or move it away"
        ) from error


def _ratio(row: Mapping[str, str]) -> Number:
    value, low, high = (float(row[name]) for name in ("ratio", "low", "high"))
    if not 0 < low <= value <= high < math.inf:
        raise ValueError(f"{value:g} ({low:g} to {high:g}) is no ratio of two times within its interval")
    return Number(value, low, high)


def findings(study: Study) -> list[Finding]:
    """The claims of recent methods, judged on the table's runs, which no outcome has chosen; those that hold first."""
    runs = row_run.runs(study, lambda spec: spec.seed != design.SEED)
    claims = [claim for claim in OF_TODAY if claim.methods[0] in design.KEYS]
    return sorted((judge(claim, runs) for claim in claims), key=lambda finding: ORDER.index(finding.verdict))


@np.errstate(all="ignore")
def render(page: Content, command: str) -> str:
    """The page as one HTML file."""
    study, table = page.study, page.table
    return template(Path(__file__).with_name("page.html.j2")).render(
        **shell(study.design.title, command, sentences.answer(table)) | {"elsewhere": ""},  # it needs its text
        swatch=style.colour,
        sentences=page.paragraphs,
        tables=page_tables.tables(table, page.cost),
        cards=[card(figure, figure.select(table), table) for figure in FIGURES],
        judged=page.findings,
        forecast=[(name, *scored(runs)) for name, runs in page.scores],
        heads=FORECAST,
        out=[(method.label, method.formula, method.needs, method.source) for method in OUT.values()],
        scaled=study.design.scaled,
        trusted=TRUSTED,
        verdict=design.VERDICT,
        last=design.LAST,
        commands=[plain(line) for line in study.commands],
        rows=plain(str(study.path)),
        count=len(study.rows),
        digest=digest(study.rows),
        missing=len(study.missing),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in study.failed],
        switches=[],
        group_switches=[],
        lit=(),
    )


def scored(runs: HeldOutRuns) -> tuple[str, ...]:
    """A row of the forecast's table, by FORECAST."""
    whole = runs.whole
    low, high = runs.skill_interval
    alike = whole.trained in (0, whole.n)
    skill = f"{with_sign(whole.skill)} ({with_sign(low)} to {with_sign(high)})"
    return (
        str(whole.n),
        percent(whole.base_rate),
        "–" if alike else short(whole.auc),
        "– (all end alike)" if alike else skill,
        percent(whole.coverage),
        percent(whole.accuracy),
    )


FORECAST = ("runs", "that train", "AUC", "Brier skill (95 %)", "likely, either way", "of these right")


def markdown(page: Content) -> str:
    """The same as a page of `docs/`."""
    study, table = page.study, page.table
    lines = [
        f"# {study.design.title}",
        "",
        "Written by `python3 dev.py evidence today` from its rows, [today.csv](today.csv), as a page with pictures "
        "([reports/today.html](../reports/today.html)) and as this file; no number here is typed by hand.",
        "",
        sentences.answer(table),
        *(
            ["", f"**Not whole yet**: {len(study.missing)} runs are next, and more may follow."]
            if study.missing
            else []
        ),
        *(f"\n{text}" for text in page.paragraphs),
        "",
        study.design.scaled[:1].upper() + study.design.scaled[1:],
    ]
    for block, tables in page_tables.tables(table, page.cost).items():
        lines += ["", f"## {block.capitalize()} block"]
        for shown in tables:
            lines += [
                "",
                f"{shown.caption}.",
                "",
                *table_lines(("method", *shown.heads), [(label, *texts) for _, label, texts in shown.rows]),
            ]
    lines += ["", "## What the papers say of their own methods", ""]
    lines += finding_lines(page.findings)
    lines += ["", "## Does the forecast hold for them?", "", *page.forecast, ""]
    lines += table_lines(("of", *FORECAST), [(name, *scored(runs)) for name, runs in page.scores])
    lines += ["", "## Not here yet", ""]
    lines += [
        f"- {method.label}: `{method.formula}`. It needs {method.needs} ({method.source})." for method in OUT.values()
    ]
    return "\n".join(lines) + "\n"
